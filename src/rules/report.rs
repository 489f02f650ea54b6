//! What is wrong in rule files, collected so that one check tells everything at once.

use super::Place;

/// One thing that is wrong in a set of rule files, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct RuleError {
    pub place: Place,
    /// What is wrong and, where it can be guessed, what was meant.
    pub message: String,
}

/// The errors of one check.
#[derive(Debug, Default)]
pub(super) struct Report {
    errors: Vec<RuleError>,
}

impl Report {
    pub(super) fn add(&mut self, place: &Place, message: impl Into<String>) {
        self.errors.push(RuleError {
            place: place.clone(),
            message: message.into(),
        });
    }

    /// Notes an error and is `None`, so that a reader can end with it.
    pub(super) fn refuse<T>(&mut self, place: &Place, message: impl Into<String>) -> Option<T> {
        self.add(place, message);
        None
    }

    pub(super) fn note(&mut self, error: RuleError) {
        self.errors.push(error);
    }

    /// How many errors there are by now, for [`Report::in_rule`].
    pub(super) fn mark(&self) -> usize {
        self.errors.len()
    }

    /// Names the rule in every error noted since `mark`.
    pub(super) fn in_rule(&mut self, mark: usize, id: &str) {
        for error in self.errors.iter_mut().skip(mark) {
            error.message = format!("rule `{id}`: {}", error.message);
        }
    }

    pub(super) fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// The errors by file, line and column, each once and on one line, whatever the names in it are made of.
    pub(super) fn into_errors(mut self) -> Vec<RuleError> {
        for error in &mut self.errors {
            if error.message.contains(char::is_control) {
                error.message = escaped(&error.message);
            }
        }
        self.errors.sort_by(|a, b| {
            let key = |e: &RuleError| (e.place.line, e.place.column);
            a.place.file.cmp(&b.place.file).then(key(a).cmp(&key(b)))
        });
        self.errors.dedup();
        self.errors
    }
}

fn escaped(message: &str) -> String {
    let escape = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    message.chars().map(escape).collect()
}

/// ` (did you mean …?)` for the known word nearest to `given`, or nothing.
pub(super) fn did_you_mean<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let folded = given.to_lowercase();
    let nearest = known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&folded, &word.to_lowercase()), word))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, word)) if distance <= 1 + word.chars().count() / 4 => {
            format!(", did you mean `{word}`?")
        }
        _ => String::new(),
    }
}
