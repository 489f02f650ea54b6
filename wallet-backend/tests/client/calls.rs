//! Every call, typed: what the client tells is what the wallet itself says.

use wallet_backend::account::{
    Account, AccountId, CreditMode, Entry, HoldState, HoldTerm, RequestId, Slot, SlotCount,
};
use wallet_backend::client::{AccountState, CallError, Client, Done, Moment, Outcome, RequestState};
use wallet_backend::command::{self, AccountView, Amendment, DebitAmount, Receipt, Remainder, RequestView};
use wallet_backend::http::auth::Access;
use wallet_backend::store::Cursor;

use super::service::Service;
use crate::support::{amount, hashed, id, journal, ordinary, request, slotted};

/// A receipt of something that was done now, which a look-up shows as well.
async fn done(service: &Service, outcome: Outcome<Receipt>) -> Receipt {
    let Outcome::Done {
        told,
        replayed: false,
    } = outcome
    else {
        panic!("{outcome:?}");
    };
    let known = service
        .wallet
        .request(&told.account, &told.request)
        .await
        .unwrap();
    assert_eq!(
        known,
        RequestView::Decided(command::Outcome::Posted(told.clone()))
    );
    told
}

fn same(state: &AccountState, view: &AccountView) -> bool {
    let Account {
        id,
        currency,
        status,
        floor,
        slots: _,
        credit,
        debit,
    } = &view.account;
    let rules = state.id == *id && state.currency == *currency && state.status == *status;
    let modes = state.floor == *floor && state.credit == *credit && state.debit == *debit;
    let money = (state.balance, state.available, state.held, state.pending);
    let seen = (view.balance(), view.available(), view.held, view.pending);
    rules && modes && money == seen && state.slots == view.slots
}

async fn checked(service: &Service, state: AccountState) {
    let view = service.wallet.account(&state.id).await.unwrap();
    assert!(same(&state, &view), "{state:?} {view:?}");
}

/// Money in, out, aside and about.
async fn move_money(service: &Service, client: &Client) {
    let (alice, bob, hot) = (id("alice"), id("bob"), id("hot"));
    let credit = client
        .credit(&alice, &request("c"), amount(500), Some("salary"))
        .await;
    done(service, credit.unwrap()).await;
    let debit = client.debit(&alice, &request("d"), amount(20), None).await;
    assert_eq!(done(service, debit.unwrap()).await.legs[0].balance_after, 480);
    let term = HoldTerm::new(3_600);
    let hold = client.hold(&alice, &request("h"), amount(100), term).await;
    done(service, hold.unwrap()).await;
    let part = (Some(amount(30)), Remainder::Keep);
    let capture = client
        .capture(&alice, &request("k"), &request("h"), part.0, part.1)
        .await;
    done(service, capture.unwrap()).await;
    let open = client.look_up_hold(&alice, &request("h")).await.unwrap();
    assert_eq!(
        open,
        service.wallet.look_up_hold(&alice, &request("h")).await.unwrap()
    );
    assert_eq!((open.state, open.captured), (HoldState::Open, 30));
    let release = client.release(&alice, &request("r"), &request("h")).await;
    done(service, release.unwrap()).await;
    let transfer = client
        .transfer(&alice, &request("t"), &bob, amount(50), Some("für dich"))
        .await;
    assert_eq!(done(service, transfer.unwrap()).await.legs.len(), 2);
    let reversal = client.reverse(&alice, &request("u"), &request("t")).await;
    done(service, reversal.unwrap()).await;
    let pending = client.credit(&id("j"), &request("p"), amount(7), None).await;
    done(service, pending.unwrap()).await;
    for name in ["one", "two"] {
        let credit = client.credit(&hot, &request(name), amount(5), None).await;
        done(service, credit.unwrap()).await;
    }
    let drain = client.debit(&hot, &request("all"), DebitAmount::Max, None).await;
    assert_eq!(done(service, drain.unwrap()).await.amount, amount(10));
}

async fn statement(service: &Service, name: &str) -> Vec<Entry> {
    let (id, beginning) = (id(name), Cursor::default());
    let page = service.wallet.entries(&id, &beginning, 1_000).await;
    page.unwrap().entries
}

