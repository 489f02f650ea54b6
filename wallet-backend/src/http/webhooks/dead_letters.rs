//! The dead letters over HTTP: what was given up, and asking for it once more.

use http::StatusCode;
use serde::Serialize;

use super::Webhooks;
use super::deliveries::{Again, DeadLetter};
use crate::account::{AccountId, Timestamp};
use crate::http::cursor;
use crate::http::error::{Code, Problem};
use crate::http::extract::{DEFAULT_PAGE, PageQuery};
use crate::http::view::Shown;
use crate::http::wire;

/// One page of the list.
#[derive(Serialize)]
pub(in crate::http) struct DeadLettersJson {
    dead_letters: Vec<DeadLetterJson>,
    next: String,
}

#[derive(Serialize)]
struct DeadLetterJson {
    /// Of the event.
    id: String,
    account_id: Shown<AccountId>,
    slot: u8,
    version: u64,
    at: Shown<Timestamp>,
    reason: String,
    status: &'static str,
}

/// How many dead letters are sent once more.
#[derive(Serialize)]
pub(in crate::http) struct RedeliveryJson {
    redelivering: usize,
}

/// A page of the list; empty where there are no webhooks.
pub(in crate::http) fn list(
    ledger: u64,
    webhooks: Option<&Webhooks>,
    query: PageQuery,
) -> Result<DeadLettersJson, Problem> {
    let after = match query.after {
        None => 0,
        Some(text) => cursor::decode_event(ledger, &text)
            .ok_or_else(|| Problem::invalid("after", "must be the next of an earlier page of this list"))?,
    };
    let limit = query.limit.unwrap_or(DEFAULT_PAGE);
    let found = webhooks.map_or_else(Vec::new, |webhooks| webhooks.dead_after(after, limit));
    let last = found.last().map_or(after, |(number, _)| *number);
    let letters = found.into_iter();
    Ok(DeadLettersJson {
        dead_letters: letters.map(|letter| dead_letter(ledger, letter)).collect(),
        next: cursor::encode_event(ledger, last),
    })
}

fn dead_letter(ledger: u64, (number, letter): (u64, DeadLetter)) -> DeadLetterJson {
    DeadLetterJson {
        id: cursor::encode_event(ledger, number),
        account_id: Shown(letter.account),
        slot: letter.slot.get(),
        version: letter.version,
        at: Shown(letter.at),
        reason: letter.reason,
        status: match letter.again {
            Again::No => "dead",
            Again::Asked | Again::UnderWay => "redelivering",
        },
    }
}

/// Has those that the body names sent once more, or all.
pub(in crate::http) fn redeliver(
    ledger: u64,
    webhooks: Option<&Webhooks>,
    body: &[u8],
) -> Result<(StatusCode, RedeliveryJson), Problem> {
    let missing = |id: &str| {
        let detail = format!("{id} is no dead letter, or has been delivered");
        Problem::new(Code::NotFound, detail).at("ids")
    };
    let mut numbers = Vec::new();
    let ids = wire::redeliver(body)?;
    for id in ids.iter().flatten() {
        numbers.push(cursor::decode_event(ledger, id).ok_or_else(|| missing(id))?);
    }
    let named = ids.is_some().then_some(numbers.as_slice());
    let asked = match (webhooks, named.and_then(<[u64]>::first)) {
        (Some(webhooks), _) => webhooks.redeliver(named),
        (None, Some(first)) => Err(*first),
        (None, None) => Ok(0),
    };
    match asked {
        Ok(redelivering) => Ok((StatusCode::ACCEPTED, RedeliveryJson { redelivering })),
        Err(number) => Err(missing(&cursor::encode_event(ledger, number))),
    }
}
