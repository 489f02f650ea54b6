//! Small wrong behaviours of this very code, for a test to switch on and see whether the checks notice.
//!
//! A site asks [`is_on`]. Only with the feature `mutants` AND debug assertions does that look anything up; in every
//! other build it is the constant `false`, the site is compiled away, and there is nothing that could switch one on. The
//! crate's own tests have the feature. A mutant is planted for one thread, and for the threads of a store that it opens,
//! so that tests that run beside are left alone. What each one is for, and who finds it: `docs/fault-tests.md`.

macro_rules! mutants {
    ($($(#[$doc:meta])+ $name:ident,)*) => {
        /// What goes wrong where it is planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutant {
            $($(#[$doc])+ $name,)*
        }

        impl Mutant {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

mutants! {
    // Where money comes from and goes to.
    /// A debit counts slot 0 alone, as if the other slots were locked.
    RefusesWithoutProof,
    /// A debit that is short does not drain what is pending.
    LeavesPendingOut,
    /// A debit that is short does not take what expired holds give back.
    LeavesExpiredOut,
    /// A debit takes from slot 0 without collecting, which may leave it negative.
    TakesWithoutCollecting,
    /// The floor is not kept.
    IgnoresTheFloor,
    /// A debit of all there is takes what slot 0 has.
    MaxTakesSlotZero,
    /// A credit goes to the gate, where others belong.
    CreditsTheGate,
    /// A credit goes past every cap.
    CreditsPastTheCap,
    /// What is returned is refused for a cap.
    CapsReturns,
    /// More is held than may be.
    HoldsPastTheMost,
    /// Lowering the slots leaves the money in those beyond.
    DrainsNothing,
    // Entries and rows.
    /// Money that is collected never reaches slot 0.
    MovesOutOnly,
    /// A balance is set to what was read when the task began, plus the delta.
    SetsWhatItRead,
    /// A pending row is claimed twice.
    SettlesTwice,
    /// A credit that waits is told of and not kept.
    LosesWhatWaits,
    /// Drained slots are deleted, and count from 1 again when they come back.
    DropsDrainedSlots,
    /// A read passes over a slot.
    ReadsPastASlot,
    /// A read counts expired holds as held.
    ReadsExpiredAsHeld,
    /// An amount may be zero or negative.
    TakesAnyAmount,
    // Requests.
    /// An id is forgotten two seconds after it was decided.
    ForgetsAfterAWhile,
    /// A debit that comes again is decided again.
    RunsRepeatsAgain,
    /// A refused request that comes again is decided again.
    RedecidesRefusals,
    /// Another command under a used id is answered as a repetition.
    TakesOthersForRepeats,
    /// A repetition is told that its pending credit is posted.
    TellsRepeatsAnew,
    /// A refusal keeps what was posted before it.
    KeepsHalfOfARefusal,
    /// An atomic batch that is refused keeps what came before.
    KeepsTheFrontOfABatch,
    /// A frozen or closed account pays.
    IgnoresStatus,
    /// A transfer goes between currencies.
    IgnoresCurrency,
    /// An account closes over money.
    ClosesOverMoney,
    // Holds and reversals.
    /// A capture asks the slots for what the hold has.
    CapturesForFunds,
    /// A capture takes more than the hold.
    CapturesPastTheHold,
    /// A hold is captured after its deadline.
    CapturesExpired,
    /// A final capture does not give the rest back.
    KeepsTheRest,
    /// How a hold ended is forgotten.
    ForgetsHowAHoldEnded,
    /// A request is reversed again.
    ReversesTwice,
    /// A reversal is reversed.
    ReversesReversals,
    /// What returns money asks whether the account is frozen.
    AsksStatusOfReturns,
    // The log, and when an answer may be heard.
    /// An answer is given before its sync.
    AnswersBeforeTheSync,
    /// A read is given before the sync of what it saw.
    ReadsBeforeTheSync,
    /// An event is told of before its sync.
    TellsEventsBeforeTheSync,
    /// A batch counts as durable without a sync.
    SyncsNothing,
    /// The next batch is written while the one before is being synced.
    WritesBesideTheSync,
    /// A failed sync is passed over.
    GoesOnAfterAFailedSync,
    /// A checkpoint is published before the log is durable to it.
    PublishesCheckpointsEarly,
    /// A checkpoint forgets the accounts that changed since the last.
    ForgetsChangedAccounts,
    /// The name of a new segment is not synced.
    LeavesNamesUnsynced,
    /// An atomic batch is written as it comes, in whatever log batches there are.
    SplitsAtomicBatches,
    /// The runs of old requests are not asked after a restart.
    ForgetsOldRequests,
    /// A torn end is taken for damage.
    TakesTornForDamage,
    /// A page with a wrong checksum is taken for a torn end.
    TakesDamageForTorn,
    /// What was read back after a kill counts without being synced again.
    BelievesThePageCache,
    /// Events go on after a watermark, past one that was not told.
    EventsByWatermark,
}

#[cfg(all(feature = "mutants", debug_assertions))]
mod planted {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static HERE: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Whether `mutant` is planted where this runs.
    #[must_use]
    pub fn is_on(mutant: Mutant) -> bool {
        HERE.get() == Some(mutant)
    }

    /// Takes the mutant away when it falls.
    #[derive(Debug)]
    #[must_use]
    pub struct Planted(());

    impl Drop for Planted {
        fn drop(&mut self) {
            HERE.set(None);
        }
    }

    /// Plants a mutant for this thread, and for what it opens, while the guard lives.
    pub fn plant(mutant: Mutant) -> Planted {
        HERE.set(Some(mutant));
        Planted(())
    }

    /// What a thread hands to those that it starts.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Seed(Option<Mutant>);

    impl Seed {
        pub(crate) fn here() -> Self {
            Self(HERE.get())
        }

        pub(crate) fn sow(self) {
            HERE.set(self.0);
        }
    }
}

#[cfg(not(all(feature = "mutants", debug_assertions)))]
mod planted {
    use super::Mutant;

    /// Nothing is planted in a product.
    #[must_use]
    pub const fn is_on(_: Mutant) -> bool {
        false
    }

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Seed;

    impl Seed {
        pub(crate) const fn here() -> Self {
            Self
        }

        pub(crate) const fn sow(self) {}
    }
}

pub(crate) use planted::Seed;
pub use planted::is_on;
#[cfg(all(feature = "mutants", debug_assertions))]
pub use planted::{Planted, plant};
