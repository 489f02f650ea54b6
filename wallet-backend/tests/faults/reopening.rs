//! Restarts: everything is there, again and again, and the disk does not fill with them.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use wallet_backend::account::{HoldState, Timestamp};
use wallet_backend::command::{Outcome, Posting, Refusal, RequestView};
use wallet_backend::store::embedded::disk::{Disk, RealDisk};
use wallet_backend::store::embedded::{Embedded, OpenError, Options, VerifyError, verify, verify_on};
use wallet_backend::store::{Cursor, Event, Moment, Store};

use super::disk::{FaultDisk, Op};
use super::trial::{Workload, close_and_verify, open, picture, small};
use crate::conformance::pasts::Told;
use crate::support::{
    Bench, SECOND, Time, capture, capture_part, credit, debit, drain, hold, id, journal, ordinary, release,
    request, reslot, reversal, slotted, tidy, transfer,
};

#[test]
fn a_second_process_is_kept_out_and_told_why() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(Options::at(folder.path())).unwrap();
    let second = Embedded::open(Options::at(folder.path()));
    assert!(matches!(second, Err(OpenError::InUse)), "{second:?}");
    let checked = verify(folder.path());
    assert!(
        matches!(checked, Err(VerifyError::Open(OpenError::InUse))),
        "{checked:?}"
    );
    drop(store);
    assert!(verify(folder.path()).unwrap().is_clean());
    assert!(Embedded::open(Options::at(folder.path())).is_ok());
}

#[test]
fn a_directory_without_a_store_cannot_be_verified() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(verify(folder.path()), Err(VerifyError::NoStore)));
    let missing = verify(folder.path().join("missing"));
    assert!(matches!(missing, Err(VerifyError::NoStore)));
    assert_eq!(
        folder.path().read_dir().unwrap().count(),
        0,
        "it leaves nothing behind"
    );
}

/// They were removed only after an opening that succeeded: killed again and again while opening, a process filled its
/// disk with the beginnings of fresh segments, and then could not open for want of room.
#[test]
fn what_a_killed_opening_left_is_taken_away_before_room_is_looked_for() {
    let disk = FaultDisk::default();
    open(small(&disk)).open(ordinary("a"));
    let left = "log/0000000099.seg";
    disk.add(left, vec![0; 64 << 10]);
    disk.fail(Op::Create, 0, ErrorKind::StorageFull, 1);
    assert!(Embedded::open(small(&disk)).is_err());
    assert!(!disk.files().contains(&left.to_owned()));
    assert!(open(small(&disk)).view("a").is_some());
}

#[test]
fn a_store_that_lost_its_log_is_refused_and_found_to_be_at_fault() {
    let disk = FaultDisk::default();
    let store = open(small(&disk));
    Workload::new(23, 64).run(&store, 0);
    store.close();
    drop(store);
    for file in disk.files().iter().filter(|file| file.starts_with("log/")) {
        disk.delete(file);
    }
    let report = verify_on(&(Arc::new(disk.clone()) as Arc<dyn Disk>), |_, _| ()).unwrap();
    assert!(report.to_string().contains("the log is missing"), "{report}");
    let refused = Embedded::open(small(&disk));
    assert!(matches!(refused, Err(OpenError::Damaged(_))), "{refused:?}");
}

#[test]
fn a_file_that_is_no_segment_is_left_alone() {
    let disk = FaultDisk::default();
    open(small(&disk)).open(ordinary("a"));
    for name in ["log/12.seg", "log/+000000012.seg", "log/notes.txt"] {
        disk.add(name, b"mine".to_vec());
    }
    assert!(open(small(&disk)).view("a").is_some());
    assert_eq!(disk.content("log/12.seg"), b"mine");
}

#[test]
fn a_real_disk_keeps_it_all() {
    let folder = tempfile::tempdir().unwrap();
    let workload = Workload::new(20, 60);
    let options = || Options {
        disk: Arc::new(RealDisk::new(folder.path().join("data"))) as Arc<dyn Disk>,
        ..small(&FaultDisk::default())
    };
    let store = open(options());
    workload.run(&store, 0);
    store.close();
    drop(store);
    let store = open(options());
    workload.check(&store, workload.tasks());
    store.close();
    assert!(verify(folder.path().join("data")).unwrap().is_clean());
}

