//! JSON in one spelling: no white space, members in the order in which they are written, whole numbers only.
//!
//! Texts are escaped as RFC 8785 has it (and as most writers do): `\" \\ \b \f \n \r \t`, other control characters as
//! `\u00xx` in lower case, everything else as it is. So a reader that keeps the order of members writes the same bytes.

/// An object that is being written.
#[derive(Debug)]
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

/// Appends an object.
pub(super) fn object(out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    fill(&mut Object { out, first: true });
    out.push(b'}');
}

impl Object<'_> {
    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        quote(self.out, text);
    }

    /// `null` for none.
    pub(super) fn optional_text(&mut self, name: &str, text: Option<&str>) {
        match text {
            Some(text) => self.text(name, text),
            None => {
                self.name(name);
                self.out.extend_from_slice(b"null");
            }
        }
    }

    pub(super) fn signed(&mut self, name: &str, number: i64) {
        self.name(name);
        if number < 0 {
            self.out.push(b'-');
        }
        digits(self.out, number.unsigned_abs());
    }

    pub(super) fn number(&mut self, name: &str, number: u64) {
        self.name(name);
        digits(self.out, number);
    }

    pub(super) fn flag(&mut self, name: &str, flag: bool) {
        self.name(name);
        self.out
            .extend_from_slice(if flag { b"true".as_slice() } else { b"false" });
    }

    pub(super) fn object(&mut self, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
        self.name(name);
        object(self.out, fill);
    }

    /// An array of objects. Returns where in the line each of them stands.
    pub(super) fn array<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut fill: impl FnMut(&mut Object<'_>, T),
    ) -> Vec<std::ops::Range<usize>> {
        self.name(name);
        self.out.push(b'[');
        let mut places: Vec<std::ops::Range<usize>> = Vec::new();
        for item in items {
            if !places.is_empty() {
                self.out.push(b',');
            }
            let start = self.out.len();
            object(self.out, |object| fill(object, item));
            places.push(start..self.out.len());
        }
        self.out.push(b']');
        places
    }

    /// Names are our own and need no escape.
    fn name(&mut self, name: &str) {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

fn quote(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    // Almost every text is an id or a word, and needs no escape.
    while let Some(at) = rest.iter().position(|byte| needs_escape(*byte)) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        rest = match special.split_first() {
            Some((byte, behind)) => {
                escape(out, *byte);
                behind
            }
            None => special,
        };
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

const fn needs_escape(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0C => out.extend_from_slice(b"\\f"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
    }
}

/// Without the formatter, which would be most of a line's cost.
fn digits(out: &mut Vec<u8>, mut number: u64) {
    let start = out.len();
    loop {
        let [digit, ..] = (number % 10).to_le_bytes();
        out.push(b'0' | digit);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    if let Some(written) = out.get_mut(start..) {
        written.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(fill: impl FnOnce(&mut Object<'_>)) -> String {
        let mut out = Vec::new();
        object(&mut out, fill);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn members_stand_in_the_order_in_which_they_are_written() {
        let line = written(|object| {
            object.signed("b", -12);
            object.number("a", 0);
            object.optional_text("none", None);
            object.flag("yes", true);
            object.object("inner", |inner| inner.text("t", "é/"));
            let places = object.array("list", [1_u64, 22], |item, number| item.number("n", number));
            assert_eq!(places.len(), 2);
            object.array("empty", [0_u64; 0], |item, number| item.number("n", number));
        });
        assert_eq!(
            line,
            r#"{"b":-12,"a":0,"none":null,"yes":true,"inner":{"t":"é/"},"list":[{"n":1},{"n":22}],"empty":[]}"#
        );
    }

    #[test]
    fn the_extreme_numbers_are_whole() {
        let line = written(|object| {
            object.signed("least", i64::MIN);
            object.signed("most", i64::MAX);
            object.number("all", u64::MAX);
        });
        assert_eq!(
            line,
            r#"{"least":-9223372036854775808,"most":9223372036854775807,"all":18446744073709551615}"#
        );
    }

    #[test]
    fn a_text_is_escaped_in_one_way() {
        let line = written(|object| object.text("t", "\"\\\u{8}\u{c}\n\r\t\u{1}\u{1f}\u{7f}"));
        let expected = concat!(r#"{"t":"\"\\\b\f\n\r\t\u0001\u001f"#, "\u{7f}", r#""}"#);
        assert_eq!(line, expected);
    }
}
