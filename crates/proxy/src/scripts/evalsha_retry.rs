//! A script that is run by its hash, and brought back if the node has forgotten it.

use crate::ids::{Asker, NodeId};
use crate::nodes::moves::Moves;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskReply};
use crate::session::table::Clients;
use respool_command::{Command, Row, ScriptingCommand};
use respool_wire::{Args, ArgsBuf, request_bulk, request_head};
use std::sync::Arc;

/// A script that is run by its hash.
#[derive(Debug)]
pub(crate) struct EvalshaRetry {
    pub(crate) asker: Asker,
    pub(crate) place: EvalshaRetryPlace,
    pub(crate) row: &'static Row,
    pub(crate) args: ArgsBuf,
    /// Its keys have other names than the client's.
    pub(crate) is_renamed: bool,
    pub(crate) script: Arc<[u8]>,
    /// What the account has of it.
    pub(crate) accounted: usize,
    /// What the node said: that it does not know the script.
    pub(crate) refusal: Vec<u8>,
}

/// Where a script is run that its node did not know.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EvalshaRetryPlace {
    /// At this node.
    At(NodeId),
    /// Where its keys are by then.
    AtItsKeys,
    /// Nowhere: what its keys are called is not known any more.
    Nowhere,
}

impl InternalTask for EvalshaRetry {
    /// Other nodes are configured. What the node does not know is sent to the node of that name, or, where keys are placed or
    /// named in another way now (`has_other_ways`), to where they are.
    fn move_to(&mut self, moves: &Moves, has_other_ways: bool) {
        self.place = match self.place {
            EvalshaRetryPlace::At(node) if !has_other_ways => {
                moves.namesake_of(node).map_or(EvalshaRetryPlace::Nowhere, EvalshaRetryPlace::At)
            }
            _ if self.is_renamed => EvalshaRetryPlace::Nowhere,
            _ => EvalshaRetryPlace::AtItsKeys,
        };
    }

    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        if reply.bytes.starts_with(b"-NOSCRIPT") {
            self.refusal = reply.bytes.to_vec();
        } else {
            clients.feed(self.asker.session, self.asker.seq, reply.bytes, true);
        }
        Progress::Through
    }

    fn asker(&self) -> Option<Asker> {
        Some(self.asker)
    }
}

/// Writes the request that runs a script itself in place of one that names it.
pub(crate) fn with_script(row: &Row, args: Args<'_>, script: &[u8], out: &mut Vec<u8>) {
    let is_readonly = row.command == Command::Scripting(ScriptingCommand::EvalshaRo);
    request_head(out, args.len());
    request_bulk(out, if is_readonly { b"EVAL_RO" } else { b"EVAL" });
    request_bulk(out, script);
    args.from(2).iter().for_each(|argument| request_bulk(out, argument));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PerNode;
    use crate::testing::{env_with_node, request};
    use respool_command::lookup;
    use respool_wire::ReplyKind;

    fn retry(is_renamed: bool, place: EvalshaRetryPlace, asker: Asker) -> EvalshaRetry {
        let row = lookup(b"EVALSHA").expect("a known command");
        let (args, script) = (ArgsBuf::new(), Arc::from(&b"return 1"[..]));
        EvalshaRetry { asker, place, row, args, is_renamed, script, accounted: 0, refusal: Vec::new() }
    }

    fn moves(named: &[NodeId]) -> Moves {
        Moves {
            place: PerNode::new(named.iter().copied()),
            named: PerNode::new(named.iter().copied()),
            entered_anew: Vec::new(),
            left: None,
            lanes: Default::default(),
            count: 1,
        }
    }

    #[test]
    fn a_retried_script_follows_its_node_and_its_keys() {
        use EvalshaRetryPlace as P;
        let mut env = env_with_node();
        let client = env.test_client();
        let asker = env.test_asker(client);
        let [zero, one] = [0, 1].map(NodeId::nth);
        let after = |is_renamed, named: &[NodeId], has_other_ways| {
            let mut retry = retry(is_renamed, P::At(zero), asker);
            retry.move_to(&moves(named), has_other_ways);
            retry.place
        };
        assert!(matches!(after(false, &[one], false), P::At(node) if node == one));
        assert!(matches!(after(false, &[NodeId::NONE], false), P::Nowhere), "no node has its name");
        assert!(matches!(after(false, &[zero], true), P::AtItsKeys));
        assert!(matches!(after(true, &[zero], true), P::Nowhere), "what its keys are called is not known");
    }

    #[test]
    fn only_a_node_that_does_not_know_the_script_is_sent_it() {
        for (reply, passed_on, refusal) in
            [("-NOSCRIPT x\r\n", "", "-NOSCRIPT x\r\n"), ("-ERR x\r\n", "-ERR x\r\n", ""), (":1\r\n", ":1\r\n", "")]
        {
            let mut env = env_with_node();
            let client = env.test_client();
            let mut retry = retry(false, EvalshaRetryPlace::AtItsKeys, env.test_asker(client));
            let kind = if reply.starts_with('-') { ReplyKind::Error } else { ReplyKind::Integer };
            let reply = TaskReply { step: 0, kind, bytes: reply.as_bytes() };
            assert_eq!(retry.handle_reply(reply, &mut env.clients), Progress::Through);
            assert_eq!((env.take_output(client).as_str(), &*retry.refusal), (passed_on, refusal.as_bytes()));
        }
    }

    #[test]
    fn a_script_takes_the_place_of_its_hash() {
        for (said, eval) in [("EVALSHA h 1 k a", "EVAL"), ("EVALSHA_RO h 1 k a", "EVAL_RO")] {
            let sent = request(said, |row, args| {
                let mut out = Vec::new();
                with_script(row, args, b"return 1", &mut out);
                out
            });
            let mut expected = Vec::new();
            let words = [eval, "return 1", "1", "k", "a"];
            respool_wire::encode_request(&mut expected, words.iter().map(|word| word.as_bytes()));
            assert_eq!(sent, expected);
        }
    }
}
