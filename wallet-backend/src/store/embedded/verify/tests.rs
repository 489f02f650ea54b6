//! Logs whose every checksum is right and whose content is wrong: what `verify` is there for.

use super::*;
use crate::account::{Account, Entry, EntryKind, RequestId, SlotIndex, Timestamp};
use crate::command::{
    Command, Leg, Operation, Posting, Receipt, ReceiptKind, Remainder, RequestRecord, Task,
};
use crate::ledger::decide::{Context, Rows, decide};
use crate::money::Amount;
use crate::store::codec::wire::Writer;
use crate::store::embedded::links::Links;
use crate::store::embedded::record::encode;
use crate::store::embedded::scan::position;
use crate::store::embedded::segment::{FOLDER, Place, Segment, SegmentHead};
use crate::store::embedded::write::{append_record, write_batch};
use crate::store::embedded::{Embedded, Options};

mod tampered;

/// A log that is written by hand, one record to a batch.
struct Forged {
    _folder: tempfile::TempDir,
    disk: Arc<dyn Disk>,
    segment: Segment,
    books: Books,
    end: Mark,
    page: u32,
    /// What a reversal is told that it reverses.
    original: Option<RequestRecord>,
}

impl Forged {
    /// With account `a`, and a credit of 100.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(folder.path()));
        disk.create_folder(FOLDER).unwrap();
        let head = SegmentHead {
            store: 1,
            number: 1,
            pages: 32,
            previous: 0,
            replaces: None,
        };
        let segment = Segment::prepare(disk.as_ref(), head).unwrap();
        let mut forged = Self {
            _folder: folder,
            disk,
            segment,
            books: Books::new(1, Vec::new(), Older::default()),
            end: Mark::default(),
            page: 1,
            original: None,
        };
        let account = Account::new(AccountId::new("a").unwrap(), Currency::new("EUR").unwrap());
        forged.decided(&Task::Open(account));
        forged.decided(&credit("first", 100));
        forged
    }

    /// What the ledger itself decides for a task.
    fn decided(&mut self, task: &Task) -> Changes {
        let rows = Rows {
            own: self.books.get(task.account()).map(|held| &held.rows),
            original: self.original.as_ref(),
            ..Rows::default()
        };
        let context = Context {
            now: Timestamp(1),
            prefer: 0,
        };
        let changes = decide(task, rows, context).unwrap().changes;
        self.write(&changes, None);
        changes
    }

    fn write(&mut self, changes: &Changes, links: Option<Vec<Links>>) {
        self.write_numbered(self.books.entries(), changes, links);
    }

    fn write_numbered(&mut self, number: u64, changes: &Changes, links: Option<Vec<Links>>) {
        let links = links.unwrap_or_else(|| self.books.links(changes).collect());
        let mut out = Writer::default();
        encode(number, changes, &links, &mut out);
        let mut payload = Vec::new();
        append_record(&out.bytes, &mut payload);
        let first = Place {
            segment: 1,
            page: self.page,
        };
        // A forged record may break the books: then the ones after it are not written.
        drop(self.books.apply(changes, position(first, 0)));
        self.end = write_batch(&self.segment, self.page, &self.end, 0, &payload).unwrap();
        self.page = self.end.place.page;
    }

    fn findings(&self) -> Vec<String> {
        let report = verify_on(&self.disk, |_, _| ()).unwrap();
        report.findings.iter().map(ToString::to_string).collect()
    }
}

fn run(name: &str, operation: Operation) -> Task {
    Task::Run(Command {
        account: AccountId::new("a").unwrap(),
        request: RequestId::new(name).unwrap(),
        operation,
    })
}

fn credit(name: &str, minor: i64) -> Task {
    let (amount, memo) = (Amount::new(minor).unwrap(), None);
    run(name, Operation::Credit { amount, memo })
}

fn reversal(name: &str, of: &str) -> Task {
    let reverses = RequestId::new(of).unwrap();
    run(name, Operation::Reversal { reverses })
}

fn hold(name: &str, minor: i64) -> Task {
    let amount = Amount::new(minor).unwrap();
    let expires_in = None;
    run(name, Operation::Hold { amount, expires_in })
}

