//! Values of a rule file as numbers, words, durations and sizes. Each reader notes what is wrong at the value's place.

use std::fmt;
use std::time::Duration;

use super::super::report::{Report, did_you_mean};
use super::{Node, Scalar, Value};

/// Largest count of a rule: sums of two stay far from overflow.
pub(in crate::rules) const MAX_COUNT: u64 = 1_000_000_000_000;

/// The longest span of time in a rule.
const MAX_SPAN: Duration = Duration::from_secs(31 * 86_400);

/// How a node is called in errors.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Null => f.write_str("nothing"),
            Value::Scalar(Scalar::Text, text) => write!(f, "the text `{text}`"),
            Value::Scalar(Scalar::Bool | Scalar::Number, text) => write!(f, "`{text}`"),
            Value::List(_) => f.write_str("a list"),
            Value::Map(_) => f.write_str("a map"),
        }
    }
}

impl Node {
    /// The text of any scalar.
    pub(in crate::rules) fn text(&self, report: &mut Report) -> Option<&str> {
        match &self.value {
            Value::Scalar(_, text) => Some(text),
            Value::Null | Value::List(_) | Value::Map(_) => {
                report.refuse(&self.place, format!("text is due, not {self}"))
            }
        }
    }

    /// A name: 1 to 128 bytes without control characters or blanks at its ends.
    pub(in crate::rules) fn name(&self, report: &mut Report) -> Option<&str> {
        let text = self.text(report)?;
        if text.is_empty() || text.len() > 128 || text.trim() != text || text.contains(char::is_control) {
            return report.refuse(
                &self.place,
                "a name has 1 to 128 bytes, no control characters and no blanks at its ends",
            );
        }
        Some(text)
    }

    /// The items of a list, or the value itself as a list of one.
    pub(in crate::rules) fn one_or_list(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            Value::Null | Value::Scalar(..) | Value::Map(_) => std::slice::from_ref(self),
        }
    }

    /// The items of a list.
    pub(in crate::rules) fn list(&self, report: &mut Report) -> Option<&[Self]> {
        match &self.value {
            Value::List(items) => Some(items),
            Value::Map(_) => report.refuse(
                &self.place,
                "a list is due, not a map: begin each entry with `- `",
            ),
            Value::Null | Value::Scalar(..) => {
                report.refuse(&self.place, format!("a list is due, not {self}"))
            }
        }
    }

    pub(in crate::rules) fn boolean(&self, report: &mut Report) -> Option<bool> {
        match &self.value {
            Value::Scalar(Scalar::Bool, text) if text.eq_ignore_ascii_case("true") => Some(true),
            Value::Scalar(Scalar::Bool, _) => Some(false),
            Value::Null | Value::Scalar(..) | Value::List(_) | Value::Map(_) => {
                report.refuse(&self.place, format!("`true` or `false` is due, not {self}"))
            }
        }
    }

    /// A whole number from `least` to `most`. `hint` ends the message about a fraction.
    pub(in crate::rules) fn integer(
        &self,
        least: u64,
        most: u64,
        hint: &str,
        report: &mut Report,
    ) -> Option<u64> {
        let number = self.number(report)?;
        let whole = match number {
            Number::Whole(whole) => whole,
            Number::Negative => return report.refuse(&self.place, format!("{self} is negative")),
            Number::Fraction(_) => {
                return report.refuse(&self.place, format!("a whole number is due, not {self}{hint}"));
            }
        };
        if whole < least || whole > most {
            return report.refuse(&self.place, format!("{self} is not between {least} and {most}"));
        }
        Some(whole)
    }

    /// A share from 0 to 1.
    pub(in crate::rules) fn ratio(&self, report: &mut Report) -> Option<f64> {
        let number = self.number(report)?;
        match number {
            Number::Whole(0) => Some(0.0),
            Number::Whole(1) => Some(1.0),
            Number::Whole(percent @ 2..=100) => {
                let zero = if percent < 10 { "0" } else { "" };
                let meant = format!("0.{zero}{percent}");
                let meant = if percent == 100 {
                    "1"
                } else {
                    meant.trim_end_matches('0')
                };
                report.refuse(
                    &self.place,
                    format!("a ratio is between 0 and 1, not {self}; for {percent} % write `{meant}`"),
                )
            }
            Number::Fraction(share) if share <= 1.0 => Some(share),
            Number::Negative | Number::Whole(_) | Number::Fraction(_) => {
                report.refuse(&self.place, format!("a ratio is between 0 and 1, not {self}"))
            }
        }
    }

    /// A span of time above zero: a bare number in `unit`, or a number with a unit of its own, as `250ms`.
    /// Without a `unit`, a bare number is refused.
    pub(in crate::rules) fn duration(&self, unit: Option<Duration>, report: &mut Report) -> Option<Duration> {
        let span = match (&self.value, unit) {
            (Value::Scalar(Scalar::Number, text), None) => {
                return report.refuse(
                    &self.place,
                    format!("`{text}` needs a unit, as `{text}s` or `{text}ms`"),
                );
            }
            (Value::Scalar(Scalar::Text, text), _) => match with_unit(text, &SPANS) {
                Some((number, unit)) => times(number, unit),
                None => {
                    return report.refuse(
                        &self.place,
                        format!("a duration as `250ms`, `2s`, `5m` or `1h` is due, not {self}"),
                    );
                }
            },
            (_, Some(unit)) => times(
                self.integer(0, MAX_COUNT, "; write a duration, as `250ms`", report)?,
                unit,
            ),
            (_, None) => {
                return report.refuse(&self.place, format!("a duration as `250ms` is due, not {self}"));
            }
        };
        match span {
            Some(span) if !span.is_zero() && span <= MAX_SPAN => Some(span),
            _ => report.refuse(
                &self.place,
                format!("{self} is not a span of time between 1 ms and 31 days"),
            ),
        }
    }

    /// A size in bytes, up to `most`: `64KiB`, `4MiB` or a bare number.
    pub(in crate::rules) fn size(&self, most: usize, report: &mut Report) -> Option<usize> {
        let bytes = match &self.value {
            Value::Scalar(Scalar::Text, text) => match with_unit(text, &SIZES) {
                Some((number, unit)) => number.checked_mul(unit),
                None => {
                    return report.refuse(
                        &self.place,
                        format!("a size as `64KiB` or `4MiB` is due, not {self}"),
                    );
                }
            },
            Value::Null | Value::Scalar(..) | Value::List(_) | Value::Map(_) => {
                Some(self.integer(0, u64::MAX, "", report)?)
            }
        };
        match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
            Some(bytes) if (1..=most).contains(&bytes) => Some(bytes),
            _ => report.refuse(
                &self.place,
                format!("{self} is not a size between 1 and {most} bytes"),
            ),
        }
    }

    /// One of some words. A word that means `None` is one that this version does not support.
    pub(in crate::rules) fn word<T: Copy>(&self, words: &[Word<T>], report: &mut Report) -> Option<T> {
        let text = self.text(report)?;
        let named = |word: &&Word<T>| word.name == text || word.code == Some(text);
        match words.iter().find(named) {
            Some(Word {
                means: Some(meant), ..
            }) => Some(*meant),
            Some(Word { name, .. }) => {
                report.refuse(&self.place, format!("`{name}` is not supported by this version"))
            }
            None => {
                let known = words.iter().map(|word| word.name);
                let hint = did_you_mean(text, known.clone());
                let known = known.collect::<Vec<_>>().join("`, `");
                report.refuse(&self.place, format!("`{text}` is not one of `{known}`{hint}"))
            }
        }
    }

    fn number(&self, report: &mut Report) -> Option<Number> {
        let read = match &self.value {
            Value::Scalar(Scalar::Number, text) => Number::read(text),
            Value::Scalar(Scalar::Text, text) if Number::read(text).is_some() => {
                return report.refuse(
                    &self.place,
                    format!("a number is due, not {self}: write it without quotes"),
                );
            }
            Value::Null | Value::Scalar(..) | Value::List(_) | Value::Map(_) => None,
        };
        read.or_else(|| report.refuse(&self.place, format!("a number is due, not {self}")))
    }
}

