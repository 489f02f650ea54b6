//! The rules of the lock order, each of which the model can do without, to see what it prevents.

/// A rule of the slot algorithm. What is meant by a rule that is dropped is said where the transactions ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Whoever finds a request id taken that it has decided rolls back and runs again: looking it up before is not
    /// enough.
    ClaimsAreTaken,
    /// Request ids are claimed after every other lock, not each as its operation is decided.
    ClaimsComeLast,
    ClaimsAreSorted,
    /// What was decided before is looked up under the locks.
    LookUpsComeAfterLocks,
    /// A reversal takes the row that makes it happen once.
    OnceRowsAreTaken,
    OnceRowsAreSorted,
    /// What is to be reversed is read without a lock, not locked with the claims.
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
    /// Pending rows are inserted after the claims, and nothing is waited for after them.
    PendingRowComesLast,
    /// The waiting pass takes the pending rows that are free, and does not wait for those that are being inserted.
    PassTakesFreeRowsOnly,
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
    /// The time is read once the gates are locked, not before.
    TimeIsReadUnderTheGate,
    /// The time comes from the statement with which it is compared, not from another moment.
    TimeIsOfTheSnapshot,
    /// An answer is heard when its batch has committed, not when it is decided.
    AnswersWaitForTheCommit,
    /// Tidying has the gate before it takes pending rows: under the gate one is locked only while it is being inserted.
    TidyTakesTheGateBeforeRows,
    /// A balance is read in one snapshot.
    ReadIsOneSnapshot,
    /// Tidying does not wait for a gate.
    TidyGivesUpAtABusyGate,
    /// Who waits for the slots of one account rolls back and takes the gate again before; without the rule it goes on
    /// in the same transaction, under the gate that it has.
    PassBeginsAgain,
    /// Where a batch over several accounts is short, only that operation goes alone; without the rule the batch begins
    /// again and takes every slot of the accounts that it takes from, in order.
    ShortOperationGoesAlone,
    /// The waiting pass takes the slots upward.
    PassGoesUpward,
}

/// What a store may do either way.
pub(super) const FREE: [&[Rule]; 2] = [&[Rule::PassBeginsAgain], &[Rule::ShortOperationGoesAlone]];

/// Rules without any one of which nothing goes wrong: they save time or work, or another rule is enough.
pub(super) const NOT_ALONE: [&[Rule]; 5] = [
    &[Rule::TidyGivesUpAtABusyGate],
    &[Rule::PassGoesUpward],
    // Whoever reverses something has the gate of its account, under which the look-up sees every other reversal.
    &[Rule::OnceRowsAreTaken],
    &[Rule::OnceRowsAreSorted],
    // The proof and the waiting pass have the time of their own statement.
    &[Rule::TimeIsReadUnderTheGate],
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
