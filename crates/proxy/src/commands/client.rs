//! CLIENT: what a session may know and change of itself, and of others.
//!
//! Clients are spread over workers, so a question about all of them is put to every worker; the asker's reply keeps its
//! place and is filled in when the last of them has answered.

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientHandle, ClientId, ClientNumber};
use crate::integer::integer;
use crate::interfaces::client_query::{ClientFilter, ClientQuestion, ClientStep, Ids, Querier};
use crate::interfaces::help::help;
use crate::interfaces::release::Release;
use crate::limits::CLIENT_NAME_BYTES_MAX;
use crate::reply::progress::ReplyMode;
use crate::session::marks::{DedicatedRole, Pins};
use crate::session::table::Clients;
use crate::session::{Flow, Session, SessionFlags};
use respool_command::{ConnectionCommand, Execute, Row, text as texts};
use respool_connection::Now;
use respool_wire::{Args, encode_request};

/// A name that clients may have, or the error text.
pub(crate) fn checked_name(name: &[u8]) -> Result<&str, &'static str> {
    if name.len() > CLIENT_NAME_BYTES_MAX || !name.iter().all(|b| (b'!'..=b'~').contains(b)) {
        return Err(texts::INVALID_CLIENT_NAME);
    }
    std::str::from_utf8(name).map_err(|_| texts::INVALID_CLIENT_NAME)
}

