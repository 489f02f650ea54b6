//! The same facts and the same sequences for every store. Memory is the model; another store joins with one line.
//!
//! `cases` are facts, each on a store of its own. `replies` runs seeded sequences on a store and on the model and
//! compares reply by reply, read by read, with `at` masked.

use wallet_backend::clock::Clock;
use wallet_backend::store::embedded::{Embedded, Options};
use wallet_backend::store::memory::Memory;
use wallet_backend::store::{Preference, Store};

use crate::faults::{FaultDisk, small};
use crate::support::Bench;

mod cases;
mod replies;

/// Makes a new, empty store, whose credits prefer the same slot every time.
pub(crate) trait Factory {
    type Store: Store;

    fn make(&self, preferred: u64) -> Self::Store;

    fn bench(&self) -> Bench<Self::Store> {
        Bench::new(self.make(0))
    }
}

struct InMemory;

impl Factory for InMemory {
    type Store = Memory;

    fn make(&self, preferred: u64) -> Memory {
        Memory::new(Clock::System, Preference::Fixed(preferred))
    }
}

/// On a disk in memory, with segments of 256 KiB and a checkpoint every 48 KiB.
struct OnDisk;

impl Factory for OnDisk {
    type Store = Embedded;

    fn make(&self, preferred: u64) -> Embedded {
        let options = Options {
            clock: Clock::System,
            preference: Preference::Fixed(preferred),
            segment_bytes: 256 << 10,
            ..small(&FaultDisk::default())
        };
        Embedded::open(options).unwrap()
    }
}

macro_rules! conformance {
    ($store:ident, $factory:expr, [$($case:ident)*]) => {
        mod $store {
            use super::*;

            $(
                #[test]
                fn $case() {
                    cases::$case(&$factory.bench());
                }
            )*

            #[test]
            fn replies_and_reads_are_the_models() {
                for seed in 0..24 {
                    replies::compare(&$factory, seed);
                }
            }
        }
    };
    ($store:ident, $factory:expr) => {
        conformance!($store, $factory, [
            an_account_opens_once_and_another_of_its_name_is_told_what_differs
            terms_that_nobody_could_have_are_invalid
            a_credit_is_posted_to_slot_0_of_an_ordinary_account
            a_replay_is_the_first_outcome_and_changes_nothing
            a_refusal_sticks_when_the_money_has_come
            a_reused_id_names_the_first_field_that_differs
            ids_belong_to_their_account
            a_missing_account_is_never_remembered
            a_debit_leaves_the_floor
            a_debit_that_slot_0_can_pay_touches_no_other_slot
            a_short_debit_settles_pending_before_it_empties_slots
            a_debit_settles_as_many_rows_as_it_needs_however_many
            a_debit_empties_only_as_many_slots_as_it_needs
            a_debit_of_everything_leaves_zero_everywhere
            insufficient_funds_names_what_was_available
            a_hashed_debit_takes_from_its_own_slot
            a_hashed_debit_that_its_slot_cannot_pay_collects
            a_credit_over_the_slots_cap_goes_to_slot_0
            a_credit_over_every_cap_is_refused
            journal_credits_cannot_wait_past_the_cap
            a_journal_credit_is_spendable_before_it_settles
            a_pending_receipt_is_posted_in_the_look_up_once_settled
            a_transfer_has_both_legs_source_first
            a_transfer_into_a_journal_waits_there
            a_settled_transfer_shows_its_second_leg_in_the_look_up
            a_transfer_between_currencies_is_refused
            a_transfer_to_an_unknown_account_names_to
            a_transfer_to_oneself_is_invalid
            a_refused_transfer_moves_nothing_on_either_side
            an_abandoned_id_refuses_whatever_comes
            abandoning_a_decided_id_says_what_it_became
            tidying_settles_and_brings_slots_together
            tidying_evens_out_hashed_slots
            tidying_twice_changes_nothing_the_second_time
            tidying_settles_the_oldest_rows_first_a_step_at_a_time
            pages_join_without_repeat_or_gap_while_others_write
            a_list_has_every_account_once_by_the_bytes_of_its_id
            an_account_opened_while_a_list_is_read_shifts_no_other
            a_batch_sees_its_own_effects_in_order
            a_memo_too_long_is_invalid
        ]);
    };
}

conformance!(memory, InMemory);
conformance!(embedded, OnDisk);
