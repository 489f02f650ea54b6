//! A line back as what it says: the other direction of [`Lines`], and just as strict.
//!
//! A line is read into types that cannot be wrong, written again, and compared: so there is one spelling of every
//! record, and whatever was read is written byte for byte the same.

use serde::Deserialize;

use self::decision::RequestWire;
use self::value::{Number, Word};
use super::line::Lines;
use crate::account::{
    Account, AccountId, CreditMode, DebitMode, Entry, EntryKind, Hold, HoldState, Link, Pending, RequestId,
    SlotCount, SlotIndex, Status, Timestamp,
};
use crate::command::Changes;
use crate::money::{Amount, Currency};

mod decision;
mod value;

/// Why a text is no line of a history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct LineError {
    /// Where in the line, such as `request.receipt.amount` or `entries[1].version`; `line` for all of it.
    pub field: String,
    pub reason: String,
}

impl LineError {
    /// Names the place.
    pub(crate) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

/// Reads lines, one after the other.
#[derive(Debug, Default)]
pub struct Reader {
    lines: Lines,
}

impl Reader {
    /// What a line says, without its line feed.
    ///
    /// # Errors
    /// [`LineError`] for what is no record, or not in the one spelling that [`Lines`] has for it.
    pub fn read(&mut self, line: &[u8]) -> Result<Changes, LineError> {
        let mut from = serde_json::Deserializer::from_slice(line);
        let wire: LineWire = serde_path_to_error::deserialize(&mut from).map_err(|error| {
            let field = match error.path().to_string() {
                path if path == "." => "line".to_owned(),
                path => path,
            };
            LineError::new(field, in_the_line(error.inner()))
        })?;
        from.end()
            .map_err(|error| LineError::new("line", in_the_line(&error)))?;
        let changes = wire.changes()?;
        let written = self.lines.write(&changes).text();
        match unlike(line, written) {
            None => Ok(changes),
            Some(at) => {
                let expected = String::from_utf8_lossy(written.get(at..).unwrap_or_default());
                let expected: String = expected.chars().take(24).collect();
                let column = at.saturating_add(1);
                let reason =
                    format!("not in its canonical form: from byte {column} on {expected:?} belongs here");
                Err(LineError::new("line", reason))
            }
        }
    }
}

/// A line is one line: only the column says anything.
fn in_the_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what}, at byte {}", error.column()),
        None => text,
    }
}

/// Where two texts begin to differ.
fn unlike(first: &[u8], second: &[u8]) -> Option<usize> {
    if first == second {
        return None;
    }
    let same = first.iter().zip(second).take_while(|(a, b)| a == b);
    Some(same.count())
}

