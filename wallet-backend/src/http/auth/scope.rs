//! What a caller may do, and what a route asks for.

use std::fmt;
use std::str::FromStr;

/// One thing that a key may be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Accounts, statements, requests, metrics.
    Read,
    /// Bringing money into an account.
    Credit,
    /// Taking it out, moving it between accounts, setting it aside.
    Debit,
    /// Opening and changing accounts, and everything else.
    Admin,
}

/// Why a text is no list of scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scopes are one or more of read, credit, debit, admin, each once, with commas between them")]
pub struct ScopesError;

/// At least one scope. Written as `read,credit`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Scopes(u8);

/// What a route asks for: all the scopes of at least one of these groups. Empty: whoever may call at all.
pub(in crate::http) type Needs = &'static [&'static [Scope]];

impl Scope {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Credit, Self::Debit, Self::Admin];

    /// The name in the keys file and in `/openapi.json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Credit => "credit",
            Self::Debit => "debit",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Credit => 2,
            Self::Debit => 4,
            Self::Admin => 8,
        }
    }
}

impl Scopes {
    /// What a token of the token file may do, and who calls where nobody is asked who they are.
    pub const EVERYTHING: Self = Self(Scope::Admin.bit());

    /// `admin` has every other scope.
    #[must_use]
    pub const fn have(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }

    /// Whether a route that needs this may be used.
    pub(in crate::http) fn satisfy(self, needs: Needs) -> bool {
        let mut groups = needs.iter();
        needs.is_empty() || groups.any(|group| group.iter().all(|scope| self.have(*scope)))
    }

    fn listed(self) -> impl Iterator<Item = &'static str> {
        let listed = Scope::ALL
            .into_iter()
            .filter(move |scope| self.0 & scope.bit() != 0);
        listed.map(Scope::as_str)
    }
}

impl FromStr for Scopes {
    type Err = ScopesError;

    fn from_str(text: &str) -> Result<Self, ScopesError> {
        text.split(',').try_fold(Self(0), |Self(bits), name| {
            let scope = Scope::ALL.into_iter().find(|scope| scope.as_str() == name);
            let bit = scope.ok_or(ScopesError)?.bit();
            if bits & bit == 0 {
                Ok(Self(bits | bit))
            } else {
                Err(ScopesError)
            }
        })
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.listed().collect::<Vec<_>>().join(","))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Scopes {
        text.parse().unwrap()
    }

    #[test]
    fn scopes_are_written_as_they_are_read_in_one_order() {
        assert_eq!(scopes("debit,read").to_string(), "read,debit");
        for bad in ["", "read,", "read,read", "write", "Read", "read, debit"] {
            assert_eq!(bad.parse::<Scopes>(), Err(ScopesError), "{bad:?}");
        }
    }

    #[test]
    fn a_need_is_met_by_all_of_one_of_its_groups_and_admin_meets_any() {
        const BOTH: Needs = &[&[Scope::Credit, Scope::Debit]];
        const EITHER: Needs = &[&[Scope::Credit], &[Scope::Debit]];
        for (held, both, either) in [
            ("read", false, false),
            ("credit", false, true),
            ("debit,read", false, true),
            ("credit,debit", true, true),
            ("admin", true, true),
        ] {
            let met = (scopes(held).satisfy(BOTH), scopes(held).satisfy(EITHER));
            assert_eq!(met, (both, either), "{held}");
            assert!(scopes(held).satisfy(&[]));
        }
    }
}
