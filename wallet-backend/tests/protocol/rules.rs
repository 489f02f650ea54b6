//! The rules of the lock order, each of which the model can do without, to see what it prevents.

/// A rule of the slot algorithm. What is meant by a rule that is dropped is said where the transactions ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// A request id is locked before it is decided, not only looked up.
    ClaimsAreTaken,
    ClaimsAreSorted,
    /// Where an operation is handed on, its claim is not there any more when the rest commits.
    ClaimGoesWithItsOperation,
    /// A reversal locks the row that makes it happen once.
    OnceRowsAreTaken,
    OnceRowsAreSorted,
    /// What is to be reversed is read without a lock.
    OriginalsAreNotLocked,
    /// Every money transaction reads its account rows FOR SHARE.
    AccountRowsAreShared,
    AccountRowsAreSorted,
    AccountRowsComeBeforeGates,
    /// What changes an account takes its row FOR UPDATE at once, never FOR SHARE before.
    AccountRowIsLockedOutright,
    GatesAreSorted,
    /// The gate comes before any other slot.
    GateComesBeforeSlots,
    /// A capture too takes the gate before it takes its hold.
    HoldRowsComeAfterTheGate,
    /// What is changed is read under its lock.
    RowsAreReadUnderTheirLock,
    /// Who wants more than one slot waits for none of them.
    OneSlotIsWaitedForOnly,
    /// A batch over several accounts does not wait for slots: what is short gets a transaction of its own.
    ShortOperationIsHandedOn,
    /// An atomic batch that is short starts again, and takes every slot in order.
    AtomicBatchStartsAgain,
    /// A hashed debit that has touched its slot takes no gate.
    HashedDebitTakesNoGate,
    HashedBatchStaysOnOneSlot,
    HashedDebitsNeedFloorZero,
    /// Nothing is waited for after a pending row was inserted.
    PendingRowComesLast,
    /// The waiting pass takes the pending rows that it saw, not those that are being inserted.
    PassTakesSeenRowsOnly,
    /// A credit that finds its slots busy becomes a pending row.
    CreditBecomesPending,
    CreditLegNeverWaits,
    CreditLegComesLast,
    /// A refusal needs a proof: what `SKIP LOCKED` left out counts.
    RefusalIsProven,
    /// The proof is one snapshot.
    ProofIsOneRead,
    /// `max` sees every slot, not only those that are free.
    MaxTakesThePassAtOnce,
    ExpiredHoldsCount,
    /// The time comes from the snapshot with which it is compared, not from another moment.
    TimeIsOfTheSnapshot,
    /// An answer is heard when its batch has committed, not when it is decided.
    AnswersWaitForTheCommit,
    /// Tidying has the slot that it settles into before it takes pending rows.
    TidyTakesItsSlotBeforeRows,
    /// A balance is read in one snapshot.
    ReadIsOneSnapshot,
    /// Tidying does not wait for a gate.
    TidyGivesUpAtABusyGate,
    /// Who waits for the slots of one account rolls back and takes the gate again before.
    PassBeginsAgain,
    /// The waiting pass takes the slots upward.
    PassGoesUpward,
}

/// Rules without any one of which nothing goes wrong: they save time or work, or another rule is enough.
pub(super) const NOT_ALONE: [&[Rule]; 4] = [
    &[Rule::TidyGivesUpAtABusyGate],
    &[Rule::PassBeginsAgain],
    &[Rule::PassGoesUpward],
    &[Rule::PendingRowComesLast],
];

/// The rules that are kept: all but a few.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) dropped: &'static [Rule],
}

impl Rules {
    pub(super) fn keep(self, rule: Rule) -> bool {
        !self.dropped.contains(&rule)
    }
}
