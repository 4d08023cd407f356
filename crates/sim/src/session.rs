//! One client's connection, as its node sees it: what it has said of itself, and its transaction.

use respool_command::WaitId;
use respool_wire::{Args, ArgsBuf, Encoder, Protocol, Value};

use crate::data::{Answer, Asker, effect_of};
use crate::node::{Handled, Node, row_of};

/// One client's connection, as its node sees it.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// The number under which clients know it.
    pub(crate) client_id: u64,
    pub(crate) protocol: Protocol,
    database: u32,
    is_asking: bool,
    is_readonly: bool,
    /// Since which generation of the node's data it has watched keys.
    watching: Option<u64>,
    /// The requests behind `MULTI`; `None` outside of a transaction.
    queued: Option<Vec<ArgsBuf>>,
    is_refused: bool,
}

/// A request that waits for an element.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) wait: WaitId,
    pub(crate) database: u32,
    pub(crate) args: ArgsBuf,
}

const OK: &[u8] = b"+OK\r\n";

impl Session {
    pub(crate) fn new(client_id: u64, protocol: Protocol) -> Self {
        Self { client_id, protocol, ..Self::default() }
    }

    fn asker(&self) -> Asker {
        let Self { database, protocol, client_id, .. } = *self;
        Asker { database, protocol, client_id, is_in_transaction: false }
    }

    /// The number of databases, as far as it matters: one of a cluster.
    fn select(&mut self, args: Args<'_>, is_cluster: bool) -> Vec<u8> {
        let number = args.get(1).and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
        match number {
            Some(0) | None if is_cluster => OK.to_vec(),
            Some(_) if is_cluster => b"-ERR SELECT is not allowed in cluster mode\r\n".to_vec(),
            Some(database @ 0..16) => {
                self.database = database;
                OK.to_vec()
            }
            _ => b"-ERR DB index is out of range\r\n".to_vec(),
        }
    }
}

fn encoded(value: &Value, protocol: Protocol) -> Vec<u8> {
    let mut reply = Vec::new();
    value.encode(&mut Encoder::new(&mut reply, protocol));
    reply
}

/// What is neither about data nor about the connection.
fn answer_alone(name: &[u8], args: Args<'_>, protocol: Protocol) -> Option<Vec<u8>> {
    match (name, args.get(1)) {
        (b"PING", None) => Some(b"+PONG\r\n".to_vec()),
        (b"PING" | b"ECHO", Some(word)) => Some(encoded(&Value::Bulk(word.to_vec()), protocol)),
        (b"INFO", _) => Some(encoded(&Value::Bulk(b"redis_version:7.2.0\r\n".to_vec()), protocol)),
        _ => None,
    }
}

/// What a request gets that waits no longer, and has got nothing.
pub(crate) fn nothing(protocol: Protocol) -> Vec<u8> {
    encoded(&Value::NullArray, protocol)
}

impl Node {
    /// Handles a request of a client.
    pub(crate) fn handle(&mut self, args: Args<'_>, session: &mut Session, now_us: u64) -> Answer {
        let name = args.name().to_ascii_uppercase();
        let is_asking = session.is_asking;
        // As in a server: it counts for the next request, or to the end of the transaction that begins with it.
        if session.queued.is_none() && name != b"MULTI" {
            session.is_asking = false;
        }
        let rights = (is_asking, session.is_readonly);
        let reply = match (&name[..], session.queued.is_some()) {
            (b"EXEC", true) => {
                let queued = session.queued.take().unwrap_or_default();
                session.is_asking = false;
                self.exec(&queued, is_asking, session, now_us)
            }
            (b"DISCARD", true) => {
                session.queued = None;
                self.unwatch(session);
                OK.to_vec()
            }
            (_, true) => self.queue(args, rights, session, now_us),
            (_, false) => {
                if let Some(reply) = self.converse(&name, args, session) {
                    return Answer::Reply(reply);
                }
                if let Some(refused) = self.refuse(&[args], rights, now_us) {
                    self.note(session.database, args, &refused, true);
                    return Answer::Reply(refused);
                }
                if let Some(reply) = answer_alone(&name, args, session.protocol) {
                    return Answer::Reply(reply);
                }
                if name == b"WATCH" {
                    session.watching = Some(self.data.watch(session.asker(), now_us, args.from(1)));
                    return Answer::Reply(OK.to_vec());
                }
                return self.execute(args, session.asker(), now_us);
            }
        };
        Answer::Reply(reply)
    }

    /// What concerns the connection alone.
    fn converse(&mut self, name: &[u8], args: Args<'_>, session: &mut Session) -> Option<Vec<u8>> {
        let reply = match name {
            b"ASKING" => {
                session.is_asking = true;
                OK
            }
            b"READONLY" => {
                session.is_readonly = true;
                OK
            }
            b"MULTI" => {
                session.queued = Some(Vec::new());
                session.is_refused = false;
                OK
            }
            b"EXEC" => b"-ERR EXEC without MULTI\r\n",
            b"DISCARD" => b"-ERR DISCARD without MULTI\r\n",
            b"UNWATCH" => {
                self.unwatch(session);
                OK
            }
            b"RESET" => {
                self.unwatch(session);
                *session = Session { client_id: session.client_id, ..Session::default() };
                b"+RESET\r\n"
            }
            b"SELECT" => return Some(session.select(args, self.is_cluster)),
            b"CLUSTER" if self.is_cluster => return Some(self.cluster(args, session.protocol)),
            b"CLUSTER" => b"-ERR This instance has cluster support disabled\r\n",
            b"HELLO" => return Some(self.hello(args, session)),
            b"CLIENT" if args.get(1).is_some_and(|verb| verb.eq_ignore_ascii_case(b"ID")) => {
                return Some(format!(":{}\r\n", session.client_id).into_bytes());
            }
            b"CLIENT" => OK,
            _ => return None,
        };
        Some(reply.to_vec())
    }

