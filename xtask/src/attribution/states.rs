//! Requests that put their session into a state of its own: transactions, watched keys, waiting pops, subscriptions,
//! tracking, another dialect, database or user.
//!
//! Each is a few requests that belong together, sent at once, whose replies are known: what they write has a name that
//! nobody else uses. Only a node in trouble may make a difference. Messages and invalidations may come between the
//! replies, or not at all: they are judged one by one.

use respool_testkit::{Rng, elements, reply_length};

/// The user of [`State::Guest`], whose rules the settings of the run say, and its password.
pub(super) const GUEST: [&str; 2] = ["guest", "welcome"];
/// The user whose clients are in pool mode `session`, who may do everything, and its password.
pub(super) const OWNER: [&str; 2] = ["owner", "apart"];
/// Longer than what makes Respool give a client a connection of its own.
const LARGE_BYTES: usize = 1_100_000;
const SCRIPT: &str = "return{ARGV[1]}";
const SCRIPT_HASH: &str = "f6b4c78f76c83eb675e073aa8975b476fd501252";

macro_rules! states {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal,)+) => {
        /// A state that is entered and left again.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum State {
            $($(#[doc = $doc])* $variant,)+
        }

        impl State {
            pub(super) const ALL: &'static [State] = &[$(State::$variant,)+];

            pub(super) fn name(self) -> &'static str {
                match self {
                    $(State::$variant => $name,)+
                }
            }
        }
    };
}

states! {
    /// MULTI, two requests, EXEC.
    Transaction = "transactions",
    /// The same with the key watched before, on a connection of its own.
    Watching = "watched transactions",
    /// The same in another database.
    MovedTransaction = "transactions that select",
    /// MULTI and a request that is taken back.
    Discarded = "discarded transactions",
    /// A block that is spoilt by a mistake.
    Spoilt = "spoilt transactions",
    /// A pop that finds what was just pushed.
    Served = "pops served",
    /// A pop that waits in vain, for a moment.
    InVain = "pops in vain",
    /// A pop whose client does not wait for it.
    LeftWaiting = "pops left waiting",
    /// SUBSCRIBE and UNSUBSCRIBE: the session is a subscriber's in between.
    Subscribed = "subscribers",
    /// The same for a pattern, in RESP3, with a message to oneself.
    Listening = "listeners in RESP3",
    /// What was read is tracked, and changed.
    Tracking = "trackers",
    /// Another database for a while.
    Selected = "other databases",
    /// Another user for a while, who may not do everything.
    Guest = "other users",
    /// A user for a while whose clients have connections to nodes to themselves.
    Owner = "owners of connections",
    /// Replies are not wanted for a while.
    Quiet = "without replies",
    /// A script, and the same by its hash.
    Script = "scripts",
    /// A value that passes on a connection of its own.
    Large = "large values",
    /// Everything taken back at once.
    Reset = "resets",
}

/// What a request gets while all is well.
enum Wanted {
    Nothing,
    Exactly(String),
    /// A reply that begins so: the rest is nobody's business here.
    Beginning(&'static str),
}

impl Wanted {
    fn is(&self, reply: &[u8]) -> bool {
        match self {
            Wanted::Nothing => false,
            Wanted::Exactly(wanted) => reply == wanted.as_bytes(),
            Wanted::Beginning(wanted) => reply.starts_with(wanted.as_bytes()),
        }
    }
}

/// A request and what it gets.
struct Line {
    words: Vec<String>,
    wanted: Wanted,
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn say(words: &str, wanted: impl Into<String>) -> Line {
    let words = words.split(' ').map(str::to_owned).collect();
    Line { words, wanted: Wanted::Exactly(wanted.into()) }
}

fn quietly(words: &str) -> Line {
    Line { wanted: Wanted::Nothing, ..say(words, "") }
}

fn hello(version: u8) -> Line {
    let wanted = if version == 3 { "%7\r\n$6\r\nserver\r\n" } else { "*14\r\n$6\r\nserver\r\n" };
    Line { wanted: Wanted::Beginning(wanted), ..say(&format!("HELLO {version}"), "") }
}

impl State {
    /// Any but those that clients leave.
    pub(super) fn any(rng: &mut Rng) -> State {
        match rng.below(200) {
            0 => State::Large,
            1..=60 => *rng.pick(&[State::Transaction, State::Transaction, State::Watching]),
            _ => loop {
                let state = *rng.pick(State::ALL);
                if !matches!(state, State::LeftWaiting | State::Large) {
                    return state;
                }
            },
        }
    }

