//! Scripts that nodes forget: remembered by their hashes, and brought back when a node says NOSCRIPT.
//!
//! ```text
//!   EVALSHA hash ... --> node --- reply ----------------------> client
//!                          '---- -NOSCRIPT, so nothing ran --> EVAL script ... --> node --> client
//! ```
//!
//! Only what the proxy has seen in EVAL or SCRIPT LOAD is known, and SCRIPT FLUSH makes it forget. If the client has sent
//! more behind the EVALSHA, which the node may have executed already, the script must not run after that: then the node is
//! only given the script, and the client gets the NOSCRIPT that it knows how to deal with.

pub(crate) mod engine;
pub(crate) mod functions;
pub(crate) mod kill;
pub(crate) mod lanes;

use crate::env::Env;
use crate::internal_request::{InternalRequest, InternalRequests, Progress};
use crate::limits::{SCRIPT_BYTES_MAX, SCRIPTS_BYTES_MAX, SCRIPTS_GIVEN_MAX};
use crate::nodes::id::NodeId;
use crate::pool::replace::Moves;
use crate::reply::owner::Owner;
use crate::session::id::ClientId;
use crate::session::table::Clients;
use crate::session::{Asker, Flow, ReplyMode};
use respool_command::{Command, Execute, KeyPositions, ResponsePolicy, Row, ScriptingCommand};
use respool_wire::{Args, ArgsBuf, Request, encode_request, request_bulk, request_head};
use sha1::{Digest, Sha1};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, MutexGuard, PoisonError};

/// The hash that names a script.
pub(crate) type Hash = [u8; 20];

/// Scripts by their hashes, the oldest forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    by_hash: BTreeMap<Hash, Arc<[u8]>>,
    in_order: VecDeque<Hash>,
    bytes: usize,
    /// How often nodes have been known to forget what connections have given them.
    flushes: u64,
}

/// The scripts that one connection has given its node for transactions, where it is too late to bring one back.
#[derive(Debug, Default)]
pub(crate) struct LoadedScripts {
    hashes: BTreeSet<Hash>,
    flushes: u64,
}

/// A script that a transaction names by its hash.
#[derive(Clone, Debug)]
pub(crate) struct NamedScript {
    hash: Hash,
    pub(crate) script: Arc<[u8]>,
}

impl NamedScript {
    pub(crate) fn hash(&self) -> Hash {
        self.hash
    }
}

impl LoadedScripts {
    /// Whether a script has to be given first; it counts as given then.
    pub(crate) fn lacks(&mut self, named: &NamedScript, scripts: &Scripts) -> bool {
        if self.flushes != scripts.flushes || self.hashes.len() >= SCRIPTS_GIVEN_MAX {
            *self = Self { flushes: scripts.flushes, ..Self::default() };
        }
        self.hashes.insert(named.hash)
    }
}

impl Scripts {
    /// Remembers a script.
    pub(crate) fn note(&mut self, script: &[u8]) {
        if script.len() > SCRIPT_BYTES_MAX {
            return;
        }
        let hash: Hash = Sha1::digest(script).into();
        if self.by_hash.contains_key(&hash) {
            return;
        }
        self.by_hash.insert(hash, script.into());
        self.in_order.push_back(hash);
        self.bytes += Self::cost(script);
        while self.bytes > SCRIPTS_BYTES_MAX {
            let Some(oldest) = self.in_order.pop_front() else { break };
            self.bytes -= self.by_hash.remove(&oldest).map_or(0, |script| Self::cost(&script));
        }
    }

    /// The bytes that remembering a script takes, about.
    fn cost(script: &[u8]) -> usize {
        script.len() + 128
    }

    /// The script of a hash, written as a request does.
    pub(crate) fn find(&self, hash: &[u8]) -> Option<Arc<[u8]>> {
        self.by_hash.get(&parsed(hash)?).cloned()
    }

