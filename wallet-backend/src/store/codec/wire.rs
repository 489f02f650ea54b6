//! Bytes out and bytes in, for everything the engine keeps.
//!
//! Whole numbers are varints (seven bits a byte, low first), signed ones zigzag, texts length-prefixed. Reading checks
//! every length against what is left, so that no bytes whatever make it panic or allocate more than they are long.

use crate::account::{AccountId, IdError, RequestId, Timestamp};
use crate::money::{Amount, AmountError, Currency, CurrencyError};

/// Why bytes are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::store) enum CodecError {
    #[error("the bytes end in the middle of {0}")]
    Short(&'static str),
    #[error("{0} bytes are left over")]
    LeftOver(usize),
    #[error("{what} has no kind {found}")]
    Kind { what: &'static str, found: u64 },
    #[error("{0} is out of range")]
    Range(&'static str),
    #[error("a text is not UTF-8")]
    Text,
    #[error("an id {0}")]
    Id(#[from] IdError),
    #[error("an amount {0}")]
    Amount(#[from] AmountError),
    #[error("a currency {0}")]
    Currency(#[from] CurrencyError),
    #[error("{0}")]
    Rows(String),
}

/// Appends to a buffer.
#[derive(Debug, Default)]
pub(in crate::store) struct Writer {
    pub(in crate::store) bytes: Vec<u8>,
}

impl Writer {
    pub(in crate::store) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(in crate::store) fn number(&mut self, mut number: u64) {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                return self.bytes.push(low & 0x7F);
            }
            self.bytes.push(low | 0x80);
        }
    }

    pub(in crate::store) fn length(&mut self, length: usize) {
        self.number(u64::try_from(length).unwrap_or(u64::MAX));
    }

    pub(in crate::store) fn signed(&mut self, number: i64) {
        self.number((number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned());
    }

    pub(in crate::store) fn fixed(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    pub(in crate::store) fn text(&mut self, text: &str) {
        self.length(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(in crate::store) fn optional_text(&mut self, text: Option<&str>) {
        match text {
            None => self.byte(0),
            Some(text) => {
                self.byte(1);
                self.text(text);
            }
        }
    }

    pub(in crate::store) fn currency(&mut self, currency: Currency) {
        self.bytes.extend_from_slice(currency.as_str().as_bytes());
    }

    pub(in crate::store) fn amount(&mut self, amount: Amount) {
        self.signed(amount.minor());
    }
}

/// Takes from a slice.
#[derive(Debug)]
pub(in crate::store) struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(in crate::store) fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// Bytes not yet taken.
    pub(in crate::store) fn remaining(&self) -> usize {
        self.left.len()
    }

    /// Whether the next byte is zero: there is one, and it is not taken.
    pub(in crate::store) fn at_zero(&self) -> bool {
        self.left.first() == Some(&0)
    }

    pub(in crate::store) fn take(
        &mut self,
        length: usize,
        what: &'static str,
    ) -> Result<&'a [u8], CodecError> {
        let (taken, left) = self
            .left
            .split_at_checked(length)
            .ok_or(CodecError::Short(what))?;
        self.left = left;
        Ok(taken)
    }

    pub(in crate::store) fn end(&self) -> Result<(), CodecError> {
        match self.left.len() {
            0 => Ok(()),
            more => Err(CodecError::LeftOver(more)),
        }
    }

    pub(in crate::store) fn byte(&mut self, what: &'static str) -> Result<u8, CodecError> {
        let (byte, left) = self.left.split_first().ok_or(CodecError::Short(what))?;
        self.left = left;
        Ok(*byte)
    }

    pub(in crate::store) fn number(&mut self, what: &'static str) -> Result<u64, CodecError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return Err(CodecError::Range(what));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(CodecError::Range(what))
    }

    /// The number of things that follow. Each takes at least one byte, so more than there are bytes is a lie.
    pub(in crate::store) fn length(&mut self, what: &'static str) -> Result<usize, CodecError> {
        let length = usize::try_from(self.number(what)?).map_err(|_| CodecError::Range(what))?;
        if length > self.left.len() {
            return Err(CodecError::Short(what));
        }
        Ok(length)
    }

    pub(in crate::store) fn signed(&mut self, what: &'static str) -> Result<i64, CodecError> {
        let number = self.number(what)?;
        let sign = (number & 1).wrapping_neg();
        Ok(((number >> 1) ^ sign).cast_signed())
    }

    pub(in crate::store) fn fixed(&mut self, what: &'static str) -> Result<u64, CodecError> {
        let bytes = self.take(8, what)?;
        let bytes = bytes.try_into().map_err(|_| CodecError::Short(what))?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(in crate::store) fn text(&mut self, what: &'static str) -> Result<&'a str, CodecError> {
        let length = self.length(what)?;
        let bytes = self.take(length, what)?;
        std::str::from_utf8(bytes).map_err(|_| CodecError::Text)
    }

    pub(in crate::store) fn optional_text(
        &mut self,
        what: &'static str,
    ) -> Result<Option<&'a str>, CodecError> {
        match self.byte(what)? {
            0 => Ok(None),
            1 => Ok(Some(self.text(what)?)),
            found => Err(kind(what, found)),
        }
    }

    pub(in crate::store) fn account(&mut self) -> Result<AccountId, CodecError> {
        Ok(AccountId::new(self.text("an account id")?)?)
    }

    pub(in crate::store) fn request(&mut self) -> Result<RequestId, CodecError> {
        Ok(RequestId::new(self.text("a request id")?)?)
    }

    pub(in crate::store) fn currency(&mut self) -> Result<Currency, CodecError> {
        let code = std::str::from_utf8(self.take(3, "a currency")?).map_err(|_| CodecError::Text)?;
        Ok(Currency::new(code)?)
    }

    pub(in crate::store) fn amount(&mut self) -> Result<Amount, CodecError> {
        Ok(Amount::new(self.signed("an amount")?)?)
    }

    pub(in crate::store) fn timestamp(&mut self) -> Result<Timestamp, CodecError> {
        Ok(Timestamp(self.signed("a time")?))
    }
}

/// An unknown tag.
pub(in crate::store) fn kind(what: &'static str, found: u8) -> CodecError {
    CodecError::Kind {
        what,
        found: found.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back() {
        let numbers = [0, 1, 127, 128, 300, u64::MAX >> 1, u64::MAX];
        let mut out = Writer::default();
        for number in numbers {
            out.number(number);
            out.signed(number.cast_signed());
        }
        let mut back = Reader::new(&out.bytes);
        for number in numbers {
            assert_eq!(back.number("n"), Ok(number));
            assert_eq!(back.signed("n"), Ok(number.cast_signed()));
        }
        assert_eq!(back.end(), Ok(()));
    }

    #[test]
    fn a_number_over_64_bits_is_refused() {
        assert_eq!(Reader::new(&[0xFF; 9]).number("n"), Err(CodecError::Short("n")));
        assert_eq!(Reader::new(&[0xFF; 10]).number("n"), Err(CodecError::Range("n")));
    }

    #[test]
    fn a_length_beyond_the_bytes_is_refused_before_anything_is_allocated() {
        let mut out = Writer::default();
        out.number(1 << 40);
        assert_eq!(
            Reader::new(&out.bytes).length("list"),
            Err(CodecError::Short("list"))
        );
    }
}