    /// Whether the session is somebody else's afterwards than it may have been before.
    pub(super) fn leaves_user(self) -> bool {
        matches!(self, State::Guest | State::Owner | State::Reset)
    }

    /// `token` is nobody else's.
    fn conversation(self, token: &str) -> Vec<Line> {
        let key = format!("{{{token}}}:key");
        let (ok, queued, nothing) = ("+OK\r\n", "+QUEUED\r\n", "$-1\r\n");
        let set = format!("SET {key} {token} EX 60");
        let get = format!("GET {key}");
        let told = |what: &str, count: u8| format!("3\r\n{}{}:{count}\r\n", bulk(what), bulk(token));
        match self {
            State::Transaction | State::Watching => {
                let watch = (self == State::Watching).then(|| say(&format!("WATCH {key}"), ok));
                let result = format!("*2\r\n+OK\r\n{}", bulk(token));
                let block = [say("MULTI", ok), say(&set, queued), say(&get, queued), say("EXEC", result)];
                watch.into_iter().chain(block).collect()
            }
            State::MovedTransaction => vec![
                say("MULTI", ok),
                say("SELECT 5", queued),
                say(&set, queued),
                say(&get, queued),
                say("SELECT 0", queued),
                say("EXEC", format!("*4\r\n+OK\r\n+OK\r\n{}+OK\r\n", bulk(token))),
                // A block that failed in the midst leaves its session where it was.
                say("SELECT 0", ok),
            ],
            State::Discarded => vec![say("MULTI", ok), say(&get, queued), say("DISCARD", ok)],
            State::Spoilt => vec![
                say("MULTI", ok),
                say(&set, queued),
                say("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
                say("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"),
                say(&get, nothing),
            ],
            State::Served => vec![
                say(&format!("RPUSH {key} {token}"), ":1\r\n"),
                say(&format!("BLPOP {key} 1"), format!("*2\r\n{}{}", bulk(&key), bulk(token))),
            ],
            State::InVain => vec![say(&format!("BLPOP {key} 0.02"), "*-1\r\n")],
            State::LeftWaiting => vec![say(&format!("BLPOP {key} 0.4"), "*-1\r\n")],
            State::Subscribed => vec![
                say(&format!("SUBSCRIBE {token}"), format!("*{}", told("subscribe", 1))),
                say(&format!("UNSUBSCRIBE {token}"), format!("*{}", told("unsubscribe", 0))),
            ],
            State::Listening => vec![
                hello(3),
                say(&format!("SUBSCRIBE {token}"), format!(">{}", told("subscribe", 1))),
                Line { wanted: Wanted::Beginning(":"), ..say(&format!("PUBLISH {token} {token}"), "") },
                say(&format!("ECHO {token}"), bulk(token)),
                say(&format!("UNSUBSCRIBE {token}"), format!(">{}", told("unsubscribe", 0))),
                hello(2),
            ],
            State::Tracking => vec![
                hello(3),
                say("CLIENT TRACKING ON", ok),
                say(&get, "_\r\n"),
                say(&set, ok),
                say(&get, bulk(token)),
                say("CLIENT TRACKING OFF", ok),
                hello(2),
            ],
            State::Selected => {
                vec![
                    say("SELECT 3", ok),
                    say(&set, ok),
                    say(&get, bulk(token)),
                    say("SELECT 0", ok),
                    say(&get, nothing),
                ]
            }
            State::Guest => vec![
                say(&format!("AUTH {} {}", GUEST[0], GUEST[1]), ok),
                say(&get, nothing),
                Line { wanted: Wanted::Beginning("-NOPERM "), ..say(&format!("SET {key} {token}"), "") },
                say("AUTH default any", ok),
                say("ACL WHOAMI", bulk("default")),
            ],
            State::Owner => vec![
                say(&format!("AUTH {} {}", OWNER[0], OWNER[1]), ok),
                say(&set, ok),
                say(&get, bulk(token)),
                say(&format!("WATCH {key}"), ok),
                say("MULTI", ok),
                say(&set, queued),
                say(&get, queued),
                say("EXEC", format!("*2\r\n+OK\r\n{}", bulk(token))),
                say("AUTH default any", ok),
                say(&get, bulk(token)),
            ],
            State::Quiet => vec![
                quietly("CLIENT REPLY OFF"),
                quietly(&set),
                quietly(&get),
                say("CLIENT REPLY ON", ok),
                quietly("CLIENT REPLY SKIP"),
                quietly(&format!("ECHO not:{token}")),
                say(&format!("ECHO {token}"), bulk(token)),
            ],
            State::Script => vec![
                say(&format!("EVAL {SCRIPT} 1 {key} {token}"), format!("*1\r\n{}", bulk(token))),
                say(&format!("EVALSHA {SCRIPT_HASH} 1 {key} {token}"), format!("*1\r\n{}", bulk(token))),
            ],
            State::Large => {
                let large = token.repeat(LARGE_BYTES / token.len());
                vec![
                    say(&format!("SET {key} {large} EX 20"), ok),
                    say(&get, bulk(&large)),
                    say(&format!("DEL {key}"), ":1\r\n"),
                ]
            }
            State::Reset => vec![
                say("SELECT 4", ok),
                say("MULTI", ok),
                say(&set, queued),
                say("RESET", "+RESET\r\n"),
                say(&get, nothing),
            ],
        }
    }

    pub(super) fn encode(self, token: &str, out: &mut Vec<u8>) {
        for line in self.conversation(token) {
            out.extend_from_slice(&respool_testkit::request(&line.words));
        }
    }

    /// How many replies belong to it, without what may come between them.
    pub(super) fn replies(self) -> usize {
        self.conversation("token").iter().filter(|line| !matches!(line.wanted, Wanted::Nothing)).count()
    }

    /// The first error among its replies that is none of those that it should get.
    pub(super) fn error<'a>(self, token: &str, replies: &'a [u8]) -> Option<&'a [u8]> {
        let lines = self.conversation(token);
        let answered = lines.iter().filter(|line| !matches!(line.wanted, Wanted::Nothing));
        let mut pairs = split(replies).filter(|reply| !is_aside(reply)).zip(answered);
        pairs.find(|(reply, line)| reply.first() == Some(&b'-') && !line.wanted.is(reply)).map(|(reply, _)| reply)
    }