/// A word of the rule files, and the number that Sentinel writes for it.
#[derive(Clone, Copy, Debug)]
pub(in crate::rules) struct Word<T> {
    name: &'static str,
    code: Option<&'static str>,
    means: Option<T>,
}

impl<T> Word<T> {
    /// A word of our own.
    pub(in crate::rules) const fn new(name: &'static str, means: T) -> Self {
        Self {
            name,
            code: None,
            means: Some(means),
        }
    }

    /// A word that Sentinel writes as a number.
    pub(in crate::rules) const fn coded(name: &'static str, code: &'static str, means: T) -> Self {
        Self {
            name,
            code: Some(code),
            means: Some(means),
        }
    }

    /// A word, or its number, that this version does not support.
    pub(in crate::rules) const fn later(name: &'static str, code: &'static str) -> Self {
        Self {
            name,
            code: Some(code),
            means: None,
        }
    }
}

enum Number {
    Whole(u64),
    Negative,
    /// Positive, finite and not whole.
    Fraction(f64),
}

impl Number {
    fn read(text: &str) -> Option<Self> {
        if let Ok(whole) = text.parse() {
            return Some(Self::Whole(whole));
        }
        let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
        if number < 0.0 {
            return Some(Self::Negative);
        }
        // `100.0` as dashboards export it, and `1e3`; prints without a fraction when it is whole.
        Some(
            number
                .to_string()
                .parse()
                .map_or(Self::Fraction(number), Self::Whole),
        )
    }
}

const SPANS: [(&str, Duration); 5] = [
    ("ms", Duration::from_millis(1)),
    ("s", Duration::from_secs(1)),
    ("m", Duration::from_secs(60)),
    ("h", Duration::from_secs(3_600)),
    ("d", Duration::from_secs(86_400)),
];

const SIZES: [(&str, u64); 5] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("KB", 1_000),
    ("MB", 1_000_000),
];

fn with_unit<T: Copy>(text: &str, units: &[(&str, T)]) -> Option<(u64, T)> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let (_, unit) = units
        .iter()
        .find(|(name, _)| *name == unit.trim_start_matches(' '))?;
    Some((number.parse().ok()?, *unit))
}

fn times(number: u64, unit: Duration) -> Option<Duration> {
    unit.checked_mul(u32::try_from(number).ok()?)
}
