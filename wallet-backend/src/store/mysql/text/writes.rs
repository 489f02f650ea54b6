//! What a transaction writes: all of it, up to the COMMIT.
//!
//! Whatever can fail because of somebody else comes first, in one order for all transactions: accounts, requests,
//! reversals, each sorted. A row under lock that is not as it was read raises an error, which stops the text before
//! its COMMIT.

use super::{Reads, Text};
use crate::account::{Account, AccountId, Entry, Hold, Link, Pending, RequestId, Slot, SlotIndex, Timestamp};
use crate::command::RequestRecord;
use crate::store::mysql::columns;
use crate::store::mysql::requests::{self, Stored};

/// Rows of one statement. A row has a few hundred bytes.
const ROWS: usize = 500;

/// Everything that a transaction writes. A reference to each row as it becomes.
#[derive(Debug, Default)]
pub(in super::super) struct Writes<'a> {
    /// By id.
    pub(in super::super) opened: Vec<&'a Account>,
    /// By id.
    pub(in super::super) amended: Vec<&'a Account>,
    /// By account and id, each with the time of its decision.
    pub(in super::super) requests: Vec<(&'a RequestRecord, Timestamp)>,
    /// By account and what is reversed: that, and what reverses it.
    pub(in super::super) reversals: Vec<(&'a AccountId, &'a RequestId, &'a RequestId)>,
    /// In the order of their decisions, each with what is held after it.
    pub(in super::super) entries: Vec<(&'a Entry, i64)>,
    pub(in super::super) slots: Vec<SlotRow<'a>>,
    pub(in super::super) holds: Vec<HoldRow<'a>>,
    pub(in super::super) added: Vec<PendingRow<'a>>,
    /// Rows by number, each with the version of the entry that settled it.
    pub(in super::super) settled: Vec<(u64, u64)>,
}

#[derive(Debug)]
pub(in super::super) struct SlotRow<'a> {
    pub(in super::super) account: &'a AccountId,
    /// `None` where there was no row.
    pub(in super::super) version_before: Option<u64>,
    pub(in super::super) after: Slot,
    pub(in super::super) held: i64,
    pub(in super::super) at: Timestamp,
}

#[derive(Debug)]
pub(in super::super) struct HoldRow<'a> {
    pub(in super::super) account: &'a AccountId,
    pub(in super::super) hold: &'a Hold,
    /// Of an expired one.
    pub(in super::super) swept_version: Option<u64>,
}

#[derive(Debug)]
pub(in super::super) struct PendingRow<'a> {
    pub(in super::super) account: &'a AccountId,
    pub(in super::super) row: &'a Pending,
    /// Where it was settled at once.
    pub(in super::super) settled_version: Option<u64>,
}

impl Writes<'_> {
    /// Whether there is nothing to write.
    pub(in super::super) fn is_empty(&self) -> bool {
        let accounts = self.opened.is_empty() && self.amended.is_empty();
        let rows = self.entries.is_empty() && self.added.is_empty() && self.slots.is_empty();
        accounts && rows && self.requests.is_empty()
    }
}

/// The texts that write all of it, in their order. The last one ends with the COMMIT.
pub(in super::super) fn writing(writes: &Writes<'_>) -> Vec<Text> {
    let mut texts = Texts::default();
    texts.accounts(writes);
    texts.requests(writes);
    texts.entries(writes);
    texts.slots(writes);
    texts.holds(writes);
    texts.pending(writes);
    texts.outbox(writes);
    texts.open.commit();
    texts.done.push(texts.open);
    texts.done
}

#[derive(Debug, Default)]
struct Texts {
    done: Vec<Text>,
    open: Text,
}

impl Texts {
    /// Ends a statement, and a text that is long enough.
    fn end(&mut self) {
        self.open.end(Reads::Nothing);
        if self.open.is_full() {
            self.done.push(std::mem::take(&mut self.open));
        }
    }

    /// An error unless the statement before changed so many rows.
    fn demand(&mut self, rows: usize) {
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        self.open
            .words("SELECT IF(ROW_COUNT()=")
            .value(rows)
            .words(",1,(SELECT 1 UNION SELECT 2))");
        self.end();
    }

    /// `head`, rows, `tail`: as many statements as it takes.
    fn insert<'a, T: 'a>(
        &mut self,
        head: &'static str,
        tail: &'static str,
        rows: impl IntoIterator<Item = T>,
        mut row: impl FnMut(&mut Text, T),
    ) {
        let mut open = 0_usize;
        for one in rows {
            self.open.words(if open == 0 { head } else { "," }).words("(");
            row(&mut self.open, one);
            self.open.words(")");
            open = open.saturating_add(1);
            if open == ROWS || self.open.is_full() {
                self.open.words(tail);
                self.end();
                open = 0;
            }
        }
        if open > 0 {
            self.open.words(tail);
            self.end();
        }
    }

