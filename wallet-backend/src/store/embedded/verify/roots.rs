//! The history against roots: those that were published, that of the heads' file, and those that somebody kept.

use super::Check;
use crate::command::Changes;
use crate::journal::Root;
use crate::store::embedded::disk::Disk;
use crate::store::embedded::error::OpenError;
use crate::store::embedded::heads;
use crate::store::embedded::report::Finding;
use crate::store::embedded::roots::{FOLDER, published};

/// A root that the history must have, and who says so.
#[derive(Debug)]
pub(super) struct Witness {
    root: Root,
    source: String,
}

/// Those that are still to come, the next one last, and how far they agreed.
#[derive(Debug, Default)]
pub(super) struct Witnesses {
    left: Vec<Witness>,
    agreed: u64,
    /// The records under the last one that agreed.
    agreed_until: u64,
}

impl Witnesses {
    /// All that there are in the directory, and `against`. What is damaged is a finding.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn gather(
        disk: &dyn Disk,
        store: u64,
        against: &[Root],
        findings: &mut Vec<Finding>,
    ) -> Result<Self, OpenError> {
        let given = against.iter().map(|root| Witness {
            root: *root,
            source: "the root that was given".to_owned(),
        });
        let mut left: Vec<Witness> = given.collect();
        let published = published(disk).map_err(OpenError::io(format!("read {FOLDER}/")))?;
        for (source, published) in published {
            match published {
                Some(published) => left.push(Witness {
                    root: published.root,
                    source,
                }),
                None => findings.push(Finding::text(format!("{source}: not as it was written"))),
            }
        }
        let all = heads::roots(disk, store).map_err(OpenError::io("list heads/"))?;
        for (source, root) in all {
            match root {
                Ok(root) => left.push(Witness { root, source }),
                Err(error) => findings.push(Finding::text(format!("{source}: {error}"))),
            }
        }
        left.sort_by_key(|witness| std::cmp::Reverse(witness.root.records));
        Ok(Self {
            left,
            ..Self::default()
        })
    }

    fn take_due(&mut self, records: u64) -> Option<Witness> {
        self.left.pop_if(|witness| witness.root.records == records)
    }
}

impl Check<'_> {
    /// Takes a record into the chains.
    pub(super) fn chain(&mut self, changes: &Changes) {
        self.heads.extend(changes);
        self.compare_roots();
    }

    /// Compares the history so far with the roots that are about so much of it.
    pub(super) fn compare_roots(&mut self) {
        let mut root = None;
        while let Some(witness) = self.witnesses.take_due(self.heads.records()) {
            let root = *root.get_or_insert_with(|| self.heads.root());
            if witness.root == root {
                self.witnesses.agreed = self.witnesses.agreed.saturating_add(1);
                self.witnesses.agreed_until = root.records;
                continue;
            }
            let (source, until) = (witness.source, self.witnesses.agreed_until);
            let (wanted, records) = (witness.root.digest, root.records);
            let found = root.digest;
            self.found(Finding::text(format!(
                "{source}: records {} to {records} are not what they were: their root is {found}, not {wanted}",
                until.saturating_add(1)
            )));
        }
    }

    /// What can be said at the end of the log.
    pub(super) fn finish_roots(&mut self) {
        let records = self.heads.records();
        for Witness { root, source } in std::mem::take(&mut self.witnesses.left) {
            let covered = root.records;
            self.found(Finding::text(format!(
                "{source}: it is about {covered} records, and the log has {records}"
            )));
        }
        self.report.root = Some(self.heads.root());
        self.report.roots = self.witnesses.agreed;
    }
}