fn capture(name: &str, of: &str, minor: i64) -> Task {
    run(
        name,
        Operation::Capture {
            hold: RequestId::new(of).unwrap(),
            amount: Amount::new(minor).ok(),
            remainder: Remainder::Release,
        },
    )
}

#[track_caller]
fn one_finding(forged: &Forged, expected: &str) {
    let findings = forged.findings();
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert!(findings[0].contains(expected), "{findings:#?}");
}

#[test]
fn a_log_as_the_ledger_writes_it_is_clean() {
    let mut forged = Forged::new();
    forged.decided(&credit("second", 7));
    assert_eq!(forged.findings(), Vec::<String>::new());
}

#[test]
fn a_request_decided_twice_is_found() {
    let mut forged = Forged::new();
    forged.decided(&credit("first", 100));
    one_finding(
        &forged,
        "request first of a was decided before, segment 1, byte 12288",
    );
}

#[test]
fn a_wrong_cent_in_a_balance_is_found_with_account_slot_and_version() {
    let mut forged = Forged::new();
    let mut changes = forged.decided(&credit("second", 7));
    changes.entries[0].version = 3;
    changes.entries[0].balance_after = 115;
    forged.write(&changes, None);
    let findings = forged.findings();
    assert!(
        findings
            .iter()
            .any(|finding| finding.contains("account a, slot 0, version 3")
                && finding.contains("expected 114, found 115")),
        "{findings:#?}"
    );
}

#[test]
fn a_receipt_that_moves_another_amount_is_found() {
    let mut forged = Forged::new();
    let entry = Entry {
        account: AccountId::new("a").unwrap(),
        slot: SlotIndex::PRIMARY,
        version: 2,
        kind: EntryKind::Credit,
        request: Some(RequestId::new("odd").unwrap()),
        delta: 5,
        held_delta: 0,
        balance_after: 105,
        at: Timestamp(1),
        link: None,
    };
    let amount = Amount::new(6).unwrap();
    let receipt = Receipt {
        account: entry.account.clone(),
        request: RequestId::new("odd").unwrap(),
        kind: ReceiptKind::Credit,
        amount,
        currency: Currency::new("EUR").unwrap(),
        posting: Posting::Posted,
        at: Timestamp(1),
        legs: vec![Leg::from(&entry)],
    };
    let record = RequestRecord {
        account: entry.account.clone(),
        request: receipt.request.clone(),
        operation: Some(Operation::Credit { amount, memo: None }),
        outcome: Outcome::Posted(receipt),
    };
    forged.write(
        &Changes {
            request: Some(record),
            entries: vec![entry],
            ..Changes::default()
        },
        None,
    );
    let findings = forged.findings();
    assert!(
        findings[0].contains("the receipt of odd of a does not move its amount"),
        "{findings:#?}"
    );
    // And the ledger as a whole does not close.
    assert!(findings[1].contains("EUR: what came in"), "{findings:#?}");
}

#[test]
fn an_entry_that_nobody_asked_for_does_not_close() {
    let mut forged = Forged::new();
    let mut changes = forged.decided(&credit("second", 7));
    changes.request = None;
    changes.entries[0].version = 3;
    changes.entries[0].balance_after = 114;
    forged.write(&changes, None);
    one_finding(&forged, "EUR: what came in less what went out");
}

/// What a third credit changes, which is not written yet.
fn a_third(forged: &mut Forged) -> Changes {
    let mut changes = forged.decided(&credit("second", 7));
    changes.entries[0].version = 3;
    changes.entries[0].balance_after = 114;
    if let Some(record) = &mut changes.request {
        record.request = RequestId::new("third").unwrap();
    }
    if let Some(RequestRecord {
        outcome: Outcome::Posted(receipt),
        ..
    }) = &mut changes.request
    {
        receipt.request = RequestId::new("third").unwrap();
        receipt.legs = vec![Leg::from(&changes.entries[0])];
    }
    changes
}