    fn accounts(&mut self, writes: &Writes<'_>) {
        self.insert(
            "INSERT INTO account (account_id,currency,status,floor,slots,credit_mode,debit_mode) VALUES ",
            "",
            &writes.opened,
            |text, account| {
                text.list([
                    account.id.as_str().into(),
                    account.currency.as_str().into(),
                    columns::of_status(account.status).into(),
                    account.floor.into(),
                    account.slots.get().into(),
                    columns::of_credit_mode(account.credit).into(),
                    columns::of_debit_mode(account.debit).into(),
                ]);
            },
        );
        for account in &writes.amended {
            self.open
                .words("UPDATE account SET status=")
                .value(columns::of_status(account.status))
                .words(",floor=")
                .value(account.floor)
                .words(",slots=")
                .value(account.slots.get())
                .words(",credit_mode=")
                .value(columns::of_credit_mode(account.credit))
                .words(",debit_mode=")
                .value(columns::of_debit_mode(account.debit))
                .words(" WHERE account_id=")
                .value(account.id.as_str());
            self.end();
        }
    }

    fn requests(&mut self, writes: &Writes<'_>) {
        self.insert(
            "INSERT INTO request (account_id,request_id,operation,outcome,slot_index,version,balance_after,at_us) VALUES ",
            "",
            &writes.requests,
            |text, (record, at)| {
                let operation = requests::operation(record);
                let (account, request) = (record.account.as_str(), record.request.as_str());
                text.list([account.into(), request.into(), operation.as_deref().into()]);
                match requests::outcome(record) {
                    Stored::Plain { leg, at } => text.words(",NULL,").list([
                        leg.slot.get().into(),
                        leg.version.into(),
                        leg.balance_after.into(),
                        at.0.into(),
                    ]),
                    Stored::Bytes(bytes) => text
                        .words(",")
                        .value(bytes.as_slice())
                        .words(",NULL,NULL,NULL,")
                        .value(at.0),
                };
            },
        );
        self.insert(
            "INSERT INTO reversal (account_id,reverses,request_id) VALUES ",
            "",
            &writes.reversals,
            |text, (account, reverses, by)| {
                text.list([
                    account.as_str().into(),
                    reverses.as_str().into(),
                    by.as_str().into(),
                ]);
            },
        );
    }

    fn entries(&mut self, writes: &Writes<'_>) {
        self.insert(
            "INSERT INTO account_entry (account_id,slot_index,version,kind,request_id,delta,held_delta,balance_after,\
             held_after,at_us,link_kind,link) VALUES ",
            "",
            &writes.entries,
            |text, (entry, held_after)| {
                let request = entry.request.as_ref().map(RequestId::as_str);
                let link = entry.link.as_ref().map(columns::of_link);
                let (kind, name) = link.unzip();
                text.list([
                    entry.account.as_str().into(),
                    entry.slot.get().into(),
                    entry.version.into(),
                    columns::of_entry_kind(entry.kind).into(),
                    request.into(),
                    entry.delta.into(),
                    entry.held_delta.into(),
                    entry.balance_after.into(),
                    (*held_after).into(),
                    entry.at.0.into(),
                    kind.into(),
                    name.as_deref().into(),
                ]);
            },
        );
    }

    fn slots(&mut self, writes: &Writes<'_>) {
        let fresh = writes.slots.iter().filter(|row| row.version_before.is_none());
        self.insert(
            "INSERT INTO wallet_slot (account_id,slot_index,balance,version,held,at_us) VALUES ",
            "",
            fresh,
            |text, row| {
                text.list([
                    row.account.as_str().into(),
                    row.after.index.get().into(),
                    row.after.balance.into(),
                    row.after.version.into(),
                    row.held.into(),
                    row.at.0.into(),
                ]);
            },
        );
        for row in &writes.slots {
            let Some(before) = row.version_before else {
                continue;
            };
            // The column takes no NULL.
            self.open
                .words("UPDATE wallet_slot SET balance=IF(version=")
                .value(before)
                .words(",")
                .value(row.after.balance)
                .words(",NULL),version=")
                .value(row.after.version)
                .words(",held=")
                .value(row.held)
                .words(",at_us=")
                .value(row.at.0)
                .words(" WHERE account_id=")
                .value(row.account.as_str())
                .words(" AND slot_index=")
                .value(row.after.index.get());
            self.end();
        }
    }

