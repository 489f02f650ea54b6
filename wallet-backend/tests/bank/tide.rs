//! Accounts that only one teller moves money on, so that what each of them has is known: money comes and goes, and what is
//! asked for is there for certain or for certain not.

use wallet_backend::account::{Account, AccountId, RequestId};
use wallet_backend::command::{Command, Operation, Remainder};

use super::books::{Became, Terms};
use super::teller::Teller;
use crate::support::{amount, hashed, journal, ordinary, slotted};

/// What comes and goes.
const TIDE: i64 = 10;

/// The account of a teller, of every mode by turns.
pub(super) fn account(day: &str, number: u64) -> (Account, Terms) {
    let name = format!("{day}tide-{number}");
    let account = match number % 4 {
        0 => ordinary(&name),
        1 => slotted(&name, 5),
        2 => journal(&name),
        _ => hashed(&name, 4),
    };
    let terms = Terms {
        exact: number % 4 < 2,
        own: true,
        ..Terms::default()
    };
    (account, terms)
}

impl Teller {
    /// Lets money come and go. The account is empty at the beginning.
    pub(super) async fn ebb_and_flow(mut self, account: AccountId) {
        let mut full = false;
        while self.is_open() {
            if full {
                full = !self.ebb(&account).await;
            } else {
                full = self.flow(&account).await;
            }
        }
    }

    /// Money comes; before that there was none. Whether it came.
    async fn flow(&mut self, account: &AccountId) -> bool {
        self.must_be_short(account).await;
        let credit = Operation::Credit {
            amount: amount(TIDE),
            memo: None,
        };
        let (became, _) = self.ask_of(account, credit).await;
        self.expect(account, &became)
    }

    /// The money goes, by a debit or by a hold that is captured. Whether it went.
    async fn ebb(&mut self, account: &AccountId) -> bool {
        if self.numbers.below(3) > 0 {
            let debit = Operation::Debit {
                amount: amount(TIDE).into(),
                memo: None,
            };
            let (became, _) = self.ask_of(account, debit).await;
            return self.expect(account, &became);
        }
        let hold = Operation::Hold {
            amount: amount(TIDE),
            expires_in: None,
        };
        let (became, hold) = self.ask_of(account, hold).await;
        if !self.expect(account, &became) {
            return false;
        }
        self.must_be_short(account).await;
        let captured = self.numbers.below(2) == 0;
        loop {
            let hold = hold.clone();
            let end = if captured {
                Operation::Capture {
                    hold,
                    amount: None,
                    remainder: Remainder::Release,
                }
            } else {
                Operation::Release { hold }
            };
            let (became, _) = self.ask_of(account, end).await;
            if self.expect(account, &became) {
                return captured;
            }
            if !self.is_open() {
                return false;
            }
        }
    }

    /// A debit of the least there is, of an account that has nothing.
    async fn must_be_short(&mut self, account: &AccountId) {
        let debit = Operation::Debit {
            amount: amount(1).into(),
            memo: None,
        };
        let (became, request) = self.ask_of(account, debit).await;
        if matches!(became, Became::Done(_)) {
            let what = format!("{account} {request}: took money where there was none");
            self.books.find(|findings| findings.other.push(what));
        }
    }

    async fn ask_of(&mut self, account: &AccountId, operation: Operation) -> (Became, RequestId) {
        let request = self.request();
        let command = Command {
            account: account.clone(),
            request: request.clone(),
            operation,
        };
        (self.decide(command).await, request)
    }

    /// Whether it was done, as it must be where it was not given up.
    fn expect(&self, account: &AccountId, became: &Became) -> bool {
        match became {
            Became::Done(_) => true,
            Became::Refused(code) if code == "abandoned" => false,
            other => {
                let what = format!("{account}: {other:?}, and nothing stood in the way");
                self.books.find(|findings| findings.false_refusals.push(what));
                false
            }
        }
    }
}
