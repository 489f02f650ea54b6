//! A disk in memory that can lose power, run full, fail and stall.
//!
//! Every file has what is durable and the writes since; every folder has its durable names and the changes since. A
//! power cut keeps, drops, tears or reorders what was not synced, by seed. Operations are counted, so that a test can
//! cut the power at each of them in turn.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use wallet_backend::store::embedded::disk::{Disk, DiskFile, Lock};

use self::unsynced::{Change, NameChange, Node};
use crate::support::Numbers;

mod unsynced;

/// Far longer than anything takes that will happen at all.
const PATIENCE: Duration = Duration::from_secs(120);

/// What can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Create,
    Write,
    Sync,
    Rename,
    Remove,
    SyncFolder,
    Cut,
}

#[derive(Debug, Default)]
struct Inner {
    nodes: HashMap<u64, Node>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    unsynced_names: Vec<NameChange>,
    locked: bool,
    operations: u64,
    /// The power goes at this operation.
    cut_at: Option<u64>,
    /// Fails these, the nth from now: kind, n, error, how many times.
    faults: Vec<(Op, u64, ErrorKind, u64)>,
    /// While held, a sync of a log segment does not return.
    held: bool,
    stalled: usize,
    /// Published so far.
    checkpoints: usize,
    last_log_write: Option<(String, usize, Vec<u8>)>,
    /// A batch was written and no sync has returned since.
    unsynced_batch: bool,
    /// Batches that were written nevertheless.
    overtook: usize,
}

#[derive(Debug, Default)]
struct Machine {
    inner: Mutex<Inner>,
    changed: Condvar,
}

/// The disk; clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultDisk(Arc<Machine>);

/// Lets the syncs go on when it falls, also where a test fails: a store cannot end before its sync does.
#[derive(Debug)]
#[must_use]
pub(crate) struct HeldSyncs(FaultDisk);

impl Drop for HeldSyncs {
    fn drop(&mut self) {
        self.0.inner().held = false;
        self.0.0.changed.notify_all();
    }
}

/// What a power cut does to what was not synced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PowerCut {
    LoseAll,
    KeepAll,
    Some(u64),
}