    /// Whether the replies can be its own. Errors are judged apart; behind one, or when a node was killed meanwhile, a
    /// transaction may have been given up and what was written may be gone.
    pub(super) fn is_right(self, token: &str, replies: &[u8], is_troubled: bool) -> bool {
        let lines = self.conversation(token);
        let answered: Vec<&Line> = lines.iter().filter(|line| !matches!(line.wanted, Wanted::Nothing)).collect();
        let (asides, replies): (Vec<&[u8]>, Vec<&[u8]>) = split(replies).partition(|reply| is_aside(reply));
        let own_value = bulk(token);
        // Where entering a state failed, what follows was done outside of it.
        let is_left_over = |reply: &[u8]| matches!(reply, b"+OK\r\n" | b"+QUEUED\r\n") || reply == own_value.as_bytes();
        let is_own = |reply: &[u8], line: &Line| {
            let is_nothing = matches!(reply, b"*-1\r\n" | b"$-1\r\n" | b"_\r\n" | b":0\r\n");
            line.wanted.is(reply)
                || (is_troubled && (reply.first() == Some(&b'-') || is_nothing || is_left_over(reply)))
        };
        replies.len() == answered.len()
            && replies.iter().zip(&answered).all(|(reply, line)| is_own(reply, line))
            && asides.iter().all(|aside| self.may_hear(token, aside))
    }

