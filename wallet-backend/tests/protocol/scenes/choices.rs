//! Every few jobs at once: all kinds of job, over all kinds of account.

use super::{
    A, B, account, atomic, batch, capture, credit, debit, hashed, hold, max, reversal, tidy, transfer,
};
use crate::protocol::scenario::{Account, Job, Scenario};

/// Accounts with something of everything; what differs is how A takes credits and debits.
fn mixed_accounts() -> [(&'static str, Account); 4] {
    let plain = account([1, 2, 2]).pending(2).hold(3);
    [
        ("slots", plain),
        ("journal", plain.journal()),
        ("hashed", plain.hashed()),
        ("one slot", Account::new(1, [3, 0, 0]).pending(2).hold(3)),
    ]
}

/// Every kind of job, for a place in a scenario: its request ids and the rows that it makes depend on that.
fn kinds(place: u8) -> Vec<Job> {
    let (first, second) = (2 * place, 2 * place + 1);
    let one = |act| batch([(first, act)]);
    vec![
        one(credit(A, 2, 1)),
        one(credit(A, 3, 2)),
        batch([(9, credit(A, 2, 1))]),
        batch([(9, credit(A, 2, 1)), (first, debit(A, 5))]),
        one(debit(A, 1)),
        one(debit(A, 5)),
        one(debit(A, 9)),
        one(max(A)),
        one(hold(A, 4, place + 1)),
        one(capture(A)),
        one(transfer(A, B, 4)),
        one(transfer(B, A, 4)),
        one(reversal(A, 4, 8)),
        batch([(first, credit(A, 2, 1)), (second, credit(A, 1, 2))]),
        batch([(first, hashed(A, 2, 1)), (second, hashed(A, 2, 2))]),
        batch([(first, credit(A, 2, 1)), (second, debit(A, 8))]),
        batch([(first, debit(A, 6)), (second, debit(B, 6))]),
        batch([(first, transfer(B, A, 1)), (second, debit(B, 5))]),
        batch([(first, transfer(A, B, 2)), (second, max(A))]),
        atomic([(first, transfer(A, B, 1)), (second, debit(A, 6))]),
        atomic([(first, debit(B, 5)), (second, transfer(A, B, 5))]),
        tidy(A),
        Job::Resize {
            key: first,
            account: A,
            slots: 2,
        },
        Job::Resize {
            key: first,
            account: A,
            slots: 1,
        },
        Job::Close {
            key: first,
            account: A,
        },
        Job::Read { account: A },
        Job::Tick,
    ]
}

/// Every choice of `size` kinds of job, a kind more than once too, over every kind of account.
pub(in crate::protocol) fn choices(size: u8) -> impl Iterator<Item = Scenario> {
    let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..size {
        let longer = |set: &Vec<usize>| {
            let set = set.clone();
            let least = set.last().copied().unwrap_or(0);
            (least..kinds(0).len()).map(move |kind| [&set[..], &[kind]].concat())
        };
        sets = sets.iter().flat_map(longer).collect();
    }
    let of_each = move |(name, a): (&'static str, Account)| {
        sets.clone().into_iter().map(move |set| Scenario {
            name,
            accounts: [a, account([1, 4, 2])],
            jobs: (0..)
                .zip(&set)
                .map(|(place, kind)| kinds(place).swap_remove(*kind))
                .collect(),
            decided: vec![(8, 4)],
            late: false,
        })
    };
    mixed_accounts().into_iter().flat_map(of_each)
}
