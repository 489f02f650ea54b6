//! The same facts and the same sequences for every store. Memory is the model; another store joins with one line.
//!
//! `cases` are facts, each on a store of its own. `replies` runs seeded sequences on a store and on the model and
//! compares reply by reply, read by read, with `at` masked.

#[cfg(feature = "mysql")]
use std::cell::RefCell;

use wallet_backend::store::embedded::{Embedded, Options};
use wallet_backend::store::memory::Memory;
#[cfg(feature = "mysql")]
use wallet_backend::store::mysql::{self, Mysql};
use wallet_backend::store::{Preference, Store};

use crate::faults::{FaultDisk, small};
#[cfg(feature = "mysql")]
use crate::mysql::{Database, database};
use crate::support::{Bench, Time};

mod cases;
pub(crate) mod pasts;
pub(crate) mod replies;

/// Makes a new, empty store, whose credits prefer the same slot every time, at a time that a test sets.
pub(crate) trait Factory {
    type Store: Store;

    fn make(&self, preferred: u64, time: &Time) -> Self::Store;

    fn bench(&self) -> Bench<Self::Store> {
        let time = Time::default();
        Bench::at(self.make(0, &time), time)
    }
}

struct InMemory;

impl Factory for InMemory {
    type Store = Memory;

    fn make(&self, preferred: u64, time: &Time) -> Memory {
        Memory::new(time.clock(), Preference::Fixed(preferred))
    }
}

/// On a disk in memory, with segments of 256 KiB and a checkpoint every 48 KiB.
struct OnDisk;

impl Factory for OnDisk {
    type Store = Embedded;

    fn make(&self, preferred: u64, time: &Time) -> Embedded {
        let options = Options {
            clock: time.clock(),
            preference: Preference::Fixed(preferred),
            segment_bytes: 256 << 10,
            ..small(&FaultDisk::default())
        };
        Embedded::open(options).unwrap()
    }
}

/// In a database of each store's own. Those go with the factory.
#[cfg(feature = "mysql")]
#[derive(Default)]
struct OnServer(RefCell<Vec<Database>>);

#[cfg(feature = "mysql")]
impl Factory for OnServer {
    type Store = Mysql;

    fn make(&self, preferred: u64, time: &Time) -> Mysql {
        let database = database();
        let options = mysql::Options {
            clock: time.clock(),
            preference: Preference::Fixed(preferred),
            writers: 1,
            readers: 1,
            ..mysql::Options::at(database.url().parse().unwrap())
        };
        self.0.borrow_mut().push(database);
        Mysql::open(options).unwrap()
    }
}

/// How many are compared: on a server each step takes its round trips.
fn sequences(on_a_server: bool) -> u64 {
    if on_a_server && std::env::var_os("SLUICE_LONG").is_none() {
        8
    } else {
        32
    }
}

