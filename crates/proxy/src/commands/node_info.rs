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
use crate::limits::{INFO_KEPT_BYTES_MAX, INFO_KEPT_MAX, INFO_LINK_FACTOR, INFO_PATIENCE_US, INFO_SECTIONS_BYTES_MAX};
use crate::nodes::id::NodeId;
use crate::request::gathers::{InfoReplies, PartOwner};
use crate::session::id::ClientId;
use crate::session::{Asker, Flow, ReplyMode};
use crate::slab::Handle;
use crate::workers::shared::ProcessBudget;
use respool_command::{Execute, Row};
use respool_connection::Endpoint;
use respool_wire::{Encoder, Protocol, Request, Value};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

/// The last replies of nodes to INFO, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct InfoCache {
    said: VecDeque<Said>,
    /// Accounts for their bytes.
    ledger: Arc<ProcessBudget>,
}

/// The key of a remembered reply: node and sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InfoKey {
    pub(crate) node: String,
    pub(crate) endpoint: Arc<Endpoint>,
    /// The sections as requested, in lower case.
    pub(crate) sections: Arc<[u8]>,
}

/// The text of a reply, and when the request was sent.
type CachedReply = (Arc<[u8]>, u64);

/// The substitute for a node's reply: the number and name of the node; its last reply and when that was requested, if one
/// is remembered.
type Substitute = (usize, String, Option<(Vec<u8>, u64)>);

#[derive(Debug)]
struct Said {
    asked: InfoKey,
    text: Arc<[u8]>,
    at_us: u64,
}

impl Said {
    fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.asked.node.len() + self.asked.sections.len() + self.text.len()
    }
}

impl InfoCache {
    /// Remembers nothing yet.
    pub(crate) fn new(ledger: Arc<ProcessBudget>) -> Self {
        Self { said: VecDeque::new(), ledger }
    }

    /// Remembers the reply to a request that was sent at `at_us`.
    pub(crate) fn note(&mut self, asked: &InfoKey, reply: &[u8], at_us: u64) {
        let (Ok(Value::Bulk(text)) | Ok(Value::Verbatim { text, .. })) = Value::parse(reply) else { return };
        // The reply to unknown sections is empty.
        let is_fit = !text.is_empty() && text.len() <= INFO_KEPT_BYTES_MAX;
        if !is_fit || self.said.iter().any(|said| said.asked == *asked && said.at_us > at_us) {
            return;
        }
        let before = self.said.iter().position(|said| said.asked == *asked);
        let place = before.or_else(|| (self.said.len() >= INFO_KEPT_MAX).then_some(0));
        let left = place.and_then(|place| self.said.remove(place)).map_or(0, |said| said.held_bytes());
        let said = Said { asked: asked.clone(), text: Arc::from(&text[..]), at_us };
        self.ledger.account(left, said.held_bytes());
        self.said.push_back(said);
    }

    /// Forgets all replies.
    pub(crate) fn forget(&mut self) {
        self.ledger.account(self.said.drain(..).map(|said| said.held_bytes()).sum(), 0);
    }

    /// The last reply to such a request.
    fn find(&self, asked: &InfoKey) -> Option<CachedReply> {
        self.said.iter().find(|said| said.asked == *asked).map(|said| (Arc::clone(&said.text), said.at_us))
    }
}

impl<E: Execute> Env<E> {
    /// INFO with sections of nodes.
    #[cold]
    pub(crate) fn info_of_nodes(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        let Some(handle) = self.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        if session.reply_mode != ReplyMode::On {
            // INFO changes nothing, and its reply is not wanted.
            session.reply_mode.pass();
            return Flow::Next;
        }
        self.counters.requests_split.add(1);
        let (class, protocol) = (session.class, session.protocol);
        let asker = Asker { session: handle, seq: session.down.expect() };
        let nodes = self.config.topology.node_count();
        let own = match nodes {
            1 if self.asks_for_clients(request.args) => self.own_clients(),
            1 => String::new(),
            _ => self.own_sections(request.args),
        };
        let sections_bytes: usize = request.args.from(1).iter().map(|section| section.len() + 1).sum();
        // With node credentials of its own, a user sees what the node permits that user: such replies are not shared.
        let is_known = self.lanes.state_of(class).speaker == 0 && sections_bytes <= INFO_SECTIONS_BYTES_MAX;
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
            let is_paused = self.is_all_paused || self.lanes.nodes[NodeId::at(part)].is_paused;
            !(is_paused || is_known && self.scatters.is_late(&asked[part]))
        };
        let is_due: Vec<bool> = (0..nodes).map(is_asked).collect();
        let words = InfoReplies::new(asked, is_due.clone(), self.now.mono_us, is_known);
        let args = request.args;
        let chance = self.chance();
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
            let lane = lanes.lane(config, NodeId::at(part), class);
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
                let own = self.own_sections(args);
                self.scatters.amend(gather, |gather| gather.precede_by(own));
            }
            notes.push((part, name, said.map(|(text, at_us)| (frame(&text, protocol), at_us))));
        }
        self.tell_last_words(gather, notes);
        self.keep_pace_of_all(index, fullest)
    }
}

impl<E: Execute> Env<E> {
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
            let reply = said.map(|(frame, _)| frame).ok_or_else(|| crate::error_text::info_of_paused(&name));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(node: &str) -> InfoKey {
        let endpoint = Arc::new(Endpoint::Unix { path: node.to_owned() });
        InfoKey { node: node.to_owned(), endpoint, sections: Arc::from(&b"all"[..]) }
    }

    #[test]
    fn the_newest_words_are_kept_and_errors_are_not() {
        let mut words = InfoCache::default();
        words.note(&asked("a"), b"$3\r\nold\r\n", 5);
        words.note(&asked("a"), b"=7\r\ntxt:new\r\n", 7);
        words.note(&asked("a"), b"$4\r\nlate\r\n", 6);
        words.note(&asked("a"), b"-ERR no\r\n", 9);
        assert_eq!(words.find(&asked("a")), Some((Arc::from(&b"new"[..]), 7)));
        assert_eq!(words.find(&asked("b")), None);
    }

    #[test]
    fn there_is_an_end_to_what_is_remembered() {
        let mut words = InfoCache::default();
        for number in 0..2 * INFO_KEPT_MAX {
            words.note(&asked(&number.to_string()), b"$1\r\nx\r\n", number as u64);
        }
        let large = format!("${}\r\n{}\r\n", INFO_KEPT_BYTES_MAX + 1, "x".repeat(INFO_KEPT_BYTES_MAX + 1));
        words.note(&asked("large"), large.as_bytes(), 1);
        assert_eq!(words.said.len(), INFO_KEPT_MAX);
        assert!(words.find(&asked("large")).is_none() && words.find(&asked("0")).is_none());
        let held: usize = words.said.iter().map(Said::held_bytes).sum();
        assert_eq!(words.ledger.held_bytes(), held);
        words.note(&asked("none"), b"$0\r\n\r\n", 1);
        assert!(words.find(&asked("none")).is_none());
        words.forget();
        assert_eq!(words.ledger.held_bytes(), 0);
    }
}
