//! The state in memory: every account's rows and chains, and where the recent requests are.
//!
//! Changed by [`Books::apply`] only, by the same changes whether they were just decided or are read from the log.
//! While a checkpoint is being written, an account that is about to change is captured first: the checkpoint is of one
//! moment, and deciding goes on.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::account::{AccountId, Timestamp};
use crate::command::Changes;
use crate::ledger::invariants::Violation;
use crate::ledger::rows::AccountRows;
use crate::ledger::slots::is_untidy;
use crate::mutants::{Mutant, is_on};
use crate::store::codec::wire::Writer;
use crate::store::embedded::accounts::{Accounts, Held};
use crate::store::embedded::blocks::BlockError;
use crate::store::embedded::disk::Disk;
use crate::store::embedded::links::{Chain, Chains, Links};
use crate::store::embedded::requests::{Filed, Older, Table, fingerprint};
use crate::store::embedded::rows::write_rows;
use crate::store::embedded::sums::Follow;

/// A checkpoint in the making.
#[derive(Debug)]
struct Snapshot {
    epoch: u64,
    full: bool,
    /// Numbers of accounts.
    left: Vec<usize>,
    out: Writer,
    accounts: u64,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Books {
    store: u64,
    accounts: Accounts,
    recent: Table,
    pub(super) older: Arc<Older>,
    untidy: BTreeSet<AccountId>,
    /// The next deadline of every account that has one, come or not.
    expiring: BTreeSet<(Timestamp, AccountId)>,
    /// Pending rows of all accounts.
    pending: u64,
    /// Entries of all accounts, ever: each has raised one slot's version by one.
    entries: u64,
    /// The last account that was named untidy: the next search begins after it.
    untidy_after: Option<AccountId>,
    epoch: u64,
    /// Numbers of those that changed in this epoch.
    dirty: Vec<usize>,
    snapshot: Option<Snapshot>,
}

impl Books {
    /// Books as a checkpoint kept them; empty for a new store.
    pub(super) fn new(store: u64, accounts: Vec<(AccountRows, Chains)>, older: Older) -> Self {
        let mut books = Self {
            store,
            accounts: Accounts::with_capacity(accounts.len()),
            recent: Table::default(),
            older: Arc::new(older),
            untidy: BTreeSet::new(),
            expiring: BTreeSet::new(),
            pending: 0,
            entries: 0,
            untidy_after: None,
            epoch: 1,
            dirty: Vec::new(),
            snapshot: None,
        };
        for (rows, chains) in accounts {
            if is_untidy(&rows) {
                books.untidy.insert(rows.account().id.clone());
            }
            books.pending = books.pending.saturating_add(rows_of(rows.pending().len()));
            let versions = rows.slots().iter().map(|slot| slot.version);
            books.entries = versions.fold(books.entries, u64::saturating_add);
            file_deadline(&mut books.expiring, &rows, None);
            books.accounts.add(Held::new(rows, chains));
        }
        books
    }

    pub(super) fn get(&self, id: &AccountId) -> Option<&Held> {
        self.accounts.get(id)
    }

    /// At most `limit` accounts after `after`, ascending by id.
    pub(super) fn after(&self, after: Option<&AccountId>, limit: usize) -> impl Iterator<Item = &Held> {
        self.accounts.after(after, limit)
    }

    /// An account's rows, for one who puts them back to what they were before anybody else sees them.
    pub(super) fn rows_mut(&mut self, id: &AccountId) -> Option<&mut AccountRows> {
        let number = self.accounts.find(id)?;
        self.accounts.at_mut(number).map(|held| &mut held.rows)
    }

    pub(super) fn accounts(&self) -> impl Iterator<Item = &Held> {
        self.accounts.iter()
    }