macro_rules! conformance {
    (@ $store:ident, $factory:expr, $on_a_server:tt, [$($case:ident)*]) => {
        pub(crate) mod $store {
            use super::*;

            /// Every case by its name, each on a store of its own.
            #[cfg(debug_assertions)]
            #[allow(dead_code, reason = "mutants are looked for without a server")]
            pub(crate) const FACTS: &[(&str, fn())] = &[
                $((stringify!($case), || cases::$case(&$factory.bench()))),*
            ];

            $(
                #[test]
                #[cfg_attr($on_a_server, ignore = "needs MariaDB: tests/run")]
                fn $case() {
                    cases::$case(&$factory.bench());
                }
            )*

            #[test]
            #[cfg_attr($on_a_server, ignore = "needs MariaDB: tests/run")]
            fn replies_and_reads_are_the_models() {
                println!("{}", replies::compare_all(&$factory, sequences($on_a_server)));
            }
        }
    };
    ($store:ident, $factory:expr) => {
        conformance!($store, $factory, false);
    };
    ($store:ident, $factory:expr, $on_a_server:tt) => {
        conformance!(@ $store, $factory, $on_a_server, [
            an_account_opens_once_and_another_of_its_name_is_told_what_differs
            terms_that_nobody_could_have_are_invalid
            a_credit_is_posted_to_slot_0_of_an_ordinary_account
            a_replay_is_the_first_outcome_and_changes_nothing
            a_refusal_sticks_when_the_money_has_come
            a_reused_id_names_the_first_field_that_differs
            ids_belong_to_their_account
            ids_are_compared_as_bytes
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
            events_are_the_entries_of_all_accounts_in_the_order_in_which_they_were_committed
            events_of_one_account_have_the_numbers_that_they_have_among_all
            events_go_on_from_any_number_in_pages_of_any_size
            what_is_no_entry_is_no_event
            a_position_ahead_of_the_ledger_is_refused_and_one_at_its_end_waits
            events_of_an_account_that_is_not_there_are_none
            a_past_balance_is_what_was_read_then
            before_its_first_entry_an_account_had_nothing
            at_a_cursor_an_account_has_what_the_statement_up_to_it_adds_up_to
            a_clock_that_is_set_back_changes_nothing_that_was_told
            a_long_past_is_told_of_every_moment
            a_moment_that_is_not_over_and_a_cursor_that_is_ahead_are_invalid
            a_batch_sees_its_own_effects_in_order
            a_memo_too_long_is_invalid
            a_debit_of_all_there_is_leaves_the_floor_and_repeats_its_first_amount
            a_debit_of_all_there_is_collects_from_everywhere
            a_hold_takes_money_out_of_the_slots_and_stays_the_accounts
            a_hold_beyond_the_funds_is_refused
            five_holds_of_a_fifth_fit_and_a_sixth_does_not
            a_capture_may_be_partial_until_nothing_is_left
            a_final_capture_gives_the_rest_back
            a_capture_beyond_the_rest_is_refused_and_changes_nothing
            a_release_gives_the_rest_back_and_ends_the_hold
            an_ended_hold_answers_how_it_ended
            a_hold_that_never_was_is_never_remembered
            an_expired_hold_is_available_before_any_sweep
            an_expired_hold_is_spent_by_a_debit_that_is_short
            at_the_deadline_a_hold_has_one_end
            tidying_sweeps_expired_holds_in_steps
            a_hold_is_refused_past_the_most_that_may_be_held
            a_statement_closes_over_holds_captures_and_releases
            a_credit_is_reversed_once_by_whatever_id
            a_debit_is_reversed_by_returning_it
            a_captured_hold_is_reversed_by_its_capture
            a_transfer_is_reversed_by_taking_from_its_target
            what_cannot_be_reversed_says_so
            a_reversal_that_the_account_cannot_carry_is_refused
            a_reversal_of_what_never_was_is_never_remembered
            what_is_returned_may_pass_a_cap
            a_pending_credit_can_be_reversed
            a_reversal_in_a_batch_sees_what_it_reverses
            each_status_refuses_what_it_says
            a_closed_account_takes_nothing_but_what_returns
            an_account_closes_only_when_nothing_is_in_it
            a_status_comes_before_the_operation
            an_amendment_answers_the_account_and_repeats_it
            raising_and_lowering_slots_loses_nothing_and_goes_on_counting
            cursors_stay_valid_over_reslotting
            modes_change_while_money_is_in_them
            a_floor_is_raised_only_to_what_there_is
            terms_that_no_account_could_have_are_no_amendment
            a_reused_id_of_the_new_commands_names_its_field
            a_batch_decides_each_command_after_those_before_it
            an_empty_batch_is_applied
            an_atomic_batch_is_done_whole
            an_atomic_batch_that_is_refused_leaves_no_trace
            a_replay_in_an_atomic_batch_counts_as_what_it_repeats
            what_is_never_stored_gives_an_atomic_batch_up_too
            an_atomic_batch_knows_what_it_did_itself
            an_atomic_batch_takes_back_what_it_settled_swept_and_moved
            a_batch_has_at_most_8192_commands
        ]);
    };
}

conformance!(memory, InMemory);
conformance!(embedded, OnDisk);
#[cfg(feature = "mysql")]
conformance!(mysql_or_mariadb, OnServer::default(), true);
