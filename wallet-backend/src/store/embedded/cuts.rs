//! Many accounts, each at one cut of its own: deciding is held up for a few of them at a time.

use super::{Embedded, LISTED_AT_A_TIME};
use crate::account::AccountId;
use crate::command::{AccountView, LedgerError};
use crate::ledger::invariants::Standing;
use crate::store::Cut;

/// At most `limit` accounts after `after`.
pub(super) async fn views(
    store: &Embedded,
    after: Option<&AccountId>,
    limit: usize,
) -> Result<Vec<AccountView>, LedgerError> {
    let (mut views, mut newest): (Vec<AccountView>, u64) = (Vec::new(), 0);
    while views.len() < limit {
        let wanted = LISTED_AT_A_TIME.min(limit.saturating_sub(views.len()));
        let last = views.last().map(|view| view.account.id.clone());
        let found = {
            let state = store.reading()?;
            newest = state.newest();
            let now = store.clock.now();
            let found = state.books.after(last.as_ref().or(after), wanted);
            found.map(|held| held.rows.view(now)).collect::<Vec<_>>()
        };
        let all = found.len() < wanted;
        views.extend(found);
        if all {
            break;
        }
    }
    store.shared.durable(newest).await?;
    Ok(views)
}

/// What the rows of these accounts say.
pub(super) async fn standings(store: &Embedded, ids: &[AccountId]) -> Result<Vec<Cut>, LedgerError> {
    let (mut cuts, mut newest) = (Vec::with_capacity(ids.len()), 0);
    for id in ids {
        let state = store.reading()?;
        newest = state.newest();
        let entries = state.books.entries();
        let standing = state.books.get(id).map(|held| Standing::of(&held.rows));
        cuts.extend(standing.map(|standing| Cut { standing, entries }));
    }
    store.shared.durable(newest).await?;
    Ok(cuts)
}
