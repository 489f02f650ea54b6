//! How many connections the open files of this process allow.
//!
//! Past the limit the kernel refuses a file to whoever asks next, and that may be the log: callers that only hold
//! connections would keep the ledger from beginning its next segment. So the soft limit is raised to the hard one, and
//! connections get what the store does not need; the rest of the callers wait in the kernel's queue.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For the store (32 segments for reading, the one in use and the next, a checkpoint and a run, blocks being read),
/// the listener, the runtimes' pollers and the standard streams, twice over.
const RESERVED: u64 = 128;

/// `wanted`, or fewer if the process may not open enough files for so many.
pub(super) fn connections_within(wanted: usize) -> usize {
    let limit = raised();
    let allowed = allowed(limit, wanted);
    if allowed < wanted {
        tracing::warn!(
            limit,
            connections = allowed,
            wanted,
            "few connections: raise the limit of open files (ulimit -n)"
        );
    }
    allowed
}

/// The limit of open files, raised as far as it goes without privileges; `None` = none.
fn raised() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: maximum,
        maximum,
    };
    // A system that refuses leaves in force what was.
    match setrlimit(Resource::Nofile, most) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}

/// What is left beside the store, at least a quarter of the limit and at least one.
fn allowed(limit: Option<u64>, wanted: usize) -> usize {
    let Some(limit) = limit else { return wanted };
    let left = limit.saturating_sub(RESERVED).max(limit / 4);
    usize::try_from(left).unwrap_or(usize::MAX).clamp(1, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_get_what_the_store_leaves() {
        assert_eq!(allowed(Some(1_024), 4_096), 896);
        assert_eq!(allowed(Some(1 << 20), 4_096), 4_096);
        assert_eq!(allowed(None, 4_096), 4_096);
    }

    #[test]
    fn with_few_files_a_quarter_is_for_connections_and_there_is_always_one() {
        assert_eq!(allowed(Some(100), 4_096), 25);
        assert_eq!(allowed(Some(2), 4_096), 1);
    }
}
