//! Small scenarios, one for each rule: sound as long as the rule is kept.

use super::properties::Fault;
use super::rules::Rule;
use super::scenario::{Account, Act, Job, Op, Scenario};

mod choices;

pub(super) use self::choices::choices;

/// Account numbers.
const A: u8 = 0;
const B: u8 = 1;

/// What must be found once these rules are dropped.
pub(super) struct Scene {
    pub(super) dropped: &'static [Rule],
    pub(super) finds: fn(&Fault) -> bool,
    pub(super) scenario: Scenario,
}

fn credit(to: u8, amount: i8, slot: u8) -> Act {
    Act::Credit { to, amount, slot }
}

fn debit(from: u8, amount: i8) -> Act {
    Act::Debit {
        from,
        amount,
        slot: 1,
    }
}

fn hashed(from: u8, amount: i8, slot: u8) -> Act {
    Act::Debit { from, amount, slot }
}

fn transfer(from: u8, to: u8, amount: i8) -> Act {
    Act::Transfer {
        from,
        to,
        amount,
        slot: 1,
    }
}

fn reversal(from: u8, amount: i8, original: u8) -> Act {
    let once = original % 2;
    Act::Reversal {
        from,
        amount,
        once,
        original,
    }
}

fn max(from: u8) -> Act {
    Act::Max { from }
}

fn hold(from: u8, amount: i8, place: u8) -> Act {
    Act::Hold { from, amount, place }
}

fn capture(from: u8) -> Act {
    Act::Capture { from }
}

fn tidy(account: u8) -> Job {
    Job::Tidy { account, slot: 1 }
}

fn batch<const N: usize>(ops: [(u8, Act); N]) -> Job {
    let ops = ops.map(|(key, act)| Op { key, act }).to_vec();
    Job::Batch { ops, atomic: false }
}

fn atomic<const N: usize>(ops: [(u8, Act); N]) -> Job {
    let ops = ops.map(|(key, act)| Op { key, act }).to_vec();
    Job::Batch { ops, atomic: true }
}

/// What goes wrong without these rules, and with what accounts and jobs.
fn scene<const N: usize>(
    dropped: &'static [Rule],
    finds: fn(&Fault) -> bool,
    name: &'static str,
    accounts: [Account; 2],
    jobs: [Job; N],
) -> Scene {
    let scenario = Scenario {
        name,
        accounts,
        jobs: jobs.to_vec(),
        decided: Vec::new(),
        late: false,
    };
    Scene {
        dropped,
        finds,
        scenario,
    }
}

impl Scene {
    /// Credits of these ids and amounts were decided before.
    fn decided(mut self, ids: &[(u8, i8)]) -> Scene {
        self.scenario.decided = ids.to_vec();
        self
    }

    /// The holds have expired.
    fn late(mut self) -> Scene {
        self.scenario.late = true;
        self
    }
}

fn account(money: [i8; 3]) -> Account {
    Account::new(3, money)
}

fn rich() -> Account {
    account([10, 0, 0])
}

/// Slot 0 is never enough.
fn spread() -> Account {
    account([1, 4, 4])
}

fn deadlock(fault: &Fault) -> bool {
    *fault == Fault::Deadlock
}

fn money(fault: &Fault) -> bool {
    matches!(fault, Fault::Money { .. })
}

/// One for each rule, in their order.
pub(super) fn scenes() -> Vec<Scene> {
    let mut scenes = claims_and_once_rows();
    scenes.extend(accounts_and_gates());
    scenes.extend(slots_and_batches());
    scenes.extend(credits_and_settlement());
    scenes.extend(hashed_debits_and_pending_rows());
    scenes.extend(answers());
    scenes
}

fn claims_and_once_rows() -> Vec<Scene> {
    let (again, other) = ((0, credit(A, 3, 1)), (1, credit(A, 2, 2)));
    let and_its_retry = [batch([again, other]), batch([other, again])];
    let debits = || atomic([(0, debit(A, 6)), (1, debit(A, 1))]);
    vec![
        scene(
            &[Rule::ClaimsAreTaken],
            money,
            "one batch twice at once",
            [rich(); 2],
            [batch([again, other]), batch([again, other])],
        ),
        scene(
            &[Rule::ClaimsAreSorted],
            deadlock,
            "a batch and its retry in another order",
            [rich(); 2],
            and_its_retry.clone(),
        ),
        scene(
            &[Rule::ClaimsComeLast],
            deadlock,
            "a batch and its retry in another order, once more",
            [rich(); 2],
            and_its_retry,
        ),
        scene(
            &[Rule::ClaimsComeLast, Rule::PassBeginsAgain],
            deadlock,
            "a batch that is short after its first operation, and one that has that too",
            [spread(), rich()],
            [
                batch([(0, credit(A, 1, 1)), (1, debit(A, 8))]),
                batch([(0, credit(A, 1, 1)), (2, credit(A, 1, 2))]),
            ],
        ),
        scene(
            &[Rule::LookUpsComeAfterLocks],
            |fault| matches!(fault, Fault::AnsweredTwice { .. }),
            "an atomic batch and its retry, of money that is there once",
            [rich(); 2],
            [debits(), debits()],
        ),
        scene(
            &[Rule::OnceRowsAreTaken, Rule::LookUpsComeAfterLocks],
            |fault| matches!(fault, Fault::ReversedTwice { .. }),
            "two reversals of one credit",
            [rich(); 2],
            [batch([(1, reversal(A, 4, 0))]), batch([(2, reversal(A, 4, 0))])],
        )
        .decided(&[(0, 4)]),
        scene(
            &[Rule::OriginalsAreNotLocked],
            deadlock,
            "a batch, and one that repeats half of it and reverses the other half",
            [rich(); 2],
            [batch([again, other]), batch([other, (2, reversal(A, 3, 0))])],
        ),
    ]
}