    /// Whether it may be told this between its replies.
    fn may_hear(self, token: &str, aside: &[u8]) -> bool {
        let key = format!("{{{token}}}:key");
        match self {
            State::Listening => aside == format!(">3\r\n{}{}{}", bulk("message"), bulk(token), bulk(token)).as_bytes(),
            State::Tracking => {
                let head = format!(">2\r\n{}", bulk("invalidate"));
                aside == format!("{head}_\r\n").as_bytes() || aside == format!("{head}*1\r\n{}", bulk(&key)).as_bytes()
            }
            _ => false,
        }
    }
}

/// Whether this is no reply: it may come at any time.
pub(super) fn is_aside(reply: &[u8]) -> bool {
    reply.first() == Some(&b'>')
        && matches!(elements(reply).first(), Some(&b"$7\r\nmessage\r\n" | &b"$10\r\ninvalidate\r\n"))
}

/// Replies that stand one behind the other.
fn split(mut replies: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = reply_length(replies).ok().flatten()?;
        let (reply, rest) = replies.split_at(length);
        replies = rest;
        Some(reply)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSACTION: State = State::Transaction;

    #[test]
    fn only_its_own_replies_are_right() {
        let good = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$3\r\n1:c\r\n";
        assert_eq!(TRANSACTION.replies(), 4);
        assert!(TRANSACTION.is_right("1:c", good, false));
        assert!(!TRANSACTION.is_right("2:c", good, false), "another one's value");
        assert!(!TRANSACTION.is_right("1:c", &good[5..], false), "one is missing");
        assert!(!TRANSACTION.is_right("1:c", b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*-1\r\n", false), "nobody touched the key");
        assert!(TRANSACTION.is_right("1:c", b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*-1\r\n", true));
    }

    #[test]
    fn errors_are_found_unless_they_are_what_was_wanted() {
        let replies = b":1\r\n-ERR node is down\r\n";
        assert_eq!(State::Served.error("1:c", replies), Some(b"-ERR node is down\r\n".as_slice()));
        assert!(State::Served.is_right("1:c", replies, true));
        assert!(!State::Served.is_right("1:c", replies, false));
        let spoilt = b"+OK\r\n+QUEUED\r\n-ERR wrong number of arguments for 'get' command\r\n\
                       -EXECABORT Transaction discarded because of previous errors.\r\n$-1\r\n";
        assert_eq!(State::Spoilt.error("1:c", spoilt), None);
        assert!(State::Spoilt.is_right("1:c", spoilt, false));
    }

    #[test]
    fn what_comes_between_must_be_ones_own() {
        let message = |token: &str| format!(">3\r\n{}{}{}", bulk("message"), bulk(token), bulk(token));
        let told = |aside: &str| {
            format!(
                "%7\r\n{}{}>3\r\n{}{}:1\r\n:1\r\n{aside}{}>3\r\n{}{}:0\r\n*14\r\n{}{}",
                bulk("server"),
                "_\r\n".repeat(13),
                bulk("subscribe"),
                bulk("1:c"),
                bulk("1:c"),
                bulk("unsubscribe"),
                bulk("1:c"),
                bulk("server"),
                "$-1\r\n".repeat(13)
            )
        };
        assert!(State::Listening.is_right("1:c", told("").as_bytes(), false));
        assert!(State::Listening.is_right("1:c", told(&message("1:c")).as_bytes(), false));
        assert!(!State::Listening.is_right("1:c", told(&message("2:c")).as_bytes(), false), "another one's message");
        assert!(is_aside(message("x").as_bytes()) && !is_aside(b"*1\r\n$1\r\na\r\n"));
    }
}