impl FaultDisk {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap()
    }

    /// Operations that changed something, or tried to, so far.
    pub(crate) fn operations(&self) -> u64 {
        self.inner().operations
    }

    /// Cuts the power at operation `at`: it and everything after it fails.
    pub(crate) fn cut_power_at(&self, at: u64) {
        self.inner().cut_at = Some(at);
    }

    /// Fails the `nth` operation of a kind from now, from 0, and `more` after it.
    pub(crate) fn fail(&self, op: Op, nth: u64, error: ErrorKind, more: u64) {
        self.inner().faults.push((op, nth, error, more));
    }

    /// Whether every fault has happened as often as was asked.
    pub(crate) fn has_failed(&self) -> bool {
        self.inner().faults.iter().all(|(.., more)| *more == 0)
    }

    pub(crate) fn heal(&self) {
        self.inner().faults.clear();
    }

    /// No sync of the log returns while the guard lives.
    pub(crate) fn hold_syncs(&self) -> HeldSyncs {
        self.inner().held = true;
        HeldSyncs(self.clone())
    }

    /// Fails the test where what it waits for does not come: it would never end.
    fn wait_while(&self, mut lacking: impl FnMut(&Inner) -> bool) {
        let inner = self.inner();
        let (_inner, waited) = self
            .0
            .changed
            .wait_timeout_while(inner, PATIENCE, |inner| lacking(inner))
            .unwrap();
        assert!(!waited.timed_out(), "it did not come");
    }

    /// Blocks until a sync is being held.
    pub(crate) fn await_held_sync(&self) {
        self.wait_while(|inner| inner.stalled == 0);
    }

    /// Blocks until so many checkpoints have been given their names.
    pub(crate) fn await_checkpoints(&self, count: usize) {
        self.wait_while(|inner| inner.checkpoints < count);
    }

    /// Blocks until a file has this name.
    pub(crate) fn await_file(&self, name: &str) {
        self.wait_while(|inner| !inner.names.contains_key(name));
    }

    /// The disk as it comes up after a power cut now.
    pub(crate) fn after(&self, cut: PowerCut) -> Self {
        let inner = self.inner();
        let mut numbers = Numbers(match cut {
            PowerCut::Some(seed) => seed,
            PowerCut::LoseAll | PowerCut::KeepAll => 0,
        });
        let mut names = inner.durable_names.clone();
        let pending = u64::try_from(inner.unsynced_names.len()).unwrap();
        let kept = match cut {
            PowerCut::LoseAll => 0,
            PowerCut::KeepAll => pending,
            PowerCut::Some(_) => numbers.below(pending + 1),
        };
        for change in inner.unsynced_names.iter().take(usize::try_from(kept).unwrap()) {
            change.apply(&mut names);
        }
        let mut nodes = HashMap::new();
        for node in names.values() {
            let old = &inner.nodes[node];
            let mut content = old.durable.clone();
            for change in &old.unsynced {
                match cut {
                    PowerCut::LoseAll => {}
                    PowerCut::KeepAll => change.apply(&mut content),
                    PowerCut::Some(_) => change.apply_some(&mut content, &mut numbers),
                }
            }
            nodes.insert(*node, Node::clean(content));
        }
        Self::with(nodes, names)
    }

    /// A copy of what is on the disk now, all of it durable.
    pub(crate) fn copy(&self) -> Self {
        self.after(PowerCut::KeepAll)
    }

    fn with(nodes: HashMap<u64, Node>, names: BTreeMap<String, u64>) -> Self {
        let inner = Inner {
            nodes,
            durable_names: names.clone(),
            names,
            ..Inner::default()
        };
        Self(Arc::new(Machine {
            inner: Mutex::new(inner),
            changed: Condvar::new(),
        }))
    }

    pub(crate) fn files(&self) -> Vec<String> {
        self.inner().names.keys().cloned().collect()
    }

    pub(crate) fn content(&self, name: &str) -> Vec<u8> {
        let inner = self.inner();
        inner.nodes[&inner.names[name]].current.clone()
    }

    /// Replaces a file's content, durably.
    pub(crate) fn put(&self, name: &str, content: Vec<u8>) {
        let mut inner = self.inner();
        let node = inner.names[name];
        inner.nodes.insert(node, Node::clean(content));
    }

    /// Flips bits of one byte, durably. The same again undoes it.
    pub(crate) fn flip(&self, name: &str, at: usize, bits: u8) {
        let mut inner = self.inner();
        let node = inner.names[name];
        let node = inner.nodes.get_mut(&node).unwrap();
        node.current[at] ^= bits;
        node.durable[at] ^= bits;
    }

    /// Adds a file, durably.
    pub(crate) fn add(&self, name: &str, content: Vec<u8>) {
        let mut inner = self.inner();
        let node = new_node();
        inner.nodes.insert(node, Node::clean(content));
        inner.names.insert(name.to_owned(), node);
        inner.durable_names.insert(name.to_owned(), node);
    }

    pub(crate) fn delete(&self, name: &str) {
        let mut inner = self.inner();
        inner.names.remove(name);
        inner.durable_names.remove(name);
    }

    /// Batches that were written before the sync of the one before had returned, so far. Batches are short here: each
    /// is one write.
    pub(crate) fn overtook(&self) -> usize {
        self.inner().overtook
    }

    /// The last batch that was written to a segment: file, offset, bytes.
    pub(crate) fn last_log_write(&self) -> (String, usize, Vec<u8>) {
        self.inner().last_log_write.clone().unwrap()
    }
}

/// Unique among all disks, since disks are copied.
fn new_node() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Inner {
    /// Counts an operation, and says whether it fails. `Err(true)`: with the power, so that it may have happened.
    fn step(&mut self, op: Op) -> Result<(), (io::Error, bool)> {
        let now = self.operations;
        self.operations += 1;
        if self.cut_at.is_some_and(|at| now >= at) {
            return Err((io::Error::other("the power is off"), self.cut_at == Some(now)));
        }
        for (kind, nth, error, more) in &mut self.faults {
            if *kind == op {
                if *nth == 0 && *more > 0 {
                    *more -= 1;
                    return Err(((*error).into(), op == Op::Write));
                }
                *nth = nth.saturating_sub(1);
            }
        }
        Ok(())
    }

    fn change_names(&mut self, op: Op, change: NameChange) -> io::Result<()> {
        let result = self.step(op);
        if matches!(result, Ok(()) | Err((_, true))) {
            change.apply(&mut self.names);
            self.unsynced_names.push(change);
        }
        result.map_err(|(error, _)| error)
    }
}

