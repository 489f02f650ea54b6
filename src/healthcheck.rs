//! `sluice healthcheck`: whether the sidecar is ready, for Docker and scripts.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

/// Flags of `sluice healthcheck`.
#[derive(Clone, Debug, Args)]
pub struct HealthcheckArgs {
    /// The admin or status address to ask
    #[arg(
        long,
        value_name = "ADDR",
        env = "SLUICE_ADMIN",
        default_value = "127.0.0.1:8719"
    )]
    pub admin: SocketAddr,
}

/// Why the sidecar does not count as ready.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    #[error("nothing answers on http://{0}: is `sluice run` up?")]
    Silent(SocketAddr, #[source] reqwest::Error),
    #[error("not ready: {0}")]
    Answered(String),
}

/// How long the answer may take. Docker's own default limit is 30 s.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks `/readyz`.
///
/// # Errors
/// No answer within 2 s, or one that is not 200; the text of that answer says why.
pub async fn run(args: &HealthcheckArgs) -> Result<(), NotReady> {
    let silent = |error| NotReady::Silent(args.admin, error);
    // The proxy variables of the environment are for the world outside, not for loopback.
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .map_err(silent)?;
    let address = reachable(args.admin);
    let response = client
        .get(format!("http://{address}/readyz"))
        .send()
        .await
        .map_err(silent)?;
    if response.status().as_u16() == 200 {
        return Ok(());
    }
    Err(NotReady::Answered(response.text().await.map_err(silent)?))
}

/// An address that listens on every interface is asked on loopback.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let loopback: std::net::IpAddr = if address.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        };
        address.set_ip(loopback);
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspecified_address_is_asked_on_loopback() {
        assert_eq!(
            reachable("0.0.0.0:8719".parse().unwrap()).to_string(),
            "127.0.0.1:8719"
        );
        assert_eq!(reachable("[::]:1".parse().unwrap()).to_string(), "[::1]:1");
    }
}
