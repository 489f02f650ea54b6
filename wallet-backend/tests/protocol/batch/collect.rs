//! Where a batch's operations put money, and where they take it from: rules 2 to 4.

use super::{Batch, Verdict};
use crate::protocol::core::{self, Decided, View};
use crate::protocol::rules::Rule;
use crate::protocol::scenario::{Act, Op, outcome, terms};
use crate::protocol::session::{Ask, Money, Proof, Step};
use crate::protocol::transaction::{Pass, apply, lock_free_pending, lock_hold, read_money, view};
use crate::protocol::world::{Mode, Row, SLOTS};

impl Batch<'_> {
    pub(super) fn is_hashed(&self, op: Op) -> bool {
        matches!(op.act, Act::Debit { from, .. } if self.accounts[usize::from(from)].hashed)
    }

    /// Every slot of the gates' accounts in the waiting pass; the one slot that is wanted, where it is one, beside the gate
    /// of its account at most.
    pub(super) fn wait_for_slots(&mut self, ops: &[(usize, Op)]) -> Step<()> {
        if self.run.pass == Pass::Waiting {
            let accounts: Vec<u8> = (0..)
                .zip(self.gates)
                .filter(|(_, gate)| *gate)
                .map(|(account, _)| account)
                .collect();
            return self.wait_for_all(&accounts);
        }
        let gated = self.gates != [false; 2];
        let mut accounts = ops.iter().flat_map(|(_, op)| op.act.accounts());
        let first = accounts.next();
        if gated && !accounts.all(|account| Some(account) == first) {
            return Ok(());
        }
        let hashed = ops.iter().find(|(_, op)| !gated && self.is_hashed(*op));
        self.hashed = hashed.and_then(|(_, op)| self.own_slot(*op));
        let credits = ops
            .iter()
            .filter(|(_, op)| op.act.source().is_none())
            .filter_map(|(_, op)| {
                let to = op.act.target()?;
                let journal = self.accounts[usize::from(to)].journal;
                (!journal).then(|| (to, self.choice(*op, to)))
            });
        let mut wanted: Vec<(u8, u8)> = credits.chain(self.hashed).collect();
        wanted.dedup();
        if let [only] = wanted[..] {
            self.lone = Some(only);
            if self.s.rules.keep(Rule::PendingRowComesLast)
                && self.s.rules.keep(Rule::RowsAreReadUnderTheirLock)
            {
                self.s.lock(Row::slot(only.0, only.1), Mode::Exclusive)?;
            }
        }
        Ok(())
    }

    /// Everything that the accounts' money is in, waiting for it. The gates are held.
    pub(super) fn wait_for_all(&mut self, accounts: &[u8]) -> Step<()> {
        let mut rows: Vec<Row> = accounts.iter().flat_map(|account| Row::slots(*account)).collect();
        if !self.s.rules.keep(Rule::PassGoesUpward) {
            rows.reverse();
        }
        for row in rows {
            self.s.lock(row, Mode::Exclusive)?;
        }
        for account in accounts {
            self.whole[usize::from(*account)] = true;
            if self.may_expire(*account) {
                self.s.lock(Row::hold(*account, 0), Mode::Exclusive)?;
            }
        }
        lock_free_pending(accounts, &mut self.s)
    }

    /// The slot that the application chooses for a credit, or that a hashed debit hashes to.
    fn choice(&self, op: Op, of: u8) -> u8 {
        let others = terms::slots(self.terms[usize::from(of)]).saturating_sub(1);
        if others == 0 {
            0
        } else {
            (op.act.slot().saturating_sub(1)) % others + 1
        }
    }

    /// The slot that a hashed debit hashes to.
    fn own_slot(&self, op: Op) -> Option<(u8, u8)> {
        let from = op.act.source()?;
        Some((from, self.choice(op, from)))
    }

    /// A slot under lock for a credit; `None` where it has to be a pending row.
    pub(super) fn slot_for(&mut self, op: Op, to: u8) -> Step<Option<u8>> {
        if self.accounts[usize::from(to)].journal {
            return Ok(None);
        }
        let first = self.choice(op, to);
        let others = terms::slots(self.terms[usize::from(to)]).saturating_sub(1);
        let second = if others > 1 { first % others + 1 } else { first };
        let waits = !self.s.rules.keep(Rule::CreditLegNeverWaits)
            || !self.s.rules.keep(Rule::OneSlotIsWaitedForOnly)
            || self.lone == Some((to, first));
        if waits {
            self.lock_slot(to, first)?;
            return Ok(Some(first));
        }
        for slot in [first, second] {
            if self.s.probe(Row::slot(to, slot))? {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    fn lock_slot(&mut self, account: u8, slot: u8) -> Step<()> {
        let row = Row::slot(account, slot);
        if self.s.rules.keep(Rule::RowsAreReadUnderTheirLock) || self.s.holds(row) {
            self.s.lock(row, Mode::Exclusive)?;
        } else {
            let before = self.s.read(std::iter::once(row))?[0];
            self.s.lock(row, Mode::Exclusive)?;
            self.s.pretend(row, before);
        }
        Ok(())
    }

    /// Rule 2.
    pub(super) fn credit(&mut self, op: Op) -> Step<Verdict> {
        let to = op.act.target().unwrap_or_default();
        let slot = self.slot_for(op, to)?;
        if slot.is_none()
            && !self.accounts[usize::from(to)].journal
            && !self.s.rules.keep(Rule::CreditBecomesPending)
        {
            let Act::Credit { amount, .. } = op.act else {
                return Ok(Verdict::Is(outcome::REFUSED));
            };
            return Ok(Verdict::Is(outcome::POSTED + amount));
        }
        let view = View {
            journal: slot.is_none(),
            ..self.view(to)
        };
        let decided = self.decide(op, &view, None, slot.unwrap_or(0))?;
        self.settle(op, decided)
    }

    fn decide(&self, op: Op, own: &View, target: Option<&View>, slot: u8) -> Step<Decided> {
        core::run(self.accounts, op, own, target, slot, self.s.is_late()).map_err(Ask::Wrong)
    }

    fn view(&self, account: u8) -> View {
        View {
            no_floor: !self.s.rules.keep(Rule::HashedDebitsNeedFloorZero),
            ..view(&self.s, account, self.terms[usize::from(account)])
        }
    }

    /// Writes what was decided, and says what it is.
    fn settle(&mut self, op: Op, decided: Decided) -> Step<Verdict> {
        let Decided::Posted(moved, writes) = decided else {
            return Ok(Verdict::Is(outcome::REFUSED));
        };
        if let Act::Max { from } = op.act {
            let money = Money::Exactly(moved + self.missing(from));
            self.s.proofs.push(Proof { account: from, money });
        }
        let own = match op.act {
            Act::Hold { place, .. } => (0, place),
            _ => (op.pending_place(), 0),
        };
        apply(&mut self.s, &writes, Some(own))?;
        Ok(Verdict::Is(outcome::POSTED + moved))
    }

    /// What the account's committed money lacks of what this transaction may take: the floor, and what it took.
    fn missing(&self, account: u8) -> i8 {
        let loose = Row::slots(account).chain(Row::all_pending(account));
        let own: i8 = loose
            .chain([Row::hold(account, 0)])
            .map(|row| self.s.change(row))
            .sum();
        self.accounts[usize::from(account)].floor - own
    }

    /// Rules 3 and 4: what takes money, or a hold.
    pub(super) fn take(&mut self, op: Op, from: u8) -> Step<Verdict> {
        if self.not_reversible.contains(&op.key) {
            return Ok(Verdict::Is(outcome::REFUSED));
        }
        if self.is_hashed(op) && !self.gates[usize::from(from)] {
            let verdict = self.take_from_own_slot(op, from)?;
            if !matches!(verdict, Verdict::Spills) || self.s.rules.keep(Rule::HashedDebitTakesNoGate) {
                return Ok(verdict);
            }
            self.s.lock(Row::gate(from), Mode::Exclusive)?;
        }
        if matches!(op.act, Act::Capture { .. }) {
            lock_hold(from, &mut self.s)?;
        }
        if !self.s.holds(Row::gate(from)) {
            for row in Row::slots(from).skip(1) {
                self.s.probe(row)?;
            }
            self.s.lock(Row::gate(from), Mode::Exclusive)?;
        }
        if let Some(verdict) = self.try_take(op, from)? {
            return Ok(verdict);
        }
        if self.may_expire(from) && !self.whole[usize::from(from)] {
            lock_hold(from, &mut self.s)?;
            if let Some(verdict) = self.try_take(op, from)? {
                return Ok(verdict);
            }
        }
        if self.whole[usize::from(from)] {
            return Ok(self.refuse(op, from));
        }
        self.collect(op, from)
    }

    /// Whether debits count a hold of the account that may have expired.
    pub(super) fn may_expire(&self, account: u8) -> bool {
        self.s.rules.keep(Rule::ExpiredHoldsCount) && self.accounts[usize::from(account)].hold > 0
    }

    /// A debit from the slot that it hashes to, where it may have that.
    fn take_from_own_slot(&mut self, op: Op, from: u8) -> Step<Verdict> {
        let slot = self.own_slot(op).unwrap_or_default();
        let on_one = self.s.rules.keep(Rule::HashedBatchStaysOnOneSlot);
        if self.lone == Some(slot) || !on_one {
            self.lock_slot(slot.0, slot.1)?;
        } else if self.hashed != Some(slot) || !self.s.probe(Row::slot(slot.0, slot.1))? {
            return Ok(Verdict::Spills);
        }
        let view = self.view(from);
        let decided = self.decide(op, &view, None, 0)?;
        if decided == Decided::Short {
            return Ok(Verdict::Spills);
        }
        self.settle(op, decided)
    }

    /// Decides over what is under lock; `None` where that is not enough.
    fn try_take(&mut self, op: Op, from: u8) -> Step<Option<Verdict>> {
        let max_waits = matches!(op.act, Act::Max { .. }) && self.s.rules.keep(Rule::MaxTakesThePassAtOnce);
        if max_waits && !self.whole[usize::from(from)] {
            return Ok(None);
        }
        let view = self.view(from);
        let decided = match op.act.target() {
            None => self.decide(op, &view, None, 0)?,
            Some(to) => {
                // The credit leg is only looked for once the other is certain.
                let waiting = View {
                    journal: true,
                    ..self.view(to)
                };
                let decided = self.decide(op, &view, Some(&waiting), 0)?;
                match decided {
                    Decided::Posted(..) => {
                        let slot = self.slot_for(op, to)?;
                        let target = View {
                            journal: slot.is_none(),
                            ..self.view(to)
                        };
                        self.decide(op, &view, Some(&target), slot.unwrap_or(0))?
                    }
                    other => other,
                }
            }
        };
        match decided {
            Decided::Short => Ok(None),
            decided => self.settle(op, decided).map(Some),
        }
    }

    /// Pending rows and then slots, as far as they are free, until there is enough. If there is not: the proof, or
    /// the waiting pass.
    fn collect(&mut self, op: Op, from: u8) -> Step<Verdict> {
        if matches!(op.act, Act::Max { .. }) && self.s.rules.keep(Rule::MaxTakesThePassAtOnce) {
            return Ok(Verdict::Busy);
        }
        self.s.try_lock(Row::all_pending(from))?;
        if let Some(verdict) = self.try_take(op, from)? {
            return Ok(verdict);
        }
        for slot in 1..SLOTS {
            let row = Row::slot(from, slot);
            if !self.s.holds(row)
                && self.s.probe(row)?
                && let Some(verdict) = self.try_take(op, from)?
            {
                return Ok(verdict);
            }
        }
        if self.s.rules.keep(Rule::RefusalIsProven) && !self.is_short_in_one_snapshot(op, from)? {
            return Ok(Verdict::Busy);
        }
        Ok(self.refuse(op, from))
    }

    /// Rule 3's proof: all that is committed, and what this transaction changed, in one plain read.
    fn is_short_in_one_snapshot(&mut self, op: Op, from: u8) -> Step<bool> {
        let values = read_money(from, self.s.rules.keep(Rule::ProofIsOneRead), &mut self.s)?;
        let mut view = View {
            primary: true,
            ..self.view(from)
        };
        let (clock, hold) = (values[0], values[values.len() - 1]);
        let mut loose = values.into_iter().skip(1);
        view.slots.fill_with(|| loose.next().unwrap_or(0));
        view.pending.fill_with(|| loose.next().unwrap_or(0));
        let mut late = self.s.is_late();
        if self.may_expire(from) && self.s.rules.keep(Rule::TimeIsOfTheSnapshot) {
            view.holds[0] = hold;
            late = clock == 1;
        }
        let to = op.act.target().map(|to| View {
            journal: true,
            ..self.view(to)
        });
        let decided = core::run(self.accounts, op, &view, to.as_ref(), 0, late).map_err(Ask::Wrong)?;
        Ok(decided == Decided::Short)
    }

    fn refuse(&mut self, op: Op, from: u8) -> Verdict {
        let asked = match op.act {
            Act::Debit { amount, .. }
            | Act::Hold { amount, .. }
            | Act::Transfer { amount, .. }
            | Act::Reversal { amount, .. } => amount,
            Act::Max { .. } | Act::Credit { .. } | Act::Capture { .. } => 1,
        };
        let money = Money::Below(asked + self.missing(from));
        self.s.proofs.push(Proof { account: from, money });
        Verdict::Is(outcome::REFUSED)
    }
}
