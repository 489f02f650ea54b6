//! The ledger as its files have it, in memory, without the lock: for somebody who looks and changes nothing.

use std::sync::Arc;

use super::ExplainError;
use crate::account::{AccountId, RequestId};
use crate::store::embedded::blocks::BlockError;
use crate::store::embedded::books::Books;
use crate::store::embedded::checkpoint::load_newest;
use crate::store::embedded::disk::Disk;
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::layout::Layout;
use crate::store::embedded::open::refuse_without_log;
use crate::store::embedded::record::{Record, decode};
use crate::store::embedded::records::Records;
use crate::store::embedded::requests::{Filed, Older, fingerprint};
use crate::store::embedded::scan::{Scan, position};

/// The books of one moment, and the log that they are of.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) layout: Layout,
    pub(super) books: Books,
    pub(super) records: Records,
    /// Behind the last record.
    pub(super) end: u64,
}

impl Snapshot {
    /// The newest checkpoint, and the log after it up to its last whole batch.
    pub(super) fn read(disk: &Arc<dyn Disk>) -> Result<Self, ExplainError> {
        let layout = Layout::read(disk.as_ref())?;
        let Some(store) = layout.store() else {
            refuse_without_log(disk.as_ref())?;
            return Err(ExplainError::NoStore);
        };
        let loaded = load_newest(disk.as_ref(), &layout, store)?;
        let older = Older {
            frozen: Vec::new(),
            runs: loaded.runs,
        };
        let mut books = Books::new(store, loaded.accounts, older);
        let (mut scan, mut end) = (Scan::after(&layout, loaded.mark)?, loaded.mark);
        while let Some(batch) = scan.next()? {
            let (segment, page) = (batch.first.segment, batch.first.page);
            let damage = |what| OpenError::from(Damage::at(segment, page, what));
            for (position, bytes) in batch.records().map_err(OpenError::from)? {
                let record = decode(bytes).map_err(|error| damage(error.to_string()))?;
                let applied = books.apply(&record.changes, position);
                applied.map_err(|violation| damage(violation.to_string()))?;
            }
            end = batch.end;
        }
        let records = Records::new(Arc::clone(disk), store);
        let end = position(end.place, 0);
        Ok(Self {
            layout,
            books,
            records,
            end,
        })
    }

    /// The first record, and its position, that is filed for a request and of which `is` is so.
    pub(super) fn find(
        &self,
        account: &AccountId,
        request: &RequestId,
        filed: Filed,
        is: impl Fn(&Record) -> bool,
    ) -> Result<Option<(u64, Record)>, OpenError> {
        let key = fingerprint(self.records.store(), account, request, filed);
        for position in self.books.find(self.records.disk(), key).map_err(unread)? {
            let record = self.records.read(position)?;
            if is(&record) {
                return Ok(Some((position, record)));
            }
        }
        Ok(None)
    }
}

fn unread(error: BlockError) -> OpenError {
    let source = match error {
        BlockError::Io(source) => source,
        BlockError::Version(_) | BlockError::Damaged(_) => std::io::Error::other(error.to_string()),
    };
    OpenError::io("read the index of the requests")(source)
}
