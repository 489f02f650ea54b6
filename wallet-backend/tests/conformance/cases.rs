//! Facts of the ledger, each checked through nothing but the store's own surface.

mod accounts;
mod amendments;
mod batches;
mod credits;
mod debits;
mod events;
mod holds;
mod lists;
mod pasts;
mod reversals;
mod tidying;
mod transfers;

pub(super) use accounts::*;
pub(super) use amendments::*;
pub(super) use batches::*;
pub(super) use credits::*;
pub(super) use debits::*;
pub(super) use events::*;
pub(super) use holds::*;
pub(super) use lists::*;
pub(super) use pasts::*;
pub(super) use reversals::*;
pub(super) use tidying::*;
pub(super) use transfers::*;
