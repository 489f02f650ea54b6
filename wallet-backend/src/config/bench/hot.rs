//! The arguments of `bench hot-account`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgGroup, Args};
use serde::{Deserialize, Serialize};

use super::seconds;

/// Each design, as many clients as are named at once, each with one operation at a time, every answer durable.
///
/// Direct modes have a connection to each client. single is one row: a conditional UPDATE, the entry and the request in
/// one round trip. slot-skip-locked, slot-blind, upsert and journal are ways to credit an account of ten slots; their
/// debits are those of single on slot 0, so they are not measured for debits alone. hashed debits a slot that the
/// request chooses. combined is what the product does by default, combined-slots the same on an account of ten slots: the
/// clients of a process call one wallet. The published- modes are statements as they were published, wrong ones included:
/// what they break is told. cold-single spreads single over 10 000 accounts, cold the product's work. Retries within the
/// product are its own and not counted.
///
/// `ratio_to_single_row` is against mode single with the same operation and number of processes at 64 clients in the
/// same run; null where that was not measured.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("server").required(true))]
pub(crate) struct HotAccount {
    /// A server to measure on: mysql://USER[:PASSWORD]@HOST[:PORT]. Databases of the bench's own are made there, and
    /// dropped again.
    #[arg(long, value_name = "URL", group = "server", value_parser = store)]
    pub(crate) store: Option<String>,
    /// Start a server for the measurement, on loopback, with a data folder of its own below --dir.
    #[arg(long, value_name = "SERVER", group = "server")]
    pub(crate) private: Option<Private>,
    /// Whether the private server writes a binary log, synced at each commit.
    #[arg(long, value_name = "on|off", default_value = "off", conflicts_with = "store")]
    pub(crate) binlog: Switch,
    /// all, or the names of some.
    #[arg(long, value_name = "MODE,..", default_value = "all")]
    pub(crate) modes: Modes,
    /// How many clients at once [default: 1,8,64,1000; for a scenario 2000].
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub(crate) clients: Option<Vec<u32>>,
    /// Over how many processes the clients are spread.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) processes: u32,
    /// How long each row is measured [default: 5; for a scenario 100].
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub(crate) seconds: Option<Duration>,
    /// What the clients do: credit, debit, or mixed (in turns).
    #[arg(
        long,
        value_name = "OPERATION,..",
        value_delimiter = ',',
        default_value = "credit,debit,mixed"
    )]
    pub(crate) operation: Vec<Direction>,
    /// Draw the rows as an SVG file, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) chart: Option<PathBuf>,
    /// A JSON object a line for each row, instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Instead of modes, a load test from end to end. published: 2 000 clients (or the most of --clients) debit one
    /// account through the sidecar, for 100 seconds (or --seconds), without and with a limit for the account.
    #[arg(long, value_name = "SCENARIO", conflicts_with_all = ["modes", "operation", "processes", "chart"])]
    pub(crate) scenario: Option<Scenario>,
    /// The sidecar's program; by default sluice, beside this one.
    #[arg(long, value_name = "PATH", requires = "scenario")]
    pub(crate) sluice: Option<PathBuf>,
    /// Where the private server keeps its files while it runs: the disk that is measured.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
}

impl HotAccount {
    /// Never empty.
    pub(crate) fn clients(&self) -> &[u32] {
        const DEFAULT: [u32; 4] = [1, 8, 64, 1_000];
        const OF_SCENARIO: [u32; 1] = [2_000];
        match (&self.clients, self.scenario) {
            (Some(clients), _) => clients,
            (None, None) => &DEFAULT,
            (None, Some(Scenario::Published)) => &OF_SCENARIO,
        }
    }

    pub(crate) fn most_clients(&self) -> u32 {
        self.clients().iter().copied().max().unwrap_or(1)
    }

    pub(crate) fn seconds(&self) -> Duration {
        let default = match self.scenario {
            None => 5,
            Some(Scenario::Published) => 100,
        };
        self.seconds.unwrap_or(Duration::from_secs(default))
    }
}

