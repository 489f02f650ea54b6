//! A history that was exported, into a new store: not decided again, but taken in as it was decided, and proven.
//!
//! Every line is read strictly ([`Reader`]), held to what came before it (`proof`), applied to the books with all their
//! checks, and written by the engine's own threads. The roots say that nothing is missing or other than it was. In the
//! end the log is read back from the disk and must have the same root: then an export of it is byte for byte the one
//! that was read. Memory is that of a store that serves: by accounts, not by history.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::sync::Arc;

use crate::command::{Changes, LedgerError};
use crate::journal::{Heads, LineError, Reader, Root};
use crate::ledger::invariants::check_rows;
use crate::money::Currency;
use crate::store::Store as _;
use crate::store::embedded::disk::Disk;
use crate::store::embedded::error::OpenError;
use crate::store::embedded::import::proof::{Fault, Proof};
use crate::store::embedded::segment::FOLDER;
use crate::store::embedded::state::{Next, NotAdopted};
use crate::store::embedded::{Embedded, ExportError, Options, export};
use crate::sync::Runtime;

mod proof;

/// No line of a history is longer, in bytes: a record fits a segment of 64 KiB, and its line takes some ten times that.
const MAX_LINE: u64 = 4 << 20;
/// Lines that are taken in under one hold of the lock.
const CHUNK: usize = 256;
/// How the line begins that an export ends with.
const ROOT: &[u8] = b"{\"root\":\"";

/// What an import took in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    pub records: u64,
    pub entries: u64,
    pub requests: u64,
    pub accounts: u64,
    /// What came in from outside less what went out, and what all accounts have: minor units, by currency.
    pub totals: Vec<(Currency, i128)>,
    pub root: Root,
}