    fn holds(&mut self, writes: &Writes<'_>) {
        self.insert(
            "INSERT INTO hold (account_id,hold_id,amount,captured,released,state,expires_at_us,swept_version) VALUES ",
            " ON DUPLICATE KEY UPDATE captured=VALUES(captured),released=VALUES(released),state=VALUES(state),\
             swept_version=VALUES(swept_version)",
            &writes.holds,
            |text, row| {
                let hold = row.hold;
                text.list([
                    row.account.as_str().into(),
                    hold.id.as_str().into(),
                    hold.amount.minor().into(),
                    hold.captured.into(),
                    hold.released.into(),
                    columns::of_hold_state(hold.state).into(),
                    hold.expires_at.map(|at| at.0).into(),
                    row.swept_version.into(),
                ]);
            },
        );
    }

    fn pending(&mut self, writes: &Writes<'_>) {
        for settled in writes.settled.chunks(ROWS) {
            self.open
                .words("UPDATE pending_credit SET settled_version=CASE id");
            for (id, version) in settled {
                self.open
                    .words(" WHEN ")
                    .value(*id)
                    .words(" THEN ")
                    .value(*version);
            }
            self.open
                .words(" END WHERE settled_version IS NULL AND id IN (")
                .list(settled.iter().map(|(id, _)| (*id).into()))
                .words(")");
            self.end();
            self.demand(settled.len());
        }
        self.insert(
            "INSERT INTO pending_credit (account_id,source_id,request_id,amount,at_us,settled_version) VALUES ",
            "",
            &writes.added,
            |text, added| {
                let (account, row) = (added.account, added.row);
                let source = match &row.link {
                    Some(Link::Transfer(source)) => source,
                    Some(_) | None => account,
                };
                text.list([
                    account.as_str().into(),
                    source.as_str().into(),
                    row.request.as_str().into(),
                    row.amount.minor().into(),
                    row.at.0.into(),
                    added.settled_version.into(),
                ]);
            },
        );
    }

    fn outbox(&mut self, writes: &Writes<'_>) {
        self.insert(
            "INSERT INTO outbox (account_id,slot_index,first_version,entries) VALUES ",
            "",
            runs(&writes.entries),
            |text, run| {
                text.list([
                    run.account.as_str().into(),
                    run.slot.get().into(),
                    run.first.into(),
                    run.entries.into(),
                ]);
            },
        );
    }
}

/// Consecutive entries of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RunOf<'a> {
    account: &'a AccountId,
    slot: SlotIndex,
    first: u64,
    entries: u64,
}

/// In the order of the entries.
fn runs<'a>(entries: &[(&'a Entry, i64)]) -> Vec<RunOf<'a>> {
    let mut runs: Vec<RunOf<'a>> = Vec::new();
    for (entry, _) in entries {
        match runs.last_mut() {
            Some(run) if *run.account == entry.account && run.slot == entry.slot => {
                run.entries = run.entries.saturating_add(1);
            }
            _ => runs.push(RunOf {
                account: &entry.account,
                slot: entry.slot,
                first: entry.version,
                entries: 1,
            }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::EntryKind;

    fn entry(account: &str, slot: u8, version: u64) -> Entry {
        Entry {
            account: AccountId::new(account).unwrap(),
            slot: SlotIndex::new(slot).unwrap(),
            version,
            kind: EntryKind::Credit,
            request: None,
            delta: 1,
            held_delta: 0,
            balance_after: 1,
            at: Timestamp(0),
            link: None,
        }
    }

    #[test]
    fn entries_of_a_slot_that_follow_each_other_are_one_row_of_the_outbox() {
        let all = [
            entry("a", 0, 4),
            entry("a", 0, 5),
            entry("a", 1, 1),
            entry("b", 1, 9),
            entry("a", 0, 6),
        ];
        let entries: Vec<(&Entry, i64)> = all.iter().map(|entry| (entry, 0)).collect();
        let found: Vec<(&str, u8, u64, u64)> = runs(&entries)
            .iter()
            .map(|run| (run.account.as_str(), run.slot.get(), run.first, run.entries))
            .collect();
        assert_eq!(
            found,
            [("a", 0, 4, 2), ("a", 1, 1, 1), ("b", 1, 9, 1), ("a", 0, 6, 1)]
        );
    }

    #[test]
    fn a_long_transaction_is_several_texts_of_which_the_last_commits() {
        let all: Vec<Entry> = (1..=30_000).map(|version| entry("a", 0, version)).collect();
        let writes = Writes {
            entries: all.iter().map(|entry| (entry, 0)).collect(),
            ..Writes::default()
        };
        let texts = writing(&writes);
        assert!(texts.len() > 1);
        let commits = texts.iter().map(|text| text.sql.contains("COMMIT"));
        assert_eq!(commits.filter(|commits| *commits).count(), 1);
        assert!(texts.last().unwrap().sql.ends_with("COMMIT;"));
    }
}
