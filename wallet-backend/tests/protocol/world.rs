//! The world that a store on an SQL server lives in, as far as the lock order depends on it: rows with a committed
//! value, shared and exclusive locks with one queue per row, and what `SKIP LOCKED`, `NOWAIT` and a snapshot see.
//!
//! What a transaction has written and not committed is its own affair (see [`super::session`]): at READ COMMITTED
//! nobody else can see it, only that its rows are locked. A request behind a waiting one waits too, as it does in
//! InnoDB: else a queued `FOR UPDATE` of an account would never stand in the way of a second `FOR SHARE`. A pending row
//! or a hold that is not there has nothing to lock (there are no gap locks at READ COMMITTED). Every row is one small
//! number.

pub(super) const ACCOUNTS: u8 = 2;
/// Slots of each account; slot 0 is the gate.
pub(super) const SLOTS: u8 = 3;
/// Pending rows of each account: one that may be there at the start, and one for each request id.
pub(super) const PENDING: u8 = 1 + KEYS;
/// Holds of each account: one that may be there at the start, and those that operations may place.
pub(super) const HOLDS: u8 = 5;
/// Request ids.
pub(super) const KEYS: u8 = 10;
/// Originals that can be reversed.
pub(super) const ONCES: u8 = 2;

const FIRST_ONCE: u8 = 1 + KEYS;
const FIRST_ACCOUNT: u8 = FIRST_ONCE + ONCES;
const FIRST_SLOT: u8 = FIRST_ACCOUNT + ACCOUNTS;
const FIRST_PENDING: u8 = FIRST_SLOT + ACCOUNTS * SLOTS;
const FIRST_HOLD: u8 = FIRST_PENDING + ACCOUNTS * PENDING;
pub(super) const ROWS: usize = (FIRST_HOLD + ACCOUNTS * HOLDS) as usize;

/// A transaction, by its place in the scenario.
pub(super) type Tx = u8;

/// A row, by its place among all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Row(u8);

impl Row {
    /// Not a row of the ledger: the database's clock, 0 before the holds' deadline and 1 from then on.
    pub(super) const CLOCK: Row = Row(0);

    /// A request's claim: 0 = absent, then what became of it (`outcome`).
    pub(super) fn claim(key: u8) -> Row {
        assert!(key < KEYS);
        Row(1 + key)
    }

    /// The row that makes a reversal happen once: 0 = absent.
    pub(super) fn once(of: u8) -> Row {
        assert!(of < ONCES);
        Row(FIRST_ONCE + of)
    }

    pub(super) fn account(account: u8) -> Row {
        Row(FIRST_ACCOUNT + account)
    }

    /// A slot's balance.
    pub(super) fn slot(account: u8, slot: u8) -> Row {
        assert!(slot < SLOTS);
        Row(FIRST_SLOT + account * SLOTS + slot)
    }

    pub(super) fn gate(account: u8) -> Row {
        Row::slot(account, 0)
    }

    /// A pending row's amount, 0 = absent.
    pub(super) fn pending(account: u8, place: u8) -> Row {
        assert!(place < PENDING);
        Row(FIRST_PENDING + account * PENDING + place)
    }

    /// What is left of a hold, 0 = absent or ended.
    pub(super) fn hold(account: u8, place: u8) -> Row {
        assert!(place < HOLDS);
        Row(FIRST_HOLD + account * HOLDS + place)
    }

    pub(super) fn all() -> impl Iterator<Item = Row> {
        (0..FIRST_HOLD + ACCOUNTS * HOLDS).map(Row)
    }

    pub(super) fn slots(account: u8) -> impl Iterator<Item = Row> + Clone {
        (0..SLOTS).map(move |slot| Row::slot(account, slot))
    }

    pub(super) fn all_pending(account: u8) -> impl Iterator<Item = Row> + Clone {
        (0..PENDING).map(move |place| Row::pending(account, place))
    }

    pub(super) fn holds(account: u8) -> impl Iterator<Item = Row> + Clone {
        (0..HOLDS).map(move |place| Row::hold(account, place))
    }

    /// Where the row is not there, there is nothing to lock.
    pub(super) fn may_be_absent(self) -> bool {
        self.0 >= FIRST_PENDING
    }

