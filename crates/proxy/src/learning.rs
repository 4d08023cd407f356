//! Commands that the table does not know and the nodes do: newer servers', and modules'.
//!
//! ```text
//!   unknown name --- learnt before? ----------------------------> its row
//!        |     '---- known to be nobody's, or asked too often --> -ERR unknown command
//!        '--- COMMAND INFO name --> node;  the client waits, its request unread
//!                                    '--> row, or nobody's for a while;  the request is read again
//! ```
//!
//! What was learnt is shared by all workers and never forgotten; rows live for ever, so there is a most. Names that
//! nobody knows are remembered for a while, and are asked for at a limited rate: whoever makes names up cannot make
//! nodes busy.

use crate::lanes::Class;
use crate::limits::{LEARN_AGAIN_US, LEARN_BURST, LEARN_FAILED_US, LEARN_INTERVAL_US, LEARNT_MAX, NOBODYS_MAX};
use crate::session::{Flow, Pause, Special};
use crate::slab::Handle;
use crate::tasks::{Loss, Progress, Task, Tasks};
use crate::worker::Worker;
use respool_command::{Execute, Lane, Row, UnknownCommand, learn};
use respool_wire::{Args, Protocol, Request, Value, encode_request};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

/// The longest name that is asked for, in bytes: as long as rows can be called.
const NAME_BYTES_MAX: usize = 32;

/// What all workers know of names that the table does not have.
#[derive(Debug, Default)]
pub(crate) struct Learnt {
    rows: Arc<BTreeMap<String, &'static Row>>,
    /// Names that no node knew, and until when that is taken for granted.
    nobodys: BTreeMap<String, u64>,
    /// When all questions have been paid for, as a leaky bucket counts it, on the monotonic clock.
    next_us: u64,
}

/// What is known of a name.
enum Known {
    Row(&'static Row),
    Nobodys,
    /// Nothing, and a node may be asked.
    Nothing,
}

impl Learnt {
    fn find(&mut self, name: &str, now_us: u64) -> Known {
        if let Some(row) = self.rows.get(name) {
            return Known::Row(row);
        }
        if self.nobodys.get(name).is_some_and(|until_us| now_us < *until_us) || self.rows.len() >= LEARNT_MAX {
            return Known::Nobodys;
        }
        let due_us = self.next_us.max(now_us) + LEARN_INTERVAL_US;
        if due_us > now_us + LEARN_INTERVAL_US * LEARN_BURST {
            return Known::Nobodys;
        }
        self.next_us = due_us;
        Known::Nothing
    }

    /// Remembers what a node has said of a name; `None`: that it is nobody's, for so long.
    fn note(&mut self, name: &str, row: Option<&'static Row>, now_us: u64, again_us: u64) {
        match row {
            Some(row) if self.rows.len() < LEARNT_MAX => {
                // Whoever has the rows at hand keeps those that it knows.
                let mut rows = BTreeMap::clone(&self.rows);
                rows.entry(name.to_owned()).or_insert(row);
                self.rows = Arc::new(rows);
            }
            _ => {
                self.nobodys.retain(|_, until_us| now_us < *until_us);
                if self.nobodys.len() < NOBODYS_MAX {
                    self.nobodys.insert(name.to_owned(), now_us + again_us);
                }
            }
        }
    }
}

/// A question about a name, and who waits for the answer.
#[derive(Debug)]
pub(crate) struct Learning {
    name: String,
    waiting: Vec<Handle>,
    answer: Answer,
}

#[derive(Debug)]
enum Answer {
    /// The node has not answered.
    None,
    /// It has, and does not know the name.
    Unknown,
    Described(Value),
}

impl Learning {
    pub(crate) fn feed(&mut self, reply: &[u8]) -> Progress {
        // An error says that it cannot answer now, or not us.
        if !reply.starts_with(b"-") {
            self.answer = Answer::Unknown;
        }
        if let Ok(Value::Array(mut rows)) = Value::parse(reply)
            && rows.len() == 1
            && let Some(described) = rows.pop()
        {
            self.answer = Answer::Described(described);
        }
        Progress::Through
    }

