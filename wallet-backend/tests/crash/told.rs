//! What the clients asked and were told, over any number of lives of the service.
//!
//! A request whose connection broke has no answer here until the same id was sent again and answered. Everything is in
//! memory of this process, which is not killed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::asked::{Asked, Wish};
use super::client::{Client, Reply};
use super::wire::{read, receipt, statement};
use crate::history::{Entry, History, Refusal, Span};
use crate::support::id;

/// Counts for the report.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    acknowledged: u64,
    refused: u64,
    unknown: u64,
    had_happened: u64,
    had_not: u64,
    repeated: u64,
    /// Atomic batches.
    applied: u64,
    aborted: u64,
    cut_off: u64,
}

#[derive(Debug, Default)]
struct State {
    asked: Vec<Asked>,
    /// When each was sent first.
    begun: Vec<u64>,
    answers: Vec<Option<Reply>>,
    /// Sent, and not answered yet.
    open: HashSet<usize>,
    /// Requests below this number are old news.
    looked_back: usize,
    /// Atomic batches without an answer. Their requests are sent in no other way meanwhile.
    atomic: Vec<Vec<usize>>,
    /// Requests that placed a hold.
    holds: Vec<usize>,
    /// Requests that a reversal may undo.
    moves: Vec<usize>,
    /// By account: what the answers add up to.
    balances: BTreeMap<String, i64>,
    /// Accounts whose balance was changed since they were read.
    touched: BTreeSet<String>,
    /// By account: where the statement was read up to.
    cursors: BTreeMap<String, String>,
    history: History,
    figures: Figures,
}

/// Shared by everybody who sends.
#[derive(Debug, Default)]
pub(super) struct Told {
    state: Mutex<State>,
    ticks: AtomicU64,
}

impl Told {
    /// Notes down a request before it is sent.
    pub(super) fn ask(&self, asked: Asked) -> usize {
        let begun = self.tick();
        let mut state = self.lock();
        let number = state.asked.len();
        state.asked.push(asked);
        state.begun.push(begun);
        state.answers.push(None);
        state.open.insert(number);
        number
    }

    /// Notes down an answer; whether it decides the request. A second answer must be the first one.
    pub(super) fn hear(&self, number: usize, reply: &Reply) -> bool {
        let ended = self.tick();
        let mut state = self.lock();
        let asked = state.asked[number].clone();
        if matches!(reply.status, 409 | 429 | 503 | 504) && puts_off(reply) {
            return false;
        }
        if let Some(first) = &state.answers[number] {
            assert!(
                agree(&asked, first, reply),
                "{asked:?} was told\n{first:?}\nand then\n{reply:?}"
            );
            state.figures.repeated += 1;
            return true;
        }
        match reply.status {
            200 | 201 => state.posted(&asked, reply, (number, ended)),
            422 => {
                state.figures.refused += 1;
                state.history.refusals.push(Refusal {
                    account: asked.account,
                    request: asked.request,
                });
            }
            _ => panic!("{asked:?} was told {reply:?}"),
        }
        state.open.remove(&number);
        state.answers[number] = Some(reply.clone());
        true
    }

    /// The requests without an answer, as the process is gone that they were sent to.
    pub(super) fn unknown(&self) -> Vec<usize> {
        let mut state = self.lock();
        let mut unknown: Vec<_> = state.open.iter().copied().collect();
        unknown.sort_unstable();
        state.figures.unknown += u64::try_from(unknown.len()).unwrap();
        unknown
    }

    /// How an unknown outcome turned out.
    pub(super) fn resolved(&self, number: usize, reply: &Reply) {
        let mut state = self.lock();
        let opens = matches!(state.asked[number].wish, Wish::Open { .. });
        let figures = &mut state.figures;
        if reply.replayed || opens && reply.status == 200 {
            figures.had_happened += 1;
        } else {
            figures.had_not += 1;
        }
    }

    pub(super) fn asked(&self, number: usize) -> Asked {
        self.lock().asked[number].clone()
    }

    /// The requests that were asked since the last time that this was called.
    pub(super) fn news(&self) -> Range<usize> {
        let mut state = self.lock();
        let all = state.asked.len();
        std::mem::replace(&mut state.looked_back, all)..all
    }

    /// Numbers of all requests are below this.
    pub(super) fn len(&self) -> usize {
        self.lock().asked.len()
    }

