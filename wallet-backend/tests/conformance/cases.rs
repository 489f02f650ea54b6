//! Facts of the ledger, each checked through nothing but the store's own surface.

mod accounts;
mod credits;
mod debits;
mod lists;
mod tidying;
mod transfers;

pub(super) use accounts::*;
pub(super) use credits::*;
pub(super) use debits::*;
pub(super) use lists::*;
pub(super) use tidying::*;
pub(super) use transfers::*;