fn accounts_and_gates() -> Vec<Scene> {
    let close = |key, account| Job::Close { key, account };
    let resize = |key, account, slots| Job::Resize { key, account, slots };
    vec![
        scene(
            &[Rule::AccountRowsAreShared],
            |fault| matches!(fault, Fault::ClosedWithMoney { .. }),
            "a credit to an account that is being closed",
            [account([0; 3]), rich()],
            [batch([(0, credit(A, 3, 1))]), close(1, A)],
        ),
        scene(
            &[Rule::AccountRowsAreSorted],
            deadlock,
            "transfers both ways while both accounts are changed",
            [rich(); 2],
            [
                batch([(0, transfer(A, B, 2))]),
                batch([(1, transfer(B, A, 2))]),
                resize(2, A, 2),
                resize(3, B, 2),
            ],
        ),
        scene(
            &[Rule::AccountRowsComeBeforeGates],
            deadlock,
            "a debit while the slots become fewer",
            [spread(); 2],
            [batch([(0, debit(A, 6))]), resize(1, A, 2)],
        ),
        scene(
            &[Rule::AccountRowIsLockedOutright],
            deadlock,
            "two changes of one account",
            [spread(); 2],
            [resize(0, A, 1), resize(1, A, 2)],
        ),
        scene(
            &[Rule::GatesAreSorted],
            deadlock,
            "two batches that debit the same two accounts, in opposite order",
            [rich(); 2],
            [
                batch([(0, debit(A, 2)), (1, debit(B, 2))]),
                batch([(2, debit(B, 3)), (3, debit(A, 3))]),
            ],
        ),
        scene(
            &[Rule::GateComesBeforeSlots],
            deadlock,
            "two debits that collect",
            [spread(); 2],
            [batch([(0, debit(A, 4))]), batch([(1, debit(A, 4))])],
        ),
        scene(
            &[Rule::HoldRowsComeAfterTheGate],
            deadlock,
            "a capture at the deadline, and a debit that is short without the hold",
            [account([3, 0, 0]).hold(4), rich()],
            [batch([(0, capture(A))]), batch([(1, debit(A, 5))]), Job::Tick],
        ),
    ]
}

fn slots_and_batches() -> Vec<Scene> {
    let both_ways = |batch: fn([(u8, Act); 2]) -> Job| {
        [
            batch([(0, transfer(A, B, 1)), (1, debit(A, 6))]),
            batch([(2, transfer(B, A, 1)), (3, debit(B, 6))]),
        ]
    };
    vec![
        scene(
            &[Rule::RowsAreReadUnderTheirLock],
            money,
            "two credits to one slot",
            [rich(); 2],
            [batch([(0, credit(A, 2, 1))]), batch([(1, credit(A, 3, 1))])],
        ),
        scene(
            &[Rule::OneSlotIsWaitedForOnly],
            deadlock,
            "two batches of credits to the same two slots, in opposite order",
            [rich(); 2],
            [
                batch([(0, credit(A, 2, 1)), (1, credit(A, 2, 2))]),
                batch([(2, credit(A, 3, 2)), (3, credit(A, 3, 1))]),
            ],
        ),
        scene(
            &[Rule::ShortOperationIsHandedOn],
            deadlock,
            "batches over two accounts, both ways and short",
            [spread(); 2],
            both_ways(batch),
        ),
        scene(
            &[Rule::AtomicBatchStartsAgain],
            deadlock,
            "atomic batches, both ways and short",
            [spread(); 2],
            both_ways(atomic),
        ),
    ]
}

fn credits_and_settlement() -> Vec<Scene> {
    vec![
        scene(
            &[Rule::CreditBecomesPending],
            money,
            "a batch of credits while their slots are busy",
            [Account::new(2, [0; 3]), rich()],
            [
                batch([(0, credit(A, 2, 1)), (1, credit(B, 2, 1))]),
                batch([(2, credit(A, 3, 1))]),
            ],
        ),
        scene(
            &[Rule::CreditLegNeverWaits],
            deadlock,
            "transfers both ways that collect",
            [spread(); 2],
            [batch([(0, transfer(A, B, 4))]), batch([(1, transfer(B, A, 4))])],
        ),
        scene(
            &[Rule::CreditLegComesLast],
            deadlock,
            "a transfer, and an atomic batch that empties both accounts",
            [spread(); 2],
            [
                batch([(0, transfer(A, B, 1))]),
                atomic([(1, max(A)), (2, max(B))]),
            ],
        ),
        scene(
            &[Rule::TidyTakesTheGateBeforeRows],
            |fault| *fault == Fault::NeverSo,
            "all there is, while pending rows are settled",
            [account([1, 2, 0]).pending(4), rich()],
            [batch([(0, max(A))]), tidy(A)],
        ),
    ]
}

