//! Requests that put their session into a state of its own: transactions, watched keys, waiting pops, subscriptions.
//!
//! Each is a few requests that belong together, sent at once, with as many replies as requests. What they write has a
//! name that nobody else uses, so their replies are known to the byte, unless a node was in trouble.

use respool_testkit::{Rng, reply_length};

/// A state that is entered and left again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// MULTI, two requests, EXEC; with the key watched before, on a connection of its own.
    Transaction { is_watching: bool },
    /// MULTI and a request that is taken back.
    Discarded,
    /// A pop that finds what was just pushed.
    Served,
    /// A pop that waits in vain, for a moment.
    InVain,
    /// SUBSCRIBE and UNSUBSCRIBE: the session is a subscriber's in between.
    Subscribed,
}

impl State {
    pub(super) fn any(rng: &mut Rng) -> State {
        match rng.below(12) {
            0..=3 => State::Transaction { is_watching: false },
            4..=6 => State::Transaction { is_watching: true },
            7 => State::Discarded,
            8 | 9 => State::Served,
            10 => State::InVain,
            _ => State::Subscribed,
        }
    }

    /// The requests, each with the reply that it gets while all is well. `token` is nobody else's.
    fn conversation(self, token: &str) -> Vec<(Vec<String>, String)> {
        let key = format!("{{{token}}}:key");
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let say = |words: &str, reply: String| (words.split(' ').map(str::to_owned).collect::<Vec<_>>(), reply);
        let (ok, queued) = (|| "+OK\r\n".to_owned(), || "+QUEUED\r\n".to_owned());
        match self {
            State::Transaction { is_watching } => {
                let watch = is_watching.then(|| say(&format!("WATCH {key}"), ok()));
                let result = format!("*2\r\n+OK\r\n{}", bulk(token));
                let block = [
                    say("MULTI", ok()),
                    say(&format!("SET {key} {token} EX 60"), queued()),
                    say(&format!("GET {key}"), queued()),
                    say("EXEC", result),
                ];
                watch.into_iter().chain(block).collect()
            }
            State::Discarded => {
                vec![say("MULTI", ok()), say(&format!("GET {key}"), queued()), say("DISCARD", ok())]
            }
            State::Served => vec![
                say(&format!("RPUSH {key} {token}"), ":1\r\n".into()),
                say(&format!("BLPOP {key} 1"), format!("*2\r\n{}{}", bulk(&key), bulk(token))),
            ],
            State::InVain => vec![say(&format!("BLPOP {key} 0.02"), "*-1\r\n".into())],
            State::Subscribed => {
                let told = |what: &str, count: u8| format!("*3\r\n{}{}:{count}\r\n", bulk(what), bulk(token));
                vec![
                    say(&format!("SUBSCRIBE {token}"), told("subscribe", 1)),
                    say(&format!("UNSUBSCRIBE {token}"), told("unsubscribe", 0)),
                ]
            }
        }
    }

    pub(super) fn encode(self, token: &str, out: &mut Vec<u8>) {
        for (words, _) in self.conversation(token) {
            out.extend_from_slice(&respool_testkit::request(&words));
        }
    }

    /// How many replies belong to it.
    pub(super) fn replies(self) -> usize {
        self.conversation("").len()
    }

    /// The first error among its replies, if there is one.
    pub(super) fn error(self, replies: &[u8]) -> Option<&[u8]> {
        split(replies).find(|reply| reply.first() == Some(&b'-'))
    }

    /// Whether the replies can be its own. Errors are judged apart; behind one, or when a node was killed meanwhile, a
    /// transaction may have been given up and what was pushed may be gone.
    pub(super) fn is_right(self, token: &str, replies: &[u8], is_troubled: bool) -> bool {
        let conversation = self.conversation(token);
        split(replies).count() == conversation.len()
            && split(replies).zip(&conversation).all(|(reply, (words, wanted))| {
                let may_be_nothing = matches!(words[0].as_str(), "EXEC" | "BLPOP");
                reply == wanted.as_bytes()
                    || (is_troubled && (reply.first() == Some(&b'-') || (may_be_nothing && reply == b"*-1\r\n")))
            })
    }
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

    const TRANSACTION: State = State::Transaction { is_watching: false };

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
    fn errors_are_found() {
        let replies = b":1\r\n-ERR node is down\r\n";
        assert_eq!(State::Served.error(replies), Some(b"-ERR node is down\r\n".as_slice()));
        assert!(State::Served.is_right("1:c", replies, true));
        assert!(!State::Served.is_right("1:c", replies, false));
    }
}