    /// The script that a request of a transaction names, if it names one that is known.
    pub(crate) fn named(&self, row: &Row, args: Args<'_>) -> Option<NamedScript> {
        use ScriptingCommand as S;
        let is_by_hash = matches!(row.command, Command::Scripting(S::Evalsha | S::EvalshaRo));
        let hash = is_by_hash.then(|| parsed(args.get(1)?)).flatten()?;
        Some(NamedScript { hash, script: self.by_hash.get(&hash)?.clone() })
    }

    /// A node lacks a script that it was given: others may lack theirs.
    pub(crate) fn note_flushed(&mut self) {
        self.flushes += 1;
    }

    fn forget_all(&mut self) {
        *self = Self { flushes: self.flushes + 1, ..Self::default() };
    }
}

impl<E: Execute> Env<E> {
    /// How replies to SCRIPT EXISTS are joined, script by script: a remembered script exists if one node has it, since it
    /// is loaded at the others when needed. One that is not remembered has to exist at all nodes.
    pub(crate) fn joins_of_scripts(&self, row: &Row, args: Args<'_>) -> Vec<ResponsePolicy> {
        if row.command != Command::Scripting(ScriptingCommand::ScriptExists) {
            return Vec::new();
        }
        let scripts = self.shared.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let join = |hash: &[u8]| if scripts.find(hash).is_some() { ResponsePolicy::Or } else { ResponsePolicy::And };
        args.from(2).iter().map(join).collect()
    }
}

