//! Whether nodes that nobody asks anything are still there.
//!
//! A lane on which nothing is owed and nothing was heard for a while is sent a PING. On a connection whose peer has vanished
//! the kernel then has something that is not acknowledged, and `net` breaks it off in time (its `vigil`); the node fails like
//! any other. A peer whose kernel acknowledges and which does not answer is busy or stopped: its lane stays, since one slow
//! command is no reason to fail everybody, but the node is *suspect* until it answers, and routes that can go elsewhere do.
//!
//! A PING never goes behind requests: it would only be as late as they are, and where a node has left a reply out, its
//! answer would be taken for theirs. For the same reason an answer that is none to a PING ends the lane at once.

use crate::lanes::Purpose;
use crate::tasks::{Progress, Task, Tasks};
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::Phase;
use respool_wire::{encode_request, replies};

/// A PING on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    lane: usize,
    sent_us: u64,
    is_answered: bool,
}

impl Probe {
    /// Takes the answer.
    pub(crate) fn feed(&mut self, reply: &[u8]) -> Progress {
        self.is_answered = reply == replies::PONG;
        // An error says that the node has something to say for itself (`LOADING`, `NOAUTH`), and is in step.
        if self.is_answered || reply.first() == Some(&b'-') { Progress::Through } else { Progress::OutOfStep }
    }
}

impl<E: Execute> Worker<E> {
    /// Sends the PINGs that are due, and looks at those that are out. Returns whether any is.
    pub(crate) fn check_health(&mut self) -> bool {
        let (idle_us, patience_us) = (self.config.timeouts.probe_idle_us, self.config.timeouts.probe_patience_us);
        let now_us = self.now.mono_us;
        let mut is_any_out = false;
        for lane in 0..self.lanes.all.len() {
            let this = &self.lanes.all[lane];
            if this.is_retired || this.purpose != Purpose::Shared || !matches!(this.up.phase(), Phase::Ready) {
                continue;
            }
            if this.probed_us > 0 {
                is_any_out = true;
                if now_us.saturating_sub(this.probed_us) > patience_us && this.up.last_heard_us() < this.probed_us {
                    let node = this.node;
                    self.lanes.nodes[node].is_suspect = true;
                }
                continue;
            }
            let is_idle = this.up.tickets().outstanding() == 0 && this.up.queued_bytes() == 0;
            let has_been_silent = now_us.saturating_sub(this.up.last_heard_us()) >= idle_us;
            if idle_us > 0 && is_idle && has_been_silent && self.drain_until_us.is_none() {
                self.probe(lane);
                is_any_out = true;
            }
        }
        let suspects = self.lanes.nodes.iter().filter(|node| node.is_suspect).count();
        self.counters.nodes_suspect.set(suspects as u64);
        is_any_out
    }

    /// A lane is ready. A node that was down until now, or shortly before, is sent little at first.
    pub(crate) fn begin_slowly(&mut self, lane: usize, is_back: bool) {
        let now_us = self.now.mono_us;
        let this = &mut self.lanes.all[lane];
        let node = &mut self.lanes.nodes[this.node];
        if is_back {
            node.spared_until_us = now_us + self.config.timeouts.slow_start_us;
        }
        if node.spared_until_us > now_us && this.purpose == Purpose::Shared {
            this.up.begin_slowly(now_us, node.spared_until_us - now_us);
        }
    }

    /// When the timers have to be looked at for the next PING, at the latest.
    pub(crate) fn next_probe_us(&self) -> Option<u64> {
        let idle_us = self.config.timeouts.probe_idle_us;
        let ready = self.lanes.all.iter().filter(|lane| {
            !lane.is_retired && lane.purpose == Purpose::Shared && matches!(lane.up.phase(), Phase::Ready)
        });
        ready.map(|lane| lane.up.last_heard_us() + idle_us).min().filter(|_| idle_us > 0)
    }

    fn probe(&mut self, lane: usize) {
        let sent_us = self.now.mono_us;
        let task = self.tasks.begin(Task::Probe(Probe { lane, sent_us, is_answered: false }));
        let Self { lanes, clients, config, now, .. } = self;
        let ping = |out: &mut Vec<u8>| encode_request(out, [b"PING".as_slice()].into_iter());
        // A lane that is ready and has nothing to do takes it.
        if lanes.send(lane, Tasks::owner(task, 0), config, *now, &mut clients.pool, ping).is_ok() {
            self.lanes.all[lane].probed_us = sent_us;
            self.counters.probes.add(1);
        } else {
            self.tasks.forget(task);
        }
    }

    /// The answer has come, or none will.
    pub(crate) fn conclude_probe(&mut self, probe: Probe) {
        let Some(lane) = self.lanes.all.get_mut(probe.lane).filter(|lane| lane.probed_us == probe.sent_us) else {
            return;
        };
        lane.probed_us = 0;
        let node = lane.node;
        if probe.is_answered {
            self.lanes.nodes[node].is_suspect = false;
        }
    }
}
