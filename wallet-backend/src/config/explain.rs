//! The command line of `explain`.

use clap::Args;
use wallet_backend::account::{AccountId, RequestId};

use super::StoreLocation;

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The account.
    #[arg(value_name = "ACCOUNT", value_parser = AccountId::new)]
    pub(crate) account: AccountId,
    /// A request of it: what was asked, what it became, and every entry that it wrote. Of a refusal the log is read up to
    /// there, for the numbers that prove it.
    #[arg(long, value_name = "ID", value_parser = RequestId::new)]
    pub(crate) request: Option<RequestId>,
    /// embedded:DIR. A process may be using it, and goes on; only the right to read is needed.
    #[arg(
        long,
        env = "WALLET_STORE",
        value_name = "STORE",
        default_value = "embedded:./data"
    )]
    pub(crate) store: StoreLocation,
    /// How many of the account's last entries are shown, up to 1000.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) entries: u16,
    /// One object of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