/// A server that the bench can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Private {
    Mariadb,
}

/// A load test from end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    Published,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    Off,
}

/// A set of designs, in the order in which they are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Modes(pub(crate) Vec<Mode>);

/// One design for a hot account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    Single,
    SlotSkipLocked,
    SlotBlind,
    Upsert,
    Journal,
    Hashed,
    Combined,
    CombinedSlots,
    PublishedRandSkipLocked,
    PublishedSumHaving,
    ColdSingle,
    Cold,
}

/// What the clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direction {
    Credit,
    Debit,
    Mixed,
}

impl Mode {
    /// Every mode; `single` first, which the others are held against.
    pub(crate) const ALL: [Self; 12] = [
        Self::Single,
        Self::SlotSkipLocked,
        Self::SlotBlind,
        Self::Upsert,
        Self::Journal,
        Self::Hashed,
        Self::Combined,
        Self::CombinedSlots,
        Self::PublishedRandSkipLocked,
        Self::PublishedSumHaving,
        Self::ColdSingle,
        Self::Cold,
    ];

    /// Whether operations go to many accounts, none of them hot.
    pub(crate) const fn is_cold(self) -> bool {
        matches!(self, Self::ColdSingle | Self::Cold)
    }

    /// Whether its clients call the wallet, and not the database.
    pub(crate) const fn is_product(self) -> bool {
        matches!(self, Self::Combined | Self::CombinedSlots | Self::Cold)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::SlotSkipLocked => "slot-skip-locked",
            Self::SlotBlind => "slot-blind",
            Self::Upsert => "upsert",
            Self::Journal => "journal",
            Self::Hashed => "hashed",
            Self::Combined => "combined",
            Self::CombinedSlots => "combined-slots",
            Self::PublishedRandSkipLocked => "published-rand-skip-locked",
            Self::PublishedSumHaving => "published-sum-having",
            Self::ColdSingle => "cold-single",
            Self::Cold => "cold",
        }
    }

    /// Whether there is anything to learn from it: ways to credit debit as `single` does, and `hashed` credits as
    /// `slot-blind` does.
    pub(crate) const fn differs_for(self, direction: Direction) -> bool {
        match (self, direction) {
            (Self::SlotSkipLocked | Self::SlotBlind | Self::Upsert | Self::Journal, Direction::Debit)
            | (Self::Hashed, Direction::Credit) => false,
            (
                Self::Single
                | Self::SlotSkipLocked
                | Self::SlotBlind
                | Self::Upsert
                | Self::Journal
                | Self::Hashed
                | Self::Combined
                | Self::CombinedSlots
                | Self::PublishedRandSkipLocked
                | Self::PublishedSumHaving
                | Self::ColdSingle
                | Self::Cold,
                Direction::Credit | Direction::Debit | Direction::Mixed,
            ) => true,
        }
    }
}

impl Direction {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::Debit => "debit",
            Self::Mixed => "mixed",
        }
    }
}

impl FromStr for Modes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self(Mode::ALL.to_vec()));
        }
        let mut named = text
            .split(',')
            .map(str::parse)
            .collect::<Result<Vec<Mode>, _>>()?;
        // In the order of `ALL`, each once.
        named.sort_by_key(|mode| Mode::ALL.iter().position(|other| other == mode));
        named.dedup();
        Ok(Self(named))
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| {
                let names: Vec<&str> = Self::ALL.iter().map(|mode| mode.name()).collect();
                format!("'{text}' is none of all, {}", names.join(", "))
            })
    }
}

impl FromStr for Direction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Credit, Self::Debit, Self::Mixed]
            .into_iter()
            .find(|direction| direction.name() == text)
            .ok_or_else(|| "must be credit, debit or mixed".to_owned())
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "published" => Ok(Self::Published),
            _ => Err("must be published".to_owned()),
        }
    }
}

impl FromStr for Private {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "mariadb" => Ok(Self::Mariadb),
            _ => Err("must be mariadb; measure another server with --store".to_owned()),
        }
    }
}

