//! Requests that put their session into a state of its own: transactions, watched keys, waiting pops, subscriptions,
//! tracking, another dialect, database or user.
//!
//! Each is a few requests that belong together, sent at once, whose replies are known: what they write has a name that
//! no other client uses, or a value that no other client writes. Only a node in trouble may make a difference, and then only to the
//! lines that need it. Messages and invalidations may come between the replies, or not at all: they are judged one by one.

use respool_testkit::Rng;

use super::conversation::{Conversation, Line, Wanted, bulk, locally, quietly, say};
use super::layout::{COPIES, Layout, NODES, Nodes, PHASE};
use super::ledger::{BLOCK, INCREMENT, Id, counter_key, queue_key};

/// The user of [`State::Guest`], whose rules the settings of the run say, and its password.
pub(super) const GUEST: [&str; 2] = ["guest", "welcome"];
/// The user whose clients are in pool mode `session`, who may do everything, and its password.
pub(super) const OWNER: [&str; 2] = ["owner", "apart"];
/// What the user of [`State::Limited`] may ask for in a second.
pub(super) const LIMITED_BYTES: usize = 20_000;
/// Takes more than that: what follows waits for a fifth of a second at least.
const OVER_LIMIT_BYTES: usize = LIMITED_BYTES * 6 / 5;
/// Longer than what makes Respool give a client a connection of its own.
const LARGE_BYTES: usize = 1_100_000;
const SCRIPT: &str = "return{ARGV[1]}";
const SCRIPT_HASH: &str = "f6b4c78f76c83eb675e073aa8975b476fd501252";
/// Keys on each node that all clients share, of each kind: few, so that clients meet.
const SHARED: usize = 3;
/// Numbers of writes of a conversation begin here; lower ones are numbers of keys.
const PART: u16 = 100;
/// Every name of the keys that a route sends to the pool with a replica begins so.
pub(super) const COPIED: &str = "r:";

/// The user of [`State::Limited`] of one client, and its password. Each has its own, so that none waits for what others have asked for.
pub(super) fn limited(client: u64) -> [String; 2] {
    // In all phases it is the same.
    let number = client % PHASE;
    [format!("limited{number}"), "little".to_owned()]
}

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
    /// The same with a key that other clients watch and write as well.
    Contended = "contended transactions",
    /// The same by a client that has connections to itself all the time.
    ContendedApart = "contended transactions in pool mode session",
    /// The same where what only reads goes to a replica.
    ContendedCopy = "contended transactions beside a replica",
    /// The same in another database.
    MovedTransaction = "transactions that select",
    /// MULTI and a request that is taken back.
    Discarded = "discarded transactions",
    /// A block that is spoilt by a mistake.
    Spoilt = "spoilt transactions",
    /// A counter that all clients share.
    Counted = "counts",
    /// A pop that finds what was just pushed.
    Served = "pops served",
    /// A pop that waits in vain, for a moment.
    InVain = "pops in vain",
    /// A pop whose client does not wait for it.
    LeftWaiting = "pops left waiting",
    /// An element for a queue that all clients share.
    Pushing = "pushes to queues",
    /// An element of one.
    Popping = "pops of queues",
    /// A pop that is never answered, and requests behind it, of a client that sends nothing more.
    Endless = "half-closes behind a pop",
    /// SUBSCRIBE and UNSUBSCRIBE: the session is a subscriber's in between.
    Subscribed = "subscribers",
    /// The same for a pattern, in RESP3, with a message to oneself.
    Listening = "listeners in RESP3",
    /// What was read is tracked, and changed.
    Tracking = "trackers",
    /// Another database for a while.
    Selected = "other databases",
    /// A password that is wrong, and a database that is none, between writes.
    Refused = "refusals between writes",
    /// A database that does not exist, between writes.
    NoDatabase = "missing databases between writes",
    /// Another user for a while, who may not do everything.
    Guest = "other users",
    /// A user for a while whose clients have connections to nodes to themselves.
    Owner = "owners of connections",
    /// A user for a while who has to wait, since it asks for more than it may in a second.
    Limited = "users with a rate",
    /// Replies are not wanted for a while.
    Quiet = "without replies",
    /// A write without a reply, and a request behind it that needs another connection.
    QuietApart = "without a reply before another connection",
    /// A script, and the same by its hash.
    Script = "scripts",
    /// What a replica may answer.
    Copied = "reads of replicas",
    /// A value that passes on a connection of its own.
    Large = "large values",
    /// Everything taken back at once.
    Reset = "resets",
}

