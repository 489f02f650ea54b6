//! A log from its beginning to its end, record by record.

use crate::command::Changes;
use crate::store::embedded::error::{Damage, OpenError};
use crate::store::embedded::layout::Layout;
use crate::store::embedded::record::decode;
use crate::store::embedded::scan::Scan;
use crate::store::embedded::segment::Mark;

/// Hands every record to `each`, in order. `progress` hears how many pages of how many have been read. Returns where the
/// log ends.
///
/// # Errors
/// Damage, what the disk says, what `each` says.
pub(super) fn read_all<E: From<OpenError>>(
    layout: &Layout,
    progress: &mut dyn FnMut(u64, u64),
    mut each: impl FnMut(&Changes) -> Result<(), E>,
) -> Result<Mark, E> {
    let pages = layout.extents.iter().map(|extent| u64::from(extent.end)).sum();
    let mut scan = Scan::after(layout, Mark::default())?;
    let (mut end, mut segment, mut before) = (Mark::default(), 0, 0);
    while let Some(batch) = scan.next()? {
        let (of, page) = (batch.first.segment, batch.first.page);
        for (_, bytes) in batch.records().map_err(OpenError::from)? {
            let record = decode(bytes).map_err(|error| OpenError::from(Damage::record(of, page, &error)))?;
            each(&record.changes)?;
        }
        if segment != of {
            segment = of;
            let earlier = layout.extents.iter();
            let earlier = earlier.filter(|extent| extent.head.number < of);
            before = earlier.map(|extent| u64::from(extent.end)).sum();
        }
        end = batch.end;
        progress(u64::from(end.place.page).saturating_add(before), pages);
    }
    progress(pages, pages);
    Ok(end)
}
