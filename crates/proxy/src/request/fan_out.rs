//! Requests that several nodes answer: split by key, sent to all, or walking from one node to the next.

use crate::nodes::id::NodeId;
use crate::request::gathers::PartOwner;
use crate::session::id::ClientId;
use crate::session::{Asker, Flow, ReplyMode};
use crate::worker::Worker;
use respool_command::{Execute, Row};
use respool_route::ScanStep;
use respool_wire::Request;

impl<E: Execute> Worker<E> {
    /// Several nodes answer, each its part.
    pub(crate) fn scatter(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
        is_split: bool,
    ) -> Flow {
        self.counters.requests_split.add(1);
        let chance = self.chance();
        let joins = self.joins_of_scripts(row, request.args);
        let Self { clients, lanes, scatters, scratch, config, now, .. } = self;
        let Some(handle) = clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = clients.sessions.at_mut(index) else { return Flow::Stop };
        let class = session.class;
        let due = if session.reply_mode == ReplyMode::On {
            let asker = Asker { session: handle, seq: session.down.expect() };
            PartOwner::Joint(scatters.begin(asker, |gather| {
                if is_split {
                    return gather.begin_split(row, scratch);
                }
                gather.begin_all(row, request.args, config.topology.node_count(), chance);
                gather.name_parts(|number| &config.nodes[number].name);
                gather.join_each_by(joins);
            }))
        } else {
            session.reply_mode.pass();
            PartOwner::Unanswered(handle)
        };
        let mut refused = Vec::new();
        let mut fullest = None;
        if is_split {
            for (number, part) in scratch.parts().enumerate() {
                let lane = lanes.lane(config, NodeId::of(part.node), class);
                let write = |out: &mut Vec<u8>| part.encode(request, out);
                match lanes.send(lane, due.owner(number), config, *now, &mut clients.pool, write) {
                    Ok(()) => clients.note_sent(due.owner(number)),
                    Err(error) => refused.push((number, error)),
                }
                fullest = Some(lanes.fuller(fullest, lane));
            }
        } else {
            for number in 0..config.topology.node_count() {
                let lane = lanes.lane(config, NodeId::at(number), class);
                let write = |out: &mut Vec<u8>| respool_wire::encode_request(out, request.args.iter());
                match lanes.send(lane, due.owner(number), config, *now, &mut clients.pool, write) {
                    Ok(()) => clients.note_sent(due.owner(number)),
                    Err(error) => refused.push((number, error)),
                }
                fullest = Some(lanes.fuller(fullest, lane));
            }
        }
        self.is_busy = true;
        for (number, error) in refused {
            self.counters.node_errors.add(1);
            if let Some(gather) = due.joint() {
                self.scatters.fail(gather, number as u16, &error, &mut self.clients);
            }
        }
        self.keep_pace_of_all(index, fullest)
    }

    /// One node, which stands at `node` in the list of all, answers with its keys and its cursor, which becomes the walk's.
    pub(crate) fn scan(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
        step: ScanStep,
        node: NodeId,
    ) -> Flow {
        self.counters.requests_split.add(1);
        let Self { clients, lanes, scatters, config, now, .. } = self;
        let Some(handle) = clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = clients.sessions.at_mut(index) else { return Flow::Stop };
        let lane = lanes.lane(config, node, session.class);
        let due = if session.reply_mode == ReplyMode::On {
            let asker = Asker { session: handle, seq: session.down.expect() };
            PartOwner::Joint(scatters.begin(asker, |gather| gather.begin_scan(row, step)))
        } else {
            session.reply_mode.pass();
            PartOwner::Unanswered(handle)
        };
        let write = |out: &mut Vec<u8>| step.encode(request.args, out);
        let sent = lanes.send(lane, due.owner(0), config, *now, &mut clients.pool, write);
        self.is_busy = true;
        match sent {
            Ok(()) => self.clients.note_sent(due.owner(0)),
            Err(error) => {
                self.counters.node_errors.add(1);
                if let Some(gather) = due.joint() {
                    self.scatters.fail(gather, 0, &error, &mut self.clients);
                }
            }
        }
        self.keep_pace_of_all(index, Some(lane))
    }

    /// A number that nobody can tell beforehand, for picking one of several. Not for secrets.
    pub(crate) fn chance(&self) -> u64 {
        let mixed = (self.now.mono_us ^ self.lanes.entropy_of_all().rotate_left(32))
            .wrapping_add(self.counters.requests.value());
        mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    }
}
