//! Which form of a statement a client takes, and whether it takes a stream of events: the `Accept` header against what there is (RFC 9110, 12.5.1).
//!
//! Each form has the quality of the most specific range that names it. The highest one wins; of several, the one that
//! was named most exactly, so that `application/x-ndjson, */*` is NDJSON; of these the first in [`Form::ALL`].

use http::HeaderMap;
use http::header::ACCEPT;

use super::error::{Code, Problem};

/// How entries are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One page, as one object.
    Json,
    /// An entry a line, as JSON.
    Lines,
    /// RFC 4180 with a header row.
    Csv,
}

/// How exactly a range names a form, and its quality in thousandths.
type Match = (u8, u16);

impl Form {
    const ALL: [Self; 3] = [Self::Json, Self::Lines, Self::Csv];

    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Lines => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8; header=present",
        }
    }

    fn media(self) -> &'static str {
        let media = self.content_type();
        media.split_once(';').map_or(media, |(media, _)| media)
    }

    /// The form to answer in.
    ///
    /// # Errors
    /// 406 where the client takes none of them.
    pub(super) fn accepted(headers: &HeaderMap) -> Result<Self, Problem> {
        let ranges = ranges(headers);
        if ranges.is_empty() {
            return Ok(Self::Json);
        }
        let quality = |form: Self| quality(&ranges, form.media());
        let best = Self::ALL
            .into_iter()
            .map(|form| (quality(form), form))
            .filter(|((_, quality), _)| *quality > 0)
            // Of equals the last one is taken.
            .rev()
            .max_by_key(|((exact, quality), _)| (*quality, *exact));
        best.map(|(_, form)| form).ok_or_else(|| {
            Problem::new(
                Code::NotAcceptable,
                "entries are served as application/json, application/x-ndjson and text/csv",
            )
        })
    }
}

/// Whether a client takes a media type at all.
pub(super) fn takes(headers: &HeaderMap, media: &str) -> bool {
    let ranges = ranges(headers);
    ranges.is_empty() || quality(&ranges, media).1 > 0
}

fn ranges(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(ACCEPT).iter();
    values
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .map(|range| range.trim().to_ascii_lowercase())
        .filter(|range| !range.is_empty())
        .collect()
}

/// What the most specific range says of a media type.
fn quality(ranges: &[String], media: &str) -> Match {
    let matches = ranges.iter().filter_map(|range| matched(range, media));
    matches.max_by_key(|(exact, _)| *exact).unwrap_or_default()
}

/// How a range such as `text/*;q=0.5` names a media type, if it does.
fn matched(range: &str, media: &str) -> Option<Match> {
    let mut parts = range.split(';').map(str::trim);
    let named = parts.next()?;
    let exact = match named.strip_suffix("/*") {
        Some("*") => 1,
        Some(kind) if media.split('/').next() == Some(kind) => 2,
        None if named == media => 3,
        Some(_) | None => return None,
    };
    let weight = parts.find_map(|part| part.strip_prefix("q="));
    Some((exact, weight.map_or(1_000, thousandths)))
}

/// `0`, `0.5`, `1.000`: anything else counts as 0, so that what is not understood is not sent.
fn thousandths(weight: &str) -> u16 {
    let (whole, decimals) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    match (whole, digits) {
        ("1", true) => 1_000,
        ("0", true) => format!("{decimals:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accept: &[&str]) -> Option<Form> {
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(ACCEPT, value.parse().unwrap());
        }
        Form::accepted(&headers).ok()
    }

    #[test]
    fn the_form_that_a_client_likes_best_is_chosen() {
        for (accept, expected) in [
            (&[][..], Some(Form::Json)),
            (&[""], Some(Form::Json)),
            (&["*/*"], Some(Form::Json)),
            (&["application/*"], Some(Form::Json)),
            (&["text/html, application/xhtml+xml, */*;q=0.8"], Some(Form::Json)),
            (&["APPLICATION/X-NDJSON"], Some(Form::Lines)),
            (&["text/csv;q=0.5, application/x-ndjson;q=0.6"], Some(Form::Lines)),
            (&["application/x-ndjson, */*"], Some(Form::Lines)),
            (&["application/json;q=0.1", "text/csv"], Some(Form::Csv)),
            (&["text/*"], Some(Form::Csv)),
            (&["*/*, application/json;q=0"], Some(Form::Lines)),
            (&["text/html"], None),
            (&["text/csv;q=0"], None),
            (&["text/csv;q=much"], None),
        ] {
            assert_eq!(form(accept), expected, "{accept:?}");
        }
    }
}