impl State {
    /// One of those that are listed, but for those that clients leave: large values are rare, and transactions frequent.
    pub(super) fn any(rng: &mut Rng, listed: &[State]) -> State {
        let usual: Vec<State> = listed.iter().copied().filter(|state| !state.is_seldom()).collect();
        let chosen = match rng.below(200) {
            0 if rng.once_in(2) => State::Large,
            1..=60 => *rng.pick(&[State::Transaction, State::Transaction, State::Watching]),
            _ if usual.is_empty() => State::Large,
            _ => *rng.pick(&usual),
        };
        match listed.contains(&chosen) || usual.is_empty() {
            true => chosen,
            false => *rng.pick(&usual),
        }
    }

    /// Clients leave it, or it takes long.
    fn is_seldom(self) -> bool {
        matches!(self, State::LeftWaiting | State::Endless | State::Large)
    }

    pub(super) fn named(name: &str) -> Option<State> {
        State::ALL.iter().copied().find(|state| state.name() == name)
    }

    /// Whether one of its requests may wait, or stay in the queue for that.
    pub(super) fn waits(self) -> bool {
        matches!(
            self,
            State::InVain | State::LeftWaiting | State::Popping | State::Endless | State::Served | State::QuietApart
        )
    }

    /// Whether a client that sends nothing more may have been told this and nothing behind it: what comes before the pop, or that
    /// the pop has failed.
    pub(super) fn may_end_behind(self, replies: &[Vec<u8>]) -> bool {
        let has_failed = |reply: &[u8]| reply.starts_with(b"-") || reply == b"*-1\r\n";
        match (self, replies) {
            (_, []) => true,
            (State::Endless | State::QuietApart, [pop]) => has_failed(pop),
            (State::Served, [push]) => push.starts_with(b":") || push.starts_with(b"-"),
            _ => false,
        }
    }

    /// Whether it is there with routes alone, or without them alone.
    pub(super) fn needs_routes(self) -> Option<bool> {
        match self {
            State::ContendedCopy | State::Copied => Some(true),
            // SELECT inside of a transaction is refused under routes.
            State::MovedTransaction => Some(false),
            _ => None,
        }
    }

    /// Whether the session is another user's afterwards than it may have been before.
    fn leaves_user(self) -> bool {
        matches!(self, State::Guest | State::Owner | State::Limited | State::Reset)
    }

    /// Whether it is for clients that are the user of [`State::Owner`] all the time, or for the others.
    pub(super) fn suits(self, is_owner: bool) -> bool {
        match self {
            State::ContendedApart => is_owner,
            State::Contended => !is_owner,
            _ => !(is_owner && self.leaves_user()),
        }
    }

