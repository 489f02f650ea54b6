//! That nothing shows of a trial, and that its changes are what one task after the other would have changed.
#![expect(clippy::arithmetic_side_effects, reason = "sums of a few small amounts")]

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::account::{
    Account, CreditMode, Hold, HoldTerm, Pending, RequestId, Slot, SlotCount, SlotIndex, Status, Timestamp,
};
use crate::command::{Amendment, Command, DebitAmount, Operation, Remainder};
use crate::money::{Amount, Currency};

const NOW: Timestamp = Timestamp(1_000);

/// Rows, and nothing known of the past.
#[derive(Clone, Debug, PartialEq)]
struct Desk(BTreeMap<AccountId, AccountRows>);

impl Hand for Desk {
    fn facts(&self, _: &Task) -> Result<Facts, LedgerError> {
        Ok(Facts::default())
    }

    fn rows(&self, id: &AccountId) -> Option<&AccountRows> {
        self.0.get(id)
    }

    fn rows_mut(&mut self, id: &AccountId) -> Option<&mut AccountRows> {
        self.0.get_mut(id)
    }
}

impl Desk {
    /// Accounts with something in every place that there is.
    fn new() -> Self {
        let accounts = ["a", "b", "c"].map(|name| {
            let credit = if name == "b" {
                CreditMode::Journal
            } else {
                CreditMode::Slot
            };
            let account = Account {
                credit,
                slots: SlotCount::new(3).unwrap(),
                ..Account::new(id(name), Currency::new("EUR").unwrap())
            };
            let slot = |index| Slot {
                balance: 10,
                version: 2,
                ..Slot::empty(SlotIndex::new(index).unwrap())
            };
            let pending = |number| Pending {
                number,
                amount: amount(4),
                request: request("p"),
                link: None,
                at: NOW,
            };
            let hold = |name, at| Hold::new(request(name), amount(6), at);
            let holds = vec![
                hold("x", Some(Timestamp(500))),
                hold("y", Some(Timestamp(9_999_999_999))),
                hold("z", None),
            ];
            let pending: VecDeque<_> = (1..4).map(pending).collect();
            let rows = AccountRows::restore(account, (0..3).map(slot).collect(), pending, 4, holds);
            (id(name), rows.unwrap())
        });
        Self(BTreeMap::from(accounts))
    }
}

fn context() -> Context {
    Context { now: NOW, prefer: 0 }
}

fn id(text: &str) -> AccountId {
    AccountId::new(text).unwrap()
}

fn request(text: &str) -> RequestId {
    RequestId::new(text).unwrap()
}

fn amount(minor: i64) -> Amount {
    Amount::new(minor).unwrap()
}

fn operation() -> impl Strategy<Value = Operation> {
    let minor = || (1..30_i64).prop_map(amount);
    let held = || prop::sample::select(vec!["x", "y", "z", "r1", "r2", "r3"]).prop_map(request);
    let earlier = (0..9_u8).prop_map(|number| request(&format!("r{number}")));
    prop_oneof![
        4 => minor().prop_map(|amount| Operation::Credit { amount, memo: None }),
        3 => minor().prop_map(|amount| Operation::Debit { amount: amount.into(), memo: None }),
        1 => Just(Operation::Debit { amount: DebitAmount::Max, memo: None }),
        3 => (prop::sample::select(vec!["a", "b", "c"]), minor())
            .prop_map(|(to, amount)| Operation::Transfer { to: id(to), amount, memo: None }),
        3 => (minor(), 0..2_u32)
            .prop_map(|(amount, term)| Operation::Hold { amount, expires_in: HoldTerm::new(term) }),
        2 => (held(), 1..7_i64).prop_map(|(hold, minor)| Operation::Capture {
            hold,
            amount: Some(amount(minor)),
            remainder: if minor % 2 == 0 { Remainder::Keep } else { Remainder::Release },
        }),
        1 => held().prop_map(|hold| Operation::Release { hold }),
        2 => earlier.prop_map(|reverses| Operation::Reversal { reverses }),
        1 => (1..6_u8).prop_map(|slots| Operation::Amend(Amendment {
            slots: SlotCount::new(slots),
            credit: Some(if slots % 2 == 0 { CreditMode::Journal } else { CreditMode::Slot }),
            status: Some(Status::Active),
            ..Amendment::default()
        })),
    ]
}

fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let one = (prop::sample::select(vec!["a", "b", "c"]), 0..9_u8, operation());
    let task = one.prop_map(|(account, number, operation)| {
        Task::Run(Command {
            account: id(account),
            request: request(&format!("r{number}")),
            operation,
        })
    });
    prop::collection::vec(task, 1..9)
}

fn money(desk: &Desk) -> i64 {
    desk.0.values().map(|rows| rows.in_slots() + rows.in_held()).sum()
}

proptest! {
    #[test]
    fn the_rows_are_afterwards_what_they_were_and_the_changes_can_be_applied(tasks in tasks()) {
        let before = Desk::new();
        let mut desk = before.clone();
        let together = decide_together(&tasks, &mut desk, &mut context).unwrap();
        prop_assert_eq!(&desk, &before);
        match together {
            Together::Done { changes, decided } => {
                prop_assert_eq!(decided.len(), tasks.len());
                for changes in &changes {
                    for id in changes.accounts() {
                        desk.rows_mut(id).unwrap().apply(changes).unwrap();
                    }
                }
                let entries = changes.iter().flat_map(|changes| &changes.entries);
                let came_in: i64 = entries.map(|entry| entry.delta + entry.held_delta).sum();
                prop_assert_eq!(money(&desk), money(&before) + came_in);
            }
            Together::Refused { culprit, refused } => {
                prop_assert!(culprit < tasks.len());
                prop_assert!(!refused.is_ok_and(|decided| decided.is_success()));
            }
        }
    }
}