#[test]
fn a_link_that_leads_elsewhere_is_found() {
    let mut forged = Forged::new();
    let changes = a_third(&mut forged);
    let mut links: Vec<Links> = forged.books.links(&changes).collect();
    links[0].before = 77;
    forged.write(&changes, Some(links));
    one_finding(&forged, "an entry's links lead elsewhere");
}

#[test]
fn a_record_that_counts_other_entries_before_it_is_found_and_not_opened() {
    let mut forged = Forged::new();
    let mut changes = forged.decided(&credit("second", 7));
    changes.request = None;
    changes.entries.clear();
    changes.account = forged
        .books
        .get(&AccountId::new("a").unwrap())
        .map(|held| held.rows.account().clone());
    forged.write_numbered(3, &changes, None);
    one_finding(
        &forged,
        "the record counts other entries before it than there are",
    );
    let opened = Embedded::open(Options::on(Arc::clone(&forged.disk)));
    let refused = opened.unwrap_err().to_string();
    assert!(
        refused.contains("counts 3 entries before it, and there are 2"),
        "{refused}"
    );
}

#[test]
fn a_sum_that_is_not_that_of_the_log_is_found() {
    let mut forged = Forged::new();
    let changes = a_third(&mut forged);
    let mut links: Vec<Links> = forged.books.links(&changes).collect();
    links[0].trace.sums.held = 5;
    forged.write(&changes, Some(links));
    one_finding(&forged, "an entry's sums are not those of the log before it");
}

#[test]
fn holds_and_reversals_as_the_ledger_writes_them_are_clean() {
    let mut forged = Forged::new();
    forged.original = forged.decided(&credit("second", 7)).request;
    forged.decided(&hold("held", 60));
    forged.decided(&capture("taken", "held", 20));
    forged.decided(&reversal("back", "second"));
    assert_eq!(forged.findings(), Vec::<String>::new());
}

#[test]
fn a_request_reversed_twice_is_found() {
    let mut forged = Forged::new();
    forged.original = forged.decided(&credit("second", 7)).request;
    forged.decided(&reversal("back", "second"));
    forged.decided(&reversal("again", "second"));
    one_finding(&forged, "request again of a reverses what was reversed before");
}

#[test]
fn a_reversal_of_something_else_than_it_says_is_found() {
    let mut forged = Forged::new();
    forged.original = forged.decided(&credit("second", 7)).request;
    forged.decided(&reversal("back", "first"));
    let findings = forged.findings();
    assert!(
        findings[0].contains("the receipt of back of a does not move its amount"),
        "{findings:#?}"
    );
}

#[test]
fn a_hold_that_is_captured_past_its_amount_breaks_the_books() {
    let mut forged = Forged::new();
    forged.decided(&hold("held", 60));
    let mut changes = forged.decided(&capture("taken", "held", 20));
    // Once more, as if it were still open.
    for entry in &mut changes.entries {
        entry.version += 2;
        entry.balance_after = 120;
    }
    changes.request = None;
    forged.write(&changes, None);
    let findings = forged.findings();
    assert!(
        findings
            .iter()
            .any(|finding| finding.contains("a hold goes forward and ends once")
                || finding.contains("balance_after")),
        "{findings:#?}"
    );
}

#[test]
fn pages_are_counted_not_batches() {
    use crate::store::embedded::{Embedded, Options};
    use crate::store::{Job, Store as _};

    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(Options::at(folder.path())).unwrap();
    let account = Account::new(AccountId::new("a").unwrap(), Currency::new("EUR").unwrap());
    let many = (0..100).map(|number| credit(&format!("r{number}"), 1));
    let jobs = std::iter::once(Task::Open(account)).chain(many);
    let (jobs, answers): (Vec<Job>, Vec<_>) = jobs.map(Job::new).unzip();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        store.run(jobs).await;
        for answer in answers {
            answer.await.unwrap().unwrap();
        }
        store.close().await;
    });
    let report = verify(folder.path()).unwrap();
    let bytes = report.pages * 4_096 / report.requests;
    assert_eq!((report.batches, report.requests), (1, 100));
    assert!((80..160).contains(&bytes), "{bytes} bytes a credit");
}
