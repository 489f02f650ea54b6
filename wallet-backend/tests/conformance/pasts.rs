//! What was told of accounts as they were, against what is told of those moments later.

use wallet_backend::account::{Slot, Timestamp};
use wallet_backend::command::{AccountView, PastView};
use wallet_backend::store::{Cursor, Moment, Store};

use crate::support::{Bench, id};

/// Reads of then, and when that was.
#[derive(Default)]
pub(crate) struct Told(Vec<(Timestamp, AccountView)>);

impl Told {
    /// Reads accounts, and lets the moment be over.
    pub(crate) fn read(&mut self, bench: &Bench<impl Store>, names: &[&str]) {
        let now = bench.time.now();
        let views = names.iter().map(|name| (now, bench.account(name)));
        self.0.extend(views);
        bench.time.pass(1);
    }

    /// Says how many moments there were.
    pub(crate) fn check(&self, bench: &Bench<impl Store>) -> usize {
        for (at, then) in &self.0 {
            let name = then.account.id.as_str();
            let past = bench.past(name, &Moment::Time(*at)).unwrap();
            let used = |slot: &&Slot| slot.version > 0;
            let expected = PastView {
                account: then.account.id.clone(),
                currency: then.account.currency,
                at: Some(*at),
                slots: then.slots.iter().filter(used).copied().collect(),
                held: then.held,
                pending: then.pending,
            };
            assert_eq!(past, expected, "{name} at {at:?}");
            assert_eq!(past.balance(), then.balance());
        }
        self.0.len()
    }
}

/// The past at every cursor of an account's statement, read in pages of `limit`, and from its beginning.
pub(crate) fn at_every_cursor(bench: &Bench<impl Store>, name: &str, limit: usize) -> Vec<PastView> {
    let (mut cursor, mut pasts, mut sum) = (Cursor::default(), Vec::new(), 0);
    loop {
        let past = bench.past(name, &Moment::Cursor(cursor.clone())).unwrap();
        let entries = past.balance() - past.pending;
        assert!(entries <= sum && sum <= past.balance(), "{name}: {past:?}, {sum}");
        pasts.push(past);
        let page = bench.block_on(bench.store.entries(&id(name), &cursor, limit));
        let page = page.unwrap().unwrap();
        if page.entries.is_empty() {
            return pasts;
        }
        sum += page
            .entries
            .iter()
            .map(|entry| entry.delta + entry.held_delta)
            .sum::<i64>();
        cursor = page.next;
    }
}
