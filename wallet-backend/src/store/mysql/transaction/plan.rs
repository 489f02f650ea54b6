//! What a transaction needs of each account, told from its tasks before anything is read.
//!
//! How many slots an account has, and in which modes it is, is only known once its row is read. What was last seen of
//! it is taken for true, so that everything can be locked in one round trip; where that was wrong the transaction
//! begins again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::account::{Account, AccountId, CreditMode, DebitMode, RequestId, SlotIndex};
use crate::command::{DebitAmount, Operation, Task};

/// What of an account row says which rows a task needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Shape {
    slots: u8,
    credit: CreditMode,
    debit: DebitMode,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            slots: 1,
            credit: CreditMode::Slot,
            debit: DebitMode::Primary,
        }
    }
}

impl From<&Account> for Shape {
    fn from(account: &Account) -> Self {
        Self {
            slots: account.slots.get(),
            credit: account.credit,
            debit: account.debit,
        }
    }
}

/// A request by its key.
pub(super) type Key = (AccountId, RequestId);

/// What a transaction locks and reads of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Need {
    /// The account row is changed, not only read.
    pub(super) update: bool,
    pub(super) gate: bool,
    /// All slots, waiting for them, and all that a debit can take.
    pub(super) whole: bool,
    /// The slot to which money goes that comes in, other than by the gate.
    pub(super) landing: Option<SlotIndex>,
    /// What is pending, in sum: that much less may come in.
    pub(super) waiting: bool,
    pub(super) requests: BTreeSet<RequestId>,
    pub(super) reversed: BTreeSet<RequestId>,
    pub(super) holds: BTreeSet<RequestId>,
    credits: bool,
    legs: bool,
    returns: bool,
    hashed: bool,
}

/// Every account that a transaction touches, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) accounts: BTreeMap<AccountId, Need>,
}

/// What is known before the first lock.
pub(super) struct Foreseen<'a> {
    /// Of requests that are to be reversed, the other account that they moved money to.
    pub(super) targets: &'a HashMap<Key, AccountId>,
    /// Accounts of which everything is needed.
    pub(super) whole: &'a BTreeSet<AccountId>,
    /// Which slot credits prefer.
    pub(super) prefer: u64,
}

impl Plan {
    pub(super) fn of<'a>(
        tasks: impl Iterator<Item = &'a Task> + Clone,
        foreseen: &Foreseen<'_>,
        shape: impl Fn(&AccountId) -> Shape,
    ) -> Self {
        let mut plan = Self::default();
        let mut moved: HashMap<Key, AccountId> = HashMap::new();
        for task in tasks.clone() {
            plan.task(task);
            if let (Some(request), Some(to)) = (task.request(), task.operation().and_then(Operation::target))
            {
                moved.insert((task.account().clone(), request.clone()), to.clone());
            }
        }
        for task in tasks {
            let Some(reverses) = task.operation().and_then(Operation::reverses) else {
                continue;
            };
            let key = (task.account().clone(), reverses.clone());
            for target in [foreseen.targets.get(&key), moved.get(&key)]
                .into_iter()
                .flatten()
            {
                plan.need(target).gate = true;
            }
        }
        let alone = plan.accounts.len() == 1;
        for (account, need) in &mut plan.accounts {
            need.whole |= foreseen.whole.contains(account);
            need.settle(shape(account), foreseen.prefer, alone);
        }
        plan
    }

    fn need(&mut self, account: &AccountId) -> &mut Need {
        self.accounts.entry(account.clone()).or_default()
    }

    fn task(&mut self, task: &Task) {
        let need = self.need(task.account());
        need.requests.extend(task.request().cloned());
        match task {
            Task::Open(_) => (need.update, need.whole) = (true, true),
            Task::Abandon { .. } => {}
            Task::Tidy { .. } => need.whole = true,
            Task::Run(command) => self.operation(&command.account, &command.operation),
        }
    }

    fn operation(&mut self, account: &AccountId, operation: &Operation) {
        let need = self.need(account);
        match operation {
            Operation::Credit { .. } => need.credits = true,
            Operation::Debit { amount, .. } => {
                (need.gate, need.hashed) = (true, true);
                need.whole |= *amount == DebitAmount::Max;
            }
            Operation::Hold { .. } => need.gate = true,
            Operation::Capture { hold, .. } | Operation::Release { hold } => {
                need.gate = true;
                need.holds.insert(hold.clone());
            }
            Operation::Transfer { to, .. } => {
                need.gate = true;
                self.need(to).legs = true;
            }
            Operation::Reversal { reverses } => {
                (need.gate, need.returns) = (true, true);
                need.requests.insert(reverses.clone());
                need.reversed.insert(reverses.clone());
            }
            Operation::Amend(_) => (need.update, need.whole) = (true, true),
        }
    }

    /// Accounts of which a gate is locked.
    pub(super) fn gates(&self) -> impl Iterator<Item = &AccountId> {
        self.accounts
            .iter()
            .filter(|(_, need)| need.gate)
            .map(|(account, _)| account)
    }
}