    pub(super) fn at(self) -> usize {
        usize::from(self.0)
    }

    /// The row's bit in a set of rows.
    pub(super) fn bit(self) -> u64 {
        1 << self.0
    }
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = |first: u8, each: u8| {
            (
                char::from(b'A' + (self.0 - first) / each),
                (self.0 - first) % each,
            )
        };
        match self.0 {
            0 => write!(f, "clock"),
            n if n < FIRST_ONCE => write!(f, "claim {}", n - 1),
            n if n < FIRST_ACCOUNT => write!(f, "once {}", n - FIRST_ONCE),
            n if n < FIRST_SLOT => write!(f, "account {}", of(FIRST_ACCOUNT, 1).0),
            n if n < FIRST_PENDING => {
                write!(f, "slot {}{}", of(FIRST_SLOT, SLOTS).0, of(FIRST_SLOT, SLOTS).1)
            }
            n if n < FIRST_HOLD => {
                let (account, place) = of(FIRST_PENDING, PENDING);
                write!(f, "pending {account}{place}")
            }
            _ => write!(f, "hold {}{}", of(FIRST_HOLD, HOLDS).0, of(FIRST_HOLD, HOLDS).1),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    Shared,
    Exclusive,
}

/// A lock that a transaction waits for.
#[derive(Clone, Copy, Debug)]
struct Request {
    row: Row,
    tx: Tx,
    mode: Mode,
}

/// In a row's `holder`: locked exclusively, by the transaction in the other bits. Without it, a bit for each
/// transaction that shares the row.
const EXCLUSIVE: u8 = 0x80;

#[derive(Clone, Debug)]
pub(super) struct World {
    committed: [i8; ROWS],
    holder: [u8; ROWS],
    /// In the order of arrival.
    queue: Vec<Request>,
}

/// How a request for a lock ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Granted {
    Now,
    /// Not there, so nothing is locked.
    Absent,
    /// It is in the queue.
    Waits,
}

impl World {
    pub(super) fn new(rows: impl IntoIterator<Item = (Row, i8)>) -> World {
        let mut committed = [0; ROWS];
        for (row, value) in rows {
            committed[row.at()] = value;
        }
        World {
            committed,
            holder: [0; ROWS],
            queue: Vec::new(),
        }
    }

    pub(super) fn committed(&self, row: Row) -> i8 {
        self.committed[row.at()]
    }

    pub(super) fn waits(&self, tx: Tx) -> bool {
        self.queue.iter().any(|request| request.tx == tx)
    }

    /// Locks the row, or joins its queue.
    pub(super) fn lock(&mut self, tx: Tx, row: Row, mode: Mode) -> Granted {
        if row.may_be_absent() && self.committed(row) == 0 && self.holder[row.at()] == 0 {
            Granted::Absent
        } else if self.lock_now(tx, row, mode) {
            Granted::Now
        } else {
            self.queue.push(Request { row, tx, mode });
            Granted::Waits
        }
    }

    /// Locks the row exclusively if that needs no waiting, as `SKIP LOCKED` and `NOWAIT` do. Of a row that is not
    /// there: false. Who asks for the clock reads it.
    pub(super) fn try_lock(&mut self, tx: Tx, row: Row) -> bool {
        if row == Row::CLOCK {
            return true;
        }
        let absent = row.may_be_absent() && self.committed(row) == 0;
        !absent && self.lock_now(tx, row, Mode::Exclusive)
    }

    /// Locks a row that the transaction makes, or waits for who is making the same.
    pub(super) fn insert(&mut self, tx: Tx, row: Row) -> Granted {
        if self.lock_now(tx, row, Mode::Exclusive) {
            return Granted::Now;
        }
        let mode = Mode::Exclusive;
        self.queue.push(Request { row, tx, mode });
        Granted::Waits
    }

    fn lock_now(&mut self, tx: Tx, row: Row, mode: Mode) -> bool {
        let queued = self.queue.iter().any(|request| request.row == row);
        let free = !queued && self.compatible(tx, row, mode);
        if free {
            self.grant(tx, row, mode);
        }
        free
    }

