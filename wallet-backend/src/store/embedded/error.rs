//! Why a data directory is not opened.

use std::io;

use crate::store::codec::wire::CodecError;
use crate::store::embedded::segment;

/// Why the store could not be opened, or read. Nothing was changed that was worth keeping.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the directory.
    #[error("the data directory is in use by another process")]
    InUse,
    /// The file system failed.
    #[error("cannot {doing}")]
    Io {
        doing: String,
        #[source]
        source: io::Error,
    },
    /// Written by a version that this one does not know.
    #[error("{file} has format version {found}; this program reads version {known}")]
    Version { file: String, found: u64, known: u64 },
    /// The directory is something else, on which no ledger may go on.
    #[error("{what}")]
    NoLedger { what: String },
    /// The log is not what was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

/// A place at which the log is not what was written. Nothing after it can be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damage in segment {segment} ({file}) at byte {offset}: {what}")]
pub struct Damage {
    pub segment: u64,
    pub file: String,
    /// Of the page, from the beginning of the file.
    pub offset: u64,
    pub what: String,
}

impl Damage {
    pub(super) fn at(segment: u64, page: u32, what: impl Into<String>) -> Self {
        Self {
            segment,
            file: segment::name(segment),
            offset: segment::offset(page),
            what: what.into(),
        }
    }

    pub(super) fn checksum(segment: u64, page: u32, expected: u64, found: u64) -> Self {
        let what = format!("the page's checksum is {found:016x}, its content gives {expected:016x}");
        Self::at(segment, page, what)
    }

    pub(super) fn record(segment: u64, page: u32, error: &CodecError) -> Self {
        Self::at(
            segment,
            page,
            format!("a record of this batch cannot be read: {error}"),
        )
    }
}

impl OpenError {
    /// In one line with its source, for logs and answers that keep no error.
    pub(super) fn whole(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            Self::InUse | Self::Version { .. } | Self::NoLedger { .. } | Self::Damaged(_) => self.to_string(),
        }
    }

    /// Names what was being done when the file system failed.
    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}
