//! The wiring over a real folder. Every wait is for a swap that has to come; what is decided when is tested in `follow`.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::*;

fn rules(count: u64) -> String {
    format!(
        "resources: [ {{ name: debit, match: {{ path: /debit }} }} ]\nflow: [ {{ resource: debit, count: {count} }} ]\n"
    )
}

struct Following {
    watcher: Watcher,
    swaps: Receiver<u64>,
}

impl Following {
    fn start(dir: &Path, data: Option<&Path>, sight: thread::Sight) -> Result<Self, Vec<RuleError>> {
        let (sender, swaps) = channel();
        let on_swap: OnSwap = Box::new(move |set| {
            let rules = set.resources.first().map_or(&[][..], |r| &r.flow);
            sender.send(rules.iter().map(|rule| rule.count).sum()).ok();
        });
        let options = WatchOptions {
            dir: dir.into(),
            data: data.map(Into::into),
        };
        Ok(Self {
            watcher: Watcher::start_with(options, on_swap, sight)?,
            swaps,
        })
    }

    fn next(&self) -> u64 {
        self.swaps
            .recv_timeout(Duration::from_secs(20))
            .expect("a swap has to come")
    }
}

#[test]
fn edits_renames_and_re_creations_are_followed() {
    for sight in [thread::Sight::Events, thread::Sight::Looking] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.yaml");
        fs::write(&file, rules(1)).unwrap();
        let following = Following::start(dir.path(), None, sight).unwrap();
        assert_eq!(following.next(), 1);
        fs::write(&file, rules(2)).unwrap();
        assert_eq!(following.next(), 2, "edited in place");
        fs::write(dir.path().join(".a.yaml.swp"), rules(3)).unwrap();
        fs::rename(dir.path().join(".a.yaml.swp"), &file).unwrap();
        assert_eq!(following.next(), 3, "saved by an editor");
        fs::remove_file(&file).unwrap();
        fs::write(&file, rules(4)).unwrap();
        assert_eq!(following.next(), 4, "deleted and made anew");
        fs::write(&file, rules(5)).unwrap();
        assert_eq!(following.next(), 5, "and edited after that");
    }
}

#[test]
fn a_file_that_is_still_being_written_counts_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (slow, other) = (dir.path().join("a.yaml"), dir.path().join("b.yaml"));
    fs::write(&slow, rules(1)).unwrap();
    let following = Following::start(dir.path(), None, thread::Sight::Patient).unwrap();
    assert_eq!(following.next(), 1);
    fs::write(&other, "flow: [ { id: b, resource: debit, count: 5 } ]\n").unwrap();
    assert_eq!(following.next(), 6, "by now there are events");
    let mut writer = fs::File::create(&slow).unwrap();
    // Good rules by themselves, only fewer than there will be.
    let half = rules(2).replace(
        "[ { resource: debit, count: 2 } ]",
        "\n- { resource: debit, count: 2 }",
    );
    writer.write_all(half.as_bytes()).unwrap();
    fs::write(&other, "flow: [ { id: b, resource: debit, count: 10 } ]\n").unwrap();
    assert_eq!(following.next(), 11, "another file is in force meanwhile");
    writer
        .write_all(b"- { id: c, resource: debit, count: 100 }\n")
        .unwrap();
    drop(writer);
    assert_eq!(following.next(), 112, "and all of it once it is closed");
}

#[test]
fn a_file_that_is_never_closed_counts_once_its_writer_is_quiet() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.yaml");
    fs::write(&file, rules(1)).unwrap();
    let following = Following::start(dir.path(), None, thread::Sight::Events).unwrap();
    assert_eq!(following.next(), 1);
    let mut writer = fs::File::create(&file).unwrap();
    writer.write_all(rules(2).as_bytes()).unwrap();
    assert_eq!(following.next(), 2);
}

#[test]
fn a_folder_that_is_made_anew_is_followed() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("rules");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.yaml"), rules(1)).unwrap();
    let following = Following::start(&dir, None, thread::Sight::Events).unwrap();
    assert_eq!(following.next(), 1);
    for count in 2..4 {
        fs::rename(&dir, parent.path().join(format!("old{count}"))).unwrap();
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("a.yaml"), rules(count)).unwrap();
        assert_eq!(following.next(), count);
    }
}

#[test]
fn the_swap_of_a_mounted_config_map_is_followed_every_time() {
    let dir = tempfile::tempdir().unwrap();
    let publish = |version: u64| {
        let name = format!("..ts{version}");
        fs::create_dir(dir.path().join(&name)).unwrap();
        fs::write(dir.path().join(&name).join("rules.yaml"), rules(version)).unwrap();
        symlink(&name, dir.path().join("..data_tmp")).unwrap();
        fs::rename(dir.path().join("..data_tmp"), dir.path().join("..data")).unwrap();
        fs::remove_dir_all(dir.path().join(format!("..ts{}", version - 1))).ok();
    };
    publish(1);
    symlink("..data/rules.yaml", dir.path().join("rules.yaml")).unwrap();
    let following = Following::start(dir.path(), None, thread::Sight::Events).unwrap();
    assert_eq!(following.next(), 1);
    for version in 2..5 {
        publish(version);
        assert_eq!(following.next(), version);
    }
}

#[test]
fn a_broken_start_falls_back_to_the_last_good_copy_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.yaml");
    fs::write(&file, "flow: [").unwrap();
    assert!(Following::start(dir.path(), Some(data.path()), thread::Sight::Events).is_err());
    fs::write(&file, rules(7)).unwrap();
    drop(Following::start(dir.path(), Some(data.path()), thread::Sight::Events).unwrap());
    fs::write(&file, "flow: [").unwrap();
    let following = Following::start(dir.path(), Some(data.path()), thread::Sight::Events).unwrap();
    assert_eq!(following.next(), 7);
    let status = following.watcher.store().status();
    let shown = FileStatus {
        file: file.display().to_string(),
        line: 1,
        error: "unclosed bracket '['".into(),
    };
    assert_eq!(
        *status,
        RulesStatus {
            ok: false,
            files: vec![shown]
        }
    );
    assert_eq!(
        following.watcher.store().reloads(),
        ReloadCounts { ok: 0, failed: 1 }
    );
    fs::write(&file, rules(8)).unwrap();
    assert_eq!(following.next(), 8);
}

#[test]
fn a_set_is_shown_to_admission_before_it_is_in_force_and_a_bad_one_to_nobody() {
    let store = RuleStore::new(set_of(1));
    let (sender, swaps) = channel();
    let on_swap: OnSwap = Box::new(move |set| sender.send(set.generation).unwrap());
    store.refuse(&super::super::compile::compile("rules".as_ref(), &[]).unwrap_err());
    assert!(!store.status().ok);
    assert_eq!(store.snapshot().generation, 1);
    assert!(store.accept(set_of(2), &on_swap));
    assert!(
        !store.accept(set_of(2), &on_swap),
        "the same contents are no other set"
    );
    assert_eq!(swaps.try_iter().collect::<Vec<_>>(), [2]);
    assert_eq!((store.snapshot().generation, store.status().ok), (2, true));
    assert_eq!(store.reloads(), ReloadCounts { ok: 3, failed: 1 });
}

fn set_of(count: u64) -> RuleSet {
    let source = Source {
        path: "rules/a.yaml".into(),
        bytes: rules(count).into(),
    };
    super::super::compile::compile("rules".as_ref(), &[source]).unwrap()
}
