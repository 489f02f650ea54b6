//! The engine, falsified: rows in memory, and records on disk, every checksum made right again.
#![expect(clippy::arithmetic_side_effects, reason = "a cent here and there, in a test")]

use super::Embedded;
use crate::account::AccountId;
use crate::command::{Changes, Leg, Outcome, RequestRecord};
use crate::ledger::rows::fixtures::Fault;
use crate::store::codec::wire::Writer;
use crate::store::embedded::disk::Disk;
use crate::store::embedded::layout::Layout;
use crate::store::embedded::record::{decode, encode};
use crate::store::embedded::scan::Scan;
use crate::store::embedded::segment::{Mark, Segment};
use crate::store::embedded::write::{append_record, write_batch};
use std::sync::Arc;

impl Embedded {
    pub(crate) fn falsify(&self, id: &AccountId, fault: Fault, by: i64) {
        let mut state = self.shared.lock();
        state.books.rows_mut(id).unwrap().falsify(fault, by);
    }

    /// Puts a cent into what an entry of slot 0 says that it moved, and into nothing else. The store must be idle.
    pub(crate) fn falsify_entry(&self, id: &AccountId, version: u64) {
        rewrite(self.shared.disk.as_ref(), |changes| {
            let wrong = |entry: &&mut crate::account::Entry| entry.account == *id && entry.version == version;
            for entry in changes.entries.iter_mut().filter(wrong) {
                entry.delta += 1;
            }
            repeat_legs(changes);
        });
    }
}

/// Makes a receipt's legs its entries again: a leg is kept as the number of its entry.
pub(super) fn repeat_legs(changes: &mut Changes) {
    if let Some(RequestRecord {
        outcome: Outcome::Posted(receipt),
        ..
    }) = &mut changes.request
    {
        receipt.legs = changes.entries.iter().map(Leg::from).collect();
    }
}

/// Rewrites the whole log in place, page by page, as `edit` has it.
pub(super) fn rewrite(disk: &dyn Disk, mut edit: impl FnMut(&mut Changes)) {
    let layout = Layout::read(disk).unwrap();
    let mut scan = Scan::after(&layout, Mark::default()).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = scan.next().unwrap() {
        let mut payload = Vec::new();
        for (_, bytes) in batch.records().unwrap() {
            let mut record = decode(bytes).unwrap();
            edit(&mut record.changes);
            let mut out = Writer::default();
            encode(record.number, &record.changes, &record.links, &mut out);
            assert_eq!(out.bytes.len(), bytes.len(), "places are kept");
            append_record(&out.bytes, &mut payload);
        }
        batches.push((batch.first, payload));
    }
    let mut end = Mark::default();
    for (first, payload) in batches {
        let extent = layout
            .extents
            .iter()
            .find(|extent| extent.head.number == first.segment);
        let extent = extent.unwrap();
        let segment = Segment {
            head: extent.head,
            file: Arc::clone(&extent.file),
        };
        // The store was opened once: no batch belongs to a tail that was written again.
        end = write_batch(&segment, first.page, &end, 0, &payload).unwrap();
    }
}
