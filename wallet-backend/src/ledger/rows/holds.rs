//! The open holds of one account: by id, by deadline, and their sum.
//!
//! A hold whose deadline has come stays here until it is swept: what is expired is a question of the time at which it
//! is asked. One that has ended is gone; stores keep how it ended.

use std::collections::{BTreeMap, BTreeSet};

use crate::account::{Hold, HoldState, RequestId, Timestamp};

/// Holds with something left in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holds {
    by_id: BTreeMap<RequestId, Hold>,
    /// Those that have a deadline, the next one first.
    by_deadline: BTreeSet<(Timestamp, RequestId)>,
    /// Of what is here and what is not shown, in minor units.
    sum: i64,
    /// What the open holds have left that are not here.
    unseen: i64,
}

impl Holds {
    pub(super) fn get(&self, id: &RequestId) -> Option<&Hold> {
        self.by_id.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Hold> {
        self.by_id.values()
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty() && self.unseen == 0
    }

    pub(super) const fn sum(&self) -> i64 {
        self.sum
    }

    /// Counts what holds have left that are not here. `false` where that can't be.
    pub(super) fn hide(&mut self, rest: i64) -> bool {
        let sums = self.sum.checked_add(rest).zip(self.unseen.checked_add(rest));
        let Some((sum, unseen)) = sums.filter(|_| rest >= 0) else {
            return false;
        };
        (self.sum, self.unseen) = (sum, unseen);
        true
    }

    /// Those whose deadline has come, earliest first.
    pub(super) fn expired(&self, now: Timestamp) -> impl Iterator<Item = &Hold> {
        let due = self.by_deadline.iter().take_while(move |(at, _)| *at <= now);
        due.filter_map(|(_, id)| self.by_id.get(id))
    }

    /// The next deadline, come or not.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.by_deadline.first().map(|(at, _)| *at)
    }

    /// Takes in a hold as it became. `None`, and nothing changed, where it may not become so; else by how much the
    /// sum changed.
    pub(super) fn put(&mut self, hold: &Hold) -> Option<i64> {
        if !hold.is_sound() {
            return None;
        }
        let before = match self.by_id.get(&hold.id) {
            Some(before) if hold.follows(before) => before.rest(),
            Some(_) => return None,
            None if *hold == Hold::new(hold.id.clone(), hold.amount, hold.expires_at) => 0,
            None => return None,
        };
        let change = hold.rest().checked_sub(before)?;
        self.sum = self.sum.checked_add(change)?;
        let deadline = hold.expires_at.map(|at| (at, hold.id.clone()));
        if hold.state == HoldState::Open {
            self.by_deadline.extend(deadline);
            self.by_id.insert(hold.id.clone(), hold.clone());
        } else {
            if let Some(deadline) = deadline {
                self.by_deadline.remove(&deadline);
            }
            self.by_id.remove(&hold.id);
        }
        Some(change)
    }

    /// Makes a hold again what it was, `None` for one that was not there.
    pub(super) fn put_back(&mut self, id: &RequestId, before: Option<Hold>) {
        let deadline = |hold: &Hold| hold.expires_at.map(|at| (at, hold.id.clone()));
        if let Some(hold) = self.by_id.remove(id) {
            self.sum = self.sum.saturating_sub(hold.rest());
            if let Some(deadline) = deadline(&hold) {
                self.by_deadline.remove(&deadline);
            }
        }
        if let Some(hold) = before {
            self.sum = self.sum.saturating_add(hold.rest());
            self.by_deadline.extend(deadline(&hold));
            self.by_id.insert(hold.id.clone(), hold);
        }
    }

    /// Takes in a hold as a checkpoint kept it. `false` where it may not be so.
    pub(super) fn restore(&mut self, hold: Hold) -> bool {
        let Some(sum) = self.sum.checked_add(hold.rest()) else {
            return false;
        };
        if !hold.is_sound() || hold.state != HoldState::Open || self.by_id.contains_key(&hold.id) {
            return false;
        }
        self.sum = sum;
        self.by_deadline
            .extend(hold.expires_at.map(|at| (at, hold.id.clone())));
        self.by_id.insert(hold.id.clone(), hold);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Amount;

    fn hold(id: &str, minor: i64, expires_at: Option<i64>) -> Hold {
        let amount = Amount::new(minor).unwrap();
        Hold::new(RequestId::new(id).unwrap(), amount, expires_at.map(Timestamp))
    }

    fn captured(hold: &Hold, minor: i64) -> Hold {
        Hold {
            captured: minor,
            ..hold.clone()
        }
    }

    #[test]
    fn what_is_expired_depends_on_the_time_and_comes_earliest_first() {
        let mut holds = Holds::default();
        for hold in [hold("a", 1, Some(30)), hold("b", 2, Some(10)), hold("c", 4, None)] {
            assert_eq!(holds.put(&hold), Some(hold.rest()));
        }
        let expired = |now| -> Vec<i64> { holds.expired(Timestamp(now)).map(Hold::rest).collect() };
        assert_eq!(
            (expired(9), expired(10), expired(30)),
            (vec![], vec![2], vec![2, 1])
        );
        assert_eq!((holds.sum(), holds.next_deadline()), (7, Some(Timestamp(10))));
    }

    #[test]
    fn a_hold_goes_on_and_ends_once() {
        let (mut holds, first) = (Holds::default(), hold("a", 10, Some(5)));
        assert_eq!(holds.put(&first), Some(10));
        assert_eq!(holds.put(&first), Some(0));
        assert_eq!(holds.put(&captured(&first, 4)), Some(-4));
        assert_eq!(holds.put(&first), None, "it does not go back");
        let ended = captured(&first, 4).ended(HoldState::Released);
        assert_eq!(holds.put(&ended), Some(-6));
        assert_eq!(holds.put(&ended), None, "it ended before");
        assert_eq!((holds.sum(), holds.next_deadline()), (0, None));
    }

    #[test]
    fn a_hold_that_contradicts_itself_is_not_taken() {
        let mut holds = Holds::default();
        assert_eq!(holds.put(&captured(&hold("a", 10, None), 4)), None);
        assert!(!holds.restore(captured(&hold("a", 10, None), 11)));
        assert!(!holds.restore(hold("b", 1, None).ended(HoldState::Expired)));
        assert!(holds.restore(hold("c", 1, None)) && !holds.restore(hold("c", 1, None)));
    }
}
