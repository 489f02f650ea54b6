-- The ledger's rows. Ids are compared as bytes (VARBINARY), amounts are minor units, times are microseconds since
-- 1970-01-01T00:00:00Z. No foreign keys: they lock parents outside the lock order.

CREATE TABLE account (
  account_id  VARBINARY(64)    NOT NULL,
  currency    VARBINARY(3)     NOT NULL,
  -- 0 active, 1 debit_frozen, 2 frozen, 3 closed
  status      TINYINT UNSIGNED NOT NULL,
  floor       BIGINT           NOT NULL,
  -- Where credits may go; sums and collection range over all slot rows.
  slots       TINYINT UNSIGNED NOT NULL,
  -- 0 slot, 1 upsert, 2 journal
  credit_mode TINYINT UNSIGNED NOT NULL,
  -- 0 primary, 1 hashed
  debit_mode  TINYINT UNSIGNED NOT NULL,
  PRIMARY KEY (account_id),
  KEY split (slots, account_id),
  CONSTRAINT account_status CHECK (status <= 3),
  CONSTRAINT account_floor CHECK (floor BETWEEN 0 AND 9007199254740991),
  CONSTRAINT account_slots CHECK (slots BETWEEN 1 AND 64),
  CONSTRAINT account_credit_mode CHECK (credit_mode <= 2),
  CONSTRAINT account_debit_mode CHECK (debit_mode <= 1),
  CONSTRAINT account_hashed_without_floor CHECK (debit_mode = 0 OR floor = 0)
) ENGINE = InnoDB DEFAULT CHARSET = binary;

CREATE TABLE wallet_slot (
  account_id VARBINARY(64)    NOT NULL,
  slot_index TINYINT UNSIGNED NOT NULL,
  balance    BIGINT           NOT NULL DEFAULT 0,
  -- That of its last entry; 0 before the first.
  version    BIGINT UNSIGNED  NOT NULL DEFAULT 0,
  -- On slot 0: what the account's open holds have left, expired or not. On others 0.
  held       BIGINT           NOT NULL DEFAULT 0,
  -- The time of its last entry; no entry of the slot has a later one.
  at_us      BIGINT           NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, slot_index),
  CONSTRAINT slot_index_range CHECK (slot_index <= 63),
  CONSTRAINT slot_balance CHECK (balance >= 0),
  CONSTRAINT slot_held CHECK (held >= 0 AND (slot_index = 0 OR held = 0))
) ENGINE = InnoDB DEFAULT CHARSET = binary;

CREATE TABLE account_entry (
  account_id    VARBINARY(64)    NOT NULL,
  slot_index    TINYINT UNSIGNED NOT NULL,
  version       BIGINT UNSIGNED  NOT NULL,
  -- 0 credit, 1 debit, 2 transfer_in, 3 transfer_out, 4 consolidate, 5 settle, 6 hold, 7 capture, 8 release, 9 reversal
  kind          TINYINT UNSIGNED NOT NULL,
  request_id    VARBINARY(64)    NULL,
  delta         BIGINT           NOT NULL,
  held_delta    BIGINT           NOT NULL,
  balance_after BIGINT           NOT NULL,
  -- On slot 0: what the account's open holds have left after it. On others 0.
  held_after    BIGINT           NOT NULL,
  -- Rises with the version: a clock that is set back stands still for the slot.
  at_us         BIGINT           NOT NULL,
  -- 0 the other account of a transfer, 1 the other slot of a consolidation, 2 the hold, 3 the request reversed
  link_kind     TINYINT UNSIGNED NULL,
  link          VARBINARY(64)    NULL,
  PRIMARY KEY (account_id, slot_index, version),
  CONSTRAINT entry_kind CHECK (kind <= 9),
  CONSTRAINT entry_balance_after CHECK (balance_after >= 0),
  CONSTRAINT entry_held_after CHECK (held_after >= 0 AND (slot_index = 0 OR held_after = 0)),
  CONSTRAINT entry_link CHECK ((link_kind IS NULL) = (link IS NULL) AND (link_kind IS NULL OR link_kind <= 3))
) ENGINE = InnoDB DEFAULT CHARSET = binary;

CREATE TABLE request (
  account_id    VARBINARY(64)    NOT NULL,
  request_id    VARBINARY(64)    NOT NULL,
  -- The command; NULL for an id that was abandoned before its command was seen.
  operation     VARBINARY(1024)  NULL,
  -- What it became. NULL: posted, with one leg on the account itself, which the next three columns tell.
  outcome       BLOB             NULL,
  slot_index    TINYINT UNSIGNED NULL,
  version       BIGINT UNSIGNED  NULL,
  balance_after BIGINT           NULL,
  at_us         BIGINT           NOT NULL,
  PRIMARY KEY (account_id, request_id),
  CONSTRAINT request_outcome CHECK (
    (outcome IS NULL) = (slot_index IS NOT NULL AND version IS NOT NULL AND balance_after IS NOT NULL)
  )
) ENGINE = InnoDB DEFAULT CHARSET = binary;

