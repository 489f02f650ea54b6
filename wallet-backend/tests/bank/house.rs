//! Where the ledger is and who serves it: what can be done to them.

use std::fmt::Display;
use std::time::Duration;

use crate::history::Order;
use crate::support::Numbers;

/// A service on one socket, whose processes are killed.
pub(super) trait House {
    /// That of the stream of events.
    const ORDER: Order;

    /// The Unix socket on which somebody serves, most of the time.
    fn socket(&self) -> &str;

    /// A few seconds of business, and what ends them. On the thread of the test, which sends nothing; all is up again when
    /// this returns.
    fn trouble(&mut self, numbers: &mut Numbers);

    /// Ends the service in order, and proves its ledger.
    fn close(&mut self);

    /// How often what was done.
    fn faults(&self) -> impl Display;
}

/// Waits for so many milliseconds.
pub(super) fn wait(numbers: &mut Numbers, least: u64, most: u64) {
    let micros = 1_000 * least + numbers.below(1_000 * (most - least));
    std::thread::sleep(Duration::from_micros(micros));
}