    /// Whether a request may be sent by itself.
    pub(super) fn is_free(&self, number: usize) -> bool {
        !self.lock().atomic.iter().flatten().any(|held| *held == number)
    }

    /// A hold that was placed, by a number to choose with.
    pub(super) fn a_hold(&self, choice: u64) -> Option<Asked> {
        let state = self.lock();
        let number = pick(&state.holds, choice)?;
        Some(state.asked[number].clone())
    }

    /// Something that a reversal may undo.
    pub(super) fn a_move(&self, choice: u64) -> Option<Asked> {
        let state = self.lock();
        let number = pick(&state.moves, choice)?;
        Some(state.asked[number].clone())
    }

    /// Notes down that these are on their way as one atomic batch.
    pub(super) fn ask_atomic(&self, numbers: &[usize]) {
        self.lock().atomic.push(numbers.to_vec());
    }

    /// An atomic batch was answered, or looked for after its connection broke.
    pub(super) fn end_atomic(&self, numbers: &[usize], end: Atomic) {
        let mut state = self.lock();
        state.atomic.retain(|held| held != numbers);
        match end {
            Atomic::Applied => state.figures.applied += 1,
            Atomic::Aborted => state.figures.aborted += 1,
            Atomic::CutOff => state.figures.cut_off += 1,
        }
    }

    /// Atomic batches whose connection broke.
    pub(super) fn cut_off(&self) -> Vec<Vec<usize>> {
        self.lock().atomic.clone()
    }

    /// Reads every account that was touched, and what its statement has gained. Nothing may be under way: each balance is
    /// what was told.
    pub(super) async fn read(&self, client: &Client) {
        let touched = std::mem::take(&mut self.lock().touched);
        for account in touched {
            let balance = self.lock().balances[&account];
            let begun = self.tick();
            let seen = client.wallet().account(&id(&account)).await.unwrap();
            let span = Span {
                begun,
                ended: self.tick(),
            };
            assert_eq!(seen.balance, balance, "{account}: not what its clients were told");
            let after = self.lock().cursors.get(&account).cloned();
            let (entries, cursor) = statement(client, &account, after).await;
            let mut state = self.lock();
            state.history.reads.push(read(&seen, span));
            state.history.entries.extend(entries);
            state.cursors.extend(cursor.map(|cursor| (account, cursor)));
        }
    }

    /// Reads every statement from its beginning: what was read of it bit by bit is still in it.
    pub(super) async fn read_again(&self, client: &Client) {
        let accounts: Vec<String> = self.lock().balances.keys().cloned().collect();
        let mut entries = Vec::new();
        for account in accounts {
            entries.extend(statement(client, &account, None).await.0);
        }
        let now: HashSet<&Entry> = entries.iter().collect();
        let before = std::mem::take(&mut self.lock().history.entries);
        let gone: Vec<_> = before.iter().filter(|entry| !now.contains(entry)).collect();
        assert!(gone.is_empty(), "not in the statement any more: {gone:#?}");
        self.lock().history.entries = entries;
    }

    /// The requests that are answered.
    pub(super) fn answered(&self) -> Vec<usize> {
        let state = self.lock();
        let answered = (0..state.answers.len()).filter(|number| state.answers[*number].is_some());
        answered.collect()
    }

    /// The last of these requests that has an id of its own.
    pub(super) fn a_decision(&self, numbers: &[usize]) -> Asked {
        let state = self.lock();
        let mut asked = numbers.iter().rev().map(|number| &state.asked[*number]);
        let decided = asked.find(|asked| !matches!(asked.wish, Wish::Open { .. }));
        decided.unwrap().clone()
    }

    /// Asks the history checker about a copy of the ledger: its statements, and what was told of these requests.
    pub(super) async fn judge_copy(&self, client: &Client, numbers: &[usize]) {
        let (mut history, mut opened) = (History::default(), Vec::new());
        {
            let state = self.lock();
            let asked = || numbers.iter().map(|number| &state.asked[*number]);
            let keys: HashSet<(&str, &str)> = asked()
                .map(|asked| (asked.account.as_str(), asked.request.as_str()))
                .collect();
            let among =
                |account: &String, request: &String| keys.contains(&(account.as_str(), request.as_str()));
            let receipts = state.history.receipts.iter();
            let receipts = receipts.filter(|receipt| among(&receipt.account, &receipt.request));
            history.receipts = receipts.cloned().collect();
            let refusals = state.history.refusals.iter();
            let refusals = refusals.filter(|refusal| among(&refusal.account, &refusal.request));
            history.refusals = refusals.cloned().collect();
            let opens = asked().filter(|asked| matches!(asked.wish, Wish::Open { .. }));
            opened.extend(opens.map(|asked| asked.account.clone()));
        }
        for account in opened {
            history.entries.extend(statement(client, &account, None).await.0);
        }
        let faults = history.faults();
        assert!(faults.is_empty(), "the copy:\n{}", faults.join("\n"));
    }

