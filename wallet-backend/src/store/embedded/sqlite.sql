-- Amounts and balances are whole minor units. Times are UTC, RFC 3339 with six decimals, so that they sort as texts.
CREATE TABLE export (
  root TEXT NOT NULL,           -- of the history that this was made from: RECORDS:DIGEST
  records INTEGER NOT NULL
) STRICT;
CREATE TABLE account (
  account_id TEXT NOT NULL PRIMARY KEY,
  currency TEXT NOT NULL,
  status TEXT NOT NULL,         -- active, debit_frozen, frozen, closed
  floor INTEGER NOT NULL,
  slots INTEGER NOT NULL,       -- where credits may go; rows of slot can be more
  credit TEXT NOT NULL,         -- slot, upsert, journal
  debit TEXT NOT NULL           -- primary, hashed
) STRICT, WITHOUT ROWID;
CREATE TABLE slot (
  account_id TEXT NOT NULL,
  slot INTEGER NOT NULL,
  balance INTEGER NOT NULL,
  version INTEGER NOT NULL,     -- of its last entry, 0 before the first
  PRIMARY KEY (account_id, slot)
) STRICT, WITHOUT ROWID;
CREATE TABLE entry (
  account_id TEXT NOT NULL,
  slot INTEGER NOT NULL,
  version INTEGER NOT NULL,
  type TEXT NOT NULL,
  request_id TEXT,
  delta INTEGER NOT NULL,       -- added to the slot
  held_delta INTEGER NOT NULL,  -- added to what is held
  balance_after INTEGER NOT NULL,
  at TEXT NOT NULL,
  link_kind TEXT,               -- transfer, slot, hold, reversed
  link_id TEXT,
  record INTEGER NOT NULL,      -- the line of the export as NDJSON, from 1
  PRIMARY KEY (account_id, slot, version)
) STRICT, WITHOUT ROWID;
CREATE TABLE request (
  account_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  type TEXT,                    -- what was asked; NULL where the id was abandoned
  asked INTEGER,                -- NULL for all there is, the rest of a hold, and what has no amount
  to_account_id TEXT,
  hold_id TEXT,
  reverses TEXT,
  memo TEXT,
  result TEXT NOT NULL,         -- posted, pending, amended, refused
  code TEXT,                    -- of a refusal
  amount INTEGER,               -- of a receipt
  at TEXT,                      -- of a receipt
  record INTEGER NOT NULL,
  PRIMARY KEY (account_id, request_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE hold (
  account_id TEXT NOT NULL,
  hold_id TEXT NOT NULL,
  amount INTEGER NOT NULL,
  captured INTEGER NOT NULL,
  released INTEGER NOT NULL,
  status TEXT NOT NULL,         -- open, captured, released, expired
  expires_at TEXT,
  PRIMARY KEY (account_id, hold_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE pending_credit (   -- those that have not reached a slot
  account_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  amount INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  from_account_id TEXT,         -- of a transfer
  at TEXT NOT NULL,
  PRIMARY KEY (account_id, number)
) STRICT, WITHOUT ROWID;
