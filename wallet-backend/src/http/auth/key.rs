//! API keys: a secret that the caller has, its hash in a file here, and what it is good for.
//!
//! The file has one key a line, `NAME SCOPES sha256:HASH`; blank lines and lines that begin with `#` are skipped. The
//! hash is plain SHA-256. That is enough because a secret is 256 random bits: nobody can try them all, however fast
//! the hash is, so a slow one would only cost every request its time. It would not be enough for a password, which is
//! why only what looks like a secret of [`Secret::new`] is looked up at all.
//!
//! ```text
//! # the shop's checkout
//! checkout read,debit sha256:8d1f…
//! ```

use std::fmt;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::scope::Scopes;
use super::{ScopesError, same};

/// What every secret begins with, so that people and scanners know one that lies about.
const PREFIX: &str = "wk_";
/// How every hash in the file begins.
const ALGORITHM: &str = "sha256:";
const HASH_BYTES: usize = 32;
/// Every one is compared with every request.
const MAX_KEYS: usize = 1_000;
const MAX_NAME_BYTES: usize = 64;

type Hash = [u8; HASH_BYTES];

/// What a caller sends: `wk_` and 64 hex digits. Shown once, when it is made.
pub struct Secret(String);

/// One line of a keys file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    name: String,
    scopes: Scopes,
    hash: Hash,
}

/// The keys of a file. None at all is a file like any other: then no key is good.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<Key>);

/// Why a keys file is refused. Repeats nothing of the line: a secret may stand there by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct KeyFileError {
    pub line: usize,
    pub fault: KeyFault,
}

/// What is wrong with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    #[error("a key is NAME SCOPES sha256:HASH, as `wallet-backend key new` writes it")]
    Parts,
    #[error("a name has 1 to {MAX_NAME_BYTES} of A-Z a-z 0-9 . _ -")]
    Name,
    #[error(transparent)]
    Scopes(#[from] ScopesError),
    #[error("a hash is sha256: and 64 digits of 0-9 a-f")]
    Hash,
    #[error("the name or the hash is that of another line")]
    Twice,
    #[error("there may be {MAX_KEYS} keys")]
    TooMany,
}

impl Secret {
    /// A new one, from the system's random numbers.
    ///
    /// # Errors
    /// Where the system has none.
    pub fn new() -> Result<Self, getrandom::Error> {
        let mut random = [0; HASH_BYTES];
        getrandom::fill(&mut random)?;
        Ok(Self(format!("{PREFIX}{}", hex(&random))))
    }

    /// The text to send as `Authorization: Bearer`.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Its line in a keys file.
    ///
    /// # Errors
    /// [`KeyFault::Name`].
    pub fn key(&self, name: &str, scopes: Scopes) -> Result<Key, KeyFault> {
        Ok(Key {
            name: checked_name(name)?,
            scopes,
            hash: hash(self.0.as_bytes()),
        })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, scopes, hash } = self;
        write!(f, "{name} {scopes} {ALGORITHM}{}", hex(hash))
    }
}

impl Key {
    fn parse(line: &str) -> Result<Self, KeyFault> {
        let mut parts = line.split_ascii_whitespace();
        let (Some(name), Some(scopes), Some(hash), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(KeyFault::Parts);
        };
        let digits = hash.strip_prefix(ALGORITHM).ok_or(KeyFault::Hash)?;
        Ok(Self {
            name: checked_name(name)?,
            scopes: scopes.parse()?,
            hash: unhex(digits).ok_or(KeyFault::Hash)?,
        })
    }
}

impl Keys {
    /// Reads the text of a keys file.
    ///
    /// # Errors
    /// The first line that is no key.
    pub fn parse(file: &str) -> Result<Self, KeyFileError> {
        let mut keys: Vec<Key> = Vec::new();
        for (line, text) in (1..).zip(file.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let at = |fault| KeyFileError { line, fault };
            let key = Key::parse(text).map_err(at)?;
            if keys
                .iter()
                .any(|known| known.name == key.name || known.hash == key.hash)
            {
                return Err(at(KeyFault::Twice));
            }
            if keys.len() >= MAX_KEYS {
                return Err(at(KeyFault::TooMany));
            }
            keys.push(key);
        }
        Ok(Self(keys))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What this secret is good for. Looks at every key and at every byte.
    pub(super) fn scopes(&self, given: &[u8]) -> Option<Scopes> {
        let digits = given.strip_prefix(PREFIX.as_bytes())?;
        if digits.len() != 2 * HASH_BYTES {
            return None;
        }
        let hash = hash(given);
        self.0.iter().fold(None, |found, key| {
            if same(&key.hash, &hash) {
                Some(key.scopes)
            } else {
                found
            }
        })
    }
}

fn checked_name(name: &str) -> Result<String, KeyFault> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(allowed) {
        Ok(name.to_owned())
    } else {
        Err(KeyFault::Name)
    }
}

