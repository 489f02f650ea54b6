//! What a look at the rules folder means, given the looks before it and the time. Pure but for the clock it is handed.
//!
//! Three facts make a reload safe to trust: a set is judged whole, by its contents and never by times or inodes; a FILE
//! that is not there counts as there for two seconds, because editors and `mv` take files away before they put them back;
//! and a file that is being written counts as it was before, because half of one may be good rules, only fewer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::super::compile::{compile, content_hash};
use super::super::{RuleError, RuleSet, Source};
use crate::clock::Tick;

/// How long a file that vanished counts as present.
const GRACE: Duration = Duration::from_secs(2);

/// Follows one rules folder.
#[derive(Debug)]
pub(super) struct Follower {
    dir: PathBuf,
    files: BTreeMap<PathBuf, Seen>,
    /// The contents that were judged last, so that the same ones are not judged, or complained about, again.
    judged: Option<u64>,
    /// Whether the last look could not read the folder.
    blind: Option<RuleError>,
}

#[derive(Debug)]
struct Seen {
    bytes: Vec<u8>,
    gone_since: Option<Tick>,
}

/// What a look changes.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Nothing that was not judged before.
    Same,
    /// A good set, and the files it is made of.
    Good(Box<RuleSet>, Vec<Source>),
    /// What is wrong. The set in force stays.
    Bad(Vec<RuleError>),
}

