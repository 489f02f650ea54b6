//! The statements of the direct modes, as text: out of integers and hexadecimal literals only, so that there is nothing
//! to escape. Sessions have autocommit off; a text that ends in COMMIT is one transaction in one round trip.

use std::fmt::Write as _;

use super::ask::{Ask, Turn};

/// Slots of an account that has more than one.
pub(super) const SLOTS: u8 = 10;
/// Minor units on slot 0 at the start, more than any run can take away.
pub(super) const FUNDS: i64 = 1_000_000_000_000;

/// What a published design that lets slots go negative needs.
pub(super) const WITHOUT_CHECKS: &str = "ALTER TABLE wallet_slot DROP CONSTRAINT slot_balance; \
     ALTER TABLE account_entry DROP CONSTRAINT entry_balance_after";

/// Of every session of a client.
pub(super) const SESSION: &str =
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET SESSION autocommit = 0";

pub(super) const BEGIN: &str = "BEGIN";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// A name of an account or a request, as a literal.
pub(super) fn hex(name: &str) -> String {
    let mut literal = String::with_capacity(2 + name.len().saturating_mul(2));
    literal.push_str("0x");
    for byte in name.bytes() {
        // Into a string: can't fail.
        let _ = write!(literal, "{byte:02x}");
    }
    literal
}

/// Accounts with their slots; `funds` on slot 0, or on each where debits choose one.
pub(super) fn accounts(names: &[String], slots: u8, on_each: bool) -> String {
    let mut accounts = String::from(
        "INSERT INTO account (account_id, currency, status, floor, slots, credit_mode, debit_mode) VALUES ",
    );
    let mut rows =
        String::from("; INSERT INTO wallet_slot (account_id, slot_index, balance, version, held) VALUES ");
    for (number, name) in names.iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        let id = hex(name);
        let _ = write!(accounts, "{comma}({id}, 0x455552, 0, 0, {slots}, 0, 0)");
        for slot in 0..slots {
            let comma = if slot == 0 { comma } else { ", " };
            let funds = if slot == 0 || on_each { FUNDS } else { 0 };
            let _ = write!(rows, "{comma}({id}, {slot}, {funds}, 0, 0)");
        }
    }
    accounts + &rows
}

/// A conditional update of one slot, its entry, its request. An update of no row makes the entry's version NULL, which
/// is an error, which ends the text before its COMMIT.
pub(super) fn one_slot(ask: &Ask, slot: &str) -> String {
    let mut text = update(ask, slot);
    push_rows(
        &mut text,
        ask,
        slot,
        "IF(ROW_COUNT() = 1, @version, NULL)",
        "@version",
    );
    text.push_str(COMMIT);
    text
}

/// Locks slot `first`, or `second` where that is locked already, or waits for `first`; then as [`one_slot`].
pub(super) fn skip_locked(ask: &Ask, first: u8, second: u8) -> String {
    let account = &ask.account;
    let probe = "SELECT slot_index INTO @slot FROM wallet_slot WHERE account_id =";
    let free = "FOR UPDATE SKIP LOCKED";
    let text = one_slot(ask, "@slot");
    format!(
        "SET @slot = NULL; {probe} {account} AND slot_index = {first} {free}; \
         {probe} {account} AND slot_index = IF(@slot IS NULL, {second}, NULL) {free}; \
         SET @slot = IFNULL(@slot, {first}); {text}"
    )
}

/// The slot's row is made where it is missing.
pub(super) fn upsert(ask: &Ask, slot: u8) -> String {
    let Ask { account, delta, .. } = ask;
    let mut text = format!(
        "SET @balance = {delta}, @version = 1; \
         INSERT INTO wallet_slot (account_id, slot_index, balance, version) VALUES ({account}, {slot}, {delta}, 1) \
         ON DUPLICATE KEY UPDATE balance = (@balance := balance + {delta}), version = (@version := version + 1); "
    );
    push_rows(&mut text, ask, &slot.to_string(), "@version", "@version");
    text.push_str(COMMIT);
    text
}

/// A credit that waits to be settled.
pub(super) fn pending(ask: &Ask) -> String {
    let Ask {
        account,
        id,
        delta,
        at,
        operation,
        ..
    } = ask;
    format!(
        "INSERT INTO pending_credit (account_id, source_id, request_id, amount, at_us) \
         VALUES ({account}, {account}, {id}, {delta}, {at}); \
         INSERT INTO request (account_id, request_id, operation, outcome, at_us) \
         VALUES ({account}, {id}, {operation}, 0x00, {at}); COMMIT"
    )
}