/// A position names an event and no place: the tail that an opening writes again has another place each time.
#[test]
fn a_position_in_the_events_holds_over_restarts_checkpoints_and_rewritten_tails() {
    let disk = FaultDisk::default();
    let workload = Workload::new(24, 64);
    let (mut seen, mut begin) = (Vec::new(), 0);
    for end in [5, 9, 20, 33, 50, 64] {
        let store = open(small(&disk));
        for after in 0..=seen.len() {
            let again = store.events(u64::try_from(after).unwrap(), None, 10);
            assert_eq!(again, seen[after..], "after {after}");
        }
        for batch in &workload.batches[begin..end] {
            store.ask_all(batch.clone());
        }
        begin = end;
        let before = u64::try_from(seen.len()).unwrap();
        seen.extend(store.events(before, None, 7));
        for name in ["plain", "slotted", "journal"] {
            let own = seen
                .iter()
                .filter(|event: &&Event| event.entry.account == id(name));
            assert_eq!(store.events(0, Some(name), 3), own.cloned().collect::<Vec<_>>());
        }
        // By turns killed and closed.
        if end % 2 == 0 {
            store.close();
        }
        drop(store);
    }
    let segments = disk
        .files()
        .iter()
        .filter(|file| file.starts_with("log/"))
        .count();
    assert!(
        segments > 2,
        "{segments} segments are too few to look for a number in"
    );
    assert_eq!(seen, *workload.picture(workload.tasks()).events());
}

#[test]
fn opened_fifty_times_it_is_the_same_and_no_larger() {
    let workload = Workload::new(21, 64);
    let disk = FaultDisk::default();
    let store = open(small(&disk));
    workload.run(&store, 0);
    drop(store);
    let size = |disk: &FaultDisk| -> usize {
        let files = disk.files();
        files.iter().map(|name| disk.content(name).len()).sum()
    };
    drop(open(small(&disk)));
    let (first, files) = (size(&disk), disk.files().len());
    for round in 0..50 {
        // By turns closed and killed.
        let store = open(small(&disk));
        assert_eq!(
            picture(&store),
            *workload.picture(workload.tasks()),
            "round {round}"
        );
        if round % 2 == 0 {
            store.close();
        }
        drop(store);
    }
    assert!(size(&disk) <= first + (16 << 10), "{} after {first}", size(&disk));
    assert!(disk.files().len() <= files + 1, "{:?}", disk.files());
    let store = open(small(&disk));
    workload.check(&store, workload.tasks());
    close_and_verify(store, &disk);
}

#[test]
pub(crate) fn requests_are_known_across_restarts_and_checkpoints() {
    let disk = FaultDisk::default();
    let mut store = open(small(&disk));
    store.open(slotted("a", 2));
    for n in 0..300 {
        store.post(credit("a", &format!("c{n}"), 1));
        if n % 70 == 69 {
            store.close();
            drop(store);
            store = open(small(&disk));
        }
    }
    let runs = disk
        .files()
        .iter()
        .filter(|name| name.starts_with("index/"))
        .count();
    assert!(runs >= 4, "{runs} runs");
    for n in 0..300 {
        assert!(store.decide(credit("a", &format!("c{n}"), 1)).1, "c{n}");
        assert!(matches!(
            store.look_up("a", &format!("c{n}")),
            Some(RequestView::Decided(_))
        ));
    }
    assert_eq!(store.look_up("a", "c300"), Some(RequestView::NotFound));
    assert_eq!(store.account("a").balance(), 300);
    close_and_verify(store, &disk);
}

#[test]
fn a_statement_pages_over_segments_and_restarts() {
    let disk = FaultDisk::default();
    let mut store = open(small(&disk));
    store.open(slotted("a", 3));
    for n in 0..200 {
        store.post(credit("a", &format!("c{n}"), 1 + n));
    }
    let whole = store.entries("a");
    let (mut cursor, mut pages) = (Cursor::default(), Vec::new());
    loop {
        let page = store.page("a", &cursor, 7);
        if page.entries.is_empty() {
            break;
        }
        pages.extend(page.entries);
        cursor = page.next;
        drop(store);
        store = open(small(&disk));
    }
    assert_eq!(pages, whole);
}