    /// Its requests, by a client that has sent so many before, in a generation of its keys.
    pub(super) fn conversation(self, client: u64, generation: u64, seq: u64, layout: &Layout) -> Conversation {
        let is_copied = matches!(self, State::ContendedCopy | State::Copied);
        let node = match self {
            _ if is_copied => COPIES,
            _ => seq as usize % NODES,
        };
        let nodes = if is_copied { Nodes::one(COPIES).and(Nodes::one(COPIES + 1)) } else { Nodes::one(node) };
        let shared = (seq / NODES as u64) as usize % SHARED;
        let token = format!("{seq}:c{client}:g{generation}");
        let mark = |part: u16| Id { client, seq, part }.mark();
        let tag = &layout.tags[node];
        let lines = match self {
            State::Contended | State::ContendedApart | State::ContendedCopy => {
                contended(&format!("{}{{{tag}}}:shared:{shared}", if is_copied { COPIED } else { "" }), &mark(PART))
            }
            State::Counted => {
                let increment = Id { client, seq, part: INCREMENT }.increment();
                let count = say(&format!("INCRBY {} {increment}", counter_key(tag, shared)), "");
                vec![count.gets(Wanted::Total).writes(INCREMENT, 0)]
            }
            State::Pushing => {
                let push = say(&format!("RPUSH {} {}", queue_key(tag, shared), mark(PART)), "");
                vec![push.gets(Wanted::Total).writes(PART, 0)]
            }
            State::Popping => {
                let queue = queue_key(tag, shared);
                vec![say(&format!("BLPOP {queue} 0.03"), "").gets(Wanted::Element(queue))]
            }
            State::Limited => State::limited(client, &token, tag, mark),
            _ => self.private(&token, tag, mark),
        };
        // A channel's node is not known, and a database is asked of whichever node is first.
        let is_anywhere = matches!(
            self,
            State::Subscribed
                | State::Listening
                | State::Tracking
                | State::Selected
                | State::MovedTransaction
                | State::Reset
        );
        let nodes = if is_anywhere { Nodes::ALL } else { nodes };
        Conversation { lines, node: node as u8, nodes, client, seq }
    }

    fn limited(client: u64, token: &str, tag: &str, mark: impl Fn(u16) -> String) -> Vec<Line> {
        let key = format!("{{{tag}}}:{token}:key");
        let (first, second) = (mark(PART), mark(PART + 1));
        let [name, password] = limited(client);
        let large = format!("{first}{}", "x".repeat(OVER_LIMIT_BYTES));
        vec![
            locally(&format!("AUTH {name} {password}"), "+OK\r\n"),
            say(&format!("SET {key} {large} EX 60"), "+OK\r\n").writes(PART, 0),
            // It waits here, with all that it has sent.
            say(&format!("GETRANGE {key} 0 {}", first.len() - 1), bulk(&first)).or("$0\r\n\r\n"),
            locally("ACL WHOAMI", bulk(&name)),
            say(&format!("SET {key} {second} EX 60"), "+OK\r\n").writes(PART + 1, 0),
            locally("AUTH default any", "+OK\r\n"),
            say(&format!("GET {key}"), bulk(&second)).or("$-1\r\n").or(bulk(&large)),
        ]
    }

