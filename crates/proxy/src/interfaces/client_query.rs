//! Queries about the clients of all workers: CLIENT LIST, KILL, UNBLOCK, PAUSE, and users that have changed.

use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::ClientNumber;
use crate::integer::integer;
use crate::interfaces::release::Release;
use crate::session::Session;
use crate::workers::query::{Step, WorkerQuery};
use respool_command::text as texts;
use respool_wire::{Args, Encoder};
use std::cmp::Ordering;
use std::sync::Arc;

/// What is asked, and about which clients.
#[derive(Clone, Debug)]
pub(crate) struct ClientQuery {
    pub(crate) question: ClientQuestion,
    pub(crate) filter: Box<ClientFilter>,
}

/// What workers answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientAnswer {
    /// Clients by number, each described in a line.
    pub(crate) lines: Vec<(ClientNumber, String)>,
    /// How many clients it was done to.
    pub(crate) count: usize,
}

/// What is asked about clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientQuestion {
    /// Describe them; the request that asks for it has so many bytes.
    List { request_bytes: usize },
    /// Close the one with this address; it is an error if there is none.
    KillOne,
    /// Close them and say how many there were.
    KillSome,
    /// Go by the users that are in force now; how many were removed, if that was asked.
    Users {
        /// Users that there were.
        removed: Option<u32>,
    },
    /// Let them wait no longer, if they do.
    Unblock(Release),
    /// Adopt the pause of the standing orders (`CLIENT PAUSE`).
    ClientPause,
}

/// Which clients are meant: those that fit everything that is said.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientFilter {
    pub(crate) ids: Option<Ids>,
    pub(crate) address: Option<String>,
    pub(crate) local_address: Option<String>,
    pub(crate) user: Option<Vec<u8>>,
    /// A client that is not meant whatever else fits.
    pub(crate) spared: Option<ClientNumber>,
    /// Only clients that had come by then; before the clock's beginning there were none.
    pub(crate) connected_by_us: Option<i64>,
    /// Only clients of this kind.
    pub(crate) kind: Option<ClientKind>,
    pub(crate) name: Option<Vec<u8>>,
    /// The address without its port.
    pub(crate) ip: Option<String>,
    /// All of these flags of CLIENT LIST.
    pub(crate) flags: Option<String>,
}

/// The client that asks about clients, and when.
pub(crate) struct Querier {
    pub(crate) id: ClientNumber,
    pub(crate) now_us: u64,
    /// It is CLIENT KILL, which spares the asker and knows one number alone, and not CLIENT LIST.
    pub(crate) is_killing: bool,
}

/// The flags that CLIENT LIST may show, as Valkey counts them.
const FLAGS: &str = "ONSMPxbtRBdcuAUreTIEi";

/// The flags that are wanted, each once however often it is named: every client of every worker is looked at for each of them.
fn flags_of(wanted: &[u8]) -> Option<String> {
    let is_known = |flag: &u8| FLAGS.as_bytes().contains(flag);
    let are_known = !wanted.is_empty() && wanted.iter().all(is_known);
    are_known.then(|| FLAGS.chars().filter(|flag| wanted.contains(&(*flag as u8))).collect())
}

/// The options that may follow the numbers of CLIENT LIST.
const OPTIONS: [&str; 10] = ["ADDR", "FLAGS", "ID", "IP", "LADDR", "MAXAGE", "NAME", "SKIPME", "TYPE", "USER"];

/// Numbers of clients. A request may name a million of them, and every client of every worker is looked for among them: they are
/// sorted once, and all workers share them.
#[derive(Clone, Debug)]
pub(crate) struct Ids(Arc<[ClientNumber]>);

impl Ids {
    pub(crate) fn of(mut ids: Vec<ClientNumber>) -> Self {
        ids.sort_unstable();
        ids.dedup();
        Self(ids.into())
    }

    pub(crate) fn has(&self, id: ClientNumber) -> bool {
        self.place(id, |one, other| one.cmp(other)).is_ok()
    }

    fn place(
        &self,
        id: ClientNumber,
        mut compare: impl FnMut(&ClientNumber, &ClientNumber) -> Ordering,
    ) -> Result<usize, usize> {
        self.0.binary_search_by(|known| compare(known, &id))
    }
}

/// What a client is to the others, as Redis tells clients apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientKind {
    Normal,
    /// It subscribes to something.
    Pubsub,
    /// It follows a node.
    Replica,
    /// A node follows it. None of a proxy's ever is.
    Master,
}