fn hashed_debits_and_pending_rows() -> Vec<Scene> {
    let hashed_spread = spread().hashed();
    let mixed = spread().hashed().journal();
    vec![
        scene(
            &[Rule::HashedDebitTakesNoGate],
            deadlock,
            "a hashed debit that spills over, beside all there is",
            [hashed_spread, rich()],
            [batch([(0, hashed(A, 6, 1))]), batch([(1, max(A))])],
        ),
        scene(
            &[Rule::HashedBatchStaysOnOneSlot],
            deadlock,
            "two hashed batches over the same two slots, in opposite order",
            [hashed_spread, rich()],
            [
                batch([(0, hashed(A, 1, 1)), (1, hashed(A, 1, 2))]),
                batch([(2, hashed(A, 2, 2)), (3, hashed(A, 2, 1))]),
            ],
        ),
        scene(
            &[Rule::HashedDebitsNeedFloorZero],
            |fault| matches!(fault, Fault::BelowFloor { .. }),
            "two hashed debits and a floor",
            [hashed_spread.floor(4), rich()],
            [batch([(0, hashed(A, 4, 1))]), batch([(1, hashed(A, 4, 2))])],
        ),
        scene(
            &[Rule::PassTakesFreeRowsOnly],
            |fault| *fault == Fault::NeverSo,
            "all there is, while two pending rows come",
            [spread().journal(), rich()],
            [
                batch([(0, max(A))]),
                batch([(1, credit(A, 2, 1)), (2, credit(A, 1, 1))]),
            ],
        ),
        scene(
            &[Rule::PendingRowComesLast],
            deadlock,
            "two batches with one credit that waits, and hashed debits around it",
            [mixed, rich()],
            [
                batch([(0, credit(A, 2, 1)), (1, hashed(A, 3, 1))]),
                batch([(2, hashed(A, 1, 1)), (0, credit(A, 2, 1))]),
            ],
        ),
    ]
}

fn answers() -> Vec<Scene> {
    let refused = |fault: &Fault| *fault == Fault::FalseRefusal;
    let never = |fault: &Fault| *fault == Fault::NeverSo;
    vec![
        scene(
            &[Rule::RefusalIsProven],
            refused,
            "a debit of what is there, while a credit has one of its slots",
            [spread(); 2],
            [batch([(0, debit(A, 8))]), batch([(1, credit(A, 1, 1))])],
        ),
        scene(
            &[Rule::ProofIsOneRead],
            refused,
            "a debit at the gate, beside a credit and a hashed debit",
            [account([0, 0, 8]).hashed(), rich()],
            [
                batch([(0, hold(A, 8, 1))]),
                batch([(1, credit(A, 8, 1))]),
                batch([(2, hashed(A, 8, 2))]),
            ],
        ),
        scene(
            &[Rule::MaxTakesThePassAtOnce],
            never,
            "all there is, while a credit is under way",
            [spread(); 2],
            [batch([(0, max(A))]), batch([(1, credit(A, 1, 1))])],
        ),
        scene(
            &[Rule::ExpiredHoldsCount],
            refused,
            "a debit of what an expired hold has",
            [account([3, 0, 0]).hold(4), rich()],
            [batch([(0, debit(A, 5))]), batch([(1, capture(A))])],
        )
        .late(),
        scene(
            &[Rule::TimeIsOfTheSnapshot],
            never,
            "all there is, while a pending row comes and a hold expires",
            [account([3, 0, 0]).journal().hold(4), rich()],
            [batch([(0, max(A))]), batch([(1, credit(A, 2, 1))]), Job::Tick],
        ),
        scene(
            &[Rule::TimeIsReadUnderTheGate, Rule::TimeIsOfTheSnapshot],
            refused,
            "two debits, while a hold expires",
            [account([8, 0, 0]).hold(4), rich()],
            [batch([(0, debit(A, 8))]), batch([(1, debit(A, 4))]), Job::Tick],
        ),
        scene(
            &[Rule::AnswersWaitForTheCommit],
            |fault| matches!(fault, Fault::AnsweredTwice { .. }),
            "a refusal in a batch that has to start again, while the money comes",
            [spread(); 2],
            [
                batch([(0, debit(A, 10)), (1, debit(A, 8))]),
                batch([(2, credit(A, 2, 1))]),
                batch([(3, credit(A, 2, 2))]),
            ],
        ),
        scene(
            &[Rule::ReadIsOneSnapshot],
            never,
            "a balance, while a pending row is settled",
            [account([1, 2, 0]).pending(4), rich()],
            [Job::Read { account: A }, tidy(A)],
        ),
    ]
}
