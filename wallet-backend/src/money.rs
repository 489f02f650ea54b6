//! Money as whole minor units. No floats, no wrapping: every sum is checked.

use std::fmt;

use crate::mutants::{Mutant, is_on};

/// The largest amount that every JSON client (and Redis' Lua) reads exactly: 2^53 - 1 minor units.
pub const MAX_AMOUNT: i64 = 9_007_199_254_740_991;

/// What one operation moves: 1 to [`MAX_AMOUNT`] minor units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i64);

/// Why a number is not an [`Amount`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number of minor units from 1 to {MAX_AMOUNT}, not {0}")]
pub struct AmountError(pub i128);

impl Amount {
    /// Takes minor units.
    ///
    /// # Errors
    /// [`AmountError`] outside 1 to [`MAX_AMOUNT`].
    pub fn new(minor: i64) -> Result<Self, AmountError> {
        if (1..=MAX_AMOUNT).contains(&minor) || is_on(Mutant::TakesAnyAmount) {
            Ok(Self(minor))
        } else {
            Err(AmountError(minor.into()))
        }
    }

    /// Minor units, at least 1.
    #[must_use]
    pub const fn minor(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An ISO 4217 alphabetic code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// Why a text is not a [`Currency`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an ISO 4217 code such as EUR, not {0:?}")]
pub struct CurrencyError(pub String);

/// ISO 4217 codes whose minor unit is not 1/100, with the number of decimals (ISO 4217 list one, 2024).
const EXPONENTS: [(&str, u8); 27] = [
    ("BHD", 3),
    ("BIF", 0),
    ("CLF", 4),
    ("CLP", 0),
    ("DJF", 0),
    ("GNF", 0),
    ("IQD", 3),
    ("ISK", 0),
    ("JOD", 3),
    ("JPY", 0),
    ("KMF", 0),
    ("KRW", 0),
    ("KWD", 3),
    ("LYD", 3),
    ("OMR", 3),
    ("PYG", 0),
    ("RWF", 0),
    ("TND", 3),
    ("UGX", 0),
    ("UYI", 0),
    ("UYW", 4),
    ("VND", 0),
    ("VUV", 0),
    ("XAF", 0),
    ("XOF", 0),
    ("XPF", 0),
    ("XXX", 0),
];

/// ISO 4217 codes with two decimals (ISO 4217 list one, 2024).
const TWO_DECIMALS: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP \
    BYN BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD \
    GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT \
    MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR \
    SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST \
    XCD YER ZAR ZMW ZWG";

/// Both lists are searched as bytes: a store reads a currency with every record.
fn is_listed(code: [u8; 3]) -> bool {
    let mut two_decimals = TWO_DECIMALS.as_bytes().chunks(4);
    EXPONENTS.iter().any(|(known, _)| known.as_bytes() == code)
        || two_decimals.any(|known| known.starts_with(&code))
}

impl Currency {
    /// Takes a code in upper case.
    ///
    /// # Errors
    /// [`CurrencyError`] for anything that is not on ISO 4217's list.
    pub fn new(code: &str) -> Result<Self, CurrencyError> {
        match code.as_bytes() {
            &[a, b, c] if is_listed([a, b, c]) => Ok(Self([a, b, c])),
            _ => Err(CurrencyError(code.chars().take(16).collect())),
        }
    }

    /// The code.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }

    /// Decimals of the minor unit: 2 for EUR, 0 for JPY.
    #[must_use]
    pub fn exponent(self) -> u8 {
        EXPONENTS
            .iter()
            .find(|(code, _)| code.as_bytes() == self.0)
            .map_or(2, |(_, exponent)| *exponent)
    }

    /// Every known code with its exponent, for the API's description.
    pub fn all() -> impl Iterator<Item = (&'static str, u8)> {
        EXPONENTS
            .iter()
            .copied()
            .chain(TWO_DECIMALS.split_whitespace().map(|code| (code, 2)))
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_at_least_one_and_at_most_two_to_the_53_minus_one() {
        assert_eq!(Amount::new(0), Err(AmountError(0)));
        assert_eq!(Amount::new(-1), Err(AmountError(-1)));
        assert_eq!(Amount::new(MAX_AMOUNT).map(Amount::minor), Ok(MAX_AMOUNT));
        assert_eq!(
            Amount::new(MAX_AMOUNT + 1),
            Err(AmountError(9_007_199_254_740_992))
        );
    }

    #[test]
    fn a_currency_is_a_listed_code_in_upper_case() {
        assert_eq!(Currency::new("EUR").map(Currency::exponent), Ok(2));
        assert_eq!(Currency::new("JPY").map(Currency::exponent), Ok(0));
        for (code, _) in Currency::all() {
            assert!(Currency::new(code).is_ok(), "{code}");
        }
        for bad in ["eur", "EU", "EURO", "", "ZZZ", "UR ", "R E"] {
            assert!(Currency::new(bad).is_err(), "{bad}");
        }
    }
}
