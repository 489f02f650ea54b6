//! The opaque `after` and `next` of a statement and of the list of accounts, and the `id` of an event, as texts that
//! fit in a URL.
//!
//! Of a statement a store cursor, of the list the id of the last account, of an event its number.
//!
//! Hex of: format byte, then per slot its number and its version (LEB128), then four bytes of checksum. The checksum
//! covers the account, so that neither a mistyped cursor nor another account's skips entries in silence.

use std::fmt::Write as _;

use xxhash_rust::xxh3::Xxh3;

use crate::account::{AccountId, SlotIndex};
use crate::store::Cursor;

/// Raised when the layout changes; older cursors are then refused or translated.
const FORMAT: u8 = 1;
const CHECKSUM_BYTES: usize = 4;
/// A LEB128 of 64 bits has at most this many bytes.
const MAX_VARINT_BYTES: usize = 10;
/// No cursor is longer, in hex digits: 64 slots of one byte and one varint each.
const MAX_TEXT: usize = 2 * (1 + 64 * (1 + MAX_VARINT_BYTES) + CHECKSUM_BYTES);

/// The text of a cursor into `account`'s statement.
pub(super) fn encode(account: &AccountId, cursor: &Cursor) -> String {
    let mut bytes = vec![FORMAT];
    for (slot, version) in &cursor.0 {
        bytes.push(slot.get());
        put_varint(&mut bytes, *version);
    }
    text(account.as_str(), bytes)
}

/// The cursor of a text; `None` for anything that [`encode`] did not write for this account.
pub(super) fn decode(account: &AccountId, text: &str) -> Option<Cursor> {
    let body = body(account.as_str(), text)?;
    let mut rest = body.as_slice();
    let mut slots = Vec::new();
    while let Some((&slot, after)) = rest.split_first() {
        let (version, after) = take_varint(after)?;
        slots.push((SlotIndex::new(slot)?, version));
        rest = after;
    }
    Some(Cursor(slots))
}

/// The text of a place in the list of accounts: after this one, or before all.
pub(super) fn encode_account(last: Option<&AccountId>) -> String {
    let mut bytes = vec![FORMAT];
    bytes.extend(last.map_or("", AccountId::as_str).as_bytes());
    text(LIST, bytes)
}

/// The place of a text; `None` for anything that [`encode_account`] did not write.
#[expect(clippy::option_option, reason = "no such place, and the place before all")]
pub(super) fn decode_account(text: &str) -> Option<Option<AccountId>> {
    let id = String::from_utf8(body(LIST, text)?).ok()?;
    if id.is_empty() {
        return Some(None);
    }
    AccountId::new(&id).ok().map(Some)
}

/// The text of an event's number: where the events after it begin.
pub(super) fn encode_event(ledger: u64, number: u64) -> String {
    let mut bytes = vec![FORMAT];
    put_varint(&mut bytes, number);
    text(&of_ledger(ledger), bytes)
}

/// The number of a text; `None` for anything that [`encode_event`] did not write for this ledger.
pub(super) fn decode_event(ledger: u64, text: &str) -> Option<u64> {
    match take_varint(&body(&of_ledger(ledger), text)?)? {
        (number, []) => Some(number),
        _ => None,
    }
}

/// What a checksum of an event covers in the place of an account: no account has this id.
fn of_ledger(ledger: u64) -> String {
    format!("/{ledger:016x}")
}

/// What a checksum of the list covers in the place of an account: no account has this id.
const LIST: &str = "";

/// Hex of the bytes and their checksum.
fn text(of: &str, mut bytes: Vec<u8>) -> String {
    bytes.extend(checksum(of, &bytes));
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// What a text says behind its format byte, if its checksum is right.
fn body(of: &str, text: &str) -> Option<Vec<u8>> {
    let bytes = unhex(text)?;
    let (body, sum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
    if *sum != checksum(of, body) {
        return None;
    }
    match body.split_first()? {
        (&FORMAT, rest) => Some(rest.to_vec()),
        _ => None,
    }
}

fn checksum(of: &str, body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hash = Xxh3::new();
    hash.update(of.as_bytes());
    hash.update(&[0]);
    hash.update(body);
    let [a, b, c, d, ..] = hash.digest().to_le_bytes();
    [a, b, c, d]
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|&[high, low]| Some((digit(high)? << 4) | digit(low)?))
        .collect()
}

const fn digit(hex: u8) -> Option<u8> {
    match hex {
        b'0'..=b'9' => Some(hex.wrapping_sub(b'0')),
        b'a'..=b'f' => Some(hex.wrapping_sub(b'a').wrapping_add(10)),
        _ => None,
    }
}

fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            bytes.push(low & 0x7f);
            return;
        }
        bytes.push(low | 0x80);
    }
}

fn take_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(MAX_VARINT_BYTES) {
        let shift = u32::try_from(index).ok()?.checked_mul(7)?;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some((number, bytes.get(index.checked_add(1)?..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> AccountId {
        AccountId::new("alice").unwrap()
    }

    fn cursor(slots: &[(u8, u64)]) -> Cursor {
        Cursor(
            slots
                .iter()
                .map(|&(slot, version)| (SlotIndex::new(slot).unwrap(), version))
                .collect(),
        )
    }

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        for slots in [
            vec![],
            vec![(0, 1)],
            vec![(0, 127), (1, 128), (63, u64::MAX)],
            (0..64).map(|slot| (slot, u64::MAX)).collect(),
        ] {
            let cursor = cursor(&slots);
            let text = encode(&alice(), &cursor);
            assert!(text.len() <= MAX_TEXT);
            assert_eq!(decode(&alice(), &text), Some(cursor));
        }
    }

    #[test]
    fn a_cursor_that_was_changed_anywhere_is_refused() {
        let text = encode(&alice(), &cursor(&[(0, 300), (2, 5)]));
        for index in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[index] = if changed[index] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(decode(&alice(), &changed), None, "{changed}");
        }
        for cut in 0..text.len() {
            assert_eq!(decode(&alice(), &text[..cut]), None);
        }
    }

    #[test]
    fn a_cursor_of_another_account_is_refused() {
        let text = encode(&alice(), &cursor(&[(0, 7)]));
        assert_eq!(decode(&AccountId::new("bob").unwrap(), &text), None);
    }

    #[test]
    fn a_place_in_the_list_comes_back_as_it_was_and_is_no_cursor_of_a_statement() {
        for last in [None, Some(alice())] {
            let text = encode_account(last.as_ref());
            assert_eq!(decode_account(&text), Some(last));
            assert_eq!(decode(&alice(), &text), None);
            assert_eq!(decode_account(&text[2..]), None);
        }
        assert_eq!(decode_account(&encode(&alice(), &cursor(&[]))), None);
    }

    #[test]
    fn an_event_comes_back_as_it_was_and_is_no_event_of_another_ledger() {
        for number in [0, 1, 300, u64::MAX] {
            let text = encode_event(7, number);
            assert_eq!(decode_event(7, &text), Some(number));
            assert_eq!(decode_event(8, &text), None);
            assert_eq!(decode_event(7, &text[..text.len() - 2]), None);
            assert_eq!(decode(&alice(), &text), None);
            assert_eq!(decode_account(&text), None);
        }
        assert_eq!(decode_event(7, &encode(&alice(), &cursor(&[]))), None);
    }

    #[test]
    fn text_that_is_no_cursor_is_refused() {
        for text in ["", "x", "00", "zz", "0x12", "é", &"0".repeat(5_000)] {
            assert_eq!(decode(&alice(), text), None, "{text}");
        }
    }
}