    fn hello(&self, args: Args<'_>, session: &mut Session) -> Vec<u8> {
        session.protocol = match args.get(1) {
            Some(b"3") => Protocol::Resp3,
            Some(b"2") => Protocol::Resp2,
            _ => session.protocol,
        };
        let word = |text: &str| Value::Bulk(text.into());
        let about = vec![
            (word("server"), word("redis")),
            (word("version"), word("7.2.0")),
            (word("proto"), Value::Integer(session.protocol.version().into())),
            (word("id"), Value::Integer(session.client_id as i64)),
            (word("mode"), word(if self.is_cluster { "cluster" } else { "standalone" })),
            (word("role"), word(if self.primary.is_none() { "master" } else { "replica" })),
            (word("modules"), Value::Array(Vec::new())),
        ];
        encoded(&Value::Map(about), session.protocol)
    }

    fn queue(&mut self, args: Args<'_>, rights: (bool, bool), session: &mut Session, now_us: u64) -> Vec<u8> {
        let refused = self.refuse(&[args], rights, now_us);
        // As in a server: what is refused is not queued, so EXEC is judged by the others.
        session.is_refused |= refused.is_some();
        if let Some(refused) = &refused {
            self.note(session.database, args, refused, true);
        } else if let Some(queued) = session.queued.as_mut() {
            queued.push(args.iter().collect());
        }
        refused.unwrap_or_else(|| b"+QUEUED\r\n".to_vec())
    }

    fn exec(&mut self, queued: &[ArgsBuf], is_asking: bool, session: &mut Session, now_us: u64) -> Vec<u8> {
        let watching = session.watching;
        let is_dirty = watching.is_some_and(|since| self.data.is_dirty(session.client_id, since, now_us));
        self.unwatch(session);
        let abort = b"-EXECABORT Transaction discarded because of previous errors.\r\n";
        let requests: Vec<Args<'_>> = queued.iter().map(ArgsBuf::as_args).collect();
        // A server looks first where the keys are of what is queued, and then whether a request was refused.
        let refused = self.refuse(&requests, (is_asking, session.is_readonly), now_us);
        let refused = refused.filter(|_| !(session.is_refused && self.is_loading));
        if let Some(refused) = refused.or_else(|| session.is_refused.then(|| abort.to_vec())) {
            return refused;
        }
        if is_dirty {
            return nothing(session.protocol);
        }
        let mut reply = format!("*{}\r\n", queued.len()).into_bytes();
        for args in queued {
            let asker = Asker { is_in_transaction: true, ..session.asker() };
            if let Some(own) = self.converse_in_transaction(args.as_args(), session) {
                reply.extend(own);
            } else if let Answer::Reply(own) = self.execute(args.as_args(), asker, now_us) {
                reply.extend(own);
            }
        }
        reply
    }

    /// The requests about a connection that may stand in a transaction.
    fn converse_in_transaction(&self, args: Args<'_>, session: &mut Session) -> Option<Vec<u8>> {
        args.name().eq_ignore_ascii_case(b"SELECT").then(|| session.select(args, self.is_cluster))
    }

    fn execute(&mut self, args: Args<'_>, asker: Asker, now_us: u64) -> Answer {
        let answer = self.data.run(args, asker, now_us, &mut self.effects);
        if let Answer::Reply(reply) = &answer {
            self.note(asker.database, args, reply, reply.starts_with(b"-"));
        }
        answer
    }

    /// A request has waited long enough.
    pub(crate) fn note_served(&mut self, waiting: &Waiting, reply: &[u8]) {
        let args = waiting.args.as_args();
        let effect = row_of(args).and_then(|row| effect_of(row, args, reply));
        self.effects.extend(effect.map(|effect| (waiting.database, effect)));
        self.note(waiting.database, args, reply, false);
    }

    fn note(&mut self, database: u32, args: Args<'_>, reply: &[u8], is_refused: bool) {
        if let Some(journal) = &mut self.journal {
            journal.push(Handled { database, args: args.iter().collect(), reply: reply.to_vec(), is_refused });
        }
    }

    /// The connection watches nothing any more.
    pub(crate) fn unwatch(&mut self, session: &mut Session) {
        if session.watching.take().is_some() {
            self.data.unwatch(session.client_id);
        }
    }
}

impl Waiting {
    /// A request of this connection waits.
    pub(crate) fn new(wait: WaitId, args: Args<'_>, session: &Session) -> Self {
        Self { wait, database: session.database, args: args.iter().collect() }
    }

    /// When its time is over, if ever.
    pub(crate) fn until_us(&self, now_us: u64) -> Option<u64> {
        let args = self.args.as_args();
        let seconds: f64 = std::str::from_utf8(args.get(args.len() - 1)?).ok()?.parse().ok()?;
        (seconds > 0.0).then(|| now_us + (seconds * 1e6) as u64)
    }
}