    fn compatible(&self, tx: Tx, row: Row, mode: Mode) -> bool {
        let holder = self.holder[row.at()];
        match mode {
            _ if holder == EXCLUSIVE | tx => true,
            Mode::Shared => holder & EXCLUSIVE == 0,
            Mode::Exclusive => holder & !(1 << tx) == 0,
        }
    }

    fn grant(&mut self, tx: Tx, row: Row, mode: Mode) {
        let holder = &mut self.holder[row.at()];
        match mode {
            Mode::Exclusive => *holder = EXCLUSIVE | tx,
            Mode::Shared => *holder |= if *holder & EXCLUSIVE == 0 { 1 << tx } else { 0 },
        }
    }

    /// Makes these changes visible, if any, and gives every lock back. Says who has got what was waited for.
    pub(super) fn end(&mut self, tx: Tx, writes: &[(Row, i8)]) -> Vec<(Tx, Row)> {
        for &(row, value) in writes {
            self.committed[row.at()] = value;
        }
        for holder in &mut self.holder {
            if *holder == EXCLUSIVE | tx {
                *holder = 0;
            } else if *holder & EXCLUSIVE == 0 {
                *holder &= !(1 << tx);
            }
        }
        let mut granted = Vec::new();
        let mut stuck = Vec::new();
        for request in std::mem::take(&mut self.queue) {
            if !stuck.contains(&request.row) && self.compatible(request.tx, request.row, request.mode) {
                self.grant(request.tx, request.row, request.mode);
                granted.push((request.tx, request.row));
            } else {
                stuck.push(request.row);
                self.queue.push(request);
            }
        }
        granted
    }

    /// Everything, as bytes: equal for equal worlds. The queue is put in the order of its rows, within which the order
    /// of arrival stays.
    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.committed.iter().map(|value| value.to_le_bytes()[0]));
        bytes.extend(self.holder);
        let mut queue = self.queue.clone();
        queue.sort_by_key(|request| request.row);
        for request in queue {
            let exclusive = u8::from(request.mode == Mode::Exclusive);
            bytes.extend([request.row.0, request.tx, exclusive]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> World {
        World::new([(Row::account(0), 3), (Row::gate(0), 5), (Row::pending(0, 0), 2)])
    }

    #[test]
    fn a_reader_behind_a_waiting_writer_waits_too() {
        let mut world = world();
        let row = Row::account(0);
        assert_eq!(world.lock(0, row, Mode::Shared), Granted::Now);
        assert_eq!(world.lock(1, row, Mode::Exclusive), Granted::Waits);
        assert_eq!(world.lock(2, row, Mode::Shared), Granted::Waits);
        assert_eq!(world.end(0, &[]), [(1, row)]);
        assert_eq!(world.end(1, &[]), [(2, row)]);
    }

    #[test]
    fn who_shares_a_row_alone_may_have_it_exclusively() {
        let mut world = world();
        let row = Row::account(0);
        assert_eq!(world.lock(0, row, Mode::Shared), Granted::Now);
        assert_eq!(world.lock(0, row, Mode::Exclusive), Granted::Now);
        assert_eq!(world.lock(1, row, Mode::Shared), Granted::Waits);
    }

    #[test]
    fn a_row_that_is_being_inserted_is_passed_over_but_waited_for_by_a_scan() {
        let mut world = world();
        let row = Row::pending(0, 1);
        assert_eq!(world.lock(0, row, Mode::Exclusive), Granted::Absent);
        assert_eq!(world.insert(1, row), Granted::Now);
        assert!(!world.try_lock(0, row));
        assert_eq!(world.lock(0, row, Mode::Exclusive), Granted::Waits);
        assert_eq!(world.insert(2, row), Granted::Waits);
        assert_eq!(world.end(1, &[(row, 4)]), [(0, row)]);
        assert_eq!(world.committed(row), 4);
    }

    #[test]
    fn what_is_rolled_back_was_never_there() {
        let mut world = world();
        assert!(world.try_lock(0, Row::gate(0)) && !world.try_lock(1, Row::gate(0)));
        assert!(world.end(0, &[]).is_empty());
        assert_eq!(world.committed(Row::gate(0)), 5);
        assert!(world.try_lock(1, Row::gate(0)));
    }
}