/// Each read, against the wallet's own.
async fn read_everything(service: &Service, client: &Client) {
    let names = ["alice", "bob", "h", "hot", "j"];
    for name in names {
        checked(service, client.account(&id(name)).await.unwrap()).await;
        let mut entries = Vec::new();
        let mut after = None;
        loop {
            let page = client.entries(&id(name), after.as_deref(), 3).await.unwrap();
            if page.entries.is_empty() {
                break;
            }
            entries.extend(page.entries);
            let past = client.past(&id(name), Moment::Cursor(&page.next)).await.unwrap();
            assert_eq!(past.cursor, page.next);
            after = Some(page.next);
        }
        assert_eq!(entries, statement(service, name).await, "{name}");
    }
    let at = statement(service, "alice").await[0].at;
    let past = client.past(&id("alice"), Moment::Time(at)).await.unwrap();
    assert_eq!((past.view.balance(), past.view.at), (500, Some(at)));

    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = client.accounts(after.as_deref(), 2).await.unwrap();
        if page.accounts.is_empty() {
            break;
        }
        for state in page.accounts {
            listed.push(state.id.to_string());
            checked(service, state).await;
        }
        after = Some(page.next);
    }
    assert_eq!(listed, names);
    client.ready().await.unwrap();
    assert!(
        client
            .metrics()
            .await
            .unwrap()
            .contains("wallet_operations_total")
    );
}

/// A change of an account, and what is known of it and of other ids.
async fn amend_and_look_up(service: &Service, client: &Client) {
    let (alice, amendment) = (
        id("alice"),
        Amendment {
            slots: SlotCount::new(3),
            credit: Some(CreditMode::Upsert),
            floor: Some(5),
            ..Amendment::default()
        },
    );
    let amended = client.amend(&alice, &request("m"), amendment).await.unwrap();
    let Outcome::Done {
        told,
        replayed: false,
    } = amended
    else {
        panic!("{amended:?}");
    };
    assert_eq!(told.slots[2], Slot::empty(told.slots[2].index));
    checked(service, told.clone()).await;
    let known = client.request(&alice, &request("m")).await.unwrap();
    let RequestState::Decided(Outcome::Done { told: known, .. }) = known else {
        panic!("{known:?}");
    };
    assert_eq!(known, Done::Account(told));

    let unknown = client.request(&alice, &request("never")).await.unwrap();
    assert_eq!(unknown, RequestState::NotFound);
    let claimed = client.abandon(&alice, &request("never")).await.unwrap();
    let known = client.request(&alice, &request("never")).await.unwrap();
    assert_eq!(known, RequestState::Decided(claimed.clone()));
    assert_eq!(claimed.done().unwrap_err().code, "abandoned");
    let receipt = client
        .abandon(&alice, &request("c"))
        .await
        .unwrap()
        .done()
        .unwrap();
    assert!(matches!(receipt, Done::Receipt(receipt) if receipt.amount == amount(500)));
}

async fn every_call(service: &Service) {
    let client = service.client();
    for account in [
        ordinary("alice"),
        ordinary("bob"),
        slotted("hot", 3),
        journal("j"),
        hashed("h", 2),
    ] {
        let (state, opened) = client.open(&account).await.unwrap();
        assert!(opened && state.id == account.id);
        checked(service, state).await;
        assert!(!client.open(&account).await.unwrap().1);
    }
    move_money(service, &client).await;
    read_everything(service, &client).await;
    amend_and_look_up(service, &client).await;
}

#[tokio::test]
async fn every_call_over_tcp_tells_what_the_wallet_says() {
    every_call(&Service::start().await).await;
}

#[tokio::test]
async fn every_call_over_a_unix_socket_tells_what_the_wallet_says() {
    let dir = tempfile::tempdir().unwrap();
    let listen = format!("unix:{}", dir.path().join("w.sock").display());
    every_call(&Service::at(&listen, Access::anyone()).await).await;
}

#[tokio::test]
async fn an_id_of_any_characters_reaches_the_wallet_as_it_is() {
    let service = Service::start().await;
    let client = service.client();
    let account = AccountId::new("a:b.c_d-e").unwrap();
    client
        .open(&Account {
            id: account.clone(),
            ..ordinary("x")
        })
        .await
        .unwrap();
    let visible: Vec<char> = ('!'..='~').collect();
    for characters in visible.chunks(32) {
        let text: String = characters.iter().collect();
        let id = RequestId::new(&text).unwrap();
        let claimed = client.abandon(&account, &id).await.unwrap();
        assert!(matches!(claimed, Outcome::Refused(_)), "{text}");
        let known = service.wallet.request(&account, &id).await.unwrap();
        assert!(matches!(known, RequestView::Decided(_)), "{text}");
    }
    for dots in [".", ".."] {
        let error = client.abandon(&account, &request(dots)).await.unwrap_err();
        assert!(matches!(error, CallError::Invalid { .. }), "{error}");
    }
}