#[test]
fn a_credit_that_settled_long_after_is_looked_up_as_posted() {
    let disk = FaultDisk::default();
    let store = open(small(&disk));
    store.open(journal("j"));
    assert_eq!(store.post(credit("j", "c", 5)).posting, Posting::Pending);
    for n in 0..40 {
        store.post(credit("j", &format!("other{n}"), 5));
    }
    store.close();
    drop(store);
    let store = open(small(&disk));
    store.ask(tidy("j")).unwrap();
    store.close();
    drop(store);
    let store = open(small(&disk));
    let Some(RequestView::Decided(Outcome::Posted(receipt))) = store.look_up("j", "c") else {
        panic!("not posted");
    };
    assert_eq!((receipt.posting, receipt.legs.len()), (Posting::Posted, 1));
    close_and_verify(store, &disk);
}

#[test]
fn accounts_to_tidy_are_known_after_a_restart() {
    let disk = FaultDisk::default();
    let store = open(small(&disk));
    store.open(journal("j"));
    store.post(credit("j", "c", 5));
    store.close();
    drop(store);
    let store = open(small(&disk));
    assert_eq!(store.untidy(), [crate::support::id("j")]);
    assert_eq!(store.pending(), 1);
    store.ask(tidy("j")).unwrap();
    assert!(store.untidy().is_empty());
}

#[test]
fn a_long_tail_keeps_its_place_but_for_its_last_batch() {
    let workload = Workload::new(22, 64);
    let disk = FaultDisk::default();
    let options = |disk: &FaultDisk| Options {
        checkpoint_bytes: 1 << 30,
        rewrite_bytes: 2_000,
        ..small(disk)
    };
    let store = open(options(&disk));
    workload.run(&store, 0);
    drop(store);
    for _ in 0..5 {
        let store = open(options(&disk));
        workload.check(&store, workload.tasks());
        drop(store);
        let report = verify_on(&(Arc::new(disk.clone()) as Arc<dyn Disk>), |_, _| ()).unwrap();
        assert!(report.is_clean(), "{report}");
        assert!(report.segments > 3, "{report}");
    }
}

#[test]
fn a_closed_store_says_so() {
    let disk = FaultDisk::default();
    let store = open(small(&disk));
    store.open(slotted("a", 1));
    store.close();
    assert!(store.ask(credit("a", "c", 1)).is_err());
    assert!(store.store.health().is_err());
    store.close();
}

/// `tests/data/format-1` was written by the first version of this format, and killed: segments, a base and a delta, two
/// runs, a tail; with holds in every state, reversals and an amendment. Whoever changes the format raises its version, keeps reading this one, and adds a directory.
#[test]
fn a_data_directory_of_format_1_opens_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/format-1");
    for part in ["log", "state", "index"] {
        std::fs::create_dir(folder.path().join(part)).unwrap();
        for file in kept.join(part).read_dir().unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), folder.path().join(part).join(file.file_name())).unwrap();
        }
    }
    let report = verify(folder.path()).unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.accounts, report.requests, report.runs), (3, 69, 2));
    let store = open(Options::at(folder.path()));
    let seen = ["plain", "slotted", "journal"].map(|name| {
        let view = store.account(name);
        (view.balance(), view.held, view.pending, store.entries(name).len())
    });
    assert_eq!(seen, [(617, 15, 30, 32), (250, 0, 0, 34), (4, 0, 4, 6)]);
    let holds = [
        ("plain", "h-open", HoldState::Open),
        ("plain", "h-expired", HoldState::Expired),
        ("plain", "h-captured", HoldState::Captured),
        ("slotted", "h-released", HoldState::Released),
    ];
    for (account, name, state) in holds {
        assert_eq!(store.hold(account, name).state, state, "{name}");
    }
    let told = store.past("plain", &Moment::Time(Timestamp(1_000_000))).unwrap();
    assert_eq!((told.balance(), told.held, told.pending), (617, 45, 0));
    for task in [
        credit("plain", "c0", 1),
        credit("slotted", "c49", 50),
        debit("plain", "too-much", 1_000_000),
        capture_part("plain", "k", "h-captured", 15),
        reslot("slotted", "m", 2),
        drain("journal", "all"),
    ] {
        assert!(store.decide(task.clone()).1, "{task:?}");
    }
    let events = store.events(0, None, 1_000);
    assert_eq!(events.len(), 72);
    assert_eq!(events[71].entry.request, Some(request("last")));
    let by_another = store.refuse(reversal("slotted", "u2", "t"));
    assert!(matches!(by_another, Refusal::AlreadyReversed { .. }));
}

