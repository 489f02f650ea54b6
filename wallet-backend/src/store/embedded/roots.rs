//! The daily root: what the history was at the end of a UTC day, published so that others can keep it.
//!
//! `roots/YYYY-MM-DD.ndjson`, one line each, and a line in the program's log. A copy that is kept elsewhere is what a
//! later `verify --against` is held to. The root is over what the log held when it was taken, which is the first moment
//! after the day's end at which the store was open; it takes the checkpoint that it asks for, so that its place in the
//! log stays.
//!
//! Nothing of it is on the path of an operation: a thread of its own reads the log from where the last root was taken.

use std::io;

use jiff::civil::Date;
use jiff::tz::Offset;

use crate::account::Timestamp;
use crate::journal::{Head, Heads, Root};
use crate::store::embedded::blocks::BlockError;
use crate::store::embedded::disk::Disk;
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::heads::{self, HeadsFile};
use crate::store::embedded::layout::Layout;
use crate::store::embedded::record::decode;
use crate::store::embedded::scan::Scan;
use crate::store::embedded::segment::Mark;

pub(super) const FOLDER: &str = "roots";
const ENDING: &str = ".ndjson";
/// Slots that are held in memory before they go to disk: some 15 MB.
const MOST_SLOTS: usize = 1 << 17;

/// A root as it was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Published {
    /// The UTC day that had ended.
    pub(super) day: Date,
    pub(super) root: Root,
    /// When it was taken.
    pub(super) at: Timestamp,
}

impl Published {
    fn line(&self) -> String {
        let Self { day, root, at } = self;
        format!("{{\"day\":\"{day}\",\"root\":\"{root}\",\"at\":\"{at}\"}}\n")
    }

    /// Reads the one line of a file, in exactly the spelling of [`Published::line`].
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('"').skip(3).step_by(4);
        let (day, root, at) = (parts.next()?, parts.next()?, parts.next()?);
        let at: jiff::Timestamp = at.parse().ok()?;
        let published = Self {
            day: day.parse().ok()?,
            root: root.parse().ok()?,
            at: Timestamp(at.as_microsecond()),
        };
        (published.line() == text).then_some(published)
    }
}

fn name(day: Date) -> String {
    format!("{FOLDER}/{day}{ENDING}")
}

/// The day of which the root is due: yesterday, unless it is there.
pub(super) fn due(newest: Option<Date>, now: Timestamp) -> Option<Date> {
    let now = jiff::Timestamp::from_microsecond(now.0).ok()?;
    let yesterday = Offset::UTC.to_datetime(now).date().yesterday().ok()?;
    newest
        .is_none_or(|newest| newest < yesterday)
        .then_some(yesterday)
}

/// The newest day that has a root.
pub(super) fn newest_day(disk: &dyn Disk) -> io::Result<Option<Date>> {
    let names = disk.list(FOLDER)?;
    let days = names
        .iter()
        .filter_map(|name| name.strip_suffix(ENDING)?.parse::<Date>().ok());
    Ok(days.max())
}

/// The file of every published root, the oldest first.
pub(super) fn names(disk: &dyn Disk) -> io::Result<Vec<String>> {
    let mut names = disk.list(FOLDER)?;
    names.retain(|name| name.ends_with(ENDING));
    names.sort();
    Ok(names.iter().map(|name| format!("{FOLDER}/{name}")).collect())
}

/// Every published root, by its file, the oldest first; `None` for a file that is not as it was written.
pub(super) fn published(disk: &dyn Disk) -> io::Result<Vec<(String, Option<Published>)>> {
    let read = names(disk)?.into_iter().map(|name| {
        let file = disk.open(&name)?;
        // A line has some 160 bytes: what is longer was not written here.
        let mut text = vec![0; usize::try_from(file.size()?.min(4096)).unwrap_or(0)];
        file.read_at(&mut text, 0)?;
        let published = std::str::from_utf8(&text).ok().and_then(Published::read);
        Ok((name, published))
    });
    read.collect()
}

/// Writes a root's file; it is there whole, or not at all.
pub(super) fn publish(disk: &dyn Disk, published: &Published) -> io::Result<()> {
    let name = name(published.day);
    let temporary = format!("{name}.tmp");
    disk.create_folder(FOLDER)?;
    let file = match disk.create(&temporary) {
        // Left by an attempt that failed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.remove(&temporary)?;
            disk.create(&temporary)?
        }
        other => other?,
    };
    file.write_at(published.line().as_bytes(), 0)?;
    file.sync()?;
    disk.rename(&temporary, &name)?;
    disk.sync_folder(FOLDER)
}

