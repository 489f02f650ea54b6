//! What the bank's clients want: every operation, on accounts of every kind.

use wallet_backend::account::{Account, CreditMode, DebitMode, HoldTerm, SlotCount, Status};
use wallet_backend::command::{Amendment, Command, DebitAmount, Operation, Remainder};
use wallet_backend::money::Currency;

use super::books::{Became, Terms};
use super::teller::Teller;
use crate::support::{amount, hashed, id, journal, ordinary, slotted};

/// More than everything that is asked of an account in one day of the bank.
const RICHES: i64 = 1_000_000_000_000;

/// A credit to slot 0 may not lift it over this.
const CAP: i64 = 1 << 52;

/// Half of what is wanted is wanted of the first few.
pub(super) const KINDS: [&str; 21] = [
    "hot",
    "single",
    "rich",
    "journal",
    "hashed",
    "rich-spread",
    "rich-journal",
    "rich-hashed",
    "floor",
    "frosty",
    "capped",
    "dollars",
    "poor",
    "cold-0",
    "cold-1",
    "cold-2",
    "cold-3",
    "cold-4",
    "cold-5",
    "cold-6",
    "cold-7",
];

/// An account of a kind, what is credited to it first, and what is known of its money.
pub(super) fn account(day: &str, kind: &str) -> (Account, i64, Terms) {
    let name = format!("{day}{kind}");
    let slots = |count| SlotCount::new(count).unwrap();
    let poor = Terms {
        exact: true,
        ..Terms::default()
    };
    let rich = Terms {
        rich: true,
        ..Terms::default()
    };
    match kind {
        "hot" => (slotted(&name, 8), 300, poor),
        "rich" => (ordinary(&name), RICHES, rich),
        "rich-spread" => (slotted(&name, 16), RICHES, rich),
        "journal" | "rich-journal" => {
            let account = Account {
                slots: slots(4),
                ..journal(&name)
            };
            match kind {
                "journal" => (account, 300, Terms::default()),
                _ => (account, RICHES, rich),
            }
        }
        "hashed" => (hashed(&name, 4), 300, Terms::default()),
        "rich-hashed" => (hashed(&name, 4), RICHES, rich),
        "floor" => {
            let account = Account {
                floor: 500,
                ..slotted(&name, 2)
            };
            let terms = Terms {
                floor: 500,
                ..Terms::default()
            };
            (account, 700, terms)
        }
        "capped" => (ordinary(&name), CAP - 100, Terms::default()),
        "dollars" => {
            let account = Account::new(id(&name), Currency::new("USD").unwrap());
            (account, 100, poor)
        }
        "poor" => (slotted(&name, 2), 1, poor),
        _ => (ordinary(&name), 50, poor),
    }
}

impl Teller {
    /// Wants one thing after another of the accounts of this day.
    pub(super) async fn want(mut self, day: String) {
        while self.is_open() {
            match self.numbers.below(40) {
                0..4 => {
                    let choice = self.numbers.below(u64::MAX);
                    if let Some(number) = self.books.any(choice) {
                        self.repeat(number).await;
                    }
                }
                4..7 => {
                    let commands = self.several(&day);
                    self.batch(commands).await;
                }
                7..9 => {
                    let commands = self.several(&day);
                    self.atomic(commands).await;
                }
                9 => self.look(&day).await,
                10 if self.numbers.below(4) == 0 => self.life(&day).await,
                11 => self.reverse_twice().await,
                _ => {
                    let command = self.wish(&day, true);
                    self.decide(command).await;
                }
            }
        }
    }

    /// A request of the past, if it is decided: it is answered as it was.
    async fn repeat(&mut self, number: usize) {
        if self.books.record(number).is_decided() {
            self.send(number).await;
        }
    }

    fn several(&mut self, day: &str) -> Vec<Command> {
        let count = match self.numbers.below(10) {
            0 => 100,
            _ => 2 + self.numbers.below(12),
        };
        (0..count).map(|_| self.wish(day, false)).collect()
    }

    async fn look(&mut self, day: &str) {
        let kind = self.kind();
        let begun = self.books.tick();
        // It may be gone for longer than anybody waits; then nothing was read.
        if let Ok(account) = self.lines.patient.account(&id(&format!("{day}{kind}"))).await {
            self.books.read(begun, &account);
        }
    }

    /// Two ids reverse the same at once: one of them at most does.
    async fn reverse_twice(&mut self) {
        let choice = self.numbers.below(u64::MAX);
        let Some(of) = self.books.a_move(choice) else {
            return;
        };
        let reversals = [self.request(), self.request()].map(|request| Command {
            account: of.account.clone(),
            request,
            operation: Operation::Reversal {
                reverses: of.request.clone(),
            },
        });
        let numbers = reversals.map(|reversal| self.books.ask(reversal));
        let sends = numbers.map(|number| {
            let command = self.books.record(number).command;
            let raw = self.lines.raw.clone();
            async move { raw.send(&command).await }
        });
        for (number, reply) in numbers
            .into_iter()
            .zip(futures_util::future::join_all(sends).await)
        {
            match reply {
                Some(super::raw::Reply::Decided(answer, bytes)) => {
                    self.books.hear(number, answer, Some(bytes));
                }
                _ => drop(self.resolve(number).await),
            }
        }
    }

