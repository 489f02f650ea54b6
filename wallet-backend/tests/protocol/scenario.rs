//! What is run against what: operations, the transactions that they are made into, and the accounts at the start.

use super::world::{KEYS, Mode, Row, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Act {
    /// `slot` is the application's first choice; unheeded where the account has but one, or is in journal mode.
    Credit { to: u8, amount: i8, slot: u8 },
    /// `slot` is where the request id hashes to; unheeded where debits are not hashed.
    Debit { from: u8, amount: i8, slot: u8 },
    /// All there is above the floor.
    Max { from: u8 },
    /// Sets money aside, with no deadline, in a row of its own.
    Hold { from: u8, amount: i8, place: u8 },
    /// Captures all of the hold that was there at the start.
    Capture { from: u8 },
    /// `slot` is the first choice for the credit leg.
    Transfer { from: u8, to: u8, amount: i8, slot: u8 },
    /// Takes back what the credit with the request id `original` brought; `once` is the row that says so.
    Reversal {
        from: u8,
        amount: i8,
        once: u8,
        original: u8,
    },
}

impl Act {
    /// The account that is taken from, or whose hold it is.
    pub(super) fn source(self) -> Option<u8> {
        match self {
            Act::Debit { from, .. }
            | Act::Max { from }
            | Act::Hold { from, .. }
            | Act::Capture { from }
            | Act::Transfer { from, .. }
            | Act::Reversal { from, .. } => Some(from),
            Act::Credit { .. } => None,
        }
    }

    /// The account that is given to.
    pub(super) fn target(self) -> Option<u8> {
        match self {
            Act::Credit { to, .. } | Act::Transfer { to, .. } => Some(to),
            Act::Debit { .. }
            | Act::Max { .. }
            | Act::Hold { .. }
            | Act::Capture { .. }
            | Act::Reversal { .. } => None,
        }
    }

    pub(super) fn accounts(self) -> impl Iterator<Item = u8> {
        self.source().into_iter().chain(self.target())
    }

    /// The first choice among the slots of what is given, or of a hashed debit.
    pub(super) fn slot(self) -> u8 {
        match self {
            Act::Credit { slot, .. } | Act::Debit { slot, .. } | Act::Transfer { slot, .. } => slot,
            Act::Max { .. } | Act::Hold { .. } | Act::Capture { .. } | Act::Reversal { .. } => 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Op {
    pub(super) key: u8,
    pub(super) act: Act,
}

impl Op {
    /// Where its pending row goes, among those of its target.
    pub(super) fn pending_place(self) -> u8 {
        1 + self.key
    }
}

/// What one process does, in one transaction or, where it must, in several.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Job {
    Batch {
        ops: Vec<Op>,
        atomic: bool,
    },
    /// Settles pending rows, sweeps holds, and brings one other slot to slot 0 (or all of them, evenly, where debits
    /// are hashed).
    Tidy {
        account: u8,
        slot: u8,
    },
    /// Sets the number of slots and drains those beyond it.
    Resize {
        key: u8,
        account: u8,
        slots: u8,
    },
    /// Closes the account, if it is empty.
    Close {
        key: u8,
        account: u8,
    },
    /// Asks for the balance.
    Read {
        account: u8,
    },
    /// The deadline of the holds passes.
    Tick,
}

impl Job {
    pub(super) fn ops(&self) -> &[Op] {
        match self {
            Job::Batch { ops, .. } => ops,
            Job::Tidy { .. } | Job::Resize { .. } | Job::Close { .. } | Job::Read { .. } | Job::Tick => &[],
        }
    }

    pub(super) fn is_atomic(&self) -> bool {
        matches!(self, Job::Batch { atomic: true, .. })
    }

    /// The request ids that it decides.
    pub(super) fn keys(&self) -> impl Iterator<Item = u8> {
        let own = match self {
            Job::Resize { key, .. } | Job::Close { key, .. } => Some(*key),
            Job::Batch { .. } | Job::Tidy { .. } | Job::Read { .. } | Job::Tick => None,
        };
        self.ops().iter().map(|op| op.key).chain(own)
    }

    fn accounts(&self) -> impl Iterator<Item = u8> {
        let own = match self {
            Job::Tidy { account, .. }
            | Job::Resize { account, .. }
            | Job::Close { account, .. }
            | Job::Read { account } => Some(*account),
            Job::Batch { .. } | Job::Tick => None,
        };
        self.ops().iter().flat_map(|op| op.act.accounts()).chain(own)
    }

    /// Whether an account is changed, not only its money.
    fn amends(&self) -> bool {
        matches!(self, Job::Resize { .. } | Job::Close { .. })
    }

    /// Rows that it may ask for, and those among them that it may lock exclusively.
    pub(super) fn footprint(&self) -> (u64, u64) {
        let (mut touched, mut changed) = (Row::CLOCK.bit(), 0);
        if *self == Job::Tick {
            changed |= Row::CLOCK.bit();
        }
        for key in self.keys() {
            changed |= Row::claim(key).bit();
        }
        for op in self.ops() {
            if let Act::Reversal { once, original, .. } = op.act {
                touched |= Row::claim(original).bit();
                changed |= Row::once(once).bit();
            }
        }
        for account in self.accounts() {
            touched |= Row::account(account).bit();
            if self.amends() {
                changed |= Row::account(account).bit();
            }
            let money = Row::slots(account)
                .chain(Row::all_pending(account))
                .chain(Row::holds(account));
            let money = money.fold(0, |set, row| set | row.bit());
            if matches!(self, Job::Read { .. }) {
                touched |= money;
            } else {
                changed |= money;
            }
        }
        (touched | changed, changed)
    }
}

/// An account at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) slots: u8,
    pub(super) floor: i8,
    /// By slot; what is beyond `slots` too.
    pub(super) money: [i8; 3],
    /// A pending row, 0 = none.
    pub(super) pending: i8,
    /// A hold that expires when the clock ticks, 0 = none.
    pub(super) hold: i8,
    /// Credits are inserted as pending rows.
    pub(super) journal: bool,
    /// Debits go to the slot that their request id hashes to.
    pub(super) hashed: bool,
}

impl Account {
    pub(super) const fn new(slots: u8, money: [i8; 3]) -> Account {
        Account {
            slots,
            floor: 0,
            money,
            pending: 0,
            hold: 0,
            journal: false,
            hashed: false,
        }
    }

    pub(super) const fn floor(self, floor: i8) -> Account {
        Account { floor, ..self }
    }

    pub(super) const fn pending(self, amount: i8) -> Account {
        Account {
            pending: amount,
            ..self
        }
    }

    pub(super) const fn hold(self, hold: i8) -> Account {
        Account { hold, ..self }
    }

    pub(super) const fn journal(self) -> Account {
        Account {
            journal: true,
            ..self
        }
    }

    pub(super) const fn hashed(self) -> Account {
        Account { hashed: true, ..self }
    }
}

/// What a claim's row holds once its request is decided: a refusal, or this and what was moved.
pub(super) mod outcome {
    pub(in super::super) const REFUSED: i8 = 1;
    pub(in super::super) const POSTED: i8 = 2;

    pub(in super::super) fn moved(outcome: i8) -> Option<i8> {
        (outcome >= POSTED).then_some(outcome - POSTED)
    }
}

/// The account row as one number.
pub(super) mod terms {
    const CLOSED: i8 = 64;

    pub(in super::super) fn of(slots: u8, closed: bool) -> i8 {
        i8::try_from(slots).unwrap() + if closed { CLOSED } else { 0 }
    }

    pub(in super::super) fn slots(row: i8) -> u8 {
        (row % CLOSED).unsigned_abs()
    }

    pub(in super::super) fn is_closed(row: i8) -> bool {
        row >= CLOSED
    }
}

/// Both accounts at the start.
pub(super) type Accounts = [Account; 2];

#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) accounts: Accounts,
    pub(super) jobs: Vec<Job>,
    /// Request ids that were decided before anything began: credits of so much.
    pub(super) decided: Vec<(u8, i8)>,
    /// Whether the holds' deadline has passed at the start.
    pub(super) late: bool,
}

impl Scenario {
    pub(super) fn world(&self) -> World {
        let clock = [(Row::CLOCK, i8::from(self.late))].into_iter();
        let claims = self
            .decided
            .iter()
            .map(|&(key, moved)| (Row::claim(key), outcome::POSTED + moved));
        let accounts = (0..).zip(&self.accounts).flat_map(|(id, account)| {
            let slots = Row::slots(id).zip(account.money);
            let pending = [(Row::pending(id, 0), account.pending)];
            [
                (Row::account(id), terms::of(account.slots, false)),
                (Row::hold(id, 0), account.hold),
            ]
            .into_iter()
            .chain(slots)
            .chain(pending)
        });
        World::new(clock.chain(claims).chain(accounts))
    }

    /// Every operation once: an id may come several times.
    pub(super) fn ops(&self) -> impl Iterator<Item = Op> {
        (0..KEYS).filter_map(|key| {
            self.jobs
                .iter()
                .flat_map(Job::ops)
                .copied()
                .find(|op| op.key == key)
        })
    }
}

/// Whether a lock of this mode can be seen by one who asks for these rows.
pub(super) fn meets(mode: Mode, row: Row, (touched, changed): (u64, u64)) -> bool {
    let seen = match mode {
        Mode::Exclusive => touched,
        Mode::Shared => changed,
    };
    seen & row.bit() != 0
}