impl<E: Execute> Env<E> {
    pub(crate) fn client_command(
        &mut self,
        index: ClientId,
        command: ConnectionCommand,
        row: &'static Row,
        args: Args<'_>,
    ) -> ClientStep {
        use ConnectionCommand as C;
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop.into() };
        let flow = match command {
            C::ClientId => {
                let id = session.id.get() as i64;
                self.answer(index, |reply| reply.integer(id))
            }
            C::ClientGetname => {
                let name = session.details.name.clone();
                self.answer(index, |reply| if name.is_empty() { reply.null() } else { reply.bulk(name.as_bytes()) })
            }
            C::ClientSetname => match checked_name(args.at(2)) {
                Ok(name) => {
                    session.details.name = name.into();
                    self.confirm(index)
                }
                Err(words) => self.refuse(index, words),
            },
            C::ClientSetinfo => self.client_setinfo(index, args),
            C::ClientInfo => {
                let mut line = self.clients.describe_client(self.now, index, Some(canonical_bytes(args)));
                line.push('\n');
                self.answer(index, |reply| reply.verbatim("txt", line.as_bytes()))
            }
            C::ClientList => return self.client_list(index, args),
            C::ClientKill => return self.client_kill(index, args),
            C::ClientNoEvict => match on_or_off(args.at(2)) {
                Some(is_on) => {
                    session.details.is_no_evict = is_on;
                    self.confirm(index)
                }
                None => self.refuse(index, texts::SYNTAX),
            },
            C::ClientReply => self.client_reply(index, args),
            C::ClientGetredir => {
                let redirection = self.clients.redirection_of(index);
                self.answer(index, |reply| reply.integer(redirection))
            }
            C::ClientCaching => self.client_caching(index, args),
            C::ClientTrackinginfo => self.client_trackinginfo(index),
            C::ClientUnblock => return self.client_unblock(index, args),
            C::Client | C::ClientHelp => self.answer(index, |reply| help(row, reply)),
            C::ClientPause => return self.client_pause(index, args),
            C::ClientUnpause => return self.client_unpause(index),
            C::ClientNoTouch => self.client_no_touch(index, row, args),
            // Capabilities change what a replica or a later server tells its clients; there is nothing of it here.
            C::ClientCapa => self.confirm(index),
            C::ClientImportSource => self.client_import_source(index, args),
            _ => self.refuse_unsupported(index, row, "it changes what its connection is"),
        };
        flow.into()
    }

    fn client_no_touch(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Flow {
        let Some(is_on) = on_or_off(args.at(2)) else { return self.refuse(index, texts::SYNTAX) };
        if is_on && self.engine.is_none() {
            return self.refuse_unsupported(index, row, "nodes cannot tell the clients of a pool apart");
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        match is_on {
            true => session.flags.add(SessionFlags::NO_TOUCH),
            false => session.flags.remove(SessionFlags::NO_TOUCH),
        }
        self.confirm(index)
    }

    /// Valkey's answer of a server that keeps nothing that has expired (`import-mode no`).
    fn client_import_source(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        match on_or_off(args.at(2)) {
            Some(false) => self.confirm(index),
            _ => self.refuse(index, error_text::NO_IMPORT_MODE),
        }
    }

    fn client_unblock(&mut self, index: ClientId, args: Args<'_>) -> ClientStep {
        if args.len() > 4 {
            return self.refuse(index, ErrorReply::of(|words| texts::subcommand_syntax(args, words))).into();
        }
        let release = match args.get(3) {
            None => Release::Timeout,
            Some(reason) if reason.eq_ignore_ascii_case(b"TIMEOUT") => Release::Timeout,
            Some(reason) if reason.eq_ignore_ascii_case(b"ERROR") => Release::Error,
            Some(_) => return self.refuse(index, error_text::UNBLOCK_REASON).into(),
        };
        let Some(id) = integer(args.at(2)) else {
            return self.refuse(index, texts::NOT_AN_INTEGER).into();
        };
        let ids = Ids::of(u64::try_from(id).map(|id| vec![ClientNumber::new(id)]).unwrap_or_default());
        ClientStep::ask(ClientQuestion::Unblock(release), ClientFilter { ids: Some(ids), ..ClientFilter::default() })
    }

    fn client_list(&mut self, index: ClientId, args: Args<'_>) -> ClientStep {
        let question = ClientQuestion::List { request_bytes: canonical_bytes(args) };
        self.ask_filtered(index, question, args.from(2))
    }

    fn client_kill(&mut self, index: ClientId, args: Args<'_>) -> ClientStep {
        if args.len() == 3 {
            let address = Some(String::from_utf8_lossy(args.at(2)).into_owned());
            return ClientStep::ask(ClientQuestion::KillOne, ClientFilter { address, ..ClientFilter::default() });
        }
        self.ask_filtered(index, ClientQuestion::KillSome, args.from(2))
    }

    /// Asks about the clients that fit the options.
    fn ask_filtered(&mut self, index: ClientId, question: ClientQuestion, options: Args<'_>) -> ClientStep {
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop.into() };
        let asker =
            Querier { id: session.id, now_us: self.now.mono_us, is_killing: question == ClientQuestion::KillSome };
        match ClientFilter::parse(options, &asker, |name| self.users.user(name).is_some()) {
            Ok(filter) => ClientStep::ask(question, filter),
            Err(words) => self.refuse(index, words).into(),
        }
    }

    /// Closes the clients of this worker that `filter` matches; the one that asked, if it is among them, only once its
    /// reply is written.
    pub(crate) fn kill_clients(&mut self, filter: &ClientFilter, asker: Option<ClientHandle>) -> usize {
        let matched: Vec<ClientId> = self.clients.matching(filter).map(|(index, _)| index).collect();
        for index in &matched {
            if asker.is_some_and(|a| a.index == *index) {
                self.clients.stop_client(*index);
            } else {
                self.close_client(*index);
            }
        }
        matched.len()
    }

    fn client_setinfo(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        let (attribute, value) = (args.at(2), args.at(3));
        let is_name = attribute.eq_ignore_ascii_case(b"LIB-NAME");
        if !is_name && !attribute.eq_ignore_ascii_case(b"LIB-VER") {
            return self.refuse(index, error_text::unknown_attribute(attribute));
        }
        let Ok(value) = checked_name(value) else {
            return self.refuse(index, error_text::unprintable(if is_name { b"lib-name" } else { b"lib-ver" }));
        };
        if is_name {
            session.details.lib_name = value.into();
        } else {
            session.details.lib_version = value.into();
        }
        self.confirm(index)
    }

    fn client_reply(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        let word = args.at(2);
        if word.eq_ignore_ascii_case(b"ON") {
            session.reply_mode = ReplyMode::On;
            return self.confirm(index);
        } else if word.eq_ignore_ascii_case(b"OFF") {
            session.reply_mode = ReplyMode::Off;
        } else if word.eq_ignore_ascii_case(b"SKIP") {
            if session.reply_mode == ReplyMode::On {
                session.reply_mode = ReplyMode::SkipNext;
            }
        } else {
            return self.refuse(index, texts::SYNTAX);
        }
        Flow::Next
    }
}

impl Clients {
    /// The clients of this worker that a filter lets through: their numbers and lines. `asker`: the client that asks with a request
    /// of `request_bytes`, if it is one of them.
    pub(crate) fn list_clients(
        &self,
        now: Now,
        filter: &ClientFilter,
        asker: Option<ClientHandle>,
        request_bytes: usize,
    ) -> Vec<(ClientNumber, String)> {
        let describe = |index| {
            let is_asking = asker.is_some_and(|asker| asker.index == index);
            self.describe_client(now, index, is_asking.then_some(request_bytes))
        };
        self.matching(filter).map(|(index, session)| (session.id, describe(index))).collect()
    }

