//! What a transaction locks and reads before it decides.

use super::{Reads, Text, Value};
use crate::account::{AccountId, RequestId, SlotIndex, Timestamp};

/// Keys in one list: the optimizer goes through so many one by one, in their order, and reads nothing else.
const KEYS: usize = 200;

/// How rows are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Lock {
    /// Against changes; others may read it so too.
    Share,
    Update,
    /// Only if it is free.
    UpdateIfFree,
    /// Not at all.
    Nothing,
}

impl Lock {
    const fn words(self) -> &'static str {
        match self {
            // The words that both servers know.
            Self::Share => " LOCK IN SHARE MODE",
            Self::Update => " FOR UPDATE",
            Self::UpdateIfFree => " FOR UPDATE SKIP LOCKED",
            Self::Nothing => "",
        }
    }
}

/// Which of an account's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum SlotsOf {
    One(SlotIndex),
    All,
}

const NOW: &str = database_now!();
const SLOT: &str = "SELECT account_id,slot_index,balance,version,held,at_us FROM wallet_slot FORCE INDEX (PRIMARY) \
                    WHERE account_id IN (";

fn ids<'a>(accounts: &'a [&AccountId]) -> impl Iterator<Item = Value<'a>> {
    accounts.iter().map(|account| account.as_str().into())
}

impl Text {
    /// Account rows. `accounts` ascending.
    pub(in super::super) fn accounts(&mut self, accounts: &[&AccountId], lock: Lock) {
        for accounts in accounts.chunks(KEYS) {
            self.words(
                "SELECT account_id,currency,status,floor,slots,credit_mode,debit_mode FROM account \
                 FORCE INDEX (PRIMARY) WHERE account_id IN (",
            )
            .list(ids(accounts))
            .words(") ORDER BY account_id")
            .words(lock.words())
            .end(Reads::Accounts);
        }
    }

    /// Slots of each of the accounts, which are ascending.
    pub(in super::super) fn slots(&mut self, accounts: &[&AccountId], slots: SlotsOf, lock: Lock) {
        for accounts in accounts.chunks(KEYS) {
            self.words(SLOT).list(ids(accounts)).words(")");
            if let SlotsOf::One(index) = slots {
                self.words(" AND slot_index=").value(index.get());
            }
            self.words(" ORDER BY account_id,slot_index").words(lock.words());
            self.end(if lock == Lock::Nothing {
                Reads::Peeks
            } else {
                Reads::Slots
            });
        }
    }

    /// The time.
    pub(in super::super) fn now(&mut self) {
        self.words("SELECT ")
            .words(NOW)
            .words(" AS now_us")
            .end(Reads::Now);
    }

    /// Requests of one account.
    pub(in super::super) fn requests(&mut self, account: &AccountId, requests: &[&RequestId]) {
        for requests in requests.chunks(KEYS) {
            self.words(
                "SELECT account_id,request_id,operation,outcome,slot_index,version,balance_after,at_us FROM request \
                 FORCE INDEX (PRIMARY) WHERE account_id=",
            )
            .value(account.as_str())
            .words(" AND request_id IN (")
            .list(requests.iter().map(|request| request.as_str().into()))
            .words(")")
            .end(Reads::Requests);
        }
    }

    /// What reversed these requests of one account.
    pub(in super::super) fn reversals(&mut self, account: &AccountId, reversed: &[&RequestId]) {
        for reversed in reversed.chunks(KEYS) {
            self.words("SELECT account_id,reverses,request_id FROM reversal WHERE account_id=")
                .value(account.as_str())
                .words(" AND reverses IN (")
                .list(reversed.iter().map(|request| request.as_str().into()))
                .words(")")
                .end(Reads::Reversals);
        }
    }

    /// Holds of one account by their ids. No lock: they only change under its gate.
    pub(in super::super) fn holds(&mut self, account: &AccountId, holds: &[&RequestId]) {
        for holds in holds.chunks(KEYS) {
            self.hold_columns(account)
                .words(" AND hold_id IN (")
                .list(holds.iter().map(|hold| hold.as_str().into()))
                .words(")")
                .end(Reads::Holds);
        }
    }

    /// Its open holds of which the deadline has come, as [`Text::holds`]. `now` is the test's; without one, that of
    /// the transaction: the database's, and not before the newest entry of the account's.
    pub(in super::super) fn expired_holds(&mut self, account: &AccountId, now: Option<Timestamp>) {
        self.hold_columns(account)
            .words(" AND state=0 AND expires_at_us<=GREATEST(");
        match now {
            Some(now) => self.value(now.0),
            None => self.words(NOW),
        };
        self.words(",(SELECT COALESCE(MAX(at_us),0) FROM wallet_slot WHERE account_id=")
            .value(account.as_str())
            .words("))")
            .end(Reads::Holds);
    }

    fn hold_columns(&mut self, account: &AccountId) -> &mut Self {
        self.words(
            "SELECT account_id,hold_id,amount,captured,released,state,expires_at_us FROM hold WHERE account_id=",
        )
        .value(account.as_str())
    }

    /// Its pending rows, oldest first. No lock: a committed one only changes under the account's gate.
    pub(in super::super) fn pending(&mut self, account: &AccountId) {
        self.words(
            "SELECT id,account_id,source_id,request_id,amount,at_us FROM pending_credit FORCE INDEX (waiting) \
             WHERE settled_version IS NULL AND account_id=",
        )
        .value(account.as_str())
        .words(" ORDER BY id")
        .end(Reads::Pending);
    }

    /// What its pending rows are worth.
    pub(in super::super) fn waiting(&mut self, account: &AccountId) {
        self.words("SELECT ")
            .value(account.as_str())
            .words(
                " AS account_id,CAST(COALESCE(SUM(amount),0) AS SIGNED) AS waiting FROM pending_credit \
                 FORCE INDEX (waiting) WHERE settled_version IS NULL AND account_id=",
            )
            .value(account.as_str())
            .end(Reads::Waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_no_quotes_but_those_of_its_own_words() {
        let (account, request) = (AccountId::new("a").unwrap(), RequestId::new("'\"`;").unwrap());
        let mut text = Text::default();
        text.begin();
        text.accounts(&[&account], Lock::Share);
        text.slots(&[&account], SlotsOf::All, Lock::UpdateIfFree);
        text.now();
        text.requests(&account, &[&request]);
        text.reversals(&account, &[&request]);
        text.holds(&account, &[&request]);
        text.expired_holds(&account, None);
        text.pending(&account);
        text.waiting(&account);
        let own = text.sql.replace("'1970-01-01'", "");
        assert!(
            own.contains("0x2722603b") && !own.contains(['\'', '"', '`']),
            "{own}"
        );
    }

    #[test]
    fn many_keys_are_several_statements() {
        let accounts: Vec<AccountId> = (0..=KEYS)
            .map(|number| AccountId::new(&format!("a{number}")).unwrap())
            .collect();
        let mut text = Text::default();
        text.accounts(&accounts.iter().collect::<Vec<_>>(), Lock::Share);
        assert_eq!(text.reads, [Reads::Accounts; 2]);
    }
}
