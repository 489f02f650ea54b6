//! How many client connections the open files of this process allow.
//!
//! A connection may need a second one, to the upstream. Past the limit the kernel refuses both, and a client that holds
//! many connections would turn everyone's requests into 502s and trip the breakers. So the soft limit is raised to the
//! hard one, and the connection cap keeps to what is left: past the cap clients wait in the kernel's queue.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Kept back for rule files, books, logs, admin connections, and the pollers of the threads beside the workers.
const RESERVED: u64 = 64;

/// Kept back for each worker's own poller and timers.
const PER_WORKER: u64 = 8;

/// `wanted`, or fewer if the process may not open enough files for so many.
pub(super) fn connections_within(wanted: usize, workers: usize) -> usize {
    let limit = raised();
    let allowed = allowed(limit, wanted, workers);
    if let Some(limit) = limit
        && allowed < wanted
    {
        tracing::warn!(
            limit,
            connections = allowed,
            wanted,
            "the limit of open files allows fewer connections than --max-connections: raise it (ulimit -n)"
        );
    }
    allowed
}

/// The limit of open files after raising it as far as it goes without privileges; `None` = none.
fn raised() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    // Some systems refuse; what was in force stays in force then.
    match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}

fn allowed(limit: Option<u64>, wanted: usize, workers: usize) -> usize {
    let Some(limit) = limit else { return wanted };
    let workers = u64::try_from(workers).unwrap_or(u64::MAX);
    let reserved = workers.saturating_mul(PER_WORKER).saturating_add(RESERVED);
    let pairs = limit.saturating_sub(reserved) / 2;
    usize::try_from(pairs)
        .unwrap_or(usize::MAX)
        .clamp(1, wanted.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_leaves_room_for_its_way_to_the_upstream() {
        assert_eq!(allowed(Some(1_024), 10_000, 2), 472);
        assert_eq!(allowed(Some(1_048_576), 10_000, 2), 10_000);
        assert_eq!(allowed(None, 10_000, 2), 10_000);
    }

    #[test]
    fn there_is_always_room_for_one() {
        assert_eq!(allowed(Some(16), 10_000, 2), 1);
    }
}