    /// The clients of this worker that fit a filter.
    fn matching<'a>(&'a self, filter: &'a ClientFilter) -> impl Iterator<Item = (ClientId, &'a Session)> {
        let is_flagged = |index| {
            filter.flags.as_deref().is_none_or(|wanted| {
                let flags = self.flags_of(index);
                wanted.chars().all(|flag| flags.contains(flag))
            })
        };
        self.sessions.iter().filter(move |(index, session)| filter.matches(session) && is_flagged(*index))
    }

    /// What a client is, as CLIENT LIST abbreviates it.
    fn flags_of(&self, index: ClientId) -> String {
        let Some(session) = self.sessions.at(index) else { return String::new() };
        let pins = session.pins.as_deref();
        let mut flags = String::new();
        flags.extend(session.dedicated().and_then(|role| match role {
            DedicatedRole::None => None,
            DedicatedRole::Monitors => Some('O'),
            DedicatedRole::Follows => Some('S'),
        }));
        for (flag, is_set) in [
            ('P', self.is_subscriber(index)),
            ('x', pins.is_some_and(|pins| pins.queued().is_some())),
            ('b', pins.is_some_and(|pins| !pins.blocked.is_empty())),
            ('U', session.details.peer.is_unix),
            ('e', session.details.is_no_evict),
            ('T', session.flags.has(SessionFlags::NO_TOUCH)),
        ] {
            if is_set {
                flags.push(flag);
            }
        }
        flags.push_str(self.tracking_flags(index));
        if flags.is_empty() {
            flags.push('N');
        }
        flags
    }

    /// One line of CLIENT LIST. `request_bytes`: it is the client that asks, with a request of so many bytes.
    pub(crate) fn describe_client(&self, now: Now, index: ClientId, request_bytes: Option<usize>) -> String {
        let Some(session) = self.sessions.at(index) else { return String::new() };
        let cold = &session.details;
        let seconds_since = |then: u64| now.mono_us.saturating_sub(then) / 1_000_000;
        let flags = self.flags_of(index);
        let [channels, patterns, shards] = session.subscriber.as_ref().map_or([0; 3], |s| s.counts());
        let pins = session.pins.as_deref();
        let (backlog, backlog_bytes) =
            session.subscriber.as_ref().map_or((0, 0), |s| (s.backlog_len(), s.backlog_bytes()));
        let input = session.input.as_ref().map_or((0, 0), |i| (i.len(), i.capacity() - i.len()));
        format!(
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={flags} db={} sub={channels} psub={patterns} ssub={shards} multi={} \
             qbuf={} qbuf-free={} argv-mem={} multi-mem={} rbs=0 rbp=0 obl={} oll={backlog} omem={} tot-mem={} events={} cmd={} \
             user={} redir={} resp={} lib-name={} lib-ver={}",
            session.id,
            cold.peer.address,
            cold.peer.local_address,
            cold.peer.fd,
            cold.name,
            seconds_since(cold.connected_us),
            seconds_since(session.last_active_us),
            session.database,
            pins.and_then(Pins::queued).map_or(-1, |q| q as i64),
            request_bytes.map_or(input.0, |bytes| bytes.max(input.0)),
            input.1,
            session.large.as_ref().map_or(0, |large| large.held_bytes()),
            pins.map_or(0, Pins::transaction_bytes),
            session.down.output().len(),
            // What the limits of output bound.
            session.reply_bytes() + backlog_bytes,
            session.eviction_bytes() + std::mem::size_of_val(session),
            if session.is_blocked { "rw" } else { "r" },
            session.last_row.map_or("NULL", |row| row.full_name()),
            String::from_utf8_lossy(session.user_name()),
            self.redirection_of(index),
            session.protocol.version(),
            cold.lib_name,
            cold.lib_version,
        )
    }
}

/// The bytes of a request as most clients send it.
fn canonical_bytes(args: Args<'_>) -> usize {
    let mut request = Vec::new();
    encode_request(&mut request, args.iter());
    request.len()
}