-- What was reversed, so that nothing is reversed twice.
CREATE TABLE reversal (
  account_id VARBINARY(64) NOT NULL,
  reverses   VARBINARY(64) NOT NULL,
  request_id VARBINARY(64) NOT NULL,
  PRIMARY KEY (account_id, reverses)
) ENGINE = InnoDB DEFAULT CHARSET = binary;

CREATE TABLE hold (
  account_id    VARBINARY(64)    NOT NULL,
  hold_id       VARBINARY(64)    NOT NULL,
  amount        BIGINT           NOT NULL,
  captured      BIGINT           NOT NULL DEFAULT 0,
  released      BIGINT           NOT NULL DEFAULT 0,
  -- 0 open, 1 captured, 2 released, 3 expired
  state         TINYINT UNSIGNED NOT NULL DEFAULT 0,
  expires_at_us BIGINT           NULL,
  -- Of an expired one: the version of the entry on slot 0 that gave its rest back.
  swept_version BIGINT UNSIGNED  NULL,
  PRIMARY KEY (account_id, hold_id),
  KEY of_account (account_id, state, expires_at_us),
  KEY deadline (state, expires_at_us),
  CONSTRAINT hold_state CHECK (state <= 3),
  CONSTRAINT hold_amounts CHECK (
    amount > 0 AND captured >= 0 AND released >= 0 AND captured + released <= amount
    AND (state = 0) = (captured + released < amount)
  ),
  CONSTRAINT hold_swept CHECK ((state = 3) = (swept_version IS NOT NULL))
) ENGINE = InnoDB DEFAULT CHARSET = binary;

-- Credits that were accepted and have not reached a slot yet, and those that have.
CREATE TABLE pending_credit (
  id              BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  account_id      VARBINARY(64)   NOT NULL,
  -- The account whose request it is: the same, or of a transfer the other one.
  source_id       VARBINARY(64)   NOT NULL,
  request_id      VARBINARY(64)   NOT NULL,
  amount          BIGINT          NOT NULL,
  at_us           BIGINT          NOT NULL,
  -- The version of the entry on slot 0 that settled it; NULL while it waits.
  settled_version BIGINT UNSIGNED NULL,
  PRIMARY KEY (id),
  UNIQUE KEY of_request (source_id, request_id, account_id),
  KEY waiting (settled_version, account_id, id),
  KEY settled (account_id, settled_version),
  CONSTRAINT pending_amount CHECK (amount > 0)
) ENGINE = InnoDB DEFAULT CHARSET = binary;

-- Entries that have no number among all of the ledger's yet: a row for each run of consecutive versions of one slot
-- that a transaction wrote, in the order in which it decided them.
CREATE TABLE outbox (
  id            BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT,
  account_id    VARBINARY(64)    NOT NULL,
  slot_index    TINYINT UNSIGNED NOT NULL,
  first_version BIGINT UNSIGNED  NOT NULL,
  entries       INT UNSIGNED     NOT NULL,
  PRIMARY KEY (id),
  CONSTRAINT outbox_entries CHECK (entries > 0)
) ENGINE = InnoDB DEFAULT CHARSET = binary;

-- Numbers of entries, from 1 without a gap: a row for each run.
CREATE TABLE event (
  first_number  BIGINT UNSIGNED  NOT NULL,
  entries       INT UNSIGNED     NOT NULL,
  account_id    VARBINARY(64)    NOT NULL,
  slot_index    TINYINT UNSIGNED NOT NULL,
  first_version BIGINT UNSIGNED  NOT NULL,
  PRIMARY KEY (first_number),
  KEY of_account (account_id, first_number),
  CONSTRAINT event_entries CHECK (entries > 0)
) ENGINE = InnoDB DEFAULT CHARSET = binary;

-- One row: which ledger this is, and how many events it has.
CREATE TABLE ledger (
  one          TINYINT UNSIGNED NOT NULL,
  ledger_id    BIGINT UNSIGNED  NOT NULL,
  newest_event BIGINT UNSIGNED  NOT NULL DEFAULT 0,
  PRIMARY KEY (one),
  CONSTRAINT ledger_one CHECK (one = 1)
) ENGINE = InnoDB DEFAULT CHARSET = binary;

-- Work on a timer that one process at a time does: whose turn it is, until when, and how often it has changed hands.
CREATE TABLE job (
  name           VARBINARY(64)   NOT NULL,
  task_id        VARBINARY(64)   NULL,
  lease_until_us BIGINT          NOT NULL DEFAULT 0,
  fence          BIGINT UNSIGNED NOT NULL DEFAULT 0,
  PRIMARY KEY (name)
) ENGINE = InnoDB DEFAULT CHARSET = binary;
