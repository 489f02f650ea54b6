//! `X-Signature: t=…,v1=…`: proof to a receiver that a body came from this wallet, and when.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The shortest secret, in bytes: 128 bits at the least, if it is made of all of them.
pub const MIN_SECRET_BYTES: usize = 16;
const MAX_SECRET_BYTES: usize = 1_024;

/// What wallet and receiver share.
#[derive(Clone)]
pub struct Secret(Box<[u8]>);

/// Why a text is no secret. Never repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it must be one line of {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes, for example from `openssl rand -hex 32`"
)]
pub struct SecretError;

impl Secret {
    /// The text of a secret file: one line, without the end of it.
    ///
    /// # Errors
    /// [`SecretError`] for more lines than one, or another length.
    pub fn parse(file: &str) -> Result<Self, SecretError> {
        let line = file.trim_end_matches(['\n', '\r']);
        let length = MIN_SECRET_BYTES..=MAX_SECRET_BYTES;
        if !length.contains(&line.len()) || line.contains(['\n', '\r']) {
            return Err(SecretError);
        }
        Ok(Self(line.as_bytes().into()))
    }

    /// The header's value for a body that is sent at `at` after 1970: `v1` is the HMAC-SHA256 of `t`, a full stop and the
    /// body, in hex.
    pub(super) fn sign(&self, at: Duration, body: &str) -> String {
        let t = at.as_secs();
        // A key may have any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            return String::new();
        };
        mac.update(format!("{t}.").as_bytes());
        mac.update(body.as_bytes());
        let mut value = format!("t={t},v1=");
        for byte in mac.finalize().into_bytes() {
            // Writing to a String cannot fail.
            let _ = write!(value, "{byte:02x}");
        }
        value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac sixteen-bytes-ok`.
    #[test]
    fn a_signature_is_the_hmac_of_time_and_body() {
        let secret = Secret::parse("sixteen-bytes-ok\n").unwrap();
        let signed = secret.sign(Duration::from_secs(1_700_000_000), r#"{"a":1}"#);
        assert_eq!(
            signed,
            "t=1700000000,v1=0150120e1fca7ed0c0e715168c9507c970705c33c3a9bcbfa4f6da7c8d0cf5d6"
        );
    }

    #[test]
    fn a_secret_is_one_line_of_some_length_and_is_not_shown() {
        for bad in ["", "short", "two lines of\nsome length", &"x".repeat(1_025)] {
            assert_eq!(Secret::parse(bad).unwrap_err(), SecretError, "{bad:?}");
        }
        let secret = Secret::parse("a secret of some length\r\n").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret");
    }
}
