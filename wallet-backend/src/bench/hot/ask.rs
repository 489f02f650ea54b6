//! What one client asks for, operation by operation: reproducible, and no id twice.

use crate::bench::traffic;
use crate::config::bench::hot::{Direction, Mode};

use super::text::{SLOTS, hex};

/// The account of every mode but the cold ones.
pub(super) const HOT: &str = "hot";
/// How many accounts the cold modes have.
pub(super) const COLD_ACCOUNTS: u32 = 10_000;
const CREDIT: i64 = 300;
/// Minor units of a debit.
pub(super) const DEBIT: i64 = 200;

/// Which way one operation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Credit,
    Debit,
}

impl Turn {
    /// Of what it moves.
    pub(super) const fn sign(self) -> i64 {
        match self {
            Self::Credit => 1,
            Self::Debit => -1,
        }
    }

    /// The entry's kind in its row.
    pub(super) const fn kind(self) -> u8 {
        match self {
            Self::Credit => 0,
            Self::Debit => 1,
        }
    }
}

/// One operation, by its names.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) turn: Turn,
    pub(super) account: String,
    pub(super) id: String,
    /// Minor units, above 0.
    pub(super) amount: i64,
}

/// One operation, in literals.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) turn: Turn,
    pub(super) account: String,
    /// The request's.
    pub(super) id: String,
    /// Minor units, with its sign.
    pub(super) delta: i64,
    /// The command as it would be kept: a byte for its kind, eight for its amount.
    pub(super) operation: String,
    /// Microseconds since 1970.
    pub(super) at: i64,
}

/// The operations of one client.
#[derive(Debug)]
pub(super) struct Asks {
    direction: Direction,
    cold: bool,
    /// Even for a credit where both are asked for.
    next: u64,
    random: u64,
}

impl Asks {
    /// Client `number`'s, of all clients of all processes.
    pub(super) fn of(number: u32, mode: Mode, direction: Direction) -> Self {
        Self {
            direction,
            cold: mode.is_cold(),
            next: u64::from(number) << 32,
            random: traffic::mix(u64::from(number)),
        }
    }

    pub(super) fn named(&mut self) -> Named {
        let number = self.next;
        self.next = number.wrapping_add(1);
        let turn = match self.direction {
            Direction::Credit => Turn::Credit,
            Direction::Debit => Turn::Debit,
            Direction::Mixed if number.is_multiple_of(2) => Turn::Credit,
            Direction::Mixed => Turn::Debit,
        };
        Named {
            turn,
            account: if self.cold {
                cold(self.chance(COLD_ACCOUNTS))
            } else {
                HOT.to_owned()
            },
            id: traffic::id(number),
            amount: match turn {
                Turn::Credit => CREDIT,
                Turn::Debit => DEBIT,
            },
        }
    }

    /// The same in literals, at microsecond `at`.
    pub(super) fn next(&mut self, at: i64) -> Ask {
        let Named {
            turn,
            account,
            id,
            amount,
        } = self.named();
        Ask {
            turn,
            account: hex(&account),
            id: hex(&id),
            delta: turn.sign().saturating_mul(amount),
            operation: format!("0x{:02x}{amount:016x}", turn.kind()),
            at,
        }
    }

    /// A number below `bound`, which is not 0.
    pub(super) fn chance(&mut self, bound: u32) -> u32 {
        self.random = self.random.wrapping_add(1);
        let drawn = traffic::mix(self.random) % u64::from(bound.max(1));
        u32::try_from(drawn).unwrap_or_default()
    }

    /// A slot for a credit: any but the primary.
    pub(super) fn credit_slot(&mut self) -> u8 {
        1_u8.saturating_add(self.below(SLOTS.saturating_sub(1)))
    }

    /// A slot by hash of the request: any.
    pub(super) fn hashed_slot(&mut self) -> u8 {
        self.below(SLOTS)
    }

    /// As published: `round(rand() * 9) + 1`, so that the first and the last get half of what the others get.
    pub(super) fn rounded_slot(&mut self) -> u8 {
        let eighteenth = self.below(18);
        1_u8.saturating_add(eighteenth.div_ceil(2))
    }

    fn below(&mut self, bound: u8) -> u8 {
        u8::try_from(self.chance(bound.into())).unwrap_or_default()
    }
}

/// The name of cold account `number`.
pub(super) fn cold(number: u32) -> String {
    format!("cold-{number:05}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clients_never_ask_under_the_same_id() {
        let mut ids = std::collections::HashSet::new();
        for number in 0..50 {
            let mut asks = Asks::of(number, Mode::Single, Direction::Mixed);
            ids.extend((0..100).map(|_| asks.next(0).id));
        }
        assert_eq!(ids.len(), 5_000);
    }

    #[test]
    fn mixed_is_credits_and_debits_in_turns() {
        let mut asks = Asks::of(3, Mode::Single, Direction::Mixed);
        let deltas: Vec<i64> = (0..4).map(|_| asks.next(0).delta).collect();
        assert_eq!(deltas, [300, -200, 300, -200]);
    }

    #[test]
    fn the_published_choice_of_a_slot_prefers_the_middle() {
        let mut asks = Asks::of(0, Mode::PublishedSumHaving, Direction::Credit);
        let mut drawn = [0_u32; 11];
        for _ in 0..180_000 {
            drawn[usize::from(asks.rounded_slot())] += 1;
        }
        assert_eq!(drawn[0], 0);
        for slot in [1, 10] {
            assert!((9_000..11_000).contains(&drawn[slot]), "{drawn:?}");
        }
        assert!(
            drawn[2..10].iter().all(|n| (19_000..21_000).contains(n)),
            "{drawn:?}"
        );
    }

    #[test]
    fn cold_operations_are_spread_over_all_accounts() {
        let mut asks = Asks::of(0, Mode::ColdSingle, Direction::Credit);
        let accounts: std::collections::HashSet<String> =
            (0..100_000).map(|_| asks.next(0).account).collect();
        assert!(accounts.len() > 9_900, "{}", accounts.len());
    }
}
