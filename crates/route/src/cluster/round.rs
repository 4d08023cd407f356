//! One round of questions: which nodes are asked what the cluster looks like, and what their reports amount to.
//!
//! ```text
//!   the first node is asked
//!     reports what is known ----------------------> over: nothing has changed
//!     reports something else ---- two more are asked; most of the three decide
//!     does not answer soon ------ the next one is asked meanwhile
//!     fails --------------------- the next one
//! ```
//!
//! A node that has forgotten its cluster is not counted, and one that belongs to another cluster by now only if it is a seed and no member
//! of the known one answers.

use std::collections::HashSet;

use super::address::Address;
use super::map::SlotMap;
use super::refresh::RefreshTerms;
use super::report::Report;
use super::vote::vote;
use crate::limits::{REFRESH_ASKED_MAX, REFRESH_QUESTIONS_MAX, REFRESH_VOTES};

/// A round under way.
#[derive(Debug)]
pub(super) struct Round {
    began_us: u64,
    /// Those to be asked yet, the last one first.
    candidates: Vec<Address>,
    open: Vec<Question>,
    asked_us: u64,
    reports: Vec<Report>,
    /// Whether the first report says what is known.
    is_as_known: bool,
    seeds: Box<[Address]>,
    /// Reports of seeds that have no member in common with what is known.
    foreign: Vec<Report>,
    /// Those that did not answer, for the next round to ask them last.
    failed: Vec<Address>,
}

/// A node that has been asked.
#[derive(Debug)]
struct Question {
    number: u64,
    address: Address,
    asked_us: u64,
}

/// What a round needs.
pub(super) enum Progress {
    /// This node is to be asked.
    Ask(Address),
    /// Nothing before this time.
    Wait(u64),
    /// It is over.
    Over,
}

impl Round {
    /// Asks `candidates` in this order; repetitions are left out.
    pub(super) fn new(candidates: impl IntoIterator<Item = Address>, seeds: &[Address], now_us: u64) -> Self {
        let mut seen = HashSet::new();
        let first_time = |address: &Address| seen.insert(address.clone());
        let mut candidates: Vec<_> = candidates.into_iter().filter(first_time).take(REFRESH_ASKED_MAX).collect();
        candidates.reverse();
        Self {
            began_us: now_us,
            candidates,
            open: Vec::new(),
            asked_us: now_us,
            reports: Vec::new(),
            is_as_known: false,
            seeds: seeds.into(),
            foreign: Vec::new(),
            failed: Vec::new(),
        }
    }

    pub(super) fn began_us(&self) -> u64 {
        self.began_us
    }

    pub(super) fn failed(&self) -> &[Address] {
        &self.failed
    }

    /// How many more reports are needed: one, or as many as decide once one differs from what is known.
    fn missing(&self) -> usize {
        match self.reports.len() {
            0 => 1,
            1 if self.is_as_known => 0,
            several => REFRESH_VOTES.saturating_sub(several),
        }
    }

    /// What is to be done now. Questions that have taken too long count as failed.
    pub(super) fn poll(&mut self, terms: &RefreshTerms, now_us: u64) -> Progress {
        let limit_us = terms.answer_limit_us;
        let (open, late) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|question: &Question| now_us < question.asked_us.saturating_add(limit_us));
        self.open = open;
        self.failed.extend(late.into_iter().map(|question| question.address));
        let missing = self.missing();
        let is_answered = !self.reports.is_empty();
        let patience_us = self.began_us.saturating_add(terms.patience_us);
        if missing == 0 || is_answered && now_us >= patience_us {
            return Progress::Over;
        }
        let Some(next) = self.candidates.pop() else {
            return match self.open.iter().map(|question| question.asked_us.saturating_add(limit_us)).min() {
                None => Progress::Over,
                Some(late_us) if is_answered => Progress::Wait(late_us.min(patience_us)),
                Some(late_us) => Progress::Wait(late_us),
            };
        };
        let hedge_us = self.asked_us.saturating_add(terms.hedge_us);
        let is_slow = now_us >= hedge_us;
        if self.open.len() < missing.min(REFRESH_QUESTIONS_MAX) || is_slow && self.open.len() < REFRESH_QUESTIONS_MAX {
            return Progress::Ask(next);
        }
        self.candidates.push(next);
        let late_us = self.open.iter().map(|question| question.asked_us.saturating_add(limit_us)).min();
        let mut wait_us = late_us.unwrap_or(patience_us);
        if !is_slow {
            wait_us = wait_us.min(hedge_us);
        }
        if is_answered {
            wait_us = wait_us.min(patience_us);
        }
        Progress::Wait(wait_us)
    }

    /// The node has been asked.
    pub(super) fn note_asked(&mut self, number: u64, address: Address, now_us: u64) {
        self.asked_us = now_us;
        self.open.push(Question { number, address, asked_us: now_us });
    }

    /// A node has answered, or has failed. Answers to questions that have taken too long are not counted.
    pub(super) fn on_answer(&mut self, number: u64, report: Option<Report>, known: Option<&SlotMap>) {
        let Some(at) = self.open.iter().position(|question| question.number == number) else { return };
        let question = self.open.remove(at);
        match report {
            None => self.failed.push(question.address),
            Some(report) if known.is_some_and(|known| !is_kin(&report, known)) => {
                // Addresses of members are given to other machines. What is found there is none of this client's business, unless the settings name it.
                if self.seeds.contains(&question.address) {
                    self.foreign.push(report);
                } else {
                    self.failed.push(question.address);
                }
            }
            Some(report) => {
                let says = |known: &SlotMap| vote(std::slice::from_ref(&report), None) == *known;
                self.is_as_known = self.reports.is_empty() && known.is_some_and(says);
                self.reports.push(report);
            }
        }
    }

    /// What the reports amount to; `None` if there are none.
    pub(super) fn outcome(&self, known: Option<&SlotMap>) -> Option<SlotMap> {
        match (&self.reports[..], &self.foreign[..]) {
            ([], []) => None,
            // All that answers is another cluster, and the settings name it: it has been made anew, and nothing that is known counts.
            ([], foreign) => Some(vote(foreign, None)),
            (reports, _) => Some(vote(reports, known)),
        }
    }
}

/// Whether a report is about the cluster that is known: they have a member in common, or members have no ids.
fn is_kin(report: &Report, known: &SlotMap) -> bool {
    let known: HashSet<&str> = known.members().map(|member| &*member.id).collect();
    let members = || report.claims.iter().flat_map(|claim| std::iter::once(&claim.primary).chain(&claim.replicas));
    known.iter().all(|id| id.is_empty()) || members().any(|member| member.id.is_empty() || known.contains(&*member.id))
}
