//! One measurement, for programs and for people.

use std::fmt;

use serde::Serialize;

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) mode: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) clients: u32,
    pub(crate) processes: u32,
    pub(crate) ops_per_s: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Operations that the design answered without doing them: too little money, or a credit that it lost.
    pub(crate) refused: u64,
    /// Times that a client ran an operation again, for whatever reason.
    pub(crate) retries: u64,
    /// Those because of a deadlock.
    pub(crate) deadlocks: u64,
    /// Of the private server; of another nobody knows.
    pub(crate) server_cpu_s: Option<f64>,
    /// Of all processes of clients.
    pub(crate) client_cpu_s: f64,
    /// `ops_per_s` over that of `single` with this operation at 64 clients.
    pub(crate) ratio_to_single_row: Option<f64>,
    pub(crate) invariants_ok: bool,
    /// What does not hold, in words.
    #[serde(skip)]
    pub(crate) broken: Vec<String>,
}

/// What stands over rows.
pub(super) const HEADINGS: &str = "mode                       operation clients  procs     ops/s   p50 ms   \
                                   p99 ms  refused  retries deadlocks server s client s  of single  invariants";

impl Row {
    /// Held against `single`, if that was measured.
    pub(super) fn over_single(self, single: Option<f64>) -> Self {
        let ratio_to_single_row = single.map(|single| self.ops_per_s / single);
        Self {
            ratio_to_single_row,
            ..self
        }
    }
}

/// One line, below [`HEADINGS`].
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mode,
            operation,
            clients,
            processes,
            ops_per_s,
            p50_ms,
            p99_ms,
            refused,
            retries,
            deadlocks,
            client_cpu_s,
            ..
        } = self;
        write!(
            f,
            "{mode:<27}{operation:<9}{clients:>8}{processes:>7}{ops_per_s:>10.0}"
        )?;
        write!(
            f,
            "{p50_ms:>9.2}{p99_ms:>9.2}{refused:>9}{retries:>9}{deadlocks:>10}"
        )?;
        match self.server_cpu_s {
            Some(cpu) => write!(f, "{cpu:>9.2}")?,
            None => write!(f, "{:>9}", "-")?,
        }
        write!(f, "{client_cpu_s:>9.2}")?;
        match self.ratio_to_single_row {
            Some(ratio) => write!(f, "{ratio:>11.2}")?,
            None => write!(f, "{:>11}", "-")?,
        }
        if self.invariants_ok {
            return f.write_str("  ok");
        }
        write!(f, "  BROKEN: {}", self.broken.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            mode: "single",
            operation: "debit",
            clients: 64,
            processes: 1,
            ops_per_s: 3_000.0,
            p50_ms: 20.0,
            p99_ms: 50.0,
            refused: 0,
            retries: 0,
            deadlocks: 0,
            server_cpu_s: Some(1.5),
            client_cpu_s: 0.5,
            ratio_to_single_row: None,
            invariants_ok: false,
            broken: vec!["slots below zero: 1 instead of 0".to_owned()],
        }
    }

    #[test]
    fn a_row_in_json_has_these_fields_and_no_other() {
        let json = serde_json::to_value(row().over_single(Some(1_500.0))).unwrap();
        let expected = serde_json::json!({
            "mode": "single", "operation": "debit", "clients": 64, "processes": 1, "ops_per_s": 3000.0,
            "p50_ms": 20.0, "p99_ms": 50.0, "refused": 0, "retries": 0, "deadlocks": 0, "server_cpu_s": 1.5,
            "client_cpu_s": 0.5, "ratio_to_single_row": 2.0, "invariants_ok": false,
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn people_are_told_what_does_not_hold() {
        let line = row().to_string();
        assert!(
            line.ends_with("BROKEN: slots below zero: 1 instead of 0"),
            "{line}"
        );
    }
}
