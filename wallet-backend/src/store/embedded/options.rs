//! How a store is opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::store::Preference;
use crate::store::embedded::disk::{Disk, RealDisk};
use crate::store::embedded::page::PAGE;
use crate::store::embedded::segment::MAX_PAGES;

/// How a store is opened. [`Options::at`] has the defaults.
#[derive(Debug)]
pub struct Options {
    /// The data directory.
    pub disk: Arc<dyn Disk>,
    pub clock: Clock,
    pub preference: Preference,
    /// Size of a segment; 64 KiB, into which the largest record fits, to 4 GiB, in whole pages.
    pub segment_bytes: u64,
    /// Room for new batches in the segment that opening makes: restarts should not eat the disk.
    pub fresh_bytes: u64,
    /// A checkpoint is due after so many bytes of log.
    pub checkpoint_bytes: u64,
    /// A tail of more bytes is not written again at opening, but for its last batch.
    pub rewrite_bytes: u64,
    /// How long until a segment that could not be prepared is tried again.
    pub retry: Duration,
    /// How often it is looked whether a UTC day has ended, whose root is then published. `None`: never.
    pub daily_root: Option<Duration>,
}

impl Options {
    /// A directory of the file system, made if it is missing.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self::on(Arc::new(RealDisk::new(directory)))
    }

    /// Any disk.
    #[must_use]
    pub fn on(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            clock: Clock::default(),
            preference: Preference::default(),
            segment_bytes: 64 << 20,
            fresh_bytes: 4 << 20,
            checkpoint_bytes: 64 << 20,
            rewrite_bytes: 1 << 30,
            retry: Duration::from_secs(1),
            daily_root: Some(Duration::from_secs(10)),
        }
    }

    pub(super) fn pages(bytes: u64, least: u64) -> u32 {
        let pages = (bytes >> PAGE.ilog2()).clamp(least, MAX_PAGES.into());
        u32::try_from(pages).unwrap_or(MAX_PAGES)
    }
}