/// Why a history was not taken in. What is on the disk then is of no use.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is not what a ledger can have written, or not what it was.
    #[error("line {line}: {fault}")]
    Refused { line: u64, fault: LineError },
    #[error("there is a store in this directory")]
    NotEmpty,
    #[error("cannot read the export")]
    Read(#[source] io::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] LedgerError),
    #[error("cannot run the import")]
    Run(#[source] io::Error),
    #[error("cannot read back what was written")]
    ReadBack(#[source] ExportError),
    #[error("what was written has the root {found}, and what was read has {read}")]
    Other { found: Root, read: Root },
}

/// Takes the lines of an export into a store that is made by this. Each of `roots` must be that of as many of the first
/// lines as it says; the export's own, in its last line, or one of these must cover all of it. `progress` hears how many
/// bytes have been read. Blocks.
///
/// # Errors
/// [`ImportError`]; a line is named by its number, from 1.
pub fn import(
    options: Options,
    from: &mut dyn BufRead,
    roots: &[Root],
    mut progress: impl FnMut(u64),
) -> Result<Imported, ImportError> {
    let disk = Arc::clone(&options.disk);
    let there = disk.list(FOLDER).map_err(OpenError::io("list the log"))?;
    if !there.is_empty() {
        return Err(ImportError::NotEmpty);
    }
    // The history that is read is no day's yet.
    let options = Options {
        daily_root: None,
        ..options
    };
    let store = Embedded::open(options)?;
    let runtime = Runtime::new().map_err(ImportError::Run)?;
    let taken = runtime.block_on(take_all(&store, from, roots, &mut progress));
    if taken.is_err() {
        store.shared.stop("the import was refused");
    }
    runtime.block_on(store.close());
    drop(store);
    let imported = taken?;
    read_back(&disk, imported.root)?;
    Ok(imported)
}

/// The proof that what is on the disk is what was read.
fn read_back(disk: &Arc<dyn Disk>, read: Root) -> Result<(), ImportError> {
    let found = export(disk, &mut io::sink(), |_, _| ()).map_err(ImportError::ReadBack)?;
    if found == read {
        Ok(())
    } else {
        Err(ImportError::Other { found, read })
    }
}

async fn take_all(
    store: &Embedded,
    from: &mut dyn BufRead,
    roots: &[Root],
    progress: &mut dyn FnMut(u64),
) -> Result<Imported, ImportError> {
    let mut source = Source::new(from, roots);
    let mut proof = Proof::default();
    loop {
        let (chunk, read) = source.next();
        // What is wrong with these says more than what is wrong with the line behind them, or with the root of all.
        take(store, &chunk, &mut proof).await?;
        read?;
        if chunk.is_empty() {
            break;
        }
        progress(source.bytes);
    }
    source.finish()?;
    let newest = store.shared.lock().newest();
    store.shared.durable(newest).await?;
    let refused = |fault| source.refused(fault);
    let (accounts, totals) = close_books(store, &proof).map_err(refused)?;
    Ok(Imported {
        records: source.heads.records(),
        entries: proof.entries,
        requests: proof.requests,
        accounts,
        totals,
        root: source.heads.root(),
    })
}

/// Takes in some lines, of which each has its number.
async fn take(store: &Embedded, chunk: &[(u64, Changes)], proof: &mut Proof) -> Result<(), ImportError> {
    let shared = &store.shared;
    let mut room = shared.room();
    let mut left = chunk.iter().peekable();
    loop {
        room.mark_unchanged();
        let wants_space = {
            let mut state = shared.lock();
            while let Some((line, changes)) = left.peek() {
                if let Some(refusal) = state.refusal() {
                    return Err(refusal.into());
                }
                let refused = |fault| ImportError::Refused { line: *line, fault };
                let proven = Proof::of(&state, &shared.records, changes).map_err(|fault| match fault {
                    Fault::Line(fault) => refused(fault),
                    Fault::Store(error) => error.into(),
                })?;
                match state.adopt(changes) {
                    Ok(true) => proof.note(changes, proven),
                    Ok(false) => break,
                    Err(NotAdopted::Store(error)) => return Err(error.into()),
                    Err(NotAdopted::Changes(reason)) => return Err(refused(LineError::new("line", reason))),
                }
                left.next();
            }
            matches!(state.next, Next::Wanted)
        };
        shared.work.notify_one();
        if wants_space {
            shared.space.notify_one();
        }
        if left.peek().is_none() {
            return Ok(());
        }
        if room.changed().await.is_err() {
            return Err(LedgerError::Unavailable {
                reason: "the store ended".to_owned(),
            }
            .into());
        }
    }
}

/// What can be said at the end: how many accounts there are, and what they have.
fn close_books(store: &Embedded, proof: &Proof) -> Result<(u64, Vec<(Currency, i128)>), LineError> {
    let state = store.shared.lock();
    let (mut accounts, mut inside) = (0_u64, BTreeMap::<Currency, i128>::new());
    for held in state.books.accounts() {
        if let Some(violation) = check_rows(&held.rows).into_iter().next() {
            return Err(LineError::new("line", violation.to_string()));
        }
        let sum = inside.entry(held.rows.account().currency).or_default();
        *sum = sum.saturating_add(held.rows.total().into());
        accounts = accounts.saturating_add(1);
    }
    for (currency, inside) in &inside {
        let outside = proof.outside.get(currency).copied().unwrap_or_default();
        if outside != *inside {
            let reason = format!(
                "{currency}: what came in less what went out is {outside}, and the accounts have {inside}"
            );
            return Err(LineError::new("line", reason));
        }
    }
    Ok((accounts, inside.into_iter().collect()))
}

/// The lines, and what their root must be.
struct Source<'a> {
    from: &'a mut dyn BufRead,
    /// Bytes read.
    bytes: u64,
    line: u64,
    text: Vec<u8>,
    reader: Reader,
    heads: Heads,
    /// The ones about the most lines first.
    roots: Vec<Root>,
    /// Lines that a root covers which agrees.
    agreed: u64,
    /// The last line was met.
    ended: bool,
}

impl<'a> Source<'a> {
    fn new(from: &'a mut dyn BufRead, roots: &[Root]) -> Self {
        let mut roots = roots.to_vec();
        roots.sort_by_key(|root| std::cmp::Reverse(root.records));
        Self {
            from,
            bytes: 0,
            line: 0,
            text: Vec::new(),
            reader: Reader::default(),
            heads: Heads::default(),
            roots,
            agreed: 0,
            ended: false,
        }
    }

    /// The next records, each with its line, and what was met behind them; none at the end.
    fn next(&mut self) -> (Vec<(u64, Changes)>, Result<(), ImportError>) {
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK {
            match self.record() {
                Ok(Some(changes)) => chunk.push((self.line, changes)),
                Ok(None) => break,
                Err(error) => return (chunk, Err(error)),
            }
        }
        (chunk, Ok(()))
    }

    /// The next record; `None` at the end.
    fn record(&mut self) -> Result<Option<Changes>, ImportError> {
        if !self.read_line()? {
            return Ok(None);
        }
        self.compare_roots()?;
        if self.text.starts_with(ROOT) {
            self.own_root()?;
            return Ok(None);
        }
        let changes = self
            .reader
            .read(&self.text)
            .map_err(|fault| self.refused(fault))?;
        self.heads.extend(&changes);
        Ok(Some(changes))
    }

    /// Puts the next line into `text`, without its end. `false` where there is none.
    fn read_line(&mut self) -> Result<bool, ImportError> {
        if self.ended {
            return Ok(false);
        }
        self.text.clear();
        let limit = MAX_LINE.saturating_add(1);
        let read = io::Read::take(&mut *self.from, limit).read_until(b'\n', &mut self.text);
        let read = u64::try_from(read.map_err(ImportError::Read)?).unwrap_or(u64::MAX);
        if read == 0 {
            self.ended = true;
            return Ok(false);
        }
        self.bytes = self.bytes.saturating_add(read);
        self.line = self.line.saturating_add(1);
        if self.text.pop_if(|byte| *byte == b'\n').is_some() {
            return Ok(true);
        }
        let reason = if read > MAX_LINE {
            format!("has more than {MAX_LINE} bytes")
        } else {
            "has no end: the export is cut off here".to_owned()
        };
        Err(self.refused(LineError::new("line", reason)))
    }

    /// The export's own root, in its last line.
    fn own_root(&mut self) -> Result<(), ImportError> {
        let shown = self
            .text
            .strip_prefix(ROOT)
            .and_then(|rest| rest.strip_suffix(b"\"}"));
        let shown = String::from_utf8_lossy(shown.unwrap_or_default()).into_owned();
        let root: Root = shown.parse().map_err(|error: crate::journal::RootError| {
            self.refused(LineError::new("root", error.to_string()))
        })?;
        let records = self.heads.records();
        if root.records != records {
            let wanted = root.records;
            let reason = format!("it is about {wanted} lines, and {records} stand before it");
            return Err(self.refused(LineError::new("root", reason)));
        }
        self.compare(root)?;
        if self.read_line()? {
            let reason = "nothing may follow the export's root";
            return Err(self.refused(LineError::new("line", reason)));
        }
        Ok(())
    }

    /// Compares the lines so far with the roots that are about so many.
    fn compare_roots(&mut self) -> Result<(), ImportError> {
        let records = self.heads.records();
        while let Some(root) = self.roots.pop_if(|root| root.records <= records) {
            self.compare(root)?;
        }
        Ok(())
    }

    fn compare(&mut self, root: Root) -> Result<(), ImportError> {
        let found = self.heads.root();
        if root == found {
            self.agreed = root.records;
            return Ok(());
        }
        let (first, last) = (self.agreed.saturating_add(1), root.records);
        let (wanted, found) = (root.digest, found.digest);
        let reason =
            format!("lines {first} to {last} are not what they were: their root is {found}, not {wanted}");
        Err(self.refused(LineError::new("root", reason)))
    }

    /// What can be said when all lines have been read.
    fn finish(&mut self) -> Result<(), ImportError> {
        self.compare_roots()?;
        let records = self.heads.records();
        if let Some(root) = self.roots.last() {
            let reason = format!("{root} is about {} lines, and there are {records}", root.records);
            return Err(self.refused(LineError::new("root", reason)));
        }
        if self.agreed == records && (records > 0 || self.line > 0) {
            return Ok(());
        }
        let reason = "is missing: the export is cut off after this line, or made without one, and then a root of \
                      all of it has to be given";
        Err(self.refused(LineError::new("root", reason)))
    }

    fn refused(&self, fault: LineError) -> ImportError {
        ImportError::Refused {
            line: self.line,
            fault,
        }
    }
}