fn update(ask: &Ask, slot: &str) -> String {
    let Ask { account, delta, .. } = ask;
    let enough = match ask.turn {
        Turn::Credit => String::new(),
        Turn::Debit => format!(" AND balance >= {}", delta.saturating_neg()),
    };
    format!(
        "UPDATE wallet_slot SET balance = (@balance := balance + {delta}), version = (@version := version + 1) \
         WHERE account_id = {account} AND slot_index = {slot}{enough}; "
    )
}

/// The entry and the request, of @balance.
fn push_rows(text: &mut String, ask: &Ask, slot: &str, entry_version: &str, version: &str) {
    let Ask {
        account,
        id,
        delta,
        at,
        operation,
        ..
    } = ask;
    let kind = ask.turn.kind();
    let _ = write!(
        text,
        "INSERT INTO account_entry (account_id, slot_index, version, kind, request_id, delta, held_delta, \
         balance_after, held_after, at_us) \
         VALUES ({account}, {slot}, {entry_version}, {kind}, {id}, {delta}, 0, @balance, 0, {at}); \
         INSERT INTO request (account_id, request_id, operation, slot_index, version, balance_after, at_us) \
         VALUES ({account}, {id}, {operation}, {slot}, {version}, @balance, {at}); "
    );
}

/// The published designs, a statement a round trip.
pub(super) mod published {
    use super::Ask;

    /// Picks a slot by chance, of those that nobody has locked; locks all that it looks at.
    pub(in super::super) fn any_free_slot(ask: &Ask) -> String {
        let account = &ask.account;
        format!(
            "SELECT slot_index FROM wallet_slot WHERE account_id = {account} ORDER BY RAND() LIMIT 1 \
             FOR UPDATE SKIP LOCKED"
        )
    }

    pub(in super::super) fn primary(ask: &Ask) -> String {
        let account = &ask.account;
        format!("SELECT balance FROM wallet_slot WHERE account_id = {account} AND slot_index = 0 FOR UPDATE")
    }

    /// `slot` as a literal: a number or NULL.
    pub(in super::super) fn add(ask: &Ask, slot: &str) -> String {
        let Ask { account, delta, .. } = ask;
        format!(
            "UPDATE wallet_slot SET balance = balance + {delta}, version = version + 1 \
             WHERE account_id = {account} AND slot_index = {slot}"
        )
    }

    pub(in super::super) fn upsert(ask: &Ask, slot: u8) -> String {
        let Ask { account, delta, .. } = ask;
        format!(
            "INSERT INTO wallet_slot (account_id, slot_index, balance, version) VALUES ({account}, {slot}, {delta}, 1) \
             ON DUPLICATE KEY UPDATE balance = balance + {delta}, version = version + 1"
        )
    }

    /// Changes no row where the slots together have too little; locks every slot, and lets one go negative.
    pub(in super::super) fn sum_having(ask: &Ask, slot: u8) -> String {
        let Ask { account, delta, .. } = ask;
        let amount = delta.saturating_neg();
        format!(
            "INSERT INTO wallet_slot (account_id, slot_index, balance, version) \
             SELECT {account}, {slot}, {delta}, 1 FROM wallet_slot AS every WHERE every.account_id = {account} \
             HAVING SUM(every.balance) >= {amount} FOR UPDATE \
             ON DUPLICATE KEY UPDATE balance = wallet_slot.balance + {delta}, version = wallet_slot.version + 1"
        )
    }

    /// Of the slot as it is then.
    pub(in super::super) fn entry(ask: &Ask, slot: &str) -> String {
        let Ask {
            account,
            id,
            delta,
            at,
            ..
        } = ask;
        let kind = ask.turn.kind();
        format!(
            "INSERT INTO account_entry (account_id, slot_index, version, kind, request_id, delta, held_delta, \
             balance_after, held_after, at_us) \
             SELECT account_id, slot_index, version, {kind}, {id}, {delta}, 0, balance, 0, {at} \
             FROM wallet_slot WHERE account_id = {account} AND slot_index = {slot}"
        )
    }

    pub(in super::super) fn request(ask: &Ask) -> String {
        let Ask {
            account,
            id,
            at,
            operation,
            ..
        } = ask;
        format!(
            "INSERT INTO request (account_id, request_id, operation, outcome, at_us) \
             VALUES ({account}, {id}, {operation}, 0x00, {at})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_literals() {
        assert_eq!(hex("hot-1"), "0x686f742d31");
    }

    #[test]
    fn money_is_on_slot_0_or_on_each() {
        let names = ["a".to_owned(), "b".to_owned()];
        let text = accounts(&names, 2, false);
        let slots = "VALUES (0x61, 0, 1000000000000, 0, 0), (0x61, 1, 0, 0, 0), (0x62, 0, 1000000000000, 0, 0), \
                     (0x62, 1, 0, 0, 0)";
        assert!(text.ends_with(slots), "{text}");
        assert_eq!(accounts(&names, 2, true).matches("1000000000000").count(), 4);
    }
}
