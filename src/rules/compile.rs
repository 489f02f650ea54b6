//! From the wire structs of all files to one checked [`RuleSet`].

use std::path::Path;

use super::{Place, RuleSet};

/// What is wrong in a set of rule files, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct RuleError {
    pub place: Place,
    pub message: String,
}

/// Reads and checks every rule file of a folder.
///
/// # Errors
/// Everything that is wrong with them, at least one error per bad file, in file order.
pub fn load(dir: &Path) -> Result<RuleSet, Vec<RuleError>> {
    let place = Place {
        file: dir.to_path_buf().into(),
        line: 0,
        column: 0,
    };
    Err(vec![RuleError {
        place,
        message: "no rule files".to_owned(),
    }])
}