#[test]
fn holds_and_reversals_are_known_across_kills_and_checkpoints() {
    let mut disk = FaultDisk::default();
    let time = Time::default();
    let options = |disk: &FaultDisk| Options {
        clock: time.clock(),
        ..small(disk)
    };
    let mut store = Bench::at(open(options(&disk)).store, time.clone());
    store.open(slotted("a", 2));
    store.post(credit("a", "c", 10_000));
    for n in 0..200 {
        let (held, ends) = (format!("h{n}"), format!("e{n}"));
        store.post(hold("a", &held, 10, 1_000 * u32::from(n % 4 == 3)));
        match n % 4 {
            0 => drop(store.post(release("a", &ends, &held))),
            1 => drop(store.post(capture("a", &ends, &held, 4))),
            _ => {}
        }
        if n % 4 == 1 {
            store.post(reversal("a", &format!("u{n}"), &ends));
        }
        if n % 60 == 59 {
            if n % 120 == 59 {
                store.close();
            }
            // What a kill leaves: dropping the store would write on.
            let left = disk.copy();
            drop(store);
            disk = left;
            store = Bench::at(open(options(&disk)).store, time.clone());
        }
    }
    let ends = |store: &Bench<Embedded>| -> Vec<HoldState> {
        (0..200)
            .map(|n| store.hold("a", &format!("h{n}")).state)
            .collect()
    };
    let released = [
        HoldState::Released,
        HoldState::Captured,
        HoldState::Open,
        HoldState::Open,
    ];
    assert_eq!(ends(&store)[..4], released);
    assert_eq!(store.account("a").held, 1_000);
    time.pass(1_000 * SECOND);
    assert_eq!((store.account("a").held, store.account("a").pending), (500, 500));
    let late = store.refuse(capture("a", "late", "h0", 1));
    assert!(matches!(
        late,
        Refusal::HoldNotOpen {
            state: HoldState::Released,
            ..
        }
    ));
    for n in (1..200).step_by(4) {
        let twice = store.refuse(reversal("a", &format!("again{n}"), &format!("e{n}")));
        assert!(matches!(twice, Refusal::AlreadyReversed { .. }), "{n}: {twice:?}");
    }
    store.ask(tidy("a")).unwrap();
    let before = ends(&store);
    store.close();
    drop(store);
    let store = Bench::at(open(options(&disk)).store, time.clone());
    assert_eq!(ends(&store), before);
    assert_eq!(before[3], HoldState::Expired);
    let view = store.account("a");
    assert_eq!((view.balance(), view.held, view.pending), (10_000, 500, 0));
    close_and_verify(store, &disk);
}

#[test]
fn the_past_is_told_as_it_was_across_kills_and_checkpoints() {
    let (mut disk, time, mut told) = (FaultDisk::default(), Time::default(), Told::default());
    let options = |disk: &FaultDisk| Options {
        clock: time.clock(),
        ..small(disk)
    };
    let mut store = Bench::at(open(options(&disk)).store, time.clone());
    store.open(slotted("a", 3));
    store.open(journal("j"));
    for n in 0..200 {
        let (held, name) = (format!("h{n}"), format!("c{n}"));
        store.post(credit("a", &name, 20));
        store.post(hold("a", &held, 5, 1 + n % 3));
        store.post(credit("j", &name, 3));
        match n % 7 {
            2 => drop(store.decide(debit("a", &format!("d{n}"), 60))),
            4 => drop(store.decide(transfer("a", &format!("t{n}"), "j", 9))),
            5 => drop(store.ask(tidy("j")).unwrap()),
            _ => {}
        }
        told.read(&store, &["a", "j"]);
        time.pass(SECOND / 4);
        if n % 40 == 39 {
            if n % 80 == 39 {
                store.close();
            }
            // What a kill leaves: dropping the store would write on.
            let left = disk.copy();
            drop(store);
            disk = left;
            store = Bench::at(open(options(&disk)).store, time.clone());
        }
    }
    assert_eq!(told.check(&store), 400);
    close_and_verify(store, &disk);
}
