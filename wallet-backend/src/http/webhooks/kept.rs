//! `webhooks.json` beside the ledger's own files: how far the deliveries have come.
//!
//! Written whole under another name, synced and renamed, so that a crash leaves the old one or the new one. What was
//! delivered after it was last written is delivered once more. A file that cannot be read is never taken for none:
//! everything would be sent again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::deliveries::{Again, DeadLetter, Lagging, Standing};
use crate::account::{AccountId, SlotIndex, Timestamp};

/// The file's name in the data directory.
pub const FILE: &str = "webhooks.json";
/// Raised when the layout changes.
const FORMAT: u32 = 1;

/// Why a file is not gone on from.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    #[error("cannot read {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    #[error("{} is damaged ({}); take it away to have every event of the ledger sent again", .0.display(), .1)]
    Damaged(PathBuf, String),
    #[error("{} belongs to another ledger; take it away to have every event of this one sent", .0.display())]
    OtherLedger(PathBuf),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    /// In hex: JSON readers have no exact integers of 64 bits.
    ledger: String,
    /// Every event up to this number is done with, but for those below.
    done_to: u64,
    lagging: Vec<LaneContent>,
    dead_letters: Vec<DeadContent>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LaneContent {
    account_id: String,
    after: u64,
    tries: u32,
    not_before: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeadContent {
    number: u64,
    account_id: String,
    slot: u8,
    version: u64,
    at: i64,
    reason: String,
    again: bool,
}

/// What was kept for this ledger; from the first event on where there is no file.
pub(super) fn load(path: &Path, ledger: u64) -> Result<Standing, KeptError> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::default()),
        read => read.map_err(|error| KeptError::Io(path.to_owned(), error))?,
    };
    let damaged = |why: String| KeptError::Damaged(path.to_owned(), why);
    let content: Content = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if content.format != FORMAT {
        let (found, known) = (content.format, FORMAT);
        return Err(damaged(format!("format {found}; this program reads {known}")));
    }
    if content.ledger != hex(ledger) {
        return Err(KeptError::OtherLedger(path.to_owned()));
    }
    standing(content).ok_or_else(|| damaged("an account id or a slot is none".to_owned()))
}

fn standing(content: Content) -> Option<Standing> {
    let mut standing = Standing {
        head: content.done_to,
        ..Standing::default()
    };
    for lane in content.lagging {
        standing.lagging.push(Lagging {
            account: AccountId::new(&lane.account_id).ok()?,
            after: lane.after,
            tries: lane.tries,
            not_before: Timestamp(lane.not_before),
        });
    }
    let mut dead = BTreeMap::new();
    for letter in content.dead_letters {
        let kept = DeadLetter {
            account: AccountId::new(&letter.account_id).ok()?,
            slot: SlotIndex::new(letter.slot)?,
            version: letter.version,
            at: Timestamp(letter.at),
            reason: letter.reason,
            again: if letter.again { Again::Asked } else { Again::No },
        };
        dead.insert(letter.number, kept);
    }
    standing.dead = dead;
    Some(standing)
}

/// Replaces what was kept; on disk when this returns. Blocks.
pub(super) fn save(path: &Path, ledger: u64, standing: &Standing) -> io::Result<()> {
    let lane = |lane: &Lagging| LaneContent {
        account_id: lane.account.to_string(),
        after: lane.after,
        tries: lane.tries,
        not_before: lane.not_before.0,
    };
    let letter = |(number, letter): (&u64, &DeadLetter)| DeadContent {
        number: *number,
        account_id: letter.account.to_string(),
        slot: letter.slot.get(),
        version: letter.version,
        at: letter.at.0,
        reason: letter.reason.clone(),
        again: letter.again != Again::No,
    };
    let content = Content {
        format: FORMAT,
        ledger: hex(ledger),
        done_to: standing.head,
        lagging: standing.lagging.iter().map(lane).collect(),
        dead_letters: standing.dead.iter().map(letter).collect(),
    };
    let written = path.with_extension("json.new");
    let mut file = File::create(&written)?;
    file.write_all(&serde_json::to_vec_pretty(&content)?)?;
    file.sync_all()?;
    fs::rename(&written, path)?;
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

fn hex(ledger: u64) -> String {
    format!("{ledger:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing() -> Standing {
        let letter = DeadLetter {
            account: AccountId::new("bob").unwrap(),
            slot: SlotIndex::new(3).unwrap(),
            version: 9,
            at: Timestamp(7),
            reason: "answered 500".to_owned(),
            again: Again::Asked,
        };
        Standing {
            head: 41,
            lagging: vec![Lagging {
                account: AccountId::new("alice").unwrap(),
                after: 12,
                tries: 4,
                not_before: Timestamp(99),
            }],
            dead: BTreeMap::from([(5, letter)]),
        }
    }

    #[test]
    fn what_was_kept_comes_back_and_without_a_file_it_begins_at_the_first_event() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(load(&path, 7).unwrap(), Standing::default());
        save(&path, 7, &Standing::default()).unwrap();
        save(&path, 7, &standing()).unwrap();
        assert_eq!(load(&path, 7).unwrap(), standing());
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_another_ledger_or_one_that_makes_no_sense_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        save(&path, 7, &standing()).unwrap();
        let told = |ledger| load(&path, ledger).unwrap_err().to_string();
        assert!(told(8).contains("belongs to another ledger"), "{}", told(8));
        let text = fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("\"format\": 1", "\"format\": 2"),
            ("\"bob\"", "\"b b\""),
            ("}", ""),
        ] {
            fs::write(&path, text.replace(from, to)).unwrap();
            let told = told(7);
            assert!(told.contains(FILE) && told.contains("is damaged"), "{told}");
        }
    }
}