    /// The whole life of an account: opened, credited, emptied or not, closed, and then it takes nothing more.
    async fn life(&mut self, day: &str) {
        let name = format!("{day}life-{}-{}", self.name, self.sent);
        let account = ordinary(&name);
        self.books.opens(&name, Terms::default());
        self.open(&account).await;
        let credit = Operation::Credit {
            amount: amount(5),
            memo: None,
        };
        let drain = Operation::Debit {
            amount: DebitAmount::Max,
            memo: None,
        };
        let close = Operation::Amend(Amendment {
            status: Some(Status::Closed),
            ..Amendment::default()
        });
        let empties = self.numbers.below(3) > 0;
        let mut steps = vec![credit.clone(), close.clone(), credit];
        if empties {
            steps.insert(1, drain);
        }
        let mut became = Vec::new();
        for operation in steps {
            let command = Command {
                account: account.id.clone(),
                request: self.request(),
                operation,
            };
            became.push(self.decide(command).await);
        }
        let closed = became[became.len() - 2] == Became::Done(0);
        let last = &became[became.len() - 1];
        let refused = *last == Became::Refused("account_closed".to_owned());
        let abandoned = *last == Became::Refused("abandoned".to_owned());
        if closed != refused && !abandoned {
            let what = format!("{name}: closed {closed}, then a credit was {last:?}");
            self.books.find(|findings| findings.other.push(what));
        }
    }

    /// What one may want. `alone`: what has no place in a batch, too.
    fn wish(&mut self, day: &str, alone: bool) -> Command {
        let (kind, other) = (self.kind(), self.kind());
        let (account, to) = (id(&format!("{day}{kind}")), id(&format!("{day}{other}")));
        let request = self.request();
        let small = amount(1 + i64::try_from(self.numbers.below(20)).unwrap());
        let command = |operation| Command {
            account: account.clone(),
            request: request.clone(),
            operation,
        };
        let memo = None;
        match self.numbers.below(60) {
            0 | 1 if alone => command(Operation::Amend(self.amendment(kind))),
            2 if !kind.starts_with("rich") && kind != "capped" => command(Operation::Debit {
                amount: DebitAmount::Max,
                memo,
            }),
            3..16 => command(Operation::Credit { amount: small, memo }),
            16..30 => command(Operation::Debit {
                amount: small.into(),
                memo,
            }),
            30..38 => {
                let expires = !terms(kind).exact;
                let seconds = [0, 1, 2, 3_600][usize::try_from(self.numbers.below(4)).unwrap()];
                let expires_in = HoldTerm::new(seconds).filter(|_| expires);
                command(Operation::Hold {
                    amount: small,
                    expires_in,
                })
            }
            38..46 => self.with_a_hold(small.minor()).map_or_else(
                || {
                    command(Operation::Credit {
                        amount: small,
                        memo: None,
                    })
                },
                |(account, operation)| Command {
                    account,
                    request: request.clone(),
                    operation,
                },
            ),
            46..49 => {
                let choice = self.numbers.below(u64::MAX);
                match self.books.a_move(choice) {
                    Some(of) => Command {
                        account: of.account,
                        request: request.clone(),
                        operation: Operation::Reversal { reverses: of.request },
                    },
                    None => command(Operation::Credit { amount: small, memo }),
                }
            }
            _ if account == to => command(Operation::Debit {
                amount: small.into(),
                memo,
            }),
            _ => command(Operation::Transfer {
                to,
                amount: small,
                memo,
            }),
        }
    }

    fn with_a_hold(&mut self, minor: i64) -> Option<(wallet_backend::account::AccountId, Operation)> {
        let choice = self.numbers.below(u64::MAX);
        let placed = self.books.a_hold(choice)?;
        let hold = placed.request;
        let operation = match self.numbers.below(5) {
            0 => Operation::Release { hold },
            1 => Operation::Capture {
                hold,
                amount: None,
                remainder: Remainder::Release,
            },
            2 => Operation::Capture {
                hold,
                amount: Some(amount(minor)),
                remainder: Remainder::Release,
            },
            _ => Operation::Capture {
                hold,
                amount: Some(amount(1 + minor / 4)),
                remainder: Remainder::Keep,
            },
        };
        Some((placed.account, operation))
    }

    /// From one slot to 64 and back, from one mode to another, up and down with the floor, frozen and not.
    fn amendment(&mut self, kind: &str) -> Amendment {
        let none = Amendment::default();
        let choose = usize::try_from(self.numbers.below(4)).unwrap();
        let slots = SlotCount::new([1, 2, 9, 64][choose]);
        match (kind, self.numbers.below(3)) {
            ("frosty", _) => Amendment {
                status: Some(
                    [
                        Status::Active,
                        Status::DebitFrozen,
                        Status::Active,
                        Status::Frozen,
                    ][choose],
                ),
                ..none
            },
            ("floor", _) => Amendment {
                floor: Some([0, 300, 400, 500][choose]),
                ..none
            },
            ("hashed" | "rich-hashed", 0) => Amendment {
                debit: Some([DebitMode::Primary, DebitMode::Hashed][choose % 2]),
                ..none
            },
            ("journal" | "rich-journal" | "hashed", 1) => {
                let modes = [CreditMode::Slot, CreditMode::Upsert, CreditMode::Journal];
                Amendment {
                    credit: Some(modes[choose % 3]),
                    ..none
                }
            }
            _ => Amendment { slots, ..none },
        }
    }

    fn kind(&mut self) -> &'static str {
        let all = u64::try_from(KINDS.len()).unwrap();
        let among = if self.numbers.below(2) == 0 { 4 } else { all };
        KINDS[usize::try_from(self.numbers.below(among)).unwrap()]
    }
}

fn terms(kind: &str) -> Terms {
    account("any-", kind).2
}
