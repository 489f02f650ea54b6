//! The ledger's history as text that anybody can hash: one line of JSON for each decided task, chained and rooted.
//!
//! A line ([`Lines`]) is a function of [`Changes`] and of nothing else: not of where the store keeps it, nor of its
//! format. On the lines stand three kinds of SHA-256 ([`Heads`]):
//! - of each slot, a chain over its entries: `head(n) = sha256(head(n - 1) || entry n)`, the entry as its JSON object
//!   stands in the line, `head(0)` 32 zero bytes;
//! - of the whole journal, a chain over its lines, without their line feeds: refusals, memos, accounts and order;
//! - the [`Root`], over the journal's head and every slot's head: whoever has it can tell whether anything before it
//!   was changed since.
//!
//! A line is read again by `Reader` (feature `import`), which knows no other spelling.
//!
//! SHA-256 and not BLAKE3: on the few hundred bytes of a line it is no slower where the processor has instructions for
//! it, and everybody has a tool for it.
//!
//! [`Changes`]: crate::command::Changes

mod decision;
mod heads;
mod json;
mod line;
#[cfg(feature = "import")]
mod read;
mod root;

pub use heads::{Head, Heads};
pub use line::{Line, Lines};
#[cfg(feature = "import")]
pub use read::{LineError, Reader};
pub(crate) use root::RootHasher;
pub use root::{Digest, Root, RootError};
