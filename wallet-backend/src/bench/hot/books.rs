//! What the tables must say after a row: read by the server itself, judged here.

use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use sqlx::mysql::MySqlConnection;
use sqlx::{Row as _, raw_sql};

/// Entries beside slots, requests beside entries. Chains by the entry before, which has the version before.
const QUERY: &str = "SELECT \
     (SELECT CAST(COALESCE(SUM(balance + held), 0) AS SIGNED) FROM wallet_slot) \
     + (SELECT CAST(COALESCE(SUM(amount), 0) AS SIGNED) FROM pending_credit WHERE settled_version IS NULL), \
     (SELECT CAST(COALESCE(SUM(delta + held_delta), 0) AS SIGNED) FROM account_entry) \
     + (SELECT CAST(COALESCE(SUM(amount), 0) AS SIGNED) FROM pending_credit WHERE settled_version IS NULL), \
     (SELECT COUNT(*) FROM account_entry), \
     (SELECT CAST(COALESCE(SUM(version), 0) AS SIGNED) FROM wallet_slot), \
     (SELECT COUNT(*) FROM request), \
     (SELECT COUNT(*) FROM wallet_slot WHERE balance < 0), \
     (SELECT COUNT(*) FROM account_entry AS e JOIN account_entry AS b ON b.account_id = e.account_id \
      AND b.slot_index = e.slot_index AND b.version = e.version - 1 \
      WHERE e.version > 1 AND e.balance_after <> b.balance_after + e.delta), \
     (SELECT COUNT(*) FROM wallet_slot AS s LEFT JOIN account_entry AS e ON e.account_id = s.account_id \
      AND e.slot_index = s.slot_index AND e.version = s.version \
      WHERE s.version > 0 AND (e.balance_after IS NULL OR e.balance_after <> s.balance)), \
     (SELECT COUNT(*) FROM request AS r LEFT JOIN account_entry AS e ON e.account_id = r.account_id \
      AND e.slot_index = r.slot_index AND e.version = r.version \
      WHERE r.version IS NOT NULL AND (e.request_id IS NULL OR e.request_id <> r.request_id)), \
     (SELECT COUNT(*) FROM pending_credit AS p LEFT JOIN account_entry AS e ON e.account_id = p.account_id \
      AND e.slot_index = 0 AND e.version = p.settled_version \
      WHERE p.settled_version IS NOT NULL AND (e.request_id IS NULL OR e.request_id <> p.request_id))";

/// Sums over the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Books {
    /// On slots, held and waiting, minor units.
    money: i64,
    /// What entries moved, and what waits.
    moved: i64,
    entries: i64,
    versions: i64,
    requests: i64,
    negative_slots: i64,
    broken_links: i64,
    wrong_heads: i64,
    requests_without_entry: i64,
    settled_without_entry: i64,
}

/// What the clients were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Told {
    /// Minor units, credits less debits.
    pub(super) moved: i64,
    /// Requests that the ledger must have kept.
    pub(super) requests: i64,
}

impl Books {
    /// Reads them, on a session of any isolation: nobody writes meanwhile.
    ///
    /// # Errors
    /// What the server says.
    pub(super) async fn read(connection: &mut MySqlConnection) -> Result<Self, sqlx::Error> {
        let rows: Vec<_> = raw_sql(QUERY).fetch(connection).try_collect().await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let column = |index: usize| row.try_get_unchecked::<i64, _>(index);
        Ok(Self {
            money: column(0)?,
            moved: column(1)?,
            entries: column(2)?,
            versions: column(3)?,
            requests: column(4)?,
            negative_slots: column(5)?,
            broken_links: column(6)?,
            wrong_heads: column(7)?,
            requests_without_entry: column(8)?,
            settled_without_entry: column(9)?,
        })
    }

    pub(super) fn entries_since(&self, before: &Self) -> i64 {
        self.entries.saturating_sub(before.entries)
    }

    /// Of so many debits from nothing, for tests.
    #[cfg(test)]
    pub(super) fn of_debits(count: i64, amount: i64) -> Self {
        let moved = -count * amount;
        Self {
            money: moved,
            moved,
            entries: count,
            versions: count,
            requests: count,
            ..Self::default()
        }
    }

    /// What is wrong in these books, if `before` were those at the start; empty = nothing.
    pub(super) fn wrong(&self, before: &Self, told: Told) -> Vec<String> {
        let grown = |after: i64, before: i64| after.saturating_sub(before);
        let money = grown(self.money, before.money);
        let moved = grown(self.moved, before.moved);
        let requests = grown(self.requests, before.requests);
        let entries = grown(self.entries, before.entries);
        let versions = grown(self.versions, before.versions);
        let mut wrong = Vec::new();
        let mut same = |what: &str, found: i64, expected: i64| {
            if found != expected {
                wrong.push(format!("{what}: {found} instead of {expected}"));
            }
        };
        same(
            "balances changed by other than was acknowledged",
            money,
            told.moved,
        );
        same("entries add up to other than balances changed by", moved, money);
        same("requests are not those acknowledged", requests, told.requests);
        same("versions are not as many as entries", versions, entries);
        same("slots below zero", self.negative_slots, 0);
        same("entries that do not follow the one before", self.broken_links, 0);
        same(
            "slots that are not what their last entry says",
            self.wrong_heads,
            0,
        );
        same("requests without their entry", self.requests_without_entry, 0);
        same(
            "settled credits without their entry",
            self.settled_without_entry,
            0,
        );
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A credit of 300 and a debit of 200, from a slot that had 1 000.
    fn sound() -> (Books, Books, Told) {
        let before = Books {
            money: 1_000,
            ..Books::default()
        };
        let after = Books {
            money: 1_100,
            moved: 100,
            entries: 2,
            versions: 2,
            requests: 2,
            ..before
        };
        let told = Told {
            moved: 100,
            requests: 2,
        };
        (before, after, told)
    }

    #[test]
    fn books_that_agree_have_nothing_wrong() {
        let (before, after, told) = sound();
        assert_eq!(after.wrong(&before, told), Vec::<String>::new());
    }

    #[test]
    fn each_difference_is_found_by_itself_and_named() {
        let (before, after, told) = sound();
        let planted = [
            (
                Books {
                    money: 1_101,
                    moved: 101,
                    ..after
                },
                "balances changed",
            ),
            (Books { moved: 99, ..after }, "entries add up"),
            (Books { requests: 1, ..after }, "requests are not"),
            (Books { versions: 3, ..after }, "versions"),
            (
                Books {
                    negative_slots: 1,
                    ..after
                },
                "below zero",
            ),
            (
                Books {
                    broken_links: 1,
                    ..after
                },
                "follow",
            ),
            (
                Books {
                    wrong_heads: 1,
                    ..after
                },
                "last entry",
            ),
            (
                Books {
                    requests_without_entry: 1,
                    ..after
                },
                "without their entry",
            ),
            (
                Books {
                    settled_without_entry: 1,
                    ..after
                },
                "settled",
            ),
        ];
        for (books, word) in planted {
            let wrong = books.wrong(&before, told);
            assert!(
                matches!(wrong.as_slice(), [one] if one.contains(word)),
                "{word}: {wrong:?}"
            );
        }
    }
}
