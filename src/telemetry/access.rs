//! The access log: JSON lines about refusals and failures (capped per second) and a sample of the rest.
//!
//! A request's thread renders the line and offers it to a bounded queue; one writer thread owns the file. A full queue
//! drops the line and counts it: the log never slows a request down. Past 100 lines in a second, refusals and
//! failures are only counted; the first line after that second says how many there were.
//!
//! Fields: `at`, `method`, `path` (as sent, without the query), `resource`, `params`, `status`, `code` and `rule` of a
//! refusal or failure, `duration_ms`, `upstream_ms`, `client`, `request_id`, `sample` (this line stands for so many).
//! What a client chose is cut ([`clipped`], [`MOST_VALUES`]), so that a line is bounded and the queue with it.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use serde::Serialize;

use crate::clock::{Tick, wall_time};
use crate::config::AccessLog as Target;

/// Lines that may wait for the writer. At the usual 300 bytes each, 2.4 MB; a few KiB is the most a line can have.
const QUEUE: usize = 8_192;

/// The most bytes of a text from a client. Ids of the wallet have at most 64.
const MOST_TEXT: usize = 256;

/// The most values of one parameter, such as the accounts of a batch, that a line lists.
pub const MOST_VALUES: usize = 8;

/// The beginning of a text that a client chose, with `…` if there is more.
#[must_use]
pub fn clipped(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST_TEXT {
        return Cow::Borrowed(text);
    }
    let (beginning, _) = text.split_at(text.floor_char_boundary(MOST_TEXT));
    Cow::Owned(format!("{beginning}…"))
}

/// Refusals and failures that are written one by one in a second.
const REFUSALS_PER_SECOND: u32 = 100;

/// Where requests leave their lines.
#[derive(Debug)]
pub struct AccessLog {
    queue: Option<SyncSender<Vec<u8>>>,
    sample: u32,
    passed: AtomicU32,
    capped: Mutex<Second>,
    dropped: AtomicU64,
}

/// The thread that owns the file. It ends when the log is dropped; joining it waits for the last line.
#[derive(Debug)]
pub struct Writer {
    thread: Option<JoinHandle<()>>,
}

/// How many refusals the current second had.
#[derive(Debug, Default)]
struct Second {
    number: u64,
    written: u32,
    suppressed: u64,
}

/// One request, as the log tells it.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    pub method: &'a str,
    pub path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<&'a str>,
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub params: serde_json::Map<String, serde_json::Value>,
    pub status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'a str>,
    pub duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<u32>,
}

#[derive(Serialize)]
struct Stamped<'a> {
    at: String,
    #[serde(flatten)]
    line: &'a Line<'a>,
}

#[derive(Serialize)]
struct Suppressed {
    at: String,
    suppressed: u64,
}

/// Whether a line is to be written, and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    Skip,
    /// One in so many.
    Sample(u32),
    /// Always written.
    Always,
}

impl AccessLog {
    /// A log that writes nothing.
    #[must_use]
    pub fn off() -> Self {
        Self::over(None, 0)
    }

