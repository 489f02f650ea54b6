//! What reconciling has found: pure.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::account::{AccountId, SlotIndex, Timestamp};
use crate::ledger::invariants::{Rule, Violation};
use crate::money::Currency;

/// The most differences that are kept by name; more are counted.
pub const MOST_DIFFERENCES: usize = 1_000;

/// How much a run looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Entries since the run before, and the accounts that have them.
    Changed,
    /// Every account, from its first entry on.
    Everything,
    /// That, and the books of every currency.
    GeneralLedger,
}

/// Whose books differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Account(AccountId),
    /// All accounts of it together.
    Currency(Currency),
}

/// One thing that is not as the entries say. Minor units, or versions where the rule is about those.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The same for the same difference of the same ledger, in every run and every process.
    pub id: u64,
    pub subject: Subject,
    /// `None` where it is about the whole account, or a currency.
    pub slot: Option<SlotIndex>,
    /// The first entry that does not follow from the one before it, or the newest one where the row is not as that left
    /// it; of a pending row its number.
    pub version: Option<u64>,
    pub rule: Rule,
    pub expected: i128,
    pub found: i128,
    /// When it was first found.
    pub since: Timestamp,
}

/// One run, from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub pass: Pass,
    /// When it ended.
    pub at: Timestamp,
    pub took: Duration,
    /// Accounts that were held against their entries.
    pub accounts: u64,
    /// Entries that were read.
    pub entries: u64,
    /// How many differences it found, or why it broke off.
    pub outcome: Result<u64, String>,
}

/// What is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The newest run of each pass, in the order of [`Pass::ALL`].
    pub runs: [Option<Run>; 3],
    /// In the order in which they were found.
    pub differences: Vec<Difference>,
    /// Differences that were not kept.
    pub more: u64,
}

/// What a run has come upon so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) differences: Vec<Difference>,
    pub(super) more: u64,
    pub(super) accounts: u64,
    pub(super) entries: u64,
}

impl Pass {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Changed, Self::Everything, Self::GeneralLedger];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Everything => "everything",
            Self::GeneralLedger => "general_ledger",
        }
    }

    /// Whether a run of this pass would find the difference again, if it were still there.
    fn judges(self, difference: &Difference) -> bool {
        match self {
            Self::Changed => false,
            Self::Everything => match difference.subject {
                Subject::Account(_) => difference.rule != Rule::Conservation,
                Subject::Currency(_) => false,
            },
            Self::GeneralLedger => true,
        }
    }

    const fn at(self) -> usize {
        match self {
            Self::Changed => 0,
            Self::Everything => 1,
            Self::GeneralLedger => 2,
        }
    }
}

impl Difference {
    pub(super) fn of_violation(ledger: u64, violation: Violation, since: Timestamp) -> Self {
        let difference = Self {
            id: 0,
            subject: Subject::Account(violation.account),
            slot: violation.slot,
            version: violation.version,
            rule: violation.rule,
            expected: violation.expected.into(),
            found: violation.found.into(),
            since,
        };
        difference.named(ledger)
    }

    pub(super) fn of_currency(
        ledger: u64,
        currency: Currency,
        (expected, found): (i128, i128),
        since: Timestamp,
    ) -> Self {
        let difference = Self {
            id: 0,
            subject: Subject::Currency(currency),
            slot: None,
            version: None,
            rule: Rule::CurrencyTotal,
            expected,
            found,
            since,
        };
        difference.named(ledger)
    }

    /// The account, where it is about one.
    #[must_use]
    pub const fn account(&self) -> Option<&AccountId> {
        match &self.subject {
            Subject::Account(account) => Some(account),
            Subject::Currency(_) => None,
        }
    }

    fn named(mut self, ledger: u64) -> Self {
        self.id = xxh3_64_with_seed(self.to_string().as_bytes(), ledger);
        self
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Account(account) => write!(f, "account {account}")?,
            Subject::Currency(currency) => write!(f, "currency {currency}")?,
        }
        if let Some(slot) = self.slot {
            write!(f, " slot {}", slot.get())?;
        }
        if let Some(version) = self.version {
            write!(f, " version {version}")?;
        }
        let (rule, expected, found) = (self.rule.text(), self.expected, self.found);
        write!(f, ": not so that {rule}: expected {expected}, found {found}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(run) = self.newest() {
            writeln!(f, "{} accounts against {} entries", run.accounts, run.entries)?;
        }
        for difference in &self.differences {
            writeln!(f, "FOUND {difference}")?;
        }
        if self.more > 0 {
            writeln!(f, "and {} more", self.more)?;
        }
        match self.is_ok() {
            true => write!(f, "all is well"),
            false => write!(
                f,
                "the books are not what the entries say, or could not be read to the end"
            ),
        }
    }
}

impl Found {
    pub(super) fn add(&mut self, difference: Difference) {
        if self.differences.len() < MOST_DIFFERENCES {
            self.differences.push(difference);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    pub(super) fn count(&self) -> u64 {
        let kept = u64::try_from(self.differences.len()).unwrap_or(u64::MAX);
        kept.saturating_add(self.more)
    }
}

impl Report {
    /// The newest run of a pass.
    #[must_use]
    pub fn run(&self, pass: Pass) -> Option<&Run> {
        self.runs.get(pass.at()).and_then(Option::as_ref)
    }

    /// The newest run of all.
    #[must_use]
    pub fn newest(&self) -> Option<&Run> {
        self.runs.iter().flatten().max_by_key(|run| run.at)
    }

    /// Nothing differs, and the newest run of each pass came to its end.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.differences.is_empty() && self.runs.iter().flatten().all(|run| run.outcome.is_ok())
    }

    /// How many differences there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        let kept = u64::try_from(self.differences.len()).unwrap_or(u64::MAX);
        kept.saturating_add(self.more)
    }

    /// The report after one more run, and which of its differences were not in this one.
    pub(super) fn after(&self, run: Run, found: Found) -> (Self, Vec<Difference>) {
        let known: HashMap<u64, &Difference> =
            self.differences.iter().map(|known| (known.id, known)).collect();
        let (pass, ended) = (run.pass, run.outcome.is_ok());
        let stays = |known: &&Difference| !(ended && pass.judges(known));
        let mut report = Self {
            runs: self.runs.clone(),
            differences: self.differences.iter().filter(stays).cloned().collect(),
            more: if ended && pass == Pass::GeneralLedger {
                found.more
            } else {
                self.more.max(found.more)
            },
        };
        let mut listed: std::collections::HashSet<u64> =
            report.differences.iter().map(|kept| kept.id).collect();
        let mut news = Vec::new();
        for difference in found.differences {
            if !listed.insert(difference.id) {
                continue;
            }
            if report.differences.len() >= MOST_DIFFERENCES {
                report.more = report.more.saturating_add(1);
                continue;
            }
            match known.get(&difference.id) {
                Some(known) => report.differences.push((*known).clone()),
                None => {
                    news.push(difference.clone());
                    report.differences.push(difference);
                }
            }
        }
        if let Some(place) = report.runs.get_mut(pass.at()) {
            *place = Some(run);
        }
        (report, news)
    }
}