/// Forty hexadecimal digits in any case.
fn parsed(text: &[u8]) -> Option<Hash> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() == 40 && text.is_ascii())?;
    let mut hash = Hash::default();
    for (at, byte) in hash.iter_mut().enumerate() {
        let digits = text.get(2 * at..2 * at + 2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(hash)
}

/// A script that is run by its hash.
#[derive(Debug)]
pub(crate) struct EvalshaRetry {
    pub(crate) asker: Asker,
    place: EvalshaRetryPlace,
    row: &'static Row,
    args: ArgsBuf,
    /// Its keys have other names than the client's.
    is_renamed: bool,
    script: Arc<[u8]>,
    /// What the account has of it.
    accounted: usize,
    /// What the node said: that it does not know the script.
    refusal: Vec<u8>,
}

/// Where a script is run that its node did not know.
#[derive(Clone, Copy, Debug)]
enum EvalshaRetryPlace {
    /// At this node.
    At(NodeId),
    /// Where its keys are by then.
    AtItsKeys,
    /// Nowhere: what its keys are called is not known any more.
    Nowhere,
}

impl EvalshaRetry {
    /// Other nodes are configured. What the node does not know is sent to the node of that name, or, where keys are placed or
    /// named in another way now (`has_other_ways`), to where they are.
    pub(crate) fn move_to(&mut self, moves: &Moves, has_other_ways: bool) {
        self.place = match self.place {
            EvalshaRetryPlace::At(node) if !has_other_ways => {
                moves.namesake_of(node).map_or(EvalshaRetryPlace::Nowhere, EvalshaRetryPlace::At)
            }
            _ if self.is_renamed => EvalshaRetryPlace::Nowhere,
            _ => EvalshaRetryPlace::AtItsKeys,
        };
    }

    pub(crate) fn feed(&mut self, reply: &[u8], clients: &mut Clients) -> Progress {
        if reply.starts_with(b"-NOSCRIPT") {
            self.refusal = reply.to_vec();
        } else {
            clients.feed(self.asker.session, self.asker.seq, reply, true);
        }
        Progress::Through
    }

    pub(crate) fn fail(&mut self, error: &[u8], clients: &mut Clients) -> Progress {
        clients.fail(self.asker.session, self.asker.seq, error);
        Progress::Through
    }
}

/// Writes the request that runs a script itself in place of one that names it.
fn with_script(row: &Row, args: Args<'_>, script: &[u8], out: &mut Vec<u8>) {
    let is_readonly = row.command == Command::Scripting(ScriptingCommand::EvalshaRo);
    request_head(out, args.len());
    request_bulk(out, if is_readonly { b"EVAL_RO" } else { b"EVAL" });
    request_bulk(out, script);
    args.from(2).iter().for_each(|argument| request_bulk(out, argument));
}

impl<E: Execute> Env<E> {
    /// A request that brings or names a script, for nodes. `None`: it goes there as any other.
    pub(crate) fn run_script_at_nodes(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
    ) -> Option<Flow> {
        use ScriptingCommand as S;
        let Command::Scripting(command) = row.command else { return None };
        self.note_script(row, request.args);
        if row.runs_scripts
            && let Some(flow) = self.go_with_scripts(index)
        {
            return Some(flow);
        }
        match command {
            S::ScriptKill | S::FunctionKill => Some(self.stop_scripts(index, row, request)),
            S::Evalsha | S::EvalshaRo => {
                let script = self.scripts().find(request.args.at(1))?;
                self.run_by_hash(index, row, request, script)
            }
            _ => None,
        }
    }

    fn run_by_hash(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
        script: Arc<[u8]>,
    ) -> Option<Flow> {
        let Some(session) = self.clients.sessions.at(index) else { return Some(Flow::Stop) };
        if session.reply_mode != ReplyMode::On {
            return None;
        }
        let target = self.target(index, row, request.args).ok()?;
        self.note_target(&target, row);
        let (node, args) = (target.node, target.args(request.args));
        let Some(handle) = self.clients.sessions.handle(index) else { return Some(Flow::Stop) };
        let Some(session) = self.clients.sessions.at_mut(index) else { return Some(Flow::Stop) };
        let asker = Asker { session: handle, seq: session.down.expect() };
        let class = session.class;
        // The script itself is shared by all who wait for a reply to it, and only looked at if it has to be sent.
        let accounted =
            size_of::<EvalshaRetry>() + args.iter().map(|arg| arg.len() + size_of::<usize>()).sum::<usize>();
        self.shared.ledger.account(0, accounted);
        let copied = args.iter().collect();
        let (place, is_renamed) = (EvalshaRetryPlace::At(node), target.renamed.is_some());
        let healing =
            EvalshaRetry { asker, place, row, args: copied, is_renamed, script, accounted, refusal: Vec::new() };
        let task = self.tasks.begin(InternalRequest::Heal(healing));
        let Self { lanes, clients, config, now, tasks, .. } = self;
        let lane = lanes.lane(config, node, class);
        let write = |out: &mut Vec<u8>| encode_request(out, args.iter());
        let sent = lanes.send(lane, InternalRequests::owner(task, 0), config, *now, &mut clients.pool, write);
        self.is_busy = true;
        if let Err(error) = sent {
            self.counters.node_errors.add(1);
            tasks.fail(task, 0, crate::internal_request::LostReply::Unsent, &error, clients);
        }
        Some(self.keep_pace_of_all(index, Some(lane)))
    }

    /// Remembers what a request says of scripts, whether it is sent now or queued in a transaction.
    pub(crate) fn note_script(&self, row: &Row, args: Args<'_>) {
        use ScriptingCommand as S;
        match row.command {
            // One whose keys are not to be found is refused before its script is looked at.
            Command::Scripting(S::Eval | S::EvalRo) if row.keys.positions(args, &mut KeyPositions::new()).is_ok() => {
                self.scripts().note(args.at(1));
            }
            Command::Scripting(S::ScriptLoad) => self.scripts().note(args.at(2)),
            Command::Scripting(S::ScriptFlush) => self.scripts().forget_all(),
            _ => {}
        }
    }

    pub(crate) fn scripts(&self) -> MutexGuard<'_, Scripts> {
        self.shared.scripts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reply has come. If it was that the script is not known, the request goes again with the script itself.
    pub(crate) fn conclude_healing(&mut self, healing: EvalshaRetry) {
        let EvalshaRetry { asker, place, row, args, script, accounted, refusal, .. } = healing;
        self.shared.ledger.account(accounted, 0);
        if refusal.is_empty() {
            return;
        }
        let home = match place {
            EvalshaRetryPlace::At(node) => Some((node, args)),
            EvalshaRetryPlace::AtItsKeys => {
                let target = self.target(asker.session.index, row, args.as_args()).ok();
                target.map(|target| (target.node, target.renamed.unwrap_or(args)))
            }
            EvalshaRetryPlace::Nowhere => None,
        };
        let Some((node, args)) = home else { return self.clients.feed(asker.session, asker.seq, &refusal, true) };
        // If the client has gone, its lanes may be another client's, and the script is not waited for.
        let Some(session) = self.clients.sessions.get(asker.session) else { return };
        self.counters.scripts_healed.add(1);
        let (class, is_last) = (session.class, session.down.is_last(asker.seq));
        let Self { lanes, clients, config, now, .. } = self;
        let lane = lanes.lane(config, node, class);
        self.is_busy = true;
        if !is_last {
            clients.feed(asker.session, asker.seq, &refusal, true);
            let load = |out: &mut Vec<u8>| encode_request(out, [&b"SCRIPT"[..], b"LOAD", &script].into_iter());
            // If that cannot be sent, the next one to run the script asks again.
            let _ = lanes.send(lane, Owner::Discard, config, *now, &mut clients.pool, load);
            return;
        }
        // The connection that the reply came over may be the client's own by now.
        if let Some(large) = clients.sessions.get_mut(asker.session).and_then(|session| session.large.as_deref_mut()) {
            large.note_detour(node);
        }
        let owner = Owner::Client { index: asker.session.index, generation: asker.session.generation, seq: asker.seq };
        let request = |out: &mut Vec<u8>| with_script(row, args.as_args(), &script, out);
        let sent = lanes.send(lane, owner, config, *now, &mut clients.pool, request);
        if let Err(error) = sent {
            self.counters.node_errors.add(1);
            self.clients.fail(asker.session, asker.seq, &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_command::lookup;

    #[test]
    fn scripts_are_found_by_their_hash_in_any_case() {
        let mut scripts = Scripts::default();
        scripts.note(b"return 1");
        scripts.note(b"return 1");
        for hash in ["e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB"] {
            assert_eq!(scripts.find(hash.as_bytes()).as_deref(), Some(&b"return 1"[..]));
        }
        for other in
            ["", "e0e1", "+0e1f9fabfc9d4800c877a703b823ac0578ff8db", "ffffffffffffffffffffffffffffffffffffffff"]
        {
            assert_eq!(scripts.find(other.as_bytes()), None, "{other}");
        }
        scripts.forget_all();
        assert_eq!(scripts.find(b"e0e1f9fabfc9d4800c877a703b823ac0578ff8db"), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut scripts = Scripts::default();
        scripts.note(&vec![b'x'; SCRIPT_BYTES_MAX + 1]);
        assert_eq!(scripts.bytes, 0);
        for number in 0..40u8 {
            scripts.note(&vec![number; SCRIPT_BYTES_MAX - 1]);
        }
        assert!(scripts.bytes <= SCRIPTS_BYTES_MAX && scripts.by_hash.len() == scripts.in_order.len());
        assert_eq!(scripts.bytes, scripts.by_hash.values().map(|script| Scripts::cost(script)).sum::<usize>());
        let latest: Hash = Sha1::digest(vec![39; SCRIPT_BYTES_MAX - 1]).into();
        assert!(scripts.by_hash.contains_key(&latest));
    }

    #[test]
    fn the_script_takes_the_place_of_its_hash() {
        for (name, eval) in [("EVALSHA", "EVAL"), ("EVALSHA_RO", "EVAL_RO")] {
            let args: ArgsBuf = [name, "hash", "1", "k", "v"].into_iter().collect();
            let mut expected = Vec::new();
            encode_request(&mut expected, [eval, "script", "1", "k", "v"].iter().map(|word| word.as_bytes()));
            let row = lookup(name.as_bytes()).expect("it has a row");
            let mut made = Vec::new();
            with_script(row, args.as_args(), b"script", &mut made);
            assert_eq!(made, expected);
        }
    }
}
