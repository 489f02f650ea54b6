//! The list of accounts: all of them, once, in one order.

use wallet_backend::store::Store;

use crate::support::{Bench, credit, id, ordinary, slotted};

/// The ids of the list, read in pages of `limit`.
fn listed(bench: &Bench<impl Store>, limit: usize) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = bench
            .block_on(bench.store.accounts(after.as_ref(), limit))
            .unwrap();
        assert!(page.len() <= limit);
        let Some(last) = page.last() else { return ids };
        after = Some(last.account.id.clone());
        ids.extend(page.iter().map(|view| view.account.id.to_string()));
    }
}

pub(in crate::conformance) fn a_list_has_every_account_once_by_the_bytes_of_its_id(
    bench: &Bench<impl Store>,
) {
    assert_eq!(listed(bench, 10), [] as [String; 0]);
    let mut names: Vec<String> = (0..150).map(|number| format!("n{number}")).collect();
    names.extend(["Zoe", "zoe", "_", ":", ".", "-", "a.b", "a-b", "a"].map(str::to_owned));
    for name in &names {
        bench.open(slotted(name, 2));
    }
    names.sort_unstable();
    for limit in [1, 7, 64, 65, 1_000] {
        assert_eq!(listed(bench, limit), names, "limit {limit}");
    }
    bench.post(credit("zoe", "r", 5));
    let after = id("z");
    let page = bench.block_on(bench.store.accounts(Some(&after), 10)).unwrap();
    assert_eq!(page, [bench.account("zoe")]);
}

pub(in crate::conformance) fn an_account_opened_while_a_list_is_read_shifts_no_other(
    bench: &Bench<impl Store>,
) {
    for name in ["b", "d", "f"] {
        bench.open(ordinary(name));
    }
    let first = bench.block_on(bench.store.accounts(None, 2)).unwrap();
    assert_eq!(first[1].account.id, id("d"));
    for name in ["a", "c", "e"] {
        bench.open(ordinary(name));
    }
    let rest = bench.block_on(bench.store.accounts(Some(&id("d")), 10)).unwrap();
    let rest: Vec<_> = rest.iter().map(|view| view.account.id.as_str()).collect();
    assert_eq!(rest, ["e", "f"]);
}
