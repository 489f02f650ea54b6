//! What happens in a random sequence, and how often.

use proptest::prelude::*;
use proptest::sample::Index;
use wallet_backend::account::Status;
use wallet_backend::command::{Amendment, Operation, Task};

use crate::support::{
    abandon, amend, capture, capture_part, credit, debit, drain, hold, release, reslot, reversal, status,
    tidy, transfer,
};

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Ask(Task),
    /// Half seconds.
    Wait(i64),
    /// Something that was asked before, once more.
    Again(Index),
    /// A reversal, by this id, of something that was asked before.
    Undo(String, Index),
    /// The end of a hold that was asked for before, or a part of it, by this id.
    End(String, Index, End),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// Of so much, 0 for all.
    Captured(i64),
    CapturedInPart(i64),
    Released,
}

impl Step {
    /// What to ask, after all that was `asked` before; `None` where there is nothing for it to be about.
    pub(crate) fn task(&self, asked: &[Task]) -> Option<Task> {
        let of_before = |index: &Index, wanted: fn(&Operation) -> bool| {
            let wanted = asked.iter().filter(|task| task.operation().is_some_and(wanted));
            let wanted: Vec<&Task> = wanted.collect();
            let found = *wanted.get(index.index(wanted.len().max(1)))?;
            Some((found.account().to_string(), found.request()?.to_string()))
        };
        match self {
            Self::Ask(task) => Some(task.clone()),
            Self::Wait(_) => None,
            Self::Again(index) => asked.get(index.index(asked.len().max(1))).cloned(),
            Self::Undo(id, index) => {
                let (account, of) = of_before(index, |operation| !matches!(operation, Operation::Amend(_)))?;
                Some(reversal(&account, id, &of))
            }
            Self::End(id, index, end) => {
                let (account, of) =
                    of_before(index, |operation| matches!(operation, Operation::Hold { .. }))?;
                Some(match end {
                    End::Captured(minor) => capture(&account, id, &of, *minor),
                    End::CapturedInPart(minor) => capture_part(&account, id, &of, *minor),
                    End::Released => release(&account, id, &of),
                })
            }
        }
    }
}

/// Small ids and amounts, and much that is about what came before: replays, reuse, refusals, collections, reversals and
/// ends of holds all happen often.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = || (0..1_000_u32).prop_map(|number| format!("s{number}"));
    let end = prop_oneof![
        (0..40_i64).prop_map(End::Captured),
        (0..20_i64).prop_map(End::CapturedInPart),
        Just(End::Released),
    ];
    let step = prop_oneof![
        30 => tasks().prop_map(Step::Ask),
        2 => (1..5_i64).prop_map(Step::Wait),
        4 => any::<Index>().prop_map(Step::Again),
        5 => (id(), any::<Index>()).prop_map(|(id, index)| Step::Undo(id, index)),
        4 => (id(), any::<Index>(), end).prop_map(|(id, index, end)| Step::End(id, index, end)),
    ];
    prop::collection::vec(step, 1..200)
}

pub(crate) fn tasks() -> impl Strategy<Value = Task> {
    let name = || prop::sample::select(vec!["a", "b", "c", "d", "e", "f"]);
    let id = || (0..40_u8).prop_map(|number| format!("r{number}"));
    // Few, so that most holds are met again.
    let held = || (0..5_u8).prop_map(|number| format!("r{number}"));
    let moves = prop_oneof![
        5 => (name(), id(), 1..60_i64).prop_map(|(account, id, minor)| credit(account, &id, minor)),
        4 => (name(), id(), 1..60_i64).prop_map(|(account, id, minor)| debit(account, &id, minor)),
        1 => (name(), id()).prop_map(|(account, id)| drain(account, &id)),
        4 => (name(), id(), name(), 1..60_i64)
            .prop_map(|(from, id, to, minor)| transfer(from, &id, to, minor)),
    ];
    let holds = prop_oneof![
        3 => (name(), held(), 1..40_i64, 0..5_u32)
            .prop_map(|(account, id, minor, seconds)| hold(account, &id, minor, seconds)),
        2 => (name(), id(), held(), 0..40_i64)
            .prop_map(|(account, id, of, minor)| capture(account, &id, &of, minor)),
        2 => (name(), id(), held(), 0..20_i64)
            .prop_map(|(account, id, of, minor)| capture_part(account, &id, &of, minor)),
        1 => (name(), id(), held()).prop_map(|(account, id, of)| release(account, &id, &of)),
    ];
    let others = prop_oneof![
        1 => (name(), id(), id()).prop_map(|(account, id, of)| reversal(account, &id, &of)),
        1 => (name(), id()).prop_map(|(account, id)| abandon(account, &id)),
        2 => name().prop_map(tidy),
        1 => (name(), id(), 1..7_u8).prop_map(|(account, id, slots)| reslot(account, &id, slots)),
        1 => (name(), id(), any_status()).prop_map(|(account, id, to)| status(account, &id, to)),
        1 => (name(), id(), 0..20_i64).prop_map(|(account, id, floor)| {
            let floor = Some(floor);
            amend(account, &id, Amendment { floor, ..Amendment::default() })
        }),
    ];
    prop_oneof![
        14 => moves,
        8 => holds,
        8 => others,
    ]
}

/// Mostly active, so that something happens.
fn any_status() -> impl Strategy<Value = Status> {
    prop::sample::select(vec![
        Status::Active,
        Status::Active,
        Status::Active,
        Status::DebitFrozen,
        Status::Frozen,
        Status::Closed,
    ])
}