/// The numbers before the next option; at least one.
fn listed_ids(words: Args<'_>) -> Result<Vec<ClientNumber>, ErrorReply> {
    let mut ids = Vec::new();
    for word in words.iter() {
        match integer(word).and_then(|id| u64::try_from(id).ok()) {
            Some(id) => ids.push(ClientNumber::new(id)),
            None if !ids.is_empty() && OPTIONS.iter().any(|option| word.eq_ignore_ascii_case(option.as_bytes())) => {
                break;
            }
            None => return Err(error_text::INVALID_CLIENT_ID.into()),
        }
    }
    Ok(ids)
}

impl ClientKind {
    fn named(word: &[u8]) -> Result<Self, ErrorReply> {
        match word.to_ascii_lowercase().as_slice() {
            b"normal" => Ok(Self::Normal),
            b"pubsub" => Ok(Self::Pubsub),
            b"replica" | b"slave" => Ok(Self::Replica),
            b"master" => Ok(Self::Master),
            _ => Err(error_text::unknown_client_type(word)),
        }
    }

    fn of(session: &Session) -> Self {
        if session.is_replica() {
            Self::Replica
        } else if session.subscriber.as_ref().is_some_and(|s| s.is_subscribed()) {
            Self::Pubsub
        } else {
            Self::Normal
        }
    }
}

/// What is left to do of a request about clients.
pub(crate) type ClientStep = Step<ClientQuery>;

impl ClientStep {
    /// Puts a question about clients to every worker.
    pub(crate) fn ask(question: ClientQuestion, filter: ClientFilter) -> Self {
        Self::Ask(ClientQuery { question, filter: Box::new(filter) })
    }

    /// All workers of the process are told of other users; then the client is told that it is done.
    pub(crate) fn tell_of_users() -> Self {
        Self::ask(ClientQuestion::Users { removed: None }, ClientFilter::default())
    }

    /// Closes the clients with these numbers.
    pub(crate) fn kill(ids: Vec<ClientNumber>) -> Self {
        Self::ask(ClientQuestion::KillSome, ClientFilter { ids: Some(Ids::of(ids)), ..ClientFilter::default() })
    }
}

impl ClientFilter {
    /// The clients that fit all options, or the error text.
    pub(crate) fn parse(
        options: Args<'_>,
        asker: &Querier,
        is_user: impl Fn(&[u8]) -> bool,
    ) -> Result<Self, ErrorReply> {
        let mut filter = Self::default();
        let (mut is_sparing_me, mut at) = (asker.is_killing, 0);
        while let Some(option) = options.get(at) {
            let value = options.get(at + 1).ok_or(texts::SYNTAX)?;
            let bytes = || Some(value.to_vec());
            let text = || Some(String::from_utf8_lossy(value).into_owned());
            match option.to_ascii_uppercase().as_slice() {
                b"ID" if asker.is_killing => match integer(value) {
                    Some(id) if id > 0 => filter.ids = Some(Ids::of(vec![ClientNumber::new(id as u64)])),
                    _ => return Err(error_text::CLIENT_ID_NOT_POSITIVE.into()),
                },
                b"ID" => {
                    let ids = listed_ids(options.from(at + 1))?;
                    at += ids.len() - 1;
                    filter.ids = Some(Ids::of(ids));
                }
                b"ADDR" => filter.address = text(),
                b"LADDR" => filter.local_address = text(),
                b"IP" => filter.ip = text(),
                b"NAME" => filter.name = bytes(),
                b"TYPE" => filter.kind = Some(ClientKind::named(value)?),
                b"USER" if is_user(value) => filter.user = bytes(),
                b"USER" => return Err(error_text::no_such_user(value)),
                b"MAXAGE" => match integer(value) {
                    Some(seconds) if seconds > 0 => {
                        let now_us = i64::try_from(asker.now_us).unwrap_or(i64::MAX);
                        filter.connected_by_us = Some(now_us.saturating_sub(seconds.saturating_mul(1_000_000)));
                    }
                    Some(_) => return Err(error_text::MAXAGE_NOT_POSITIVE.into()),
                    None => return Err(error_text::MAXAGE_NOT_AN_INTEGER.into()),
                },
                // Every client has all of no flags.
                b"FLAGS" => match flags_of(value) {
                    Some(flags) => filter.flags = Some(flags),
                    None => return Err(error_text::unknown_flags(value)),
                },
                b"SKIPME" => match value.to_ascii_uppercase().as_slice() {
                    b"YES" => is_sparing_me = true,
                    b"NO" => is_sparing_me = false,
                    _ => return Err(texts::SYNTAX.into()),
                },
                _ => return Err(texts::SYNTAX.into()),
            }
            at += 2;
        }
        filter.spared = is_sparing_me.then_some(asker.id);
        Ok(filter)
    }

