//! INFO of nodes: sent to each node, without waiting for nodes that are paused or reply late.
//!
//! ```text
//!          .-----> all nodes reply                           -> current figures
//!   INFO --+-----> one is late, its last reply is remembered -> that reply, with its age; the late one is remembered
//!          +-----> one is late, no reply of it is remembered -> its reply is waited for, as for any other request
//!          '-----> one is paused                             -> its last reply or an error; nothing is sent to it
//! ```
//!
//! Replies are remembered by the node's name, its address and the sections, in the whole process. While a late reply is
//! outstanding, the same INFO is not sent to that node again: monitoring does not queue up requests at a node that hangs.

use crate::env::Env;
use crate::error_text;
use crate::ids::{ClientId, Handle, NodeId};
use crate::limits::{INFO_LINK_FACTOR, INFO_PATIENCE_US, INFO_SECTIONS_BYTES_MAX};
use crate::request::gathers::{InfoReplies, PartOwner};
use crate::session::Flow;
use crate::workers::info_cache::{CachedReply, InfoKey};
use respool_command::{Execute, Row};
use respool_wire::{Encoder, Protocol, Request};
use std::fmt::Write as _;
use std::sync::Arc;

/// The substitute for a node's reply: the number and name of the node; its last reply and when that was requested, if one
/// is remembered.
type Substitute = (usize, String, Option<(Vec<u8>, u64)>);

impl<E: Execute> Env<E> {
    /// INFO with sections of nodes.
    #[cold]
    pub(crate) fn info_of_nodes(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let (class, protocol) = (session.class, session.protocol);
        let Some(asker) = self.clients.expect_reply(index) else { return Flow::Stop };
        // INFO changes nothing: without a reply there is nothing to do.
        let Some(asker) = asker else { return Flow::Next };
        self.counters.requests_split.add(1);
        let nodes = self.config.topology.node_count();
        let own = match nodes {
            1 if self.proxy_info().asks_for_clients(request.args) => self.proxy_info().clients_section(),
            1 => String::new(),
            _ => self.process_sections(request.args),
        };
        let sections_bytes: usize = request.args.from(1).iter().map(|section| section.len() + 1).sum();
        // With node credentials of its own, a user sees what the node permits that user: such replies are not shared.
        let is_known = self.lanes.state_of(class).node_user == 0 && sections_bytes <= INFO_SECTIONS_BYTES_MAX;
        let sections: Arc<[u8]> = match is_known {
            true => request.args.from(1).iter().collect::<Vec<_>>().join(&b' ').to_ascii_lowercase().into(),
            false => Arc::default(),
        };
        let asked = self.config.nodes.iter().take(nodes).map(|node| InfoKey {
            node: node.name.clone(),
            endpoint: Arc::clone(&node.endpoint),
            sections: Arc::clone(&sections),
        });
        let asked: Vec<InfoKey> = asked.collect();
        let is_asked = |part: usize| {
            let is_paused = self.is_all_paused || self.lanes.nodes[NodeId::nth(part)].is_paused;
            !(is_paused || is_known && self.scatters.is_late(&asked[part]))
        };
        let is_due: Vec<bool> = (0..nodes).map(is_asked).collect();
        let words = InfoReplies::new(asked, is_due.clone(), self.now.mono_us, is_known);
        let args = request.args;
        let chance = self.lanes.chance(&self.counters, self.now);
        let gather = self.scatters.begin(asker, |gather| {
            gather.begin_all(row, args, nodes, chance);
            gather.precede_by(own);
        });
        let due = PartOwner::Joint(gather);
        let mut fullest = None;
        let mut patience_us = INFO_PATIENCE_US;
        let mut refused = Vec::new();
        for part in (0..nodes).filter(|part| is_due[*part]) {
            let Env { clients, lanes, config, now, .. } = &mut *self;
            let lane = lanes.lane(config, NodeId::nth(part), class);
            let link_us = lanes[lane].up.link_us();
            patience_us = patience_us.max(INFO_PATIENCE_US.saturating_add(link_us.saturating_mul(INFO_LINK_FACTOR)));
            let write = |out: &mut Vec<u8>| respool_wire::encode_request(out, args.iter());
            match lanes.send(lane, due.owner(part), config, *now, &mut clients.pool, write) {
                Ok(()) => clients.note_sent(due.owner(part)),
                Err(error) => refused.push((part, error)),
            }
            fullest = Some(lanes.fuller(fullest, lane));
        }
        self.is_busy = true;
        let until_us = is_known.then(|| self.now.mono_us.saturating_add(patience_us));
        self.scatters.expect_words(gather, words, until_us);
        for (part, error) in refused {
            self.counters.node_errors.add(1);
            self.scatters.fail(gather, part as u16, &error, &mut self.clients);
        }
        let mut notes = Vec::new();
        for part in (0..nodes).filter(|part| !is_due[*part]) {
            let Some((name, said)) = self.last_words(gather, part) else { continue };
            let said = said.filter(|_| is_known);
            if said.is_none() && nodes == 1 {
                // The figures that replace some of a node's text are then given on their own.
                let own = self.proxy_info().sections(args);
                self.scatters.amend(gather, |gather| gather.precede_by(own));
            }
            notes.push((part, name, said.map(|(text, at_us)| (frame(&text, protocol), at_us))));
        }
        self.tell_last_words(gather, notes);
        self.keep_pace_of_all(index, fullest, args)
    }