    /// Asks the history checker about everything so far.
    pub(super) fn judge(&self, round: u64) {
        let faults = self.lock().history.faults();
        assert!(faults.is_empty(), "round {round}:\n{}", faults.join("\n"));
    }

    /// What was done at least once.
    pub(super) fn kinds(&self) -> BTreeSet<String> {
        let state = self.lock();
        let receipts = state.history.receipts.iter();
        receipts.map(|receipt| receipt.kind.clone()).collect()
    }

    pub(super) fn figures(&self) -> impl fmt::Display + use<> {
        let Figures {
            acknowledged,
            refused,
            unknown,
            had_happened,
            had_not,
            repeated,
            applied,
            aborted,
            cut_off,
        } = self.lock().figures;
        format!(
            "{acknowledged} acknowledged, {refused} refused, {unknown} unknown ({had_happened} had happened, \
             {had_not} had not), {repeated} asked again and answered the same; of the atomic batches {applied} applied, \
             {aborted} given up, {cut_off} cut off, 0 in part"
        )
    }

    /// A panic of one sender must not hide behind a poisoned lock; the state is only ever added to.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// SeqCst: one order of begin and end over all senders.
    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }
}

impl State {
    fn add(&mut self, account: &str, delta: i64) {
        self.touched.insert(account.to_owned());
        *self.balances.entry(account.to_owned()).or_default() += delta;
    }

    fn posted(&mut self, asked: &Asked, reply: &Reply, (number, ended): (usize, u64)) {
        self.figures.acknowledged += 1;
        let told: Value = serde_json::from_str(&reply.body).unwrap();
        let amount = told["amount"].as_i64();
        let changes = match &asked.wish {
            Wish::Open { .. } | Wish::Amend { .. } => {
                self.add(&asked.account, 0);
                return;
            }
            Wish::Hold { .. } => {
                self.holds.push(number);
                Vec::new()
            }
            Wish::Release { .. } => Vec::new(),
            Wish::Reversal { of } => {
                let undone = self.asked.iter().find(|each| each.names(&asked.account, of));
                let undone = undone.unwrap().clone();
                let changes = undone.changes(amount.unwrap());
                changes
                    .into_iter()
                    .map(|(account, delta)| (account, -delta))
                    .collect()
            }
            Wish::Credit | Wish::Debit | Wish::Drain | Wish::Transfer { .. } | Wish::Capture { .. } => {
                self.moves.push(number);
                asked.changes(amount.unwrap())
            }
        };
        self.add(&asked.account, 0);
        for (account, delta) in changes {
            self.add(&account, delta);
        }
        let span = Span {
            begun: self.begun[number],
            ended,
        };
        self.history.receipts.push(receipt(&told, reply.replayed, span));
    }
}

/// How an atomic batch ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Atomic {
    Applied,
    Aborted,
    /// Nobody was told; it is there whole or not at all.
    CutOff,
}

fn pick(from: &[usize], choice: u64) -> Option<usize> {
    let count = u64::try_from(from.len()).unwrap();
    let index = choice.checked_rem(count)?;
    Some(from[usize::try_from(index).unwrap()])
}

/// Whether two answers to one request may both be true.
fn agree(asked: &Asked, first: &Reply, second: &Reply) -> bool {
    let success = |reply: &Reply| matches!(reply.status, 200 | 201);
    if matches!(asked.wish, Wish::Open { .. }) {
        // What the account looks like changes, and so may what it was opened with; that it is there does not.
        return success(first) && (success(second) || second.body.contains("account_exists"));
    }
    let status = first.status == second.status || success(first) && success(second);
    status && first.body == second.body
}

/// Whether this says to send the same id again: nothing happened, or nobody can tell.
fn puts_off(reply: &Reply) -> bool {
    let problem: Value = serde_json::from_str(&reply.body).unwrap();
    let again = [
        "request_in_progress",
        "overloaded",
        "unavailable",
        "outcome_unknown",
    ];
    again.iter().any(|code| problem["code"] == *code)
}
