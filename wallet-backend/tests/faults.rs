//! The embedded store on a disk that fails: whatever was acknowledged is there, nothing is there twice, and what is
//! damaged is refused.
//!
//! `disk` is the disk. `trial` runs a workload on it and says, after a power cut, whether what came back is the state
//! after some number of the workload's tasks, all the acknowledged among them. `SLUICE_LONG=1` runs the long versions.

pub(crate) mod answers;
pub(crate) mod batches;
pub(crate) mod crashes;
pub(crate) mod damage;
mod disk;
pub(crate) mod reopening;
pub(crate) mod torn;
mod trial;

pub(crate) use disk::{FaultDisk, Op};
pub(crate) use trial::{Workload, open, small};
