//! A whole statement, page by page: what follows a cursor, up to where the account was when it was asked for.
//!
//! The end is fixed at the start, so a statement of an account that is written to all the time ends too, and whoever
//! wants the rest asks for it from [`Statement::end`]. Memory: one page.

use crate::account::{AccountId, Entry};
use crate::combiner::Queue;
use crate::command::LedgerError;
use crate::store::Cursor;
use crate::store::any::AnyStore;
use crate::wallet::MAX_PAGE;

/// Hands out the entries after a cursor, each once and per slot in version order. Reads a page when it is asked for
/// one; dropped, it reads no more.
#[derive(Debug)]
pub struct Statement {
    queue: Queue<AnyStore>,
    account: AccountId,
    seen: Cursor,
    end: Cursor,
}

impl Statement {
    /// # Errors
    /// `AccountNotFound`; `Unavailable` where the store does not answer.
    pub(super) async fn begin(
        queue: Queue<AnyStore>,
        account: &AccountId,
        after: Cursor,
    ) -> Result<Self, LedgerError> {
        let view = queue.account(account).await?;
        let slots = view.slots.iter();
        let mut end: Vec<_> = slots
            .map(|slot| (slot.index, slot.version.max(after.seen(slot.index))))
            .filter(|(_, version)| *version > 0)
            .collect();
        // Slots that came later have nothing for this statement.
        let beyond = after
            .0
            .iter()
            .filter(|(slot, _)| !end.iter().any(|(known, _)| known == slot));
        let beyond: Vec<_> = beyond.copied().collect();
        end.extend(beyond);
        Ok(Self {
            queue,
            account: account.clone(),
            seen: after,
            end: Cursor(end),
        })
    }

    /// Where it ends: what follows this was not there yet when the statement was asked for.
    #[must_use]
    pub const fn end(&self) -> &Cursor {
        &self.end
    }

    /// The next entries, at most [`MAX_PAGE`]; `None` at the end.
    ///
    /// # Errors
    /// `Unavailable` where the store does not answer. Asked again it goes on at the same place.
    pub async fn next(&mut self) -> Result<Option<Vec<Entry>>, LedgerError> {
        while !self.is_done() {
            let page = self
                .queue
                .entries(&self.account, &self.wanted(), MAX_PAGE)
                .await?;
            let read = page.entries.len();
            let mut entries = page.entries;
            entries.retain(|entry| entry.version <= self.end.seen(entry.slot));
            self.seen = page.next;
            if !entries.is_empty() {
                return Ok(Some(entries));
            }
            if read == 0 {
                // A cursor that is ahead of the account: there is nothing before the end.
                break;
            }
        }
        Ok(None)
    }

    fn is_done(&self) -> bool {
        let mut ends = self.end.0.iter();
        ends.all(|(slot, version)| self.seen.seen(*slot) >= *version)
    }

    /// What has been seen, with every slot that is at its end taken out of the merge: a slot that is written to all
    /// the time must not keep another one's entries waiting.
    fn wanted(&self) -> Cursor {
        let open = |slot| {
            let seen = self.seen.seen(slot);
            if seen < self.end.seen(slot) {
                seen
            } else {
                u64::MAX
            }
        };
        Cursor(
            crate::account::SlotIndex::all()
                .map(|slot| (slot, open(slot)))
                .collect(),
        )
    }
}
