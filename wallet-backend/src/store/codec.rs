//! Requests as bytes: what was asked for and what it became. The same bytes in every store that keeps them.

use smallvec::SmallVec;

use crate::account::AccountId;

mod account;
mod operation;
mod outcome;
pub(in crate::store) mod wire;

pub(in crate::store) use self::account::{
    read_account, read_hold_state, read_slot, write_account, write_hold_state,
};
pub(in crate::store) use self::operation::{read_operation, write_operation};
pub(in crate::store) use self::outcome::{read_outcome, write_outcome};
pub(in crate::store) use self::wire::{CodecError, Reader, Writer, kind};

/// Account ids by the order of their first appearance in the record that is written.
#[derive(Default)]
pub(in crate::store) struct Named<'a> {
    seen: SmallVec<[&'a AccountId; 2]>,
}

impl<'a> Named<'a> {
    pub(in crate::store) fn write(&mut self, id: &'a AccountId, out: &mut Writer) {
        match self.seen.iter().position(|known| *known == id) {
            Some(at) => out.length(at.saturating_add(1)),
            None => {
                out.length(0);
                out.text(id.as_str());
                self.seen.push(id);
            }
        }
    }
}

/// The same of the record that is read.
#[derive(Default)]
pub(in crate::store) struct Ids {
    seen: Vec<AccountId>,
}

impl Ids {
    pub(in crate::store) fn read(&mut self, from: &mut Reader<'_>) -> Result<AccountId, CodecError> {
        let number = from.number("an account id")?;
        match number.checked_sub(1) {
            None => {
                let id = from.account()?;
                self.seen.push(id.clone());
                Ok(id)
            }
            Some(at) => usize::try_from(at)
                .ok()
                .and_then(|at| self.seen.get(at))
                .cloned()
                .ok_or(CodecError::Range("an account id")),
        }
    }
}