    /// The name of the node that a part was requested from (another node may have it by now), and its last reply.
    fn last_words(&self, gather: Handle, part: usize) -> Option<(String, Option<CachedReply>)> {
        let asked = self.scatters.asked(gather, part)?;
        Some((asked.node.clone(), self.shared.last_words().find(asked)))
    }

    /// Puts remembered replies in the place of those of nodes, with their age.
    fn tell_last_words(&mut self, gather: Handle, notes: Vec<Substitute>) {
        let mut text = String::new();
        for (node, name, said) in &notes {
            let _ = match said {
                Some((_, at_us)) => {
                    let age_s = self.now.mono_us.saturating_sub(*at_us) / 1_000_000;
                    write!(text, "node{node}:name={name},age_seconds={age_s}\r\n")
                }
                None => write!(text, "node{node}:name={name},age_seconds=unknown\r\n"),
            };
        }
        if !text.is_empty() {
            self.scatters.amend(gather, |gather| gather.follow_by("# Last_known\r\n", &text));
        }
        for (node, name, said) in notes {
            let reply = said.map(|(frame, _)| frame).ok_or_else(|| error_text::info_of_paused(&name));
            self.scatters.take_last_words(gather, node as u16, reply, &mut self.clients);
        }
    }

    /// Completes each INFO whose time to wait is over with remembered replies. Nodes without one are waited for longer.
    #[cold]
    pub(crate) fn end_waits_for_words(&mut self) {
        for gather in self.scatters.due_words(self.now.mono_us) {
            let Some(protocol) = self
                .scatters
                .asker(gather)
                .and_then(|asker| self.clients.sessions.get(asker))
                .map(|session| session.protocol)
            else {
                continue;
            };
            let missing = self.scatters.missing_words(gather);
            let known = missing.into_iter().filter_map(|node| {
                let (name, said) = self.last_words(gather, node)?;
                let (text, at_us) = said?;
                Some((node, name, Some((frame(&text, protocol), at_us))))
            });
            let notes: Vec<Substitute> = known.collect();
            self.tell_last_words(gather, notes);
        }
    }
}

/// Encodes a text like the reply of a node.
fn frame(text: &[u8], protocol: Protocol) -> Vec<u8> {
    let mut frame = Vec::with_capacity(text.len() + 32);
    Encoder::new(&mut frame, protocol).verbatim("txt", text);
    frame
}