impl Need {
    /// Which slots that takes in an account of this shape.
    fn settle(&mut self, shape: Shape, prefer: u64, alone: bool) {
        // A hashed debit may be of any of them.
        self.whole |= self.hashed && shape.debit == DebitMode::Hashed;
        let comes_in = self.credits || self.legs;
        if self.whole {
            self.gate = true;
            return;
        }
        let to_slots = comes_in && shape.credit != CreditMode::Journal;
        self.waiting = comes_in && !to_slots;
        let others = u64::from(shape.slots.saturating_sub(1));
        match prefer.checked_rem(others) {
            // The gate is the only slot. A leg of a transfer does not wait for it.
            None if self.legs && !self.credits && !self.returns && !self.gate && to_slots && !alone => {
                self.landing = Some(SlotIndex::PRIMARY);
            }
            None => self.gate |= to_slots || self.returns,
            Some(rest) if to_slots || self.returns => {
                let index = u8::try_from(rest.saturating_add(1)).ok();
                self.landing = index.and_then(SlotIndex::new);
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::money::Amount;

    fn id(id: &str) -> AccountId {
        AccountId::new(id).unwrap()
    }

    fn task(account: &str, operation: Operation) -> Task {
        Task::Run(Command {
            account: id(account),
            request: RequestId::new("r").unwrap(),
            operation,
        })
    }

    fn amount() -> Amount {
        Amount::new(1).unwrap()
    }

    fn credit(account: &str) -> Task {
        let (amount, memo) = (amount(), None);
        task(account, Operation::Credit { amount, memo })
    }

    fn debit(account: &str, amount: DebitAmount) -> Task {
        task(account, Operation::Debit { amount, memo: None })
    }

    fn transfer(from: &str, to: &str) -> Task {
        let (amount, memo, to) = (amount(), None, id(to));
        task(from, Operation::Transfer { to, amount, memo })
    }

    fn split(slots: u8) -> Shape {
        Shape {
            slots,
            ..Shape::default()
        }
    }

    fn plan(tasks: &[Task], shape: Shape) -> Plan {
        let foreseen = Foreseen {
            targets: &HashMap::new(),
            whole: &BTreeSet::new(),
            prefer: 4,
        };
        Plan::of(tasks.iter(), &foreseen, |_| shape)
    }

    #[test]
    fn a_credit_of_a_split_account_locks_its_slot_and_no_gate() {
        let plan = plan(&[credit("a")], split(4));
        let need = &plan.accounts[&id("a")];
        assert_eq!((need.gate, need.landing), (false, SlotIndex::new(2)));
    }

    #[test]
    fn the_gate_is_the_slot_where_there_is_one() {
        let plan = plan(&[credit("a")], split(1));
        let need = &plan.accounts[&id("a")];
        assert_eq!((need.gate, need.landing), (true, None));
    }

    #[test]
    fn a_leg_of_a_transfer_takes_no_gate() {
        let plan = plan(&[transfer("a", "b")], split(1));
        assert_eq!(plan.gates().collect::<Vec<_>>(), [&id("a")]);
        assert_eq!(plan.accounts[&id("b")].landing, Some(SlotIndex::PRIMARY));
    }

    #[test]
    fn a_debit_of_all_there_is_needs_everything() {
        let plan = plan(&[debit("a", DebitAmount::Max)], split(4));
        assert!(plan.accounts[&id("a")].whole);
    }

    #[test]
    fn what_waits_needs_no_slot() {
        let journal = Shape {
            credit: CreditMode::Journal,
            ..split(4)
        };
        let plan = plan(&[credit("a")], journal);
        let need = &plan.accounts[&id("a")];
        assert_eq!((need.gate, need.landing, need.waiting), (false, None, true));
    }

    #[test]
    fn the_reversal_of_a_transfer_of_the_same_batch_takes_the_gates_of_both() {
        let reverses = RequestId::new("r").unwrap();
        let tasks = [transfer("a", "b"), task("a", Operation::Reversal { reverses })];
        let plan = plan(&tasks, split(1));
        assert_eq!(plan.gates().collect::<Vec<_>>(), [&id("a"), &id("b")]);
    }
}