/// What an account is, as terms.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountWire {
    account_id: Word<AccountId>,
    currency: Word<Currency>,
    status: Word<Status>,
    floor: Number<i64>,
    slots: Number<SlotCount>,
    credit: Word<CreditMode>,
    debit: Word<DebitMode>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineWire {
    account: Option<AccountWire>,
    request: Option<RequestWire>,
    #[serde(default)]
    entries: Vec<EntryWire>,
    #[serde(default)]
    pending_added: Vec<PendingWire>,
    #[serde(default)]
    pending_settled: Vec<SettledWire>,
    #[serde(default)]
    holds: Vec<HoldWire>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryWire {
    account_id: Word<AccountId>,
    slot: Number<SlotIndex>,
    version: u64,
    r#type: Word<EntryKind>,
    request_id: Option<Word<RequestId>>,
    delta: i64,
    #[serde(default)]
    held_delta: i64,
    balance_after: i64,
    at: Word<Timestamp>,
    link: Option<LinkWire>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkWire {
    kind: String,
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PendingWire {
    account_id: Word<AccountId>,
    number: u64,
    amount: Number<Amount>,
    request_id: Word<RequestId>,
    at: Word<Timestamp>,
    link: Option<LinkWire>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettledWire {
    account_id: Word<AccountId>,
    number: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldWire {
    account_id: Word<AccountId>,
    hold_id: Word<RequestId>,
    amount: Number<Amount>,
    captured: i64,
    released: i64,
    status: Word<HoldState>,
    expires_at: Option<Word<Timestamp>>,
}

impl AccountWire {
    fn account(self, field: &str) -> Result<Account, LineError> {
        let (floor, debit) = (self.floor.0, self.debit.0);
        if floor < 0 || (floor > 0 && debit == DebitMode::Hashed) {
            let reason = format!("must be 0 or more, and 0 where debits are hashed, not {floor}");
            return Err(LineError::new(format!("{field}.floor"), reason));
        }
        Ok(Account {
            id: self.account_id.0,
            currency: self.currency.0,
            status: self.status.0,
            floor,
            slots: self.slots.0,
            credit: self.credit.0,
            debit,
        })
    }
}

impl LineWire {
    fn changes(self) -> Result<Changes, LineError> {
        let account = self.account.map(|account| account.account("account"));
        let request = self.request.map(RequestWire::record);
        let entries = self.entries.into_iter().enumerate();
        let added = self.pending_added.into_iter().enumerate();
        Ok(Changes {
            account: account.transpose()?,
            request: request.transpose()?,
            entries: entries
                .map(|(at, entry)| entry.entry(&format!("entries[{at}]")))
                .collect::<Result<_, _>>()?,
            pending_added: added
                .map(|(at, row)| row.row(&format!("pending_added[{at}]")))
                .collect::<Result<_, _>>()?,
            pending_settled: self
                .pending_settled
                .into_iter()
                .map(|row| (row.account_id.0, row.number))
                .collect(),
            holds: self.holds.into_iter().map(HoldWire::hold).collect(),
        })
    }
}

impl EntryWire {
    fn entry(self, field: &str) -> Result<Entry, LineError> {
        let link = self.link.map(|link| link.link(field)).transpose()?;
        Ok(Entry {
            account: self.account_id.0,
            slot: self.slot.0,
            version: self.version,
            kind: self.r#type.0,
            request: self.request_id.map(|request| request.0),
            delta: self.delta,
            held_delta: self.held_delta,
            balance_after: self.balance_after,
            at: self.at.0,
            link,
        })
    }
}

impl LinkWire {
    fn link(self, of: &str) -> Result<Link, LineError> {
        let field = |name: &str| format!("{of}.link.{name}");
        let wrong = |reason: String| LineError::new(field("id"), reason);
        let request = || RequestId::new(&self.id).map_err(|error| wrong(error.to_string()));
        match self.kind.as_str() {
            "transfer" => {
                let account = AccountId::new(&self.id);
                account
                    .map(Link::Transfer)
                    .map_err(|error| wrong(error.to_string()))
            }
            "slot" => {
                let slot = self.id.parse().ok().and_then(SlotIndex::new);
                slot.map(Link::Slot)
                    .ok_or_else(|| wrong(format!("must be a slot from 0 to 63, not {:?}", self.id)))
            }
            "hold" => request().map(Link::Hold),
            "reversed" => request().map(Link::Reversed),
            other => Err(LineError::new(
                field("kind"),
                format!("must be transfer, slot, hold or reversed, not {other:?}"),
            )),
        }
    }
}

impl PendingWire {
    fn row(self, field: &str) -> Result<(AccountId, Pending), LineError> {
        let link = self.link.map(|link| link.link(field)).transpose()?;
        let row = Pending {
            number: self.number,
            amount: self.amount.0,
            request: self.request_id.0,
            link,
            at: self.at.0,
        };
        Ok((self.account_id.0, row))
    }
}

impl HoldWire {
    fn hold(self) -> (AccountId, Hold) {
        let hold = Hold {
            id: self.hold_id.0,
            amount: self.amount.0,
            captured: self.captured,
            released: self.released,
            state: self.status.0,
            expires_at: self.expires_at.map(|at| at.0),
        };
        (self.account_id.0, hold)
    }
}

#[cfg(test)]
mod tests;
