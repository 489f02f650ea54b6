//! What the disk alone would do: a bare log through the same file layer. Fixed batches of records are copied, written
//! over zeros and synced; a second thread makes the next segment meanwhile, as the ledger's own does.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::{io, thread};

use anyhow::Context as _;
use tokio::time::Instant;
use wallet_backend::store::embedded::disk::{Disk, DiskFile, RealDisk};

use super::Row;
use super::folder::Folder;
use super::measure::{Latencies, Span, process_cpu};
use crate::config::bench::Engine;

/// Of one credit or debit in a full page, where the library was not measured beside it.
pub(super) const RECORD_BYTES: f64 = 120.0;
const PAGE: usize = 4_096;
/// Those of the ledger.
const SEGMENT_BYTES: u64 = 64 << 20;
const FILL_BYTES: usize = 1 << 20;

/// Measures batches of `batch` records that take `bytes_per_op` each.
pub(super) fn run(args: &Engine, batch: u32, bytes_per_op: f64) -> anyhow::Result<Row> {
    let folder = Folder::new(&args.dir, &format!("raw-{batch}"))?;
    let disk = RealDisk::new(folder.path());
    disk.create_folder("log")?;
    let (ready, segments) = sync_channel(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Ends when nobody takes another segment.
            for number in 1_u32.. {
                if ready.send(prepare(&disk, number)).is_err() {
                    break;
                }
            }
            drop(ready);
        });
        measure(args, batch, pages(batch, bytes_per_op), segments)
    })
}

/// Whole pages of a batch.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a batch of a few thousand records of some hundred bytes"
)]
fn pages(batch: u32, bytes_per_op: f64) -> usize {
    let bytes = (f64::from(batch) * bytes_per_op).round() as usize;
    bytes.div_ceil(PAGE).max(1)
}

fn measure(
    args: &Engine,
    batch: u32,
    pages: usize,
    segments: Receiver<io::Result<Arc<dyn DiskFile>>>,
) -> anyhow::Result<Row> {
    let mut log = Log::begin(segments, pages)?;
    let latencies = Latencies::new()?;
    let (began, cpu) = (Instant::now(), process_cpu());
    let mut batches = 0_u64;
    let mut sound = true;
    while began.elapsed() < args.seconds {
        let since = Instant::now();
        batches = batches.saturating_add(1);
        sound &= log.append(batch, batches)?;
        latencies.end(since);
    }
    let span = Span {
        elapsed: began.elapsed(),
        cpu: process_cpu().saturating_sub(cpu),
    };
    sound &= log.holds(batches)?;
    let ops = batches.saturating_mul(batch.into());
    Ok(Row {
        batch: batch.into(),
        invariants_ok: sound,
        ..span.row("raw", 1, ops, &latencies)
    })
}

/// Zeros first, the name last.
fn prepare(disk: &RealDisk, number: u32) -> io::Result<Arc<dyn DiskFile>> {
    let file = disk.create(&format!("log/{number:010}.seg"))?;
    let zeros = vec![0; FILL_BYTES];
    for at in (0..SEGMENT_BYTES).step_by(FILL_BYTES) {
        file.write_at(&zeros, at)?;
    }
    file.sync()?;
    disk.sync_folder("log")?;
    Ok(file)
}

struct Log {
    segments: Receiver<io::Result<Arc<dyn DiskFile>>>,
    file: Arc<dyn DiskFile>,
    at: u64,
    buffer: Vec<u8>,
}

impl Log {
    fn begin(segments: Receiver<io::Result<Arc<dyn DiskFile>>>, pages: usize) -> anyhow::Result<Self> {
        let file = segments.recv().context("no first segment")??;
        Ok(Self {
            segments,
            file,
            at: 0,
            buffer: vec![0; pages.saturating_mul(PAGE)],
        })
    }

    /// Copies `batch` records, writes and syncs them. Says whether the one before can be read back, where it ended a
    /// segment.
    fn append(&mut self, batch: u32, number: u64) -> anyhow::Result<bool> {
        let length = u64::try_from(self.buffer.len())?;
        let mut sound = true;
        if self.at.saturating_add(length) > SEGMENT_BYTES {
            sound = self.holds(number.saturating_sub(1))?;
            self.file = self.segments.recv().context("no next segment")??;
            self.at = 0;
        }
        let record = self
            .buffer
            .len()
            .checked_div(usize::try_from(batch)?)
            .unwrap_or(1)
            .max(1);
        let source = [number.to_le_bytes(); 32];
        for place in self.buffer.chunks_mut(record) {
            for (to, from) in place.iter_mut().zip(source.as_flattened()) {
                *to = *from;
            }
        }
        self.file.write_at(&self.buffer, self.at)?;
        self.file.sync()?;
        self.at = self.at.saturating_add(length);
        Ok(sound)
    }

    /// Whether batch `number` ends what was written last.
    fn holds(&self, number: u64) -> anyhow::Result<bool> {
        let length = u64::try_from(self.buffer.len())?;
        let mut first = [0; 8];
        self.file.read_at(&mut first, self.at.saturating_sub(length))?;
        Ok(u64::from_le_bytes(first) == number)
    }
}
