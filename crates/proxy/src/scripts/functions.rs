//! Functions during a pause of writes: those that change nothing run on, and nodes alone know which those are.
//!
//! ```text
//!   FCALL f, writes are held back                          FUNCTION LIST
//!   [client] ---- stays unread ----> [node is asked, once in a pause] ----> `no-writes`: FCALL_RO f --> node
//!                                                          '---- any other, or no answer: waits for the end of the pause
//! ```
//!
//! It is sent as FCALL_RO, which a node refuses for a function that may write: if the function was replaced since it was asked, no
//! write gets through. A function that is new waits like a write.

use crate::env::Env;
use crate::internal_request::{InternalRequest, InternalRequests, LostReply, Progress};
use crate::limits::FUNCTIONS_READ_BYTES_MAX;
use crate::nodes::id::NodeId;
use crate::session::Flow;
use crate::session::id::ClientId;
use respool_command::{Command, Execute, Row, ScriptingCommand};
use respool_wire::{Args, ArgsBuf, Elements, Value, elements, encode_request};
use std::collections::{BTreeMap, BTreeSet};

/// Names of functions in small letters: nodes do not tell capitals from others.
type Names = BTreeSet<Vec<u8>>;

/// What nodes have said of their functions since the pause began.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// By node the functions that change nothing; `None` while it is being asked.
    by_node: BTreeMap<NodeId, Option<Names>>,
    /// Which of the pauses and settings this is: what was asked before is not heard any more.
    epoch: u64,
}

impl Functions {
    /// A pause has ended, or other nodes are configured.
    pub(crate) fn forget(&mut self) {
        *self = Self { by_node: BTreeMap::new(), epoch: self.epoch + 1 };
    }
}

/// A node is being asked for its functions.
#[derive(Debug)]
pub(crate) struct Listing {
    node: NodeId,
    epoch: u64,
    readonly: Names,
}

impl Listing {
    pub(crate) fn feed(&mut self, reply: &[u8]) -> Progress {
        if reply.len() <= FUNCTIONS_READ_BYTES_MAX {
            self.readonly = readonly_functions(reply).unwrap_or_default();
        }
        Progress::Through
    }
}

/// The functions of FUNCTION LIST that change nothing. `None`: it is no such list.
fn readonly_functions(reply: &[u8]) -> Option<Names> {
    let mut names = Names::new();
    for library in elements(reply)? {
        let Some(functions) = field(elements(library)?, b"functions") else { continue };
        for function in elements(functions)? {
            let name = field(elements(function)?, b"name").and_then(text);
            let flags = field(elements(function)?, b"flags").and_then(elements);
            let is_readonly = flags?.filter_map(text).any(|flag| flag == b"no-writes");
            names.extend(name.filter(|_| is_readonly).map(|name| name.to_ascii_lowercase()));
        }
    }
    Some(names)
}

/// The value of a field, in a map or in an array of names and values.
fn field<'a>(mut fields: Elements<'a>, name: &[u8]) -> Option<&'a [u8]> {
    while let Some(found) = fields.next() {
        let value = fields.next()?;
        if text(found).is_some_and(|found| found == name) {
            return Some(value);
        }
    }
    None
}

fn text(reply: &[u8]) -> Option<Vec<u8>> {
    match Value::parse(reply) {
        Ok(Value::Bulk(text) | Value::Simple(text)) => Some(text),
        _ => None,
    }
}

/// What becomes of a call during a pause of writes.
pub(crate) enum PausedCall {
    /// It waits until the pause is over, or until its node has said what the function does.
    Waits,
    /// It is held back for another reason as well.
    Held(Flow),
    /// This is done in its place: it changes nothing.
    Runs(ArgsBuf),
}

impl Functions {
    /// A request during a pause of writes, which may be a call of a function.
    pub(crate) fn handle_request<E: Execute>(
        &mut self,
        env: &mut Env<E>,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
    ) -> PausedCall {
        if row.command != Command::Scripting(ScriptingCommand::Fcall) || env.engine.is_some() {
            return PausedCall::Waits;
        }
        let Ok(target) = env.target(index, row, args) else { return PausedCall::Waits };
        match self.by_node.get(&target.node) {
            Some(Some(readonly)) if readonly.contains(&args.at(1).to_ascii_lowercase()) => {}
            Some(_) => return PausedCall::Waits,
            None => {
                self.ask(env, index, target.node);
                return PausedCall::Waits;
            }
        }
        match env.hold_for_operator(index, row, args) {
            Some(flow) => PausedCall::Held(flow),
            None => PausedCall::Runs(std::iter::once(&b"FCALL_RO"[..]).chain(args.from(1).iter()).collect()),
        }
    }

    fn ask<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId, node: NodeId) {
        let Some(class) = env.clients.sessions.at(index).map(|session| session.class) else { return };
        self.by_node.insert(node, None);
        let listing = Listing { node, epoch: self.epoch, readonly: Names::new() };
        let task = env.tasks.begin(InternalRequest::List(listing));
        let Env { lanes, clients, config, now, tasks, is_busy, .. } = env;
        let lane = lanes.lane(config, node, class);
        let write = |out: &mut Vec<u8>| encode_request(out, [&b"FUNCTION"[..], b"LIST"].into_iter());
        let sent = lanes.send(lane, InternalRequests::owner(task, 0), config, *now, &mut clients.pool, write);
        *is_busy = true;
        if let Err(error) = sent {
            tasks.fail(task, 0, LostReply::Unsent, &error, clients);
        }
    }

    /// A node has said which functions change nothing, or has not. Returns whether there are any: calls that wait for the end of
    /// the pause are looked at again then.
    pub(crate) fn handle_reply(&mut self, listing: Listing) -> bool {
        if listing.epoch != self.epoch {
            return false;
        }
        let is_any = !listing.readonly.is_empty();
        self.by_node.insert(listing.node, Some(listing.readonly));
        is_any
    }
}

#[cfg(test)]
mod tests {
    use super::readonly_functions;

    #[test]
    fn functions_that_change_nothing_are_known_by_their_flags() {
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        for (map, set) in [("*6", "*"), ("%3", "~")] {
            let function = |name: &str, flags: &[&str]| {
                let flags: String = flags.iter().map(|flag| format!("+{flag}\r\n")).collect();
                let count = flags.matches('+').count();
                let (name, description) = (bulk("name") + &bulk(name), bulk("description") + "$-1\r\n");
                format!("{map}\r\n{name}{description}{}{set}{count}\r\n{flags}", bulk("flags"))
            };
            let functions = function("Reads", &["allow-oom", "no-writes"]) + &function("writes", &["allow-stale"]);
            let fields = bulk("library_name") + &bulk("own") + &bulk("engine") + &bulk("LUA") + &bulk("functions");
            let reply = format!("*1\r\n{map}\r\n{fields}*2\r\n{functions}");
            let names = readonly_functions(reply.as_bytes()).expect("it is a list");
            assert_eq!(names.into_iter().collect::<Vec<_>>(), [b"reads".to_vec()]);
        }
        for odd in ["-ERR no\r\n", "*1\r\n+x\r\n", "*0\r\n", "$-1\r\n", "*1\r\n*1\r\n$9\r\nfunctions\r\n"] {
            assert!(readonly_functions(odd.as_bytes()).is_none_or(|names| names.is_empty()), "{odd}");
        }
    }
}
