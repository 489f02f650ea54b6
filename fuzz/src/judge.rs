//! What must hold of every data directory, whatever is in it.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use tokio::runtime::{Builder, Runtime};
use wallet_backend::account::{AccountId, Entry, RequestId};
use wallet_backend::clock::Clock;
use wallet_backend::command::{AccountView, Command, HoldView, LedgerError, Operation, RequestView, Task};
use wallet_backend::money::Amount;
use wallet_backend::store::embedded::{Embedded, OpenError, Options, verify_on};
use wallet_backend::store::{Cursor, Event, EventCursor, Job, Moment, Preference, Store as _};

use crate::disk::MemoryDisk;

/// Later than everything in the kept directory.
const NOW: i64 = 4_000_000_000_000_000;
/// Of each account so many entries are looked into.
const LOOKED_INTO: usize = 3;

/// All that can be read of a store.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    accounts: Vec<AccountView>,
    entries: Vec<Entry>,
    requests: Vec<Option<RequestView>>,
    holds: Vec<Option<HoldView>>,
    pasts: Vec<i64>,
    events: Vec<Event>,
}

/// A store on a disk, with a clock that stands.
pub(crate) struct Opened {
    store: Embedded,
    runtime: Runtime,
}

impl Opened {
    pub(crate) fn open(disk: &MemoryDisk) -> Result<Self, OpenError> {
        let store = Embedded::open(Options {
            clock: Clock::Set(Arc::new(AtomicI64::new(NOW))),
            preference: Preference::Fixed(0),
            segment_bytes: 64 << 10,
            fresh_bytes: 4 << 10,
            checkpoint_bytes: 16 << 10,
            ..Options::on(disk.shared())
        })?;
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            store,
            runtime: runtime.expect("a runtime without threads starts"),
        })
    }

    /// Everything, through every index and link.
    pub(crate) fn read(&self) -> Result<Read, LedgerError> {
        self.runtime.block_on(async {
            let accounts = self.store.accounts(None, 100).await?;
            let (mut entries, mut requests, mut holds, mut pasts) = (vec![], vec![], vec![], vec![]);
            for view in &accounts {
                let id = &view.account.id;
                let Some(page) = self.store.entries(id, &Cursor::default(), 1_000).await? else {
                    continue;
                };
                for entry in page.entries.iter().rev().take(LOOKED_INTO) {
                    if let Some(request) = &entry.request {
                        requests.push(self.store.request(id, request).await?);
                        holds.push(self.store.hold(id, request).await?);
                    }
                    let past = self.store.past(id, &Moment::Time(entry.at)).await?;
                    pasts.extend(past.map(|past| past.balance()));
                }
                let past = self.store.past(id, &Moment::Cursor(page.next)).await?;
                pasts.extend(past.map(|past| past.balance()));
                entries.extend(page.entries);
            }
            let events = self.store.events(EventCursor::default(), None, 1_000).await?;
            let events = events.map_or_else(Vec::new, |page| page.events);
            Ok(Read {
                accounts,
                entries,
                requests,
                holds,
                pasts,
                events,
            })
        })
    }

    /// A cent to every account: their lanes write, link and index.
    fn credit(&self) {
        let ids: Vec<AccountId> = self.runtime.block_on(async {
            let accounts = self.store.accounts(None, 100).await.unwrap_or_default();
            accounts.into_iter().map(|view| view.account.id).collect()
        });
        let jobs = ids.into_iter().map(|account| {
            Job::new(Task::Run(Command {
                account,
                request: RequestId::new("of-the-fuzzer").expect("it is an id"),
                operation: Operation::Credit {
                    amount: Amount::new(1).expect("it is an amount"),
                    memo: None,
                },
            }))
        });
        let (jobs, answers): (Vec<_>, Vec<_>) = jobs.unzip();
        self.runtime.block_on(async {
            self.store.run(jobs).await;
            for answer in answers {
                // Whatever it is: that there is one is what counts.
                drop(answer.await.expect("every job is answered"));
            }
        });
    }

    pub(crate) fn close(self) {
        self.runtime.block_on(self.store.close());
    }
}

fn is_clean(disk: &MemoryDisk) -> bool {
    verify_on(&disk.shared(), |_, _| ()).is_ok_and(|report| report.is_clean())
}

/// Reads, writes, closes and opens again. What `verify` finds nothing wrong with opens, can be read, and stays so; and
/// what has opened once, however wrong, opens again.
pub(crate) fn judge(disk: &MemoryDisk) {
    let clean = is_clean(disk);
    let store = match Opened::open(disk) {
        Ok(store) => store,
        Err(error) => {
            assert!(!clean, "verify finds nothing, and it does not open: {error}");
            return;
        }
    };
    let before = store.read();
    assert!(!clean || before.is_ok(), "verify finds nothing, and {before:?}");
    store.credit();
    let after = store.read();
    store.close();
    let again =
        Opened::open(disk).unwrap_or_else(|error| panic!("it opened, and does not open again: {error}"));
    if clean {
        assert_eq!(again.read(), after, "read before a restart and after it");
    }
    again.close();
    assert!(
        !clean || is_clean(disk),
        "verify found nothing before it was used"
    );
}