#[derive(Debug)]
struct Held(FaultDisk);

impl Lock for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.inner().locked = false;
    }
}

impl Disk for FaultDisk {
    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        let mut inner = self.inner();
        if inner.locked {
            return Err(ErrorKind::WouldBlock.into());
        }
        inner.locked = true;
        Ok(Box::new(Held(self.clone())))
    }

    fn create_folder(&self, _folder: &str) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let inside = |name: &String| Some(name.strip_prefix(folder)?.strip_prefix('/')?.to_owned());
        Ok(self.inner().names.keys().filter_map(inside).collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut inner = self.inner();
        if inner.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let node = new_node();
        inner.nodes.insert(node, Node::default());
        inner.change_names(Op::Create, NameChange::Add(name.to_owned(), node))?;
        Ok(self.file(name, node))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let node = self.inner().names.get(name).copied();
        node.map(|node| self.file(name, node))
            .ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let change = NameChange::Rename(from.to_owned(), to.to_owned());
        let mut inner = self.inner();
        let renamed = inner.change_names(Op::Rename, change);
        inner.checkpoints += usize::from(renamed.is_ok() && to.ends_with(".ckpt"));
        self.0.changed.notify_all();
        renamed
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let change = NameChange::Remove(name.to_owned());
        self.inner().change_names(Op::Remove, change)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.step(Op::SyncFolder).map_err(|(error, _)| error)?;
        let pending = std::mem::take(&mut inner.unsynced_names);
        for change in pending {
            if change.folder() == folder {
                change.apply(&mut inner.durable_names);
            } else {
                inner.unsynced_names.push(change);
            }
        }
        Ok(())
    }
}

impl FaultDisk {
    fn file(&self, name: &str, node: u64) -> Arc<dyn DiskFile> {
        Arc::new(FaultFile {
            disk: self.clone(),
            name: name.to_owned(),
            node,
        })
    }
}

#[derive(Debug)]
struct FaultFile {
    disk: FaultDisk,
    name: String,
    node: u64,
}

impl FaultFile {
    fn change(&self, op: Op, change: Change) -> io::Result<()> {
        let mut inner = self.disk.inner();
        let result = inner.step(op);
        if matches!(result, Ok(()) | Err((_, true))) {
            let node = inner.nodes.get_mut(&self.node).unwrap();
            change.apply(&mut node.current);
            node.unsynced.push(change);
        }
        result.map_err(|(error, _)| error)
    }
}

impl DiskFile for FaultFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let inner = self.disk.inner();
        let content = &inner.nodes[&self.node].current;
        let from = usize::try_from(offset).unwrap();
        match content.get(from..from + buffer.len()) {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        // Preparing a segment writes its zeros and its head from byte 0 on.
        if self.name.starts_with("log/") && at > 0 {
            let mut inner = self.disk.inner();
            inner.last_log_write = Some((self.name.clone(), at, bytes.to_vec()));
            inner.overtook += usize::from(inner.unsynced_batch);
            inner.unsynced_batch = true;
        }
        let bytes = bytes.to_vec();
        self.change(Op::Write, Change::Bytes { at, bytes })
    }

    fn size(&self) -> io::Result<u64> {
        Ok(u64::try_from(self.disk.inner().nodes[&self.node].current.len()).unwrap())
    }

    fn cut(&self, size: u64) -> io::Result<()> {
        self.change(Op::Cut, Change::Cut(usize::try_from(size).unwrap()))
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.inner();
        while inner.held && self.name.starts_with("log/") {
            inner.stalled += 1;
            self.disk.0.changed.notify_all();
            inner = self.disk.0.changed.wait(inner).unwrap();
            inner.stalled -= 1;
        }
        inner.step(Op::Sync).map_err(|(error, _)| error)?;
        if self.name.starts_with("log/") {
            inner.unsynced_batch = false;
        }
        let node = inner.nodes.get_mut(&self.node).unwrap();
        node.durable = node.current.clone();
        node.unsynced.clear();
        Ok(())
    }
}