    /// The links of `changes`' entries, in their order.
    pub(super) fn links<'a>(&'a self, changes: &'a Changes) -> impl Iterator<Item = Links> {
        let mut followed: SmallVec<[(&Held, Follow<'_, _>); 1]> = SmallVec::new();
        changes.entries.iter().map(move |entry| {
            let known = followed
                .iter()
                .position(|(_, follow)| *follow.account() == entry.account);
            if known.is_none() {
                let held = self.accounts.get(&entry.account);
                followed.extend(held.map(|held| (held, held.chains.past.follow(&held.rows, changes))));
            }
            let followed = match known {
                Some(at) => followed.get_mut(at),
                None => followed.last_mut(),
            };
            let Some((held, follow)) = followed.filter(|(_, follow)| *follow.account() == entry.account)
            else {
                return Links::default();
            };
            // It is there, this entry itself at the latest; mostly it comes soon, as slots are few.
            let mut entries = changes.entries.iter();
            let first = entries.find(|first| first.slot == entry.slot && first.account == entry.account);
            let first = first.map_or(entry.version, |first| first.version);
            let trace = follow.trace(entry);
            match held.chains.of(entry.slot) {
                Some(chain) => chain.links(entry.version, first, trace),
                None => Chain::default().links(entry.version, first, trace),
            }
        })
    }

    /// Applies the record at `position`.
    ///
    /// # Errors
    /// The first rule broken. The books may be half changed: the store must stop.
    pub(super) fn apply(&mut self, changes: &Changes, position: u64) -> Result<(), Violation> {
        for id in changes.accounts() {
            let number = self.accounts.find(id).or_else(|| self.open(id, changes));
            // Rows of an account that is not there: its own rules will say so.
            let number = number.ok_or_else(|| missing(id))?;
            let held = self.accounts.at_mut(number).ok_or_else(|| missing(id))?;
            if let Some(snapshot) = &mut self.snapshot {
                snapshot.capture(held);
            }
            if held.changed < self.epoch {
                held.changed = self.epoch;
                if !is_on(Mutant::ForgetsChangedAccounts) {
                    self.dirty.push(number);
                }
            }
            let deadline = held.rows.next_deadline();
            held.chains.past.apply(&held.rows, changes);
            held.rows.apply(changes)?;
            for entry in changes.entries.iter().filter(|entry| entry.account == *id) {
                if let Some(chain) = held.chains.of_mut(entry.slot) {
                    chain.push(entry.version, position);
                }
            }
            file_deadline(&mut self.expiring, &held.rows, deadline);
            if is_untidy(&held.rows) {
                self.untidy.insert(id.clone());
            } else {
                self.untidy.remove(id);
            }
        }
        self.pending = self
            .pending
            .saturating_add(rows_of(changes.pending_added.len()))
            .saturating_sub(rows_of(changes.pending_settled.len()));
        self.entries = self.entries.saturating_add(rows_of(changes.entries.len()));
        self.file(changes, position);
        Ok(())
    }

    /// Adds the account that `changes` open, if that is `id`, and says its number.
    fn open(&mut self, id: &AccountId, changes: &Changes) -> Option<usize> {
        let account = changes.account.as_ref().filter(|account| account.id == *id)?;
        let mut held = Held::new(AccountRows::open(account.clone()), Chains::default());
        // It is of no earlier epoch, so the checkpoint of one that is being written does without it.
        held.captured = self.epoch.saturating_sub(1);
        Some(self.accounts.add(held))
    }

    /// Pending rows of all accounts.
    pub(super) const fn pending(&self) -> u64 {
        self.pending
    }

    /// Entries of all accounts, ever.
    pub(super) const fn entries(&self) -> u64 {
        self.entries
    }

    fn file(&mut self, changes: &Changes, position: u64) {
        for (key, _) in filed(self.store, changes) {
            self.recent.insert(key, position);
        }
    }

    /// Positions of records that may be about the request filed under `fingerprint`, in memory and on disk.
    pub(super) fn find(&self, disk: &dyn Disk, fingerprint: u64) -> Result<Vec<u64>, BlockError> {
        let mut found = Vec::new();
        self.recent.find(fingerprint, &mut found);
        self.older.find(disk, fingerprint, &mut found)?;
        Ok(found)
    }

    /// Those of them that are in the newest table only.
    pub(super) fn find_recent(&self, fingerprint: u64) -> Vec<u64> {
        let mut found = Vec::new();
        self.recent.find(fingerprint, &mut found);
        found
    }

    /// At most `limit` accounts with something to tidy, each in its turn.
    pub(super) fn untidy(&mut self, limit: usize, now: Timestamp) -> Vec<AccountId> {
        // An account of which a hold has expired is untidy until its next change; that files its next deadline again.
        while self.expiring.first().is_some_and(|(at, _)| *at <= now) {
            self.untidy.extend(self.expiring.pop_first().map(|(_, id)| id));
        }
        let after = self.untidy_after.clone();
        let begin = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let end = after.as_ref().map_or(Bound::Unbounded, Bound::Included);
        let later = self.untidy.range((begin, Bound::Unbounded));
        let wrapped = self.untidy.range((Bound::Unbounded, end));
        let everyone = self.untidy.len();
        let named: Vec<AccountId> = later.chain(wrapped).take(everyone.min(limit)).cloned().collect();
        self.untidy_after = named.last().cloned();
        named
    }

    /// Begins a checkpoint of this moment: everything, or what changed since the last.
    pub(super) fn begin_snapshot(&mut self, full: bool) {
        let changed = std::mem::take(&mut self.dirty);
        let left = if full {
            (0..self.accounts.len()).collect()
        } else {
            changed
        };
        self.snapshot = Some(Snapshot {
            epoch: self.epoch,
            full,
            left,
            out: Writer::default(),
            accounts: 0,
        });
        self.epoch = self.epoch.saturating_add(1);
        if self.recent.len() > 0 {
            let frozen = Arc::new(std::mem::take(&mut self.recent));
            Arc::make_mut(&mut self.older).frozen.push(frozen);
        }
    }

    /// Captures some more accounts. Returns what was captured since the last call and, at the end, how many in all.
    pub(super) fn capture_some(&mut self, most: usize) -> (Vec<u8>, Option<u64>) {
        let Some(snapshot) = &mut self.snapshot else {
            return (Vec::new(), Some(0));
        };
        for _ in 0..most {
            let Some(number) = snapshot.left.pop() else { break };
            if let Some(held) = self.accounts.at_mut(number) {
                snapshot.capture(held);
            }
        }
        let bytes = std::mem::take(&mut snapshot.out.bytes);
        let done = snapshot.left.is_empty().then_some(snapshot.accounts);
        (bytes, done)
    }

    /// The checkpoint is done, or given up.
    pub(super) fn end_snapshot(&mut self) {
        self.snapshot = None;
    }
}

/// What is filed of a record: fingerprints, in the store `store`.
pub(super) fn filed(store: u64, changes: &Changes) -> impl Iterator<Item = (u64, Filed)> {
    let key = move |account, request, filed| (fingerprint(store, account, request, filed), filed);
    let decided = changes.request.iter();
    let decided = decided.map(move |record| key(&record.account, &record.request, Filed::Decision));
    let settled = changes.entries.iter().filter_map(move |entry| {
        let (account, request) = entry.settles()?;
        Some(key(account, request, Filed::Settlement))
    });
    let reversed = changes.reversal().into_iter();
    let reversed = reversed.map(move |(account, reverses, _)| key(account, reverses, Filed::Reversal));
    let ended = changes.ended_holds();
    let ended = ended.map(move |(account, hold)| key(account, &hold.id, Filed::HoldEnd));
    decided.chain(settled).chain(reversed).chain(ended)
}

fn rows_of(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn missing(account: &AccountId) -> Violation {
    Violation {
        account: account.clone(),
        slot: None,
        version: None,
        rule: crate::ledger::invariants::Rule::Account,
        expected: 1,
        found: 0,
    }
}

/// Brings `expiring` up to date with an account's rows, of which the next deadline was `before`.
fn file_deadline(
    expiring: &mut BTreeSet<(Timestamp, AccountId)>,
    rows: &AccountRows,
    before: Option<Timestamp>,
) {
    let id = &rows.account().id;
    let next = rows.next_deadline();
    if let Some(before) = before.filter(|before| Some(*before) != next) {
        expiring.remove(&(before, id.clone()));
    }
    // Also where it is the same: it may have been taken out meanwhile, since it had come.
    expiring.extend(next.map(|at| (at, id.clone())));
}

impl Snapshot {
    /// Keeps an account as it is now, if it belongs to this checkpoint and has not been kept yet.
    fn capture(&mut self, held: &mut Held) {
        let belongs = self.full || held.changed == self.epoch;
        if belongs && held.captured < self.epoch {
            held.captured = self.epoch;
            write_rows(&held.rows, &held.chains, &mut self.out);
            self.accounts = self.accounts.saturating_add(1);
        }
    }
}