fn hash(secret: &[u8]) -> Hash {
    Sha256::digest(secret).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Hash> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' | b'a'..=b'f' => char::from(byte).to_digit(16),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let pairs: &[[u8; 2]; HASH_BYTES] = pairs.try_into().ok().filter(|_| rest.is_empty())?;
    let mut hash = Hash::default();
    for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
        *byte = u8::try_from((digit(*high)? << 4) | digit(*low)?).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A secret, and the line for it as `sha256sum` would have it.
    const SECRET: &str = "wk_0000000000000000000000000000000000000000000000000000000000000000";
    const HASH: &str = "7ddb3248d343571c52c6800bd5ecbbbefd91e937c834f708ed98a40211498c63";

    fn line(name: &str, scopes: &str) -> String {
        format!("{name} {scopes} sha256:{HASH}")
    }

    fn fault(file: &str) -> (usize, KeyFault) {
        let KeyFileError { line, fault } = Keys::parse(file).unwrap_err();
        (line, fault)
    }

    #[test]
    fn a_secret_is_good_for_what_the_line_with_its_hash_says() {
        let file = format!("# the shop\n\n  {}\r\n", line("shop", "debit,read"));
        let keys = Keys::parse(&file).unwrap();
        assert_eq!(keys.len(), 1);
        assert_eq!(keys.scopes(SECRET.as_bytes()), "read,debit".parse().ok());
        for other in [
            "",
            "wk_",
            &SECRET[1..],
            &SECRET[..66],
            &format!("{SECRET}0"),
            HASH,
        ] {
            assert_eq!(keys.scopes(other.as_bytes()), None, "{other}");
        }
        let one_bit_off = SECRET.replace("wk_0", "wk_1");
        assert_eq!(keys.scopes(one_bit_off.as_bytes()), None);
    }

    #[test]
    fn a_made_secret_is_good_once_its_line_is_in_the_file_and_no_two_are_the_same() {
        let (first, second) = (Secret::new().unwrap(), Secret::new().unwrap());
        assert_ne!(first.reveal(), second.reveal());
        let scopes = "credit".parse().unwrap();
        let written = first.key("till-1", scopes).unwrap().to_string();
        assert!(!written.contains(first.reveal()));
        let keys = Keys::parse(&written).unwrap();
        assert_eq!(keys.scopes(first.reveal().as_bytes()), Some(scopes));
        assert_eq!(keys.scopes(second.reveal().as_bytes()), None);
        assert_eq!(first.key("till 1", scopes), Err(KeyFault::Name));
    }

    #[test]
    fn what_is_no_key_is_refused_by_its_line() {
        let good = line("a", "read");
        let upper = HASH.to_uppercase();
        for (file, expected) in [
            ("\na read".to_owned(), (2, KeyFault::Parts)),
            (format!("{good} x"), (1, KeyFault::Parts)),
            (line("a:b", "read"), (1, KeyFault::Name)),
            (line("a", "write"), (1, KeyFault::Scopes(ScopesError))),
            (format!("a read {HASH}"), (1, KeyFault::Hash)),
            (format!("a read sha256:{upper}"), (1, KeyFault::Hash)),
            (format!("a read sha256:{HASH}00"), (1, KeyFault::Hash)),
            (format!("a read {SECRET}"), (1, KeyFault::Hash)),
            (format!("{good}\n{}", line("b", "read")), (2, KeyFault::Twice)),
        ] {
            assert_eq!(fault(&file), expected, "{file}");
        }
    }

    #[test]
    fn a_file_has_a_thousand_keys_at_most() {
        let key = |number: usize| format!("k{number} read sha256:{number:064x}\n");
        let file: String = (0..MAX_KEYS).map(key).collect();
        assert_eq!(Keys::parse(&file).unwrap().len(), MAX_KEYS);
        let more = format!("{file}{}", key(MAX_KEYS));
        assert_eq!(fault(&more), (MAX_KEYS + 1, KeyFault::TooMany));
    }
}