/// Why no root was made.
#[derive(Debug, thiserror::Error)]
pub(super) enum RootFailure {
    #[error(transparent)]
    Log(#[from] OpenError),
    #[error("the heads: {0}")]
    Heads(#[from] BlockError),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Damage> for RootFailure {
    fn from(damage: Damage) -> Self {
        Self::Log(damage.into())
    }
}

/// The root of the log up to `until`, the end of a batch that stays where it is. Reads from where the last one was
/// made; `None` if `stopping` said so meanwhile.
pub(super) fn root_at(
    disk: &dyn Disk,
    store: u64,
    until: &Mark,
    stopping: &dyn Fn() -> bool,
) -> Result<Option<Root>, RootFailure> {
    let layout = Layout::read(disk)?;
    let mut file = match heads::newest(disk, store)? {
        Some(file) if file.mark.batch <= until.batch && layout.holds(&file.mark)? => Some(file),
        Some(_) | None => None,
    };
    let begin = file.as_ref().map_or(Mark::default(), |file| file.mark);
    let mut scan = Scan::after(&layout, begin)?;
    let mut end = begin;
    let mut new = going_on_from(file.as_ref());
    while end.batch < until.batch {
        if stopping() {
            return Ok(None);
        }
        let place = end.place;
        let missing = || Damage::at(place.segment, place.page, "the log ends before the checkpoint");
        let batch = scan.next()?.ok_or_else(missing)?;
        for (_, bytes) in batch.records()? {
            let (segment, page) = (batch.first.segment, batch.first.page);
            let record = decode(bytes).map_err(|error| Damage::record(segment, page, &error))?;
            new.extend_from(&record.changes, |account, slot| match &file {
                Some(file) => file.find(disk, account, slot),
                None => Ok(Head::NONE),
            })?;
        }
        end = batch.end;
        if new.slots().len() >= MOST_SLOTS {
            file = Some(heads::write(disk, store, file.as_ref(), &new, &end)?);
            new = going_on_from(file.as_ref());
        }
    }
    let file = match file {
        Some(file) if file.mark == end => file,
        before => heads::write(disk, store, before.as_ref(), &new, &end)?,
    };
    Ok(Some(file.root(disk)?))
}

fn going_on_from(file: Option<&HeadsFile>) -> Heads {
    file.map_or_else(Heads::default, |file| Heads::after(file.records, file.journal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Digest;
    use crate::store::embedded::disk::RealDisk;

    fn published_on(day: &str) -> Published {
        Published {
            day: day.parse().unwrap(),
            root: Root {
                records: 17,
                digest: Digest([9; 32]),
            },
            at: Timestamp(1_700_000_000_000_001),
        }
    }

    #[test]
    fn the_root_of_a_day_is_due_once_the_day_has_ended() {
        let day = |text: &str| text.parse::<Date>().unwrap();
        let at = |text: &str| Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_microsecond());
        let last_moment = at("2026-07-01T23:59:59.999999Z");
        let midnight = at("2026-07-02T00:00:00Z");
        assert_eq!(due(Some(day("2026-06-30")), last_moment), None);
        assert_eq!(due(Some(day("2026-06-30")), midnight), Some(day("2026-07-01")));
        assert_eq!(due(Some(day("2026-07-01")), midnight), None);
        // Days on which the store was closed have none, as nothing happened on them.
        assert_eq!(due(Some(day("2026-06-01")), midnight), Some(day("2026-07-01")));
        assert_eq!(due(None, midnight), Some(day("2026-07-01")));
        // A clock that was set back publishes nothing twice.
        assert_eq!(due(Some(day("2026-09-01")), midnight), None);
    }

    #[test]
    fn what_was_published_is_read_back_and_what_was_changed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(folder.path());
        assert_eq!(newest_day(&disk).unwrap(), None);
        let days = ["2026-07-01", "2026-07-02"].map(published_on);
        for day in &days {
            publish(&disk, day).unwrap();
        }
        assert_eq!(newest_day(&disk).unwrap(), Some(days[1].day));
        let file = "roots/2026-07-02.ndjson".to_owned();
        let all = published(&disk).unwrap();
        assert_eq!(all[0].1.as_ref(), Some(&days[0]));
        assert_eq!(all[1], (file.clone(), Some(days[1].clone())));
        let text = disk.open(&file).unwrap();
        text.write_at(b" ", text.size().unwrap() - 1).unwrap();
        assert_eq!(published(&disk).unwrap()[1], (file, None));
    }

    #[test]
    fn a_published_line_is_json() {
        assert_eq!(
            published_on("2026-07-01").line(),
            format!(
                "{{\"day\":\"2026-07-01\",\"root\":\"17:{}\",\"at\":\"2023-11-14T22:13:20.000001Z\"}}\n",
                "09".repeat(32)
            )
        );
    }
}