    pub(crate) fn matches(&self, session: &Session) -> bool {
        let details = &session.details;
        let peer = &details.peer;
        self.spared != Some(session.id)
            && self.kind.is_none_or(|kind| kind == ClientKind::of(session))
            && self.ids.as_ref().is_none_or(|ids| ids.has(session.id))
            && self.address.as_ref().is_none_or(|a| *a == peer.address)
            && self.local_address.as_ref().is_none_or(|a| *a == peer.local_address)
            && self.ip.as_ref().is_none_or(|ip| is_at(&peer.address, ip))
            && self
                .connected_by_us
                .is_none_or(|by_us| i64::try_from(details.connected_us).is_ok_and(|at_us| at_us <= by_us))
            // An empty name is none.
            && self.name.as_ref().is_none_or(|name| !name.is_empty() && *name == details.name.as_bytes())
            && self.user.as_ref().is_none_or(|user| session.user_name() == user)
    }
}

/// Whether an address has this IP. Those of IPv6 stand in brackets, and a path has no port.
fn is_at(address: &str, ip: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(host, port)| port != "0" && host.trim_matches(['[', ']']) == ip)
}

impl ClientQuery {
    pub(crate) fn reply(&self, answer: ClientAnswer, reply: &mut Encoder<'_>) {
        let ClientAnswer { mut lines, count } = answer;
        match self.question {
            ClientQuestion::List { .. } => {
                lines.sort_unstable();
                let mut text = String::new();
                for (_, line) in &lines {
                    text.push_str(line);
                    text.push('\n');
                }
                reply.verbatim("txt", text.as_bytes());
            }
            ClientQuestion::KillOne if count == 0 => reply.error(texts::NO_SUCH_CLIENT.as_bytes()),
            ClientQuestion::KillOne | ClientQuestion::ClientPause | ClientQuestion::Users { removed: None } => {
                reply.raw(respool_wire::replies::OK);
            }
            ClientQuestion::Users { removed: Some(removed) } => reply.integer(removed.into()),
            ClientQuestion::KillSome | ClientQuestion::Unblock(_) => reply.integer(count as i64),
        }
    }
}

impl WorkerQuery for ClientQuery {
    type Answer = ClientAnswer;

    fn is_large(&self) -> bool {
        matches!(self.question, ClientQuestion::List { .. })
    }

    fn is_promise(&self) -> bool {
        matches!(self.question, ClientQuestion::Users { .. } | ClientQuestion::ClientPause)
    }

    /// Users are those of the whole process, and so is what is done to the clients of one.
    fn is_of_process(&self) -> bool {
        match self.question {
            ClientQuestion::Users { .. } => true,
            ClientQuestion::KillSome => self.filter.user.is_some(),
            ClientQuestion::List { .. }
            | ClientQuestion::KillOne
            | ClientQuestion::Unblock(_)
            | ClientQuestion::ClientPause => false,
        }
    }

    fn no_answer(&self) -> ClientAnswer {
        ClientAnswer::default()
    }

    fn join(&self, all: &mut ClientAnswer, one: ClientAnswer) {
        all.count += one.count;
        all.lines.extend(one.lines);
    }

    fn bytes_of(answer: &ClientAnswer) -> usize {
        answer.lines.iter().map(|(_, line)| line.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientNumber, FLAGS, Ids, flags_of};

    #[test]
    fn a_flag_is_looked_for_once_however_often_it_is_named() {
        assert_eq!(flags_of("NNPN".repeat(100_000).as_bytes()).as_deref(), Some("NP"));
        assert_eq!(flags_of(FLAGS.as_bytes()).as_deref(), Some(FLAGS));
        for unknown in ["", "Nz", "N P", "\u{e9}"] {
            assert_eq!(flags_of(unknown.as_bytes()), None, "{unknown}");
        }
    }

    #[test]
    fn a_client_is_found_among_many_numbers_in_few_steps() {
        let ids = Ids::of((0..100_000).rev().flat_map(|id| [2 * id, 2 * id]).map(ClientNumber::new).collect());
        for id in [0, 2, 77_776, 199_998] {
            assert!(ids.has(ClientNumber::new(id)) && !ids.has(ClientNumber::new(id + 1)));
        }
        let mut steps = 0;
        let _ = ids.place(ClientNumber::new(77_777), |one, other| {
            steps += 1;
            one.cmp(other)
        });
        assert!(steps < 20, "{steps}");
    }
}
