//! Nodes that leave replies out, send them twice or too late in the seeded world, on lanes whose replies have to be proved.

use super::Chance;
use respool_proxy::IntegrityTerms;
use std::collections::VecDeque;

/// What is checked in the world of a seed.
pub(super) fn terms(seed: u64) -> IntegrityTerms {
    let every = [1, 0, 3, 1][seed as usize % 4];
    IntegrityTerms { every, run: [0, 1, 4][seed as usize % 3], held_bytes: 200_000 }
}

/// What one connection of a node will do wrong, once: two wrongs can look like a right.
#[derive(Default)]
pub(super) struct Misdeeds {
    is_rogue: bool,
    /// Every reply stands between two echoes, so it may as well change places with one.
    may_swap: bool,
    /// It has been asked for an echo, so its replies have to be proved.
    is_proved: bool,
}

impl Misdeeds {
    pub(super) fn of(seed: u64, is_rogue: bool) -> Self {
        let terms = terms(seed);
        Self { is_rogue: is_rogue && terms.every == 1, may_swap: terms.run == 1, is_proved: false }
    }

    pub(super) fn note_echo(&mut self) {
        self.is_proved = true;
    }

    /// Has a reply ready, or does something else; `is_behind` says whether the one before it is whole yet.
    pub(super) fn commit(
        &mut self,
        ready: &mut VecDeque<Vec<u8>>,
        reply: Vec<u8>,
        is_behind: bool,
        chance: &mut Chance,
    ) {
        if !self.is_rogue || !self.is_proved || !chance.one_in(60) {
            ready.push_back(reply);
            return;
        }
        self.is_rogue = false;
        let is_echo = |bytes: &Vec<u8>| bytes.starts_with(b"$24\r\nrespool:");
        match (chance.below(3), ready.back()) {
            (0, _) => {}
            (1, Some(before)) if self.may_swap && is_behind && is_echo(before) != is_echo(&reply) => {
                ready.insert(ready.len() - 1, reply);
            }
            _ => {
                ready.push_back(reply.clone());
                ready.push_back(reply);
            }
        }
    }
}
