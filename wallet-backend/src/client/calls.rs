//! A method a route.

use reqwest::Method;

use super::Client;
use super::error::{CallError, Problem};
use super::request::{self, Asked};
use super::told::{AccountPage, AccountState, Done, Outcome, Past, RequestState, StatementPage};
use super::verdict::Reply;
use super::wire::{self, Told};
use crate::account::{Account, AccountId, Hold, HoldTerm, RequestId, Timestamp};
use crate::command::{Amendment, Command, DebitAmount, Operation, Receipt, Remainder};
use crate::money::Amount;

/// A moment of an account's past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment<'a> {
    /// After the entries before the `next` of a page, or at the `cursor` of a past.
    Cursor(&'a str),
    /// Which must be over.
    Time(Timestamp),
}

type Called<T> = Result<T, CallError>;

impl Client {
    /// Opens an account. `true` where it was opened now; the same terms again give it back as it is.
    ///
    /// # Errors
    /// `Rejected` where it exists with other terms, and as [`Client::run`].
    pub async fn open(&self, account: &Account) -> Called<(AccountState, bool)> {
        let reply = self.0.ask(request::open(account)?).await?;
        Ok((wire::read(&answer(&reply)?.body)?, reply.status == 201))
    }

    /// Adds money.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn credit(
        &self,
        account: &AccountId,
        request: &RequestId,
        amount: Amount,
        memo: Option<&str>,
    ) -> Called<Outcome<Receipt>> {
        let memo = memo.map(Into::into);
        self.move_money(account, request, Operation::Credit { amount, memo })
            .await
    }

    /// Takes money, never below the floor: an [`Amount`], or all there is.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn debit(
        &self,
        account: &AccountId,
        request: &RequestId,
        amount: impl Into<DebitAmount>,
        memo: Option<&str>,
    ) -> Called<Outcome<Receipt>> {
        let (amount, memo) = (amount.into(), memo.map(Into::into));
        self.move_money(account, request, Operation::Debit { amount, memo })
            .await
    }

    /// Sets money aside. `request` is the hold's id.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn hold(
        &self,
        account: &AccountId,
        request: &RequestId,
        amount: Amount,
        expires_in: Option<HoldTerm>,
    ) -> Called<Outcome<Receipt>> {
        self.move_money(account, request, Operation::Hold { amount, expires_in })
            .await
    }

    /// Takes money out of a hold; `None` is all that is left of it.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn capture(
        &self,
        account: &AccountId,
        request: &RequestId,
        hold: &RequestId,
        amount: Option<Amount>,
        remainder: Remainder,
    ) -> Called<Outcome<Receipt>> {
        let operation = Operation::Capture {
            hold: hold.clone(),
            amount,
            remainder,
        };
        self.move_money(account, request, operation).await
    }

    /// Gives all that is left of a hold back to its account.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn release(
        &self,
        account: &AccountId,
        request: &RequestId,
        hold: &RequestId,
    ) -> Called<Outcome<Receipt>> {
        let hold = hold.clone();
        self.move_money(account, request, Operation::Release { hold })
            .await
    }

    /// Moves money from one account to another. The request id is one of `from`'s.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn transfer(
        &self,
        from: &AccountId,
        request: &RequestId,
        to: &AccountId,
        amount: Amount,
        memo: Option<&str>,
    ) -> Called<Outcome<Receipt>> {
        let (to, memo) = (to.clone(), memo.map(Into::into));
        self.move_money(from, request, Operation::Transfer { to, amount, memo })
            .await
    }

    /// Undoes what `reverses`, a request of the account, did: wholly, and once.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn reverse(
        &self,
        account: &AccountId,
        request: &RequestId,
        reverses: &RequestId,
    ) -> Called<Outcome<Receipt>> {
        let reverses = reverses.clone();
        self.move_money(account, request, Operation::Reversal { reverses })
            .await
    }

    /// Changes the account's status, slots, modes or floor, in force when this returns.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn amend(
        &self,
        account: &AccountId,
        request: &RequestId,
        amendment: Amendment,
    ) -> Called<Outcome<AccountState>> {
        let command = command(account, request, Operation::Amend(amendment));
        self.run(&command).await?.and_then(|done| match done {
            Done::Account(account) => Ok(account),
            Done::Receipt(_) => Err(another("a receipt")),
        })
    }

    /// Runs any command until it is decided.
    ///
    /// # Errors
    /// `Rejected` where the command is wrong, not allowed, or about what is not there; `NotDone` and `Unknown` at the
    /// deadline; `Unreadable` where no wallet answers.
    pub async fn run(&self, command: &Command) -> Called<Outcome<Done>> {
        let reply = self.0.ask(request::command(command)?).await?;
        if reply.status >= 400 {
            return Ok(Outcome::Refused(Problem::read(reply.status, &reply.body)));
        }
        let told = match command.operation {
            Operation::Amend(_) => Done::Account(wire::read(&reply.body)?),
            Operation::Credit { .. }
            | Operation::Debit { .. }
            | Operation::Hold { .. }
            | Operation::Capture { .. }
            | Operation::Release { .. }
            | Operation::Transfer { .. }
            | Operation::Reversal { .. } => Done::Receipt(wire::read(&reply.body)?),
        };
        let replayed = reply.replayed;
        Ok(Outcome::Done { told, replayed })
    }

    /// Claims an undecided id as refused, or says what it became: afterwards the caller is sure.
    ///
    /// # Errors
    /// `Rejected` for an unknown account, which proves nothing; else as [`Client::run`].
    pub async fn abandon(&self, account: &AccountId, request: &RequestId) -> Called<Outcome<Done>> {
        let path = ["v1", "requests", account.as_str(), request.as_str(), "abandon"];
        match self.tell(Asked::new(Method::POST, path)?).await? {
            RequestState::Decided(outcome) => Ok(outcome),
            RequestState::NotFound | RequestState::InProgress => Err(another("an undecided request")),
        }
    }

    /// What is known of a request id.
    ///
    /// # Errors
    /// As [`Client::account`].
    pub async fn request(&self, account: &AccountId, request: &RequestId) -> Called<RequestState> {
        let path = ["v1", "requests", account.as_str(), request.as_str()];
        self.tell(Asked::get(path)?).await
    }

    /// The account with its money, at one cut.
    ///
    /// # Errors
    /// `Rejected` where there is none; `NotDone` or `Unknown` at the deadline; `Unreadable`.
    pub async fn account(&self, id: &AccountId) -> Called<AccountState> {
        self.tell(Asked::get(["v1", "accounts", id.as_str()])?).await
    }

    /// What the account had at a moment of its past.
    ///
    /// # Errors
    /// As [`Client::account`]; `Rejected` for a moment that is none.
    pub async fn past(&self, id: &AccountId, moment: Moment<'_>) -> Called<Past> {
        let asked = Asked::get(["v1", "accounts", id.as_str()])?;
        let asked = match moment {
            Moment::Cursor(cursor) => asked.with("cursor", cursor),
            Moment::Time(Timestamp(micros)) => {
                let time = jiff::Timestamp::from_microsecond(micros);
                let time = time.map_err(|error| CallError::Invalid {
                    field: "at",
                    reason: error.to_string(),
                })?;
                asked.with("at", format!("{time:.6}"))
            }
        };
        self.tell(asked).await
    }

    /// At most `limit` (1 to 1 000) accounts after `after`, the `next` of an earlier page.
    ///
    /// # Errors
    /// As [`Client::account`].
    pub async fn accounts(&self, after: Option<&str>, limit: usize) -> Called<AccountPage> {
        self.tell(page(Asked::get(["v1", "accounts"])?, after, limit))
            .await
    }

    /// At most `limit` (1 to 1 000) entries of a statement after `after`, the `next` of an earlier page.
    ///
    /// # Errors
    /// As [`Client::account`].
    pub async fn entries(&self, id: &AccountId, after: Option<&str>, limit: usize) -> Called<StatementPage> {
        let asked = Asked::get(["v1", "accounts", id.as_str(), "entries"])?;
        let reply = self.0.ask(page(asked, after, limit)).await?;
        wire::read_page(id, &answer(&reply)?.body)
    }

    /// A hold as it is now, however long ago it ended.
    ///
    /// # Errors
    /// As [`Client::account`].
    pub async fn look_up_hold(&self, account: &AccountId, hold: &RequestId) -> Called<Hold> {
        let path = ["v1", "accounts", account.as_str(), "holds", hold.as_str()];
        self.tell(Asked::get(path)?).await
    }

    /// Returns once the wallet takes commands.
    ///
    /// # Errors
    /// `NotDone` where it does not until the deadline.
    pub async fn ready(&self) -> Called<()> {
        self.0.ask(Asked::get(["readyz"])?).await.map(drop)
    }

    /// OpenMetrics text.
    ///
    /// # Errors
    /// As [`Client::account`].
    pub async fn metrics(&self) -> Called<String> {
        let reply = self.0.ask(Asked::get(["metrics"])?).await?;
        Ok(String::from_utf8_lossy(&answer(&reply)?.body).into_owned())
    }

    async fn move_money(
        &self,
        account: &AccountId,
        request: &RequestId,
        operation: Operation,
    ) -> Called<Outcome<Receipt>> {
        let command = command(account, request, operation);
        self.run(&command).await?.and_then(|done| match done {
            Done::Receipt(receipt) => Ok(receipt),
            Done::Account(_) => Err(another("an account")),
        })
    }

    async fn tell<T: Told>(&self, asked: Asked) -> Called<T> {
        let reply = self.0.ask(asked).await?;
        wire::read(&answer(&reply)?.body)
    }
}

/// An answer where no refusal is one.
fn answer(reply: &Reply) -> Called<&Reply> {
    if reply.status < 300 {
        return Ok(reply);
    }
    Err(CallError::Rejected(Problem::read(reply.status, &reply.body)))
}

fn page(asked: Asked, after: Option<&str>, limit: usize) -> Asked {
    let asked = asked.with("limit", limit);
    match after {
        Some(after) => asked.with("after", after),
        None => asked,
    }
}

fn command(account: &AccountId, request: &RequestId, operation: Operation) -> Command {
    Command {
        account: account.clone(),
        request: request.clone(),
        operation,
    }
}

fn another(found: &str) -> CallError {
    CallError::Unreadable {
        what: format!("the answer is {found}"),
    }
}
