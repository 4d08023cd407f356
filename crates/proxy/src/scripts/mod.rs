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

pub(crate) mod debugging;
pub(crate) mod engine;
pub(crate) mod evalsha_retry;
pub(crate) mod kill;
pub(crate) mod lanes;
pub(crate) mod script_kill;

use crate::env::Env;
use crate::interfaces::call::Call;
use crate::interfaces::known_scripts::{Scripts, flushes_scripts};
use crate::reply::owner::Owner;
use crate::reply::progress::ReplyMode;
use crate::scripts::evalsha_retry::{EvalshaRetry, EvalshaRetryPlace, with_script};
use crate::session::Flow;
use crate::workers::shared::Shared;
use respool_command::{Command, Execute, KeyPositions, ResponsePolicy, Row, ScriptingCommand};
use respool_wire::{Args, encode_request};
use std::sync::{Arc, MutexGuard, PoisonError};

impl<E: Execute> Env<E> {
    /// A request that brings or names a script, for nodes. `None`: it goes there as any other.
    pub(crate) fn run_script_at_nodes(&mut self, call: Call<'_>) -> Option<Flow> {
        let Call { index, row, request } = call;
        use ScriptingCommand as S;
        let Command::Scripting(command) = row.command else { return None };
        self.note_script(row, request.args);
        if flushes_scripts(row, request.args) {
            self.shared.scripts().forget_all();
        }
        if row.runs_scripts
            && let Some(flow) = self.go_with_scripts(index)
        {
            return Some(flow);
        }
        match command {
            S::ScriptKill | S::FunctionKill => Some(self.stop_scripts(index, row, request)),
            S::Evalsha | S::EvalshaRo => {
                let script = self.shared.scripts().find(request.args.at(1))?;
                self.run_by_hash(call, script)
            }
            _ => None,
        }
    }

    fn run_by_hash(&mut self, call: Call<'_>, script: Arc<[u8]>) -> Option<Flow> {
        let Call { index, row, request } = call;
        let Some(session) = self.clients.sessions.at(index) else { return Some(Flow::Stop) };
        let class = session.class;
        if session.reply_mode != ReplyMode::On {
            return None;
        }
        let target = self.target(index, row, request.args).ok()?;
        if let Some(flow) = self.wait_for_room_at(index, target.node) {
            return Some(flow);
        }
        self.note_target(&target, row);
        let (node, args) = (target.node, target.args(request.args));
        let Some(asker) = self.clients.expect(index) else { return Some(Flow::Stop) };
        // The script itself is shared by all requests that wait for a reply to it, and only looked at if it has to be sent.
        let accounted =
            size_of::<EvalshaRetry>() + args.iter().map(|arg| arg.len() + size_of::<usize>()).sum::<usize>();
        self.shared.ledger.account(0, accounted);
        let copied = args.iter().collect();
        let (place, is_renamed) = (EvalshaRetryPlace::At(node), target.renamed.is_some());
        let healing =
            EvalshaRetry { asker, place, row, args: copied, is_renamed, script, accounted, refusal: Vec::new() };
        let task = self.tasks.begin(healing);
        let lane = self.lanes.lane(&self.config, node, class);
        self.send_for_task(task, 0, lane, |out| encode_request(out, args.iter()));
        Some(self.keep_pace_of_all(index, Some(lane), args))
    }

    /// Remembers the script that a request brings, whether it is sent now or queued in a transaction.
    pub(crate) fn note_script(&self, row: &Row, args: Args<'_>) {
        use ScriptingCommand as S;
        match row.command {
            // One whose keys are not to be found is refused before its script is looked at.
            Command::Scripting(S::Eval | S::EvalRo) if row.keys.positions(args, &mut KeyPositions::new()).is_ok() => {
                self.shared.scripts().note(args.at(1));
            }
            Command::Scripting(S::ScriptLoad) => self.shared.scripts().note(args.at(2)),
            _ => {}
        }
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

impl Shared {
    /// How replies to SCRIPT EXISTS are joined, script by script: a remembered script exists if one node has it, since it
    /// is loaded at the others when needed. One that is not remembered has to exist at all nodes.
    pub(crate) fn joins_of_scripts(&self, row: &Row, args: Args<'_>) -> Vec<ResponsePolicy> {
        if row.command != Command::Scripting(ScriptingCommand::ScriptExists) {
            return Vec::new();
        }
        let scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let join = |hash: &[u8]| if scripts.find(hash).is_some() { ResponsePolicy::Or } else { ResponsePolicy::And };
        args.from(2).iter().map(join).collect()
    }

    pub(crate) fn scripts(&self) -> MutexGuard<'_, Scripts> {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interfaces::known_scripts::Hash;
    use crate::limits::SCRIPT_BYTES_MAX;
    use crate::limits::SCRIPTS_BYTES_MAX;
    use respool_command::lookup;
    use respool_wire::ArgsBuf;
    use sha1::Digest;
    use sha1::Sha1;

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