impl Follower {
    pub(super) const fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            files: BTreeMap::new(),
            judged: None,
            blind: None,
        }
    }

    /// Whether a scan found other files, or other contents, than the looks before it.
    pub(super) fn is_news(&self, scan: &Result<Vec<Source>, RuleError>) -> bool {
        match scan {
            Ok(found) => {
                let is_known = |source: &Source| {
                    self.files
                        .get(&source.path)
                        .is_some_and(|seen| seen.bytes == source.bytes)
                };
                found.len() != self.files.len() || !found.iter().all(is_known)
            }
            Err(error) => self.blind.as_ref() != Some(error),
        }
    }

    /// Judges what a scan of the folder found, but for the files that are being `written`, which count as they were.
    /// `again` judges it even if it is what was judged last.
    pub(super) fn look(
        &mut self,
        scan: Result<Vec<Source>, RuleError>,
        written: &[OsString],
        again: bool,
        now: Tick,
    ) -> Verdict {
        let found = match scan {
            Ok(found) => found,
            Err(error) => return self.unreadable(error, again),
        };
        let was_blind = self.blind.take().is_some();
        self.remember(found, written, now);
        let sources: Vec<Source> = self.present().collect();
        let hash = content_hash(&sources);
        if self.judged == Some(hash) && !again && !was_blind {
            return Verdict::Same;
        }
        self.judged = Some(hash);
        match compile(&self.dir, &sources) {
            Ok(set) => Verdict::Good(Box::new(set), sources),
            Err(errors) => Verdict::Bad(errors),
        }
    }

    /// When a file's grace ends and the folder has to be looked at again, whatever happens in it.
    pub(super) fn due(&self) -> Option<Tick> {
        self.files
            .values()
            .filter_map(|seen| seen.gone_since)
            .min()
            .map(|since| since.after(GRACE))
    }

    /// The files whose grace is running.
    pub(super) fn missing(&self) -> impl Iterator<Item = &PathBuf> {
        self.files
            .iter()
            .filter(|(_, seen)| seen.gone_since.is_some())
            .map(|(path, _)| path)
    }

    fn unreadable(&mut self, error: RuleError, again: bool) -> Verdict {
        if !again && self.blind.as_ref() == Some(&error) {
            return Verdict::Same;
        }
        self.blind = Some(error.clone());
        Verdict::Bad(vec![error])
    }

    fn remember(&mut self, found: Vec<Source>, written: &[OsString], now: Tick) {
        for seen in self.files.values_mut() {
            seen.gone_since.get_or_insert(now);
        }
        let mut new = Vec::new();
        for source in found {
            if source
                .path
                .file_name()
                .is_some_and(|name| written.iter().any(|each| each == name))
            {
                if let Some(seen) = self.files.get_mut(&source.path) {
                    seen.gone_since = None;
                }
                continue;
            }
            let seen = Seen {
                bytes: source.bytes,
                gone_since: None,
            };
            if self.files.insert(source.path.clone(), seen).is_none() {
                new.push(source.path);
            }
        }
        let moved: Vec<Vec<u8>> = new
            .iter()
            .filter_map(|path| self.files.get(path))
            .map(|seen| seen.bytes.clone())
            .collect();
        self.files.retain(|_, seen| match seen.gone_since {
            None => true,
            Some(_) if moved.contains(&seen.bytes) => false,
            Some(since) => now.since(since) < GRACE,
        });
    }

    fn present(&self) -> impl Iterator<Item = Source> {
        self.files.iter().map(|(path, seen)| Source {
            path: path.clone(),
            bytes: seen.bytes.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIT: &str = "resources: [ { name: debit, match: { path: /debit } } ]\n";
    const TEN: &str = "flow: [ { resource: debit, count: 10 } ]\n";
    const TWENTY: &str = "flow: [ { resource: debit, count: 20 } ]\n";

    struct Folder {
        follower: Follower,
        written: Vec<OsString>,
        now: Tick,
    }

    impl Folder {
        fn new() -> Self {
            Self {
                follower: Follower::new("rules".into()),
                written: Vec::new(),
                now: Tick::from_millis(1_000),
            }
        }

        fn later(&mut self, millis: u64) -> &mut Self {
            self.now = self.now.after(Duration::from_millis(millis));
            self
        }

        fn look(&mut self, files: &[(&str, &str)]) -> Verdict {
            let source = |(name, text): &(&str, &str)| Source {
                path: (*name).into(),
                bytes: (*text).into(),
            };
            self.follower.look(
                Ok(files.iter().map(source).collect()),
                &self.written,
                false,
                self.now,
            )
        }
    }

    fn counts(verdict: Verdict) -> Vec<u64> {
        let Verdict::Good(set, _) = verdict else {
            panic!("a good set, not {verdict:?}")
        };
        set.resources
            .iter()
            .flat_map(|resource| resource.flow.iter().map(|rule| rule.count))
            .collect()
    }

    fn errors(verdict: Verdict) -> Vec<String> {
        let Verdict::Bad(errors) = verdict else {
            panic!("a bad set, not {verdict:?}")
        };
        errors.iter().map(RuleError::to_string).collect()
    }

    #[test]
    fn the_same_contents_are_judged_once() {
        let mut folder = Folder::new();
        assert_eq!(counts(folder.look(&[("a", DEBIT), ("b", TEN)])), [10]);
        assert!(matches!(folder.look(&[("a", DEBIT), ("b", TEN)]), Verdict::Same));
        assert_eq!(counts(folder.look(&[("a", DEBIT), ("b", TWENTY)])), [20]);
    }

    #[test]
    fn a_bad_set_is_told_once_and_the_mended_one_is_good_even_if_it_is_the_old_one() {
        let mut folder = Folder::new();
        folder.look(&[("a", DEBIT), ("b", TEN)]);
        assert_eq!(
            errors(folder.look(&[("a", DEBIT), ("b", "flow: [")])),
            ["b:1:7: unclosed bracket '['"]
        );
        assert!(matches!(
            folder.look(&[("a", DEBIT), ("b", "flow: [")]),
            Verdict::Same
        ));
        assert_eq!(errors(folder.look(&[("a", DEBIT), ("b", "")])).len(), 1);
        assert_eq!(counts(folder.look(&[("a", DEBIT), ("b", TEN)])), [10]);
    }

    #[test]
    fn a_file_that_vanishes_counts_as_present_for_two_seconds() {
        let mut folder = Folder::new();
        let both = [
            ("a", DEBIT),
            ("b", TEN),
            ("c", "flow: [ { resource: debit, count: 3, id: c } ]"),
        ];
        assert_eq!(counts(folder.look(&both)), [10, 3]);
        assert!(matches!(folder.later(10).look(&both[..2]), Verdict::Same));
        assert_eq!(folder.follower.due(), Some(folder.now.after(GRACE)));
        assert_eq!(
            folder.follower.missing().collect::<Vec<_>>(),
            [&PathBuf::from("c")]
        );
        assert!(matches!(folder.later(1_999).look(&both[..2]), Verdict::Same));
        assert_eq!(counts(folder.later(1).look(&both[..2])), [10]);
        assert_eq!(folder.follower.due(), None);
    }

    #[test]
    fn a_file_that_comes_back_is_as_if_it_had_stayed() {
        let mut folder = Folder::new();
        folder.look(&[("a", DEBIT), ("b", TEN)]);
        assert!(matches!(folder.later(10).look(&[("a", DEBIT)]), Verdict::Same));
        assert!(matches!(
            folder.later(1_500).look(&[("a", DEBIT), ("b", TEN)]),
            Verdict::Same
        ));
        assert!(
            matches!(folder.later(1_500).look(&[("a", DEBIT)]), Verdict::Same),
            "its grace begins anew"
        );
        assert_eq!(
            counts(folder.later(100).look(&[("a", DEBIT), ("b", TWENTY)])),
            [20]
        );
    }

    #[test]
    fn a_file_that_is_being_written_counts_as_it_was_and_a_new_one_not_yet() {
        let mut folder = Folder::new();
        folder.look(&[("a", DEBIT), ("b", TEN)]);
        folder.written = vec!["b".into(), "c".into()];
        let files = [("a", DEBIT), ("b", "allowEmpty: true"), ("c", "flow: [")];
        assert!(matches!(folder.look(&files), Verdict::Same));
        folder.written.clear();
        assert_eq!(counts(folder.look(&[("a", DEBIT), ("b", TWENTY)])), [20]);
    }

    #[test]
    fn what_is_known_is_no_news() {
        let mut folder = Folder::new();
        folder.look(&[("a", DEBIT), ("b", TEN)]);
        let scan = |files: &[(&str, &str)]| {
            let source = |(name, text): &(&str, &str)| Source {
                path: (*name).into(),
                bytes: (*text).into(),
            };
            Ok(files.iter().map(source).collect())
        };
        assert!(!folder.follower.is_news(&scan(&[("a", DEBIT), ("b", TEN)])));
        assert!(folder.follower.is_news(&scan(&[("a", DEBIT), ("b", TWENTY)])));
        assert!(folder.follower.is_news(&scan(&[("a", DEBIT)])));
        assert!(
            folder
                .follower
                .is_news(&scan(&[("a", DEBIT), ("b", TEN), ("c", "")]))
        );
    }

    #[test]
    fn a_rule_taken_out_of_a_file_goes_at_once() {
        let mut folder = Folder::new();
        let two = format!("{TEN}isolation: [ {{ resource: debit, maxConcurrentRequests: 1 }} ]\n");
        folder.look(&[("a", DEBIT), ("b", &two)]);
        let Verdict::Good(set, _) = folder.look(&[("a", DEBIT), ("b", TEN)]) else {
            panic!("a good set")
        };
        assert!(set.resources[0].isolation.is_empty());
    }

    #[test]
    fn a_file_under_a_new_name_is_not_there_twice() {
        let mut folder = Folder::new();
        folder.look(&[("a", DEBIT), ("b", TEN)]);
        assert_eq!(counts(folder.later(10).look(&[("a", DEBIT), ("z", TEN)])), [10]);
    }

    #[test]
    fn a_folder_emptied_for_good_is_a_mistake_and_not_a_set_without_rules() {
        let mut folder = Folder::new();
        folder.look(&[("a", DEBIT), ("b", TEN)]);
        assert!(matches!(folder.look(&[]), Verdict::Same));
        let errors = errors(folder.later(2_000).look(&[]));
        assert_eq!(
            errors,
            ["rules: no rule in any file; if that is meant, write `allowEmpty: true`"]
        );
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_told_once_and_being_back_is_good() {
        let mut folder = Folder::new();
        folder.look(&[("a", DEBIT), ("b", TEN)]);
        let error = || compile("rules".as_ref(), &[]).unwrap_err().remove(0);
        let now = folder.now;
        assert!(matches!(
            folder.follower.look(Err(error()), &[], false, now),
            Verdict::Bad(_)
        ));
        assert!(matches!(
            folder.follower.look(Err(error()), &[], false, now),
            Verdict::Same
        ));
        assert_eq!(counts(folder.look(&[("a", DEBIT), ("b", TEN)])), [10]);
    }

    #[test]
    fn asking_again_judges_again() {
        let mut folder = Folder::new();
        let files = || {
            vec![Source {
                path: "a".into(),
                bytes: format!("{DEBIT}{TEN}").into(),
            }]
        };
        assert!(matches!(
            folder.follower.look(Ok(files()), &[], false, Tick::ZERO),
            Verdict::Good(..)
        ));
        assert!(matches!(
            folder.follower.look(Ok(files()), &[], true, Tick::ZERO),
            Verdict::Good(..)
        ));
    }
}