fn on_or_off(word: &[u8]) -> Option<bool> {
    match word.to_ascii_uppercase().as_slice() {
        b"ON" => Some(true),
        b"OFF" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{EchoEngine, env_with_node, request};
    use respool_command::Command;

    fn ask(env: &mut Env<EchoEngine>, client: ClientId, said: &str) -> ClientStep {
        request(said, |row, args| match row.command {
            Command::Connection(command) => env.client_command(client, command, row, args),
            _ => panic!("{said} is not about clients"),
        })
    }

    #[test]
    fn a_client_knows_and_changes_what_is_its_own() {
        let mut env = env_with_node();
        let client = env.test_client();
        for (said, answer) in [
            ("CLIENT GETNAME", "$-1\r\n"),
            ("CLIENT SETNAME me", "+OK\r\n"),
            ("CLIENT GETNAME", "$2\r\nme\r\n"),
            ("CLIENT ID", ":1\r\n"),
            ("CLIENT NO-EVICT on", "+OK\r\n"),
            ("CLIENT GETREDIR", ":-1\r\n"),
        ] {
            assert!(matches!(ask(&mut env, client, said), ClientStep::Done(Flow::Next)), "{said}");
            assert_eq!(env.take_output(client), answer, "{said}");
        }
        assert!(env.test_session(client).details.is_no_evict);
        for said in ["CLIENT NO-EVICT x", "CLIENT NO-TOUCH on", "CLIENT UNBLOCK x"] {
            assert!(matches!(ask(&mut env, client, said), ClientStep::Done(_)), "{said}");
            assert!(env.take_output(client).starts_with('-'), "{said}");
        }
    }

    #[test]
    fn names_are_printable_and_short() {
        assert_eq!(checked_name(b"a-b"), Ok("a-b"));
        let long = vec![b'x'; CLIENT_NAME_BYTES_MAX + 1];
        for name in [&b"a b"[..], b"a\n", b"\xc3\xa4", &long] {
            assert_eq!(checked_name(name), Err(texts::INVALID_CLIENT_NAME));
        }
    }

    #[test]
    fn an_address_means_one_client_and_a_filter_all_that_fit() {
        let mut env = env_with_node();
        let client = env.test_client();
        let one = ask(&mut env, client, "CLIENT KILL 1.2.3.4:5");
        assert!(matches!(one, ClientStep::Ask(ref query) if query.question == ClientQuestion::KillOne));
        let some = ask(&mut env, client, "CLIENT KILL ID 7");
        assert!(matches!(some, ClientStep::Ask(ref query) if query.question == ClientQuestion::KillSome));
        assert!(matches!(ask(&mut env, client, "CLIENT KILL ID x"), ClientStep::Done(_)));
    }

    #[test]
    fn options_of_a_list_are_joined() {
        let mut env = env_with_node();
        let [client, other] = [env.test_client(), env.test_client()];
        assert!(matches!(ask(&mut env, other, "CLIENT SETNAME other"), ClientStep::Done(Flow::Next)));
        env.take_output(other);
        env.test_session(client).details.peer.address = "/tmp/socket:0".to_owned();
        env.test_session(other).details.peer.address = "[::1]:6379".to_owned();
        for (said, expected) in [
            ("CLIENT LIST", Ok(2)),
            ("CLIENT LIST NAME ", Ok(0)),
            ("CLIENT LIST IP ::1", Ok(1)),
            ("CLIENT LIST IP [::1]", Ok(0)),
            ("CLIENT LIST IP ", Ok(0)),
            ("CLIENT LIST IP /tmp/socket", Ok(0)),
            ("CLIENT LIST ID 1 2 3 NAME other", Ok(1)),
            ("CLIENT LIST NAME other FLAGS N", Ok(1)),
            ("CLIENT LIST FLAGS NT", Ok(0)),
            ("CLIENT LIST SKIPME yes TYPE normal", Ok(1)),
            ("CLIENT LIST MAXAGE 100", Ok(0)),
            ("CLIENT LIST ID", Err("-ERR syntax error\r\n")),
            ("CLIENT LIST ID x", Err("-ERR Invalid client ID\r\n")),
            ("CLIENT LIST ID 1 x", Err("-ERR Invalid client ID\r\n")),
            ("CLIENT LIST USER missing", Err("-ERR No such user 'missing'\r\n")),
            ("CLIENT LIST FLAGS NZ", Err("-ERR Unknown flags found in the provided filter: NZ\r\n")),
            ("CLIENT KILL FLAGS ", Err("-ERR Unknown flags found in the provided filter: \r\n")),
            ("CLIENT LIST NOSUCH x", Err("-ERR syntax error\r\n")),
        ] {
            match (ask(&mut env, client, said), expected) {
                (ClientStep::Ask(query), Ok(count)) => {
                    let lines = env.clients.list_clients(env.now, &query.filter, None, 0);
                    assert_eq!(lines.len(), count, "{said}: {lines:?}");
                }
                (ClientStep::Done(_), Err(error)) => assert_eq!(env.take_output(client), error, "{said}"),
                (step, _) => panic!("{said}: {step:?}"),
            }
        }
    }
}
