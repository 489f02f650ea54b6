//! Digests, and the root that stands for a whole history.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use super::heads::Head;
use crate::account::{AccountId, SlotIndex};

/// A SHA-256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Before the first link of every chain.
    pub const ZERO: Self = Self([0; 32]);

    /// The next link of a chain.
    #[must_use]
    pub fn then(&self, bytes: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(bytes);
        Self(hash.finalize().into())
    }
}

/// 64 digits of lower case hex.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |number: u8| DIGITS.get(usize::from(number)).copied().unwrap_or(b'?');
        let mut hex = [0; 64];
        for (pair, byte) in hex.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [digit(byte >> 4), digit(byte & 0xF)];
        }
        f.write_str(std::str::from_utf8(&hex).unwrap_or_default())
    }
}

/// What a history was, up to a number of records.
///
/// `digest` is the SHA-256 of a text: the line `sluice-root 1`, the line `RECORDS JOURNAL` (the number and the head of
/// the journal's chain in hex), and for each slot that has entries, by account id as bytes and then by number, the line
/// `ACCOUNT SLOT VERSION HEAD`. Every line ends in a line feed. Shown as `RECORDS:DIGEST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// Lines of the journal that it covers.
    pub records: u64,
    pub digest: Digest,
}

/// Why a text is not a [`Root`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a root such as 1024:9f86…, a number and 64 digits of hex, not {0:?}")]
pub struct RootError(String);

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.records, self.digest)
    }
}

impl FromStr for Root {
    type Err = RootError;

    fn from_str(text: &str) -> Result<Self, RootError> {
        let wrong = || RootError(text.chars().take(90).collect());
        let (records, digest) = text.split_once(':').ok_or_else(wrong)?;
        let root = Self {
            records: records.parse().map_err(|_| wrong())?,
            digest: digest.parse().map_err(|()| wrong())?,
        };
        // One spelling: no sign, no leading zero, no upper case.
        if root.to_string() == text {
            Ok(root)
        } else {
            Err(wrong())
        }
    }
}

impl FromStr for Digest {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return Err(());
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| ())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| ())?;
        }
        Ok(Self(bytes))
    }
}

/// Computes a root, head by head.
#[derive(Debug)]
pub(crate) struct RootHasher {
    records: u64,
    hash: Sha256,
}

impl RootHasher {
    pub(crate) fn new(records: u64, journal: &Digest) -> Self {
        let mut hash = Sha256::new();
        hash.update(format!("sluice-root 1\n{records} {journal}\n"));
        Self { records, hash }
    }

    /// The next slot that has entries: by account id as bytes, then by number.
    pub(crate) fn slot(&mut self, account: &AccountId, slot: SlotIndex, head: &Head) {
        let (slot, version, digest) = (slot.get(), head.version, head.digest);
        self.hash.update(format!("{account} {slot} {version} {digest}\n"));
    }

    pub(crate) fn finish(self) -> Root {
        Root {
            records: self.records,
            digest: Digest(self.hash.finalize().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_read_as_it_is_shown_and_in_no_other_spelling() {
        let root = Root {
            records: 12,
            digest: Digest([0xAB; 32]),
        };
        let shown = root.to_string();
        assert_eq!(shown, format!("12:{}", "ab".repeat(32)));
        assert_eq!(shown.parse(), Ok(root));
        let wrong = [
            format!("+{shown}"),
            format!("0{shown}"),
            shown.to_uppercase(),
            shown.replace(':', "-"),
            shown[..shown.len() - 1].to_owned(),
            format!("{shown} "),
            "12".to_owned(),
            String::new(),
        ];
        for text in wrong {
            assert!(text.parse::<Root>().is_err(), "{text}");
        }
    }

    /// `printf 'sluice-root 1\n0 0000…\n' | sha256sum`
    #[test]
    fn the_root_of_nothing_is_what_a_shell_says_it_is() {
        let root = RootHasher::new(0, &Digest::ZERO).finish();
        assert_eq!(
            root.to_string(),
            "0:90cade8593a0cb6f3478e835cf60fff99d9f3a177fc2070cc9481b0960140ee3"
        );
    }
}