    /// Those whose keys no other client uses.
    fn private(self, token: &str, tag: &str, mark: impl Fn(u16) -> String) -> Vec<Line> {
        let key = format!("{{{tag}}}:{token}:key");
        let (ok, queued, nothing, nil) = ("+OK\r\n", "+QUEUED\r\n", "$-1\r\n", "*-1\r\n");
        let value = |part: u16| mark(part);
        let set = |part: u16| format!("SET {key} {} EX 60", value(part));
        // The writes of a transaction, to two keys.
        let [one, other] = [(&*key, BLOCK), (&*format!("{key}:other"), BLOCK + 1)]
            .map(|(key, part)| (format!("SET {key} {} EX 60", value(part)), part));
        let both =
            |database: u8| [&one, &other].map(|(set, part)| say(set, "+QUEUED\r\n").writes(*part, database).queued());
        let of_block = bulk(&value(BLOCK));
        let get = format!("GET {key}");
        let told = |what: &str, count: u8| format!("3\r\n{}{}:{count}\r\n", bulk(what), bulk(token));
        let first = bulk(&value(PART));
        match self {
            State::Transaction | State::Watching => {
                let watch = (self == State::Watching).then(|| say(&format!("WATCH {key}"), ok));
                let result = format!("*3\r\n+OK\r\n+OK\r\n{of_block}");
                let end = [say(&get, queued).queued(), say("EXEC", result).or(nil).executes()];
                watch.into_iter().chain([locally("MULTI", ok)]).chain(both(0)).chain(end).collect()
            }
            State::MovedTransaction => {
                let [set, set_other] = both(5);
                vec![
                    locally("MULTI", ok),
                    say("SELECT 5", queued).queued(),
                    set,
                    set_other,
                    say(&get, queued).queued(),
                    say("SELECT 0", queued).queued(),
                    say("EXEC", format!("*5\r\n+OK\r\n+OK\r\n+OK\r\n{of_block}+OK\r\n")).executes(),
                    // A block that failed in the midst leaves its session where it was.
                    say("SELECT 0", ok),
                ]
            }
            State::Discarded => vec![
                locally("MULTI", ok),
                say(&set(PART), queued).writes(PART, 0).queued(),
                locally("DISCARD", ok).drops(),
                say(&get, nothing),
            ],
            State::Spoilt => vec![
                locally("MULTI", ok),
                say(&set(PART), queued).writes(PART, 0).queued(),
                locally("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
                locally("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n").drops(),
                say(&get, nothing),
            ],
            State::Served => vec![
                say(&format!("RPUSH {key} {}", value(PART)), ":1\r\n").writes(PART, 0),
                say(&format!("BLPOP {key} 0.5"), format!("*2\r\n{}{first}", bulk(&key))).or(nil),
            ],
            State::InVain => vec![say(&format!("BLPOP {key} 0.02"), nil)],
            State::LeftWaiting => vec![say(&format!("BLPOP {key} 0.4"), nil)],
            // Behind a pop of a client that will send nothing more nothing is done, as in Redis, or the pop is told first.
            State::Endless => vec![
                say(&format!("BLPOP {key} 0"), nil),
                say(&set(PART), ok).writes(PART, 0),
                locally(&format!("ECHO {token}"), bulk(token)),
            ],
            State::Subscribed => vec![
                say(&format!("SUBSCRIBE {token}"), format!("*{}", told("subscribe", 1))),
                say(&format!("UNSUBSCRIBE {token}"), format!("*{}", told("unsubscribe", 0))),
            ],
            State::Listening => vec![
                hello(3),
                say(&format!("SUBSCRIBE {token}"), format!(">{}", told("subscribe", 1))),
                // No other client subscribes to it. A node may have lost its subscriptions since, which are being made again.
                say(&format!("PUBLISH {token} {token}"), ":1\r\n").or_in_trouble(":0\r\n"),
                locally(&format!("ECHO {token}"), bulk(token)),
                say(&format!("UNSUBSCRIBE {token}"), format!(">{}", told("unsubscribe", 0))),
                hello(2),
            ],
            State::Tracking => vec![
                hello(3),
                say("CLIENT TRACKING ON", ok),
                say(&get, "_\r\n"),
                say(&set(PART), ok).writes(PART, 0),
                say(&get, &*first).or("_\r\n"),
                locally("CLIENT TRACKING OFF", ok),
                hello(2),
            ],
            State::Selected => vec![
                say("SELECT 3", ok),
                say(&set(PART), ok).writes(PART, 3),
                say(&get, &*first).or(nothing),
                say("SELECT 0", ok),
                say(&get, nothing),
            ],
            State::NoDatabase => vec![
                say(&set(PART), ok).writes(PART, 0),
                locally("SELECT 99", "-ERR DB index is out of range\r\n"),
                say(&format!("SET {key} {} EX 60 GET", value(PART + 1)), &*first).or(nothing).writes(PART + 1, 0),
            ],
            State::Refused => vec![
                say(&set(PART), ok).writes(PART, 0),
                locally("AUTH missing wrong", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"),
                say(&format!("SET {key} {} EX 60 GET", value(PART + 1)), &*first).or(nothing).writes(PART + 1, 0),
                locally("SELECT nonsense", "-ERR value is not an integer or out of range\r\n"),
                say(&get, bulk(&value(PART + 1))).or(nothing).or(&*first),
            ],
            State::Guest => vec![
                locally(&format!("AUTH {} {}", GUEST[0], GUEST[1]), ok),
                say(&get, nothing),
                locally(&set(PART), "").gets(Wanted::Beginning("-NOPERM ")),
                locally("AUTH default any", ok),
                locally("ACL WHOAMI", bulk("default")),
                say(&get, nothing),
            ],
            State::Owner => vec![
                locally(&format!("AUTH {} {}", OWNER[0], OWNER[1]), ok),
                say(&set(PART), ok).writes(PART, 0),
                say(&get, &*first).or(nothing),
                say(&format!("WATCH {key}"), ok),
                locally("MULTI", ok),
                say(&set(PART + 1), queued).writes(PART + 1, 0).queued(),
                say(&get, queued).queued(),
                say("EXEC", format!("*2\r\n+OK\r\n{}", bulk(&value(PART + 1)))).or(nil).executes(),
                locally("AUTH default any", ok),
                say(&get, bulk(&value(PART + 1))).or(nothing).or(&*first),
            ],
            State::Quiet => vec![
                quietly("CLIENT REPLY OFF"),
                quietly(&set(PART)).writes(PART, 0),
                quietly(&get),
                locally("CLIENT REPLY ON", ok),
                say(&get, &*first).or(nothing).shows(PART),
                quietly("CLIENT REPLY SKIP"),
                quietly(&format!("ECHO not:{token}")),
                locally(&format!("ECHO {token}"), bulk(token)),
            ],
            State::QuietApart => vec![
                quietly("CLIENT REPLY SKIP"),
                quietly(&format!("RPUSH {key} {}", value(PART))).writes(PART, 0),
                say(&format!("BLPOP {key} 0.2"), format!("*2\r\n{}{first}", bulk(&key))).or(nil).shows(PART),
                quietly("CLIENT REPLY SKIP"),
                quietly(&set(PART + 1)).writes(PART + 1, 0),
                say(&format!("WATCH {key}"), ok),
                locally("MULTI", ok),
                say(&get, queued).queued(),
                // After a failed pop and a failed write the key holds a list.
                say("EXEC", format!("*1\r\n{}", bulk(&value(PART + 1))))
                    .or(nil)
                    .or("*1\r\n$-1\r\n")
                    .or("*1\r\n-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
                    .executes(),
            ],
            State::Script => vec![
                say(&format!("EVAL {SCRIPT} 1 {key} {token}"), format!("*1\r\n{}", bulk(token))),
                say(&format!("EVALSHA {SCRIPT_HASH} 1 {key} {token}"), format!("*1\r\n{}", bulk(token))),
            ],
            State::Copied => {
                let key = format!("{COPIED}{key}");
                // The replica may not have it yet, or may have what is written behind it; and what it has had it has.
                let contents = vec![nothing.to_owned(), first.clone(), bulk(&value(PART + 1))];
                let read = || say(&format!("GET {key}"), "").gets(Wanted::Lagging(contents.clone()));
                let swap = say(&format!("SET {key} {} EX 60 GET", value(PART + 1)), &*first);
                vec![
                    say(&format!("SET {key} {} EX 60", value(PART)), ok).writes(PART, 0),
                    read(),
                    swap.or(nothing).writes(PART + 1, 0),
                    read(),
                    read(),
                ]
            }
            State::Large => {
                let large = format!("{}{}", value(PART), "x".repeat(LARGE_BYTES));
                vec![
                    say(&format!("SET {key} {large} EX 20"), ok).writes(PART, 0),
                    say(&get, bulk(&large)).or(nothing),
                    say(&format!("DEL {key}"), ":1\r\n").or(":0\r\n"),
                ]
            }
            State::Reset => vec![
                say("SELECT 4", ok),
                locally("MULTI", ok),
                say(&set(PART), queued).writes(PART, 4).queued(),
                locally("RESET", "+RESET\r\n").drops(),
                say(&get, nothing),
            ],
            State::Contended
            | State::ContendedApart
            | State::ContendedCopy
            | State::Counted
            | State::Pushing
            | State::Popping
            | State::Limited => {
                unreachable!("their lines are written elsewhere")
            }
        }
    }

    /// Whether it may be told this between its replies, whose requests had this in common.
    pub(super) fn may_hear(self, conversation: &Conversation, aside: &[u8]) -> bool {
        let word = |line: usize| conversation.lines.get(line).and_then(|line| line.words.get(1));
        match self {
            State::Listening => word(1).is_some_and(|token| {
                aside == format!(">3\r\n{}{}{}", bulk("message"), bulk(token), bulk(token)).as_bytes()
            }),
            State::Tracking => word(2).is_some_and(|key| {
                let head = format!(">2\r\n{}", bulk("invalidate"));
                aside == format!("{head}_\r\n").as_bytes() || aside == format!("{head}*1\r\n{}", bulk(key)).as_bytes()
            }),
            _ => false,
        }
    }
}

/// The value that is read under WATCH is the one that the transaction replaces, or it replaces nothing.
fn contended(key: &str, value: &str) -> Vec<Line> {
    vec![
        say(&format!("WATCH {key}"), "+OK\r\n"),
        say(&format!("GET {key}"), "").gets(Wanted::Value(key.to_owned())),
        locally("MULTI", "+OK\r\n"),
        say(&format!("SET {key} {value} GET"), "+QUEUED\r\n").writes(PART, 0).queued(),
        say("EXEC", "").gets(Wanted::SameAs(1)).executes(),
    ]
}

fn hello(version: u8) -> Line {
    let wanted = if version == 3 { "%7\r\n$6\r\nserver\r\n" } else { "*14\r\n$6\r\nserver\r\n" };
    locally(&format!("HELLO {version}"), "").gets(Wanted::Beginning(wanted))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::conversation::{Meanwhile, Outcome, is_aside};
    use super::super::excuses::DEATH;
    use super::super::faults::Faults;
    use super::super::ledger::{Fate, Ledger};
    use super::super::watch::Watch;
    use super::*;

    fn conversation(state: State) -> Conversation {
        state.conversation(7, 0, 4, &Layout::for_tests())
    }

    fn check(state: State, replies: &str, faults: &Faults) -> (Outcome, Ledger) {
        let conversation = conversation(state);
        let mut ledger = Ledger::default();
        let meanwhile = Meanwhile { faults, since: Instant::now(), has_moved: false };
        let hear = |aside: &[u8]| state.may_hear(&conversation, aside);
        (conversation.check(replies.as_bytes(), hear, meanwhile, &mut ledger), ledger)
    }

    fn calm() -> Faults {
        Faults::new((0..NODES + 2).map(|node| format!("node{node}")).collect(), Watch::default())
    }

    fn troubled() -> Faults {
        let faults = calm();
        faults.begin("kills of nodes", Nodes::one(0), DEATH);
        faults
    }

    const DOWN: &str = "-ERR node node0 is not available: refused; the command was not sent\r\n";
    const VALUE: &str = "$10\r\n4:c7:w100:\r\n";
    const OF_BLOCK: &str = "$10\r\n4:c7:w200:\r\n";

    fn is_wrong(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Wrong(_))
    }

    #[test]
    fn only_its_own_replies_are_right() {
        let right = |rest: &str| format!("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n{rest}");
        let result = right(&format!("*3\r\n+OK\r\n+OK\r\n{OF_BLOCK}"));
        let (outcome, ledger) = check(State::Transaction, &result, &calm());
        assert_eq!((outcome, ledger.writes[0].fate), (Outcome::Right, Fate::Done));
        let anothers = right("*3\r\n+OK\r\n+OK\r\n$10\r\n4:c8:w200:\r\n");
        assert!(is_wrong(&check(State::Transaction, &anothers, &troubled()).0), "another one's value");
        assert!(is_wrong(&check(State::Transaction, &right("*-1\r\n"), &calm()).0), "no other client writes the key");
        assert!(is_wrong(&check(State::Transaction, &right(DOWN), &calm()).0), "nothing was done to the node");
        let (outcome, ledger) = check(State::Transaction, &right(DOWN), &troubled());
        assert_eq!((outcome, ledger.writes[0].fate), (Outcome::Failed(DOWN.into()), Fate::NotDone));
    }

    #[test]
    fn trouble_is_no_licence_for_other_lines() {
        let local = format!("{DOWN}+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n+OK\r\n{OF_BLOCK}");
        assert!(is_wrong(&check(State::Transaction, &local, &troubled()).0), "MULTI needs no node");
        let queued = ":1\r\n+QUEUED\r\n";
        assert!(is_wrong(&check(State::Served, queued, &troubled()).0), "another one's reply");
        let misplaced = format!("{DOWN}+OK\r\n{VALUE}+OK\r\n{VALUE}");
        assert!(is_wrong(&check(State::Selected, &misplaced, &troubled()).0), "written to the database before");
    }

    #[test]
    fn a_replica_does_not_go_back() {
        let newer = VALUE.replace("w100", "w101");
        let told = |reads: [&str; 3]| format!("+OK\r\n{}{VALUE}{}{}", reads[0], reads[1], reads[2]);
        let nil = "$-1\r\n";
        for reads in [[nil, nil, VALUE], [nil, VALUE, &newer], [VALUE, &newer, &newer], [nil, nil, nil]] {
            assert_eq!(check(State::Copied, &told(reads), &calm()).0, Outcome::Right, "{reads:?}");
        }
        for reads in [[VALUE, nil, VALUE], [nil, &newer, VALUE]] {
            assert!(is_wrong(&check(State::Copied, &told(reads), &calm()).0), "{reads:?} goes back");
        }
        assert_eq!(check(State::Copied, &told([&newer; 3]), &calm()).0, Outcome::Right, "what comes behind");
        let other = VALUE.replace("c7", "c8");
        assert!(is_wrong(&check(State::Copied, &told([&other, VALUE, VALUE]), &calm()).0), "another client's");
    }

    #[test]
    fn a_contended_transaction_replaces_what_was_read() {
        let told = |read: &str, replaced: &str| format!("+OK\r\n{read}+OK\r\n+QUEUED\r\n{replaced}");
        let other = "$10\r\n8:c9:w100:\r\n";
        let (outcome, ledger) = check(State::Contended, &told(other, &format!("*1\r\n{other}")), &calm());
        assert_eq!((outcome, ledger.writes[0].fate), (Outcome::Right, Fate::Done));
        let (outcome, ledger) = check(State::Contended, &told(other, "*-1\r\n"), &calm());
        assert_eq!((outcome, ledger.writes[0].fate), (Outcome::Right, Fate::NotDone));
        let lost = told(other, "*1\r\n$11\r\n11:c9:w100:\r\n");
        assert!(is_wrong(&check(State::Contended, &lost, &troubled()).0), "another client's update is lost");
    }

    #[test]
    fn writes_without_replies_run_unless_their_node_is_in_trouble() {
        let echo = conversation(State::Quiet).lines.last().map(|line| bulk(&line.words[1])).unwrap();
        let seen = format!("+OK\r\n{VALUE}{echo}");
        assert_eq!(check(State::Quiet, &seen, &troubled()).1.writes[0].fate, Fate::Done);
        let failed = format!("+OK\r\n{DOWN}{echo}");
        assert_eq!(check(State::Quiet, &failed, &troubled()).1.writes[0].fate, Fate::Unknown);
        assert!(is_wrong(&check(State::Quiet, &format!("+OK\r\n$-1\r\n{echo}"), &calm()).0), "it is lost");
    }

    #[test]
    fn what_comes_between_must_be_ones_own() {
        let message = |token: &str| format!(">3\r\n{}{}{}", bulk("message"), bulk(token), bulk(token));
        let listening = conversation(State::Listening);
        let token = listening.lines[1].words[1].clone();
        assert!(State::Listening.may_hear(&listening, message(&token).as_bytes()));
        assert!(!State::Listening.may_hear(&listening, message("2:c").as_bytes()), "another one's message");
        assert!(is_aside(message("x").as_bytes()) && !is_aside(b"*1\r\n$1\r\na\r\n"));
    }
}
