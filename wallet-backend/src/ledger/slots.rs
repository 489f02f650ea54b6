//! Which slots a debit draws on, and what tidying moves.