    pub(crate) fn fail(&mut self) -> Progress {
        Progress::Through
    }
}

/// The name under which something unknown is asked for: `NAME`, or `CONTAINER SUB`. `None`: no node is asked for that.
fn asked_name(unknown: UnknownCommand, args: Args<'_>) -> Option<String> {
    let word = |at: usize| {
        let word = args.get(at)?;
        let is_sane = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'|');
        is_sane.then(|| String::from_utf8_lossy(word).to_ascii_uppercase())
    };
    let name = match unknown {
        UnknownCommand::Command => word(0)?,
        // What is about sessions or the proxy itself is never a node's.
        UnknownCommand::Subcommand(container) => {
            let is_local = container.subcommands.iter().any(|row| row.lane(args) == Lane::Local);
            if is_local {
                return None;
            }
            format!("{} {}", container.name, word(1)?)
        }
    };
    (name.len() <= NAME_BYTES_MAX).then_some(name)
}

impl<E: Execute> Worker<E> {
    /// The row of a request that the table has none for. `Err`: it was refused, or has to be read again.
    #[cold]
    pub(crate) fn learnt_row(
        &mut self,
        index: u32,
        unknown: UnknownCommand,
        request: &Request<'_>,
    ) -> Result<&'static Row, Flow> {
        if let Some(name) = asked_name(unknown, request.args).filter(|_| self.may_learn(index)) {
            let found = match self.learnt.get(&name) {
                Some(row) => Known::Row(row),
                None => self.find_learnt(&name),
            };
            match found {
                Known::Row(row) => return Ok(row),
                Known::Nothing if self.ask_for(index, &name) => return Err(Flow::Again),
                Known::Nothing | Known::Nobodys => {}
            }
        }
        Err(self.refuse_unknown(index, unknown, request))
    }

    /// Nodes are asked on behalf of clients that may ask for something.
    fn may_learn(&self, index: u32) -> bool {
        let is_known = |special: Special| !special.has(Special::UNAUTHENTICATED);
        self.engine.is_none() && self.clients.sessions.at(index).is_some_and(|session| is_known(session.special))
    }

    fn find_learnt(&mut self, name: &str) -> Known {
        // Somebody asks already; the answer is waited for.
        if self.learning.contains_key(name) {
            return Known::Nothing;
        }
        let mut shared = self.shared.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        self.learnt = Arc::clone(&shared.rows);
        shared.find(name, self.now.mono_us)
    }

    /// Asks a node for a name, or waits with those who have. `false`: no node can be asked.
    fn ask_for(&mut self, index: u32, name: &str) -> bool {
        let Some(client) = self.clients.sessions.handle(index) else { return false };
        let asked = self.learning.get(name).copied();
        if let Some(Task::Learn(learning)) = asked.and_then(|task| self.tasks.get_mut(task)) {
            learning.waiting.push(client);
        } else {
            let learning = Learning { name: name.to_owned(), waiting: vec![client], answer: Answer::None };
            let task = self.tasks.begin(Task::Learn(Box::new(learning)));
            let Some(class) = self.lanes.class(Class { database: 0, protocol: Protocol::Resp2, speaker: 0 }) else {
                return false;
            };
            let node = self.config.topology.default_node().get();
            let lane = self.lanes.lane(&self.config, node, class);
            let full_name = name.to_ascii_lowercase().replace(' ', "|");
            let words: [&[u8]; 3] = [b"COMMAND", b"INFO", full_name.as_bytes()];
            let Self { lanes, clients, config, now, .. } = self;
            let write = |out: &mut Vec<u8>| encode_request(out, words.into_iter());
            if let Err(error) = lanes.send(lane, Tasks::owner(task, 0), config, *now, &mut clients.pool, write) {
                // Nobody waits yet: the client is told at once that there is no such command.
                if let Some(Task::Learn(learning)) = self.tasks.get_mut(task) {
                    learning.waiting.clear();
                }
                self.tasks.fail(task, 0, Loss::Unsent, &error, &mut self.clients);
                return false;
            }
            self.learning.insert(name.to_owned(), task);
            self.counters.commands_asked.add(1);
        }
        if let Some(session) = self.clients.sessions.at_mut(index) {
            session.pause.add(Pause::LEARNING);
        }
        self.is_busy = true;
        true
    }

    /// The node has answered, or will not: whoever waits is read on.
    pub(crate) fn conclude_learning(&mut self, learning: Learning) {
        let Learning { name, waiting, answer } = learning;
        self.learning.remove(&name);
        let (row, again_us) = match answer {
            Answer::Described(described) => (learn(&name, &described), LEARN_AGAIN_US),
            Answer::Unknown => (None, LEARN_AGAIN_US),
            Answer::None => (None, LEARN_FAILED_US),
        };
        let mut shared = self.shared.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        shared.note(&name, row, self.now.mono_us, again_us);
        self.learnt = Arc::clone(&shared.rows);
        drop(shared);
        for client in waiting {
            if self.clients.sessions.get_mut(client).is_some() {
                self.clients.unpause(client.index, Pause::LEARNING);
            }
        }
    }

    /// The rows learnt so far that are no subcommands.
    pub(crate) fn learnt_rows(&mut self) -> Vec<&'static Row> {
        self.learnt = Arc::clone(&self.shared.learnt.lock().unwrap_or_else(PoisonError::into_inner).rows);
        self.learnt.values().copied().filter(|row| !row.name.contains(' ')).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_command::{lookup, resolve};
    use respool_wire::ArgsBuf;

    fn name_of(request: &str) -> Option<String> {
        let args: ArgsBuf = request.split(' ').collect();
        asked_name(resolve(args.as_args()).expect_err("it is unknown"), args.as_args())
    }

    #[test]
    fn only_what_may_be_a_nodes_is_asked_for() {
        assert_eq!(name_of("ft.search idx"), Some("FT.SEARCH".to_owned()));
        assert_eq!(name_of("object later k"), Some("OBJECT LATER".to_owned()));
        for own in ["CLIENT LATER", "ACL LATER", "PUBSUB LATER", "COMMAND LATER", "a|b", "caf\u{e9}"] {
            assert_eq!(name_of(own), None, "{own}");
        }
        assert_eq!(name_of(&"x".repeat(40)), None);
    }

    #[test]
    fn questions_have_a_rate_and_answers_a_time() {
        let mut learnt = Learnt::default();
        // A process that has just begun.
        let now_us = 1;
        let asked = (0..1_000).filter(|n| matches!(learnt.find(&format!("N{n}"), now_us), Known::Nothing)).count();
        assert_eq!(asked as u64, LEARN_BURST);
        let later_us = now_us + LEARN_INTERVAL_US * LEARN_BURST;
        learnt.note("N1", None, later_us, LEARN_AGAIN_US);
        assert!(matches!(learnt.find("N1", later_us), Known::Nobodys));
        assert!(matches!(learnt.find("N2", later_us), Known::Nothing));
        assert!(matches!(learnt.find("N1", later_us + LEARN_AGAIN_US), Known::Nothing));
        learnt.note("N3", lookup(b"GET"), later_us, LEARN_AGAIN_US);
        assert!(matches!(learnt.find("N3", later_us), Known::Row(_)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut learnt = Learnt::default();
        for number in 0..2 * NOBODYS_MAX.max(LEARNT_MAX) {
            learnt.note(&format!("A{number}"), None, 1, LEARN_AGAIN_US);
            learnt.note(&format!("B{number}"), lookup(b"GET"), 1, LEARN_AGAIN_US);
        }
        assert_eq!((learnt.nobodys.len(), learnt.rows.len()), (NOBODYS_MAX, LEARNT_MAX));
    }
}
