//! `sluice check`: validates rule files without putting them in force.
//!
//! ```text
//! rules/take-money.yaml:33:16: no resource is called `takeMony`, did you mean `takeMoney`?
//! ```

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::rules::{RuleError, RuleSet, compile};

/// Flags of `sluice check`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckArgs {
    /// Folder of rule files
    #[arg(long, value_name = "DIR", env = "SLUICE_RULES", default_value = "rules")]
    pub rules: PathBuf,
    /// How findings are written
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// How the findings are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A line per error: `file:line:col: message`.
    #[default]
    Text,
    /// One object: `{ok, resources, rules, errors: [{file, line, column, message}]}`.
    Json,
}

/// Exit status of a folder whose rules are good.
pub const GOOD: u8 = 0;

/// Exit status of a folder with errors.
pub const BAD: u8 = 1;

/// Checks the rule files of `dir`, writes what was found and gives the exit status.
///
/// # Errors
/// When `out` cannot be written to.
pub fn run(dir: &Path, format: Format, out: &mut impl Write) -> io::Result<u8> {
    let checked = compile::load(dir);
    write_findings(&checked, format, out)?;
    Ok(if checked.is_ok() { GOOD } else { BAD })
}

fn write_findings(
    checked: &Result<RuleSet, Vec<RuleError>>,
    format: Format,
    out: &mut impl Write,
) -> io::Result<()> {
    match (format, checked) {
        (Format::Text, Ok(set)) => {
            let counted =
                |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
            let (files, resources) = (
                counted(set.files.len(), "file"),
                counted(set.resources.len(), "resource"),
            );
            writeln!(
                out,
                "{files}: {resources} and {} are good",
                counted(set.rule_count(), "rule")
            )
        }
        (Format::Text, Err(errors)) => errors.iter().try_for_each(|error| writeln!(out, "{error}")),
        (Format::Json, checked) => {
            serde_json::to_writer(&mut *out, &Findings::new(checked))?;
            writeln!(out)
        }
    }
}

/// The shape of `--format json`.
#[derive(Serialize)]
struct Findings<'a> {
    ok: bool,
    resources: usize,
    rules: usize,
    errors: Vec<Finding<'a>>,
}

/// `line` and `column` count from 1; both are 0 where the file, or the folder, as a whole is meant.
#[derive(Serialize)]
struct Finding<'a> {
    file: String,
    line: u32,
    column: u32,
    message: &'a str,
}

impl<'a> Findings<'a> {
    fn new(checked: &'a Result<RuleSet, Vec<RuleError>>) -> Self {
        match checked {
            Ok(set) => Self {
                ok: true,
                resources: set.resources.len(),
                rules: set.rule_count(),
                errors: Vec::new(),
            },
            Err(errors) => {
                let errors = errors.iter().map(Finding::new).collect();
                Self {
                    ok: false,
                    resources: 0,
                    rules: 0,
                    errors,
                }
            }
        }
    }
}

impl<'a> Finding<'a> {
    fn new(error: &'a RuleError) -> Self {
        let place = &error.place;
        Self {
            file: place.file.display().to_string(),
            line: place.line,
            column: place.column,
            message: &error.message,
        }
    }
}

#[cfg(test)]
mod tests;