    /// Opens the target and starts its writer.
    ///
    /// # Errors
    /// A file that cannot be opened for appending, or a thread that cannot start.
    pub fn open(target: &Target, sample: u32) -> io::Result<(Self, Writer)> {
        let out: Box<dyn Write + Send> = match target {
            Target::Off => return Ok((Self::off(), Writer { thread: None })),
            Target::Stdout => Box::new(io::stdout()),
            Target::File(path) => Box::new(File::options().create(true).append(true).open(path)?),
        };
        let (queue, lines) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write_all(&lines, out))?;
        Ok((Self::over(Some(queue), sample), Writer { thread: Some(thread) }))
    }

    fn over(queue: Option<SyncSender<Vec<u8>>>, sample: u32) -> Self {
        Self {
            queue,
            sample,
            passed: AtomicU32::new(0),
            capped: Mutex::default(),
            dropped: AtomicU64::new(0),
        }
    }

    /// Whether the next answered request is one of the sample. Counts it.
    pub fn pick_pass(&self) -> Pick {
        if self.queue.is_none() || self.sample == 0 {
            return Pick::Skip;
        }
        // Relaxed: which request is taken does not matter, only how many.
        if self
            .passed
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(self.sample)
        {
            Pick::Sample(self.sample)
        } else {
            Pick::Skip
        }
    }

    /// Whether a refusal or failure at `now` is written, or only counted because its second is full.
    pub fn pick_refusal(&self, now: Tick) -> Pick {
        if self.queue.is_none() {
            return Pick::Skip;
        }
        let second = now.as_nanos() / 1_000_000_000;
        let mut capped = self.capped.lock().unwrap_or_else(PoisonError::into_inner);
        let mut over = 0;
        if capped.number != second {
            over = capped.suppressed;
            *capped = Second {
                number: second,
                written: 0,
                suppressed: 0,
            };
        }
        let full = capped.written >= REFUSALS_PER_SECOND;
        if full {
            capped.suppressed += 1;
        } else {
            capped.written += 1;
        }
        drop(capped);
        if over > 0 {
            self.offer(&Suppressed {
                at: wall_time(),
                suppressed: over,
            });
        }
        if full { Pick::Skip } else { Pick::Always }
    }

    /// Stamps a line with the wall clock's time and queues it.
    pub fn write(&self, line: &Line<'_>) {
        self.offer(&Stamped {
            at: wall_time(),
            line,
        });
    }

    fn offer(&self, line: &impl Serialize) {
        let Some(queue) = &self.queue else { return };
        let mut bytes = Vec::with_capacity(320);
        // Serialising into memory fails only for maps with odd keys, which a line has not.
        if serde_json::to_writer(&mut bytes, line).is_err() {
            return;
        }
        bytes.push(b'\n');
        if queue.try_send(bytes).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that found the queue full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Writer {
    /// Waits until every queued line is written. The log must be dropped before, or this waits for ever.
    pub fn join(mut self) {
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the access log's writer panicked");
        }
    }
}

/// Writes what is queued, flushing whenever the queue is empty. A failing target is reported once, then skipped.
fn write_all(lines: &Receiver<Vec<u8>>, out: Box<dyn Write + Send>) {
    let mut out = BufWriter::new(out);
    let mut failed = false;
    while let Ok(first) = lines.recv() {
        let batch = std::iter::once(first).chain(std::iter::from_fn(|| lines.try_recv().ok()));
        let written = batch
            .take(QUEUE)
            .try_for_each(|line| out.write_all(&line))
            .and_then(|()| out.flush());
        if let Err(error) = written
            && !std::mem::replace(&mut failed, true)
        {
            tracing::error!(%error, "the access log cannot be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn log_to(path: &std::path::Path, sample: u32) -> (AccessLog, Writer) {
        AccessLog::open(&Target::File(path.to_owned()), sample).unwrap()
    }

    fn line(status: u16) -> Line<'static> {
        Line {
            method: "POST",
            path: "/a",
            resource: Some("r"),
            params: serde_json::Map::new(),
            status,
            code: None,
            rule: None,
            duration_ms: 1.5,
            upstream_ms: None,
            client: None,
            request_id: None,
            sample: None,
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(clipped("alice"), "alice");
        let cut = clipped(&"忙".repeat(1_000)).into_owned();
        assert_eq!(cut, format!("{}…", "忙".repeat(85)));
    }

    #[test]
    fn one_in_n_passes_is_picked() {
        let dir = tempfile::tempdir().unwrap();
        let (log, _writer) = log_to(&dir.path().join("log"), 10);
        let picked = (0..100).filter(|_| log.pick_pass() != Pick::Skip).count();
        assert_eq!(picked, 10);
    }

    #[test]
    fn refusals_beyond_the_cap_are_counted_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let (log, writer) = log_to(&path, 0);
        let start = Tick::ZERO;
        for _ in 0..150 {
            if log.pick_refusal(start) == Pick::Always {
                log.write(&line(429));
            }
        }
        assert_eq!(
            log.pick_refusal(start.after(Duration::from_secs(1))),
            Pick::Always
        );
        drop(log);
        writer.join();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(
            text.lines()
                .filter(|line| line.contains("\"status\":429"))
                .count(),
            100
        );
        assert!(
            text.lines().any(|line| line.contains("\"suppressed\":50")),
            "{text}"
        );
    }

    #[test]
    fn a_log_that_is_off_picks_nothing() {
        let log = AccessLog::off();
        assert_eq!(log.pick_pass(), Pick::Skip);
        assert_eq!(log.pick_refusal(Tick::ZERO), Pick::Skip);
    }
}