impl FromStr for Switch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err("must be on or off".to_owned()),
        }
    }
}

fn store(text: &str) -> Result<String, String> {
    match text.parse::<sqlx::mysql::MySqlConnectOptions>() {
        Ok(_) if text.starts_with("mysql://") => Ok(text.to_owned()),
        _ => Err("must be mysql://USER[:PASSWORD]@HOST[:PORT]".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::config::bench::Bench;
    use crate::config::{Action, Cli};

    fn hot(arguments: &[&str]) -> Result<HotAccount, String> {
        let arguments = ["wallet-backend", "bench", "hot-account"].iter().chain(arguments);
        match Cli::try_parse_from(arguments) {
            Ok(Cli {
                command: Action::Bench(Bench::HotAccount(hot)),
            }) => Ok(hot),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn every_mode_is_measured_with_every_operation_unless_told_otherwise() {
        let hot = hot(&["--private", "mariadb"]).unwrap();
        assert_eq!(hot.modes.0, Mode::ALL);
        assert_eq!(
            hot.operation,
            [Direction::Credit, Direction::Debit, Direction::Mixed]
        );
        assert_eq!(hot.clients(), [1, 8, 64, 1_000]);
        assert_eq!((hot.processes, hot.seconds()), (1, Duration::from_secs(5)));
        assert_eq!((hot.binlog, hot.json, hot.chart), (Switch::Off, false, None));
    }

    #[test]
    fn single_is_measured_first_wherever_it_was_named_and_each_mode_once() {
        let hot = hot(&["--private", "mariadb", "--modes", "upsert,single,upsert"]).unwrap();
        assert_eq!(hot.modes.0, [Mode::Single, Mode::Upsert]);
    }

    #[test]
    fn a_mode_is_known_by_its_name_alone() {
        for mode in Mode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(
                serde_json::to_value(mode).unwrap(),
                serde_json::json!(mode.name())
            );
        }
        let error = hot(&["--private", "mariadb", "--modes", "single,fast"]).unwrap_err();
        assert!(error.contains("'fast'") && error.contains("upsert"), "{error}");
    }

    #[test]
    fn a_server_is_named_or_started_and_not_both() {
        let url = "mysql://root:secret@127.0.0.1:3306";
        assert_eq!(hot(&["--store", url]).unwrap().store.as_deref(), Some(url));
        assert!(hot(&[]).is_err());
        assert!(hot(&["--store", url, "--private", "mariadb"]).is_err());
        assert!(hot(&["--store", url, "--binlog", "on"]).is_err());
    }

    #[test]
    fn a_scenario_is_as_it_was_published_unless_told_otherwise() {
        let arguments = ["--private", "mariadb", "--scenario", "published"];
        let published = hot(&arguments).unwrap();
        assert_eq!(
            (published.most_clients(), published.seconds().as_secs()),
            (2_000, 100)
        );
        let shorter = [&arguments, ["--clients", "20", "--seconds", "3"].as_slice()].concat();
        let shorter = hot(&shorter).unwrap();
        assert_eq!((shorter.most_clients(), shorter.seconds().as_secs()), (20, 3));
        assert!(hot(&[&arguments, ["--modes", "single"].as_slice()].concat()).is_err());
        assert!(hot(&["--private", "mariadb", "--sluice", "sluice"]).is_err());
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for bad in [
            ["--clients", "0"],
            ["--clients", "10001"],
            ["--clients", "1,"],
            ["--processes", "0"],
            ["--processes", "17"],
            ["--seconds", "0"],
            ["--operation", "transfer"],
            ["--binlog", "yes"],
            ["--modes", ""],
        ] {
            let all = [&["--private", "mariadb"], bad.as_slice()].concat();
            assert!(hot(&all).is_err(), "{bad:?}");
        }
        assert!(hot(&["--private", "mysql"]).is_err());
        assert!(hot(&["--store", "postgres://root@127.0.0.1"]).is_err());
    }
}
