//! Why there is no backup, or why one was not restored.

use std::io;
use std::path::PathBuf;

use crate::store::embedded::error::OpenError;
use crate::store::embedded::report::Report;
use crate::store::embedded::verify::VerifyError;

/// Why there is no backup, or why one was not restored. What had been written is taken away again.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("there is no store in this directory")]
    NoStore,
    /// The ledger that is backed up, or what was copied of it.
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the log was replaced each time that it was copied: is the wallet starting again and again?")]
    Restless,
    /// Only a directory that is empty, or not there yet, is written to.
    #[error("{} is not empty", .0.display())]
    NotEmpty(PathBuf),
    #[error("an earlier attempt was broken off here: take {} away first", .0.display())]
    BrokenOff(PathBuf),
    #[error("{} is no backup, or one that was broken off: it has no {file}", directory.display())]
    NoBackup { directory: PathBuf, file: &'static str },
    /// A file of the backup, by its name in it.
    #[error("{file} is not as the backup was made: {what}")]
    Changed { file: String, what: String },
    /// Every file is as it was, and what is in them can't be.
    #[error("what was backed up does not prove itself\n{0}")]
    Unproven(Box<Report>),
    #[error("cannot {doing}")]
    Io {
        doing: String,
        #[source]
        source: io::Error,
    },
}

impl BackupError {
    /// The ledger or the backup is damaged; anything else kept us from looking.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Open(OpenError::Damaged(_)) | Self::Changed { .. } | Self::Unproven(_) => true,
            Self::NoStore
            | Self::Open(_)
            | Self::Restless
            | Self::NotEmpty(_)
            | Self::BrokenOff(_)
            | Self::NoBackup { .. }
            | Self::Io { .. } => false,
        }
    }

    /// Names what was being done when the file system failed.
    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    pub(super) fn changed(file: impl Into<String>, what: impl Into<String>) -> Self {
        let (file, what) = (file.into(), what.into());
        Self::Changed { file, what }
    }
}

impl From<VerifyError> for BackupError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::NoStore => Self::NoStore,
            VerifyError::Open(error) => Self::Open(error),
        }
    }
}
