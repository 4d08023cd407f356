//! The row: what is known of one command or subcommand, and how the tables build it.

use std::fmt;

use respool_wire::Args;

use crate::keys::Irregular;
use crate::shape::{self, Shape, ShapeOf};
use crate::usage::{ReplySize, Returns};
use crate::{
    Categories, Command, Flags, Group, KeySpec, Keys, Lane, RequestPolicy, ResponsePolicy, ServerCommand,
    StringCommand, Usage,
};

/// One command or subcommand. Rows are `'static`; compare them by [`Row::command`].
pub struct Row {
    /// Which command it is, for dispatch.
    pub command: Command,
    /// [`Command::ordinal`] of it, for tables that a request has to find its place in at once.
    pub number: u16,
    /// The name in capitals; a subcommand's begins with its container's: `GET`, `CLIENT ID`.
    pub name: &'static str,
    /// How many arguments there must be, names included; negative: at least that many.
    pub arity: i16,
    /// Flags, with Redis' names.
    pub flags: Flags,
    /// ACL categories, those that follow from the flags included.
    pub categories: Categories,
    /// Which arguments are keys.
    pub keys: Keys,
    /// The group under which it is documented.
    pub group: Group,
    /// The Redis version that first had it; the Valkey version if only Valkey has it.
    pub since: &'static str,
    /// To which nodes it goes.
    pub request_policy: RequestPolicy,
    /// How replies of several nodes are joined.
    pub response_policy: ResponsePolicy,
    /// Whether a request that may already have been executed may be sent again: it changes nothing, or the second
    /// execution changes nothing that the first did not.
    pub is_retry_safe: bool,
    /// Whether a replica may answer in place of its primary.
    pub is_replica_readable: bool,
    /// Whether its reply repeats the name of a key.
    pub reply_names_keys: bool,
    /// Whether it tells of keys that its arguments do not name, or changes them: how many there are, which they are, or what was done to them.
    pub means_other_keys: bool,
    /// Whether what it reads may change without a word to clients that track the key (`CLIENT TRACKING`): the groups of a stream, and
    /// what time alone changes. Redis' tip `nondeterministic_output` says the same of other rows.
    pub changes_untold: bool,
    /// Whether it runs a script or a function, which takes as long as it likes: while it runs a node tells other connections so
    /// (`BUSY`), and answers nothing on its own.
    pub runs_scripts: bool,
    /// Decides by the arguments which nodes a request goes to that the policy does not say right.
    way_of: Option<fn(Args<'_>) -> Option<Way>>,
    /// Finds the arguments that are databases, other than the selected one: where its last key goes, or which are swapped.
    databases_of: Option<DatabasesOf>,
    /// The command's tips as Redis gives them. The policies above follow them except where the row says otherwise.
    pub tips: &'static [&'static str],
    /// What it does, in one line.
    pub doc: &'static str,
    /// Since when it should not be used, and what takes its place.
    pub deprecation: Option<Deprecation>,
    /// Whether it is meant for servers and their tests rather than for users.
    pub is_internal: bool,
    /// Whether every request of this row goes down a shared lane, to the one node or the nodes that have its keys: it is not
    /// a container, and nothing but its keys decides.
    pub is_plain: bool,
    /// Whether such a request takes about as long however much is stored: Redis calls it fast, or it is `SET`. An engine need not look at
    /// how long it takes.
    pub is_quick: bool,
    /// Subcommands; a row that has some is a container and cannot be called itself, `COMMAND` apart.
    pub subcommands: &'static [Row],
    /// What the reply looks like in the two dialects.
    shape: &'static Shape,
    /// Decides that by the request's arguments.
    shape_of: Option<ShapeOf>,
    /// How large the reply may be.
    reply_size: ReplySize,
    /// The lane, or the most that `lane_of` may decide.
    lane: Lane,
    /// Decides the lane by the request's arguments.
    lane_of: Option<fn(Args<'_>) -> Lane>,
    /// The last word of the name.
    word: &'static str,
    /// The name as Redis writes it.
    full_name: FullName,
}

/// Where a request goes whose row has no keys for servers to be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the node that has the keys, which are all arguments from this place on.
    KeysFrom(usize),
    /// To all nodes.
    AllNodes,
}

/// Gives every argument that names a database.
pub(crate) type DatabasesOf = fn(Args<'_>, &mut dyn FnMut(&[u8]));

/// Since when a command is deprecated, and in favour of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deprecation {
    /// The Redis version.
    pub since: &'static str,
    /// What to use instead.
    pub replaced_by: &'static str,
}

impl Row {
    /// Whether a request of `argc` arguments, names included, has the right number of them.
    #[inline]
    pub const fn accepts(&self, argc: usize) -> bool {
        let needed = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { argc >= needed } else { argc == needed }
    }

    /// The name as Redis writes it in replies and errors: `get`, `client|id`.
    pub fn full_name(&self) -> &str {
        self.full_name.as_str()
    }

    /// The last word of the name in capitals: `GET`, `ID`.
    pub const fn word(&self) -> &'static str {
        self.word
    }

    /// The lane that a request of this row needs.
    #[inline]
    pub fn lane(&self, args: Args<'_>) -> Lane {
        match self.lane_of {
            None => self.lane,
            Some(decide) => decide(args),
        }
    }

    /// Whether a request is one of the admin plane: it changes a server, or shows what only its operators may see.
    pub fn is_admin(&self, args: Args<'_>) -> bool {
        let lane = self.lane(args);
        lane == Lane::Admin || lane == Lane::Dedicated && self.flags.has(Flags::ADMIN)
    }

    /// Whether a request is about its connection, or about clients: a worker answers it, or it is part of what it tells nodes of a connection.
    pub fn is_of_connection(&self, args: Args<'_>) -> bool {
        match self.lane(args) {
            Lane::Local | Lane::Pinned => true,
            Lane::Push => self.flags.has(Flags::NOSCRIPT),
            _ => self.command == Command::Server(ServerCommand::Info),
        }
    }

    /// Whether a request goes to several nodes, whatever its keys.
    pub fn goes_to_all(&self, args: Args<'_>) -> bool {
        let is_of_all = matches!(self.request_policy, RequestPolicy::AllShards | RequestPolicy::AllNodes);
        is_of_all || self.lane(args) == Lane::Dedicated
    }

    /// Whether it changes what all shards have, and no key that one of them has: each has to execute it.
    pub fn changes_every_shard(&self) -> bool {
        self.flags.has(Flags::WRITE) && self.keys.is_none()
    }

    /// Whether its arguments may decide where it goes.
    pub(crate) const fn has_ways(&self) -> bool {
        self.way_of.is_some()
    }

    /// The lane that a request of this row may need, and whether its arguments decide that it does.
    pub(crate) const fn widest_lane(&self) -> (Lane, bool) {
        (self.lane, self.lane_of.is_some())
    }

    /// Where a request goes, if its arguments decide that otherwise than the policy.
    pub fn way(&self, args: Args<'_>) -> Option<Way> {
        self.way_of.and_then(|decide| decide(args))
    }

    /// Gives every database that a request names besides the selected one: where its last key goes to, or, without keys, those
    /// that it swaps. What is no number is no database; a node refuses it.
    pub fn each_database(&self, args: Args<'_>, mut each: impl FnMut(u32)) {
        let Some(find) = self.databases_of else { return };
        find(args, &mut |word| {
            if let Some(database) = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()) {
                each(database);
            }
        });
    }

    /// Whether Redis 7.0 does not have it: a command of later Redis servers or of Valkey.
    pub fn is_later(&self) -> bool {
        let mut numbers = self.since.split('.').map_while(|number| number.parse::<u32>().ok());
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        !self.is_ours() && version > (7, 0)
    }

    /// Whether it is Respool's own, which no server has.
    pub fn is_ours(&self) -> bool {
        self.group == Group::Proxy
    }

    /// Whether the reply to a request of this row is `OK`, another simple string, a number or a null, unless it is an error: a
    /// few bytes, however much is stored. `false` if that is not known.
    pub fn has_short_reply(&self, args: Args<'_>) -> bool {
        match self.reply_size {
            ReplySize::Short => true,
            ReplySize::ShortUnless => {
                let fixed = self.arity.unsigned_abs() as usize;
                let may_be_long = |returns: Returns| returns.may_be_long(args, fixed);
                args.len() <= fixed || !self.usage().returns().is_none_or(may_be_long)
            }
            ReplySize::Any => false,
        }
    }

    /// What the reply to a request of this row looks like in the two dialects.
    pub fn shape(&self, args: Args<'_>) -> &'static Shape {
        match self.shape_of {
            None => self.shape,
            Some(decide) => decide(args),
        }
    }

    /// Its arguments, its reply and its complexity, as they are told to users.
    pub fn usage(&self) -> &'static Usage {
        crate::table::usage(self.command)
    }

    /// Whether it has subcommands.
    pub const fn is_container(&self) -> bool {
        !self.subcommands.is_empty()
    }

    /// The command that this is a subcommand of.
    pub fn container(&self) -> Option<&'static Row> {
        let (container, _) = self.name.split_once(' ')?;
        crate::lookup(container.as_bytes())
    }

    /// The subcommand called `word`, in any case.
    pub fn subcommand(&self, word: &[u8]) -> Option<&'static Row> {
        self.subcommands.iter().find(|row| row.word().as_bytes().eq_ignore_ascii_case(word))
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Row({})", self.name)
    }
}

/// Starts a row: its name in capitals, arity, and the Redis version that first had it.
pub(crate) const fn row(name: &'static str, arity: i16, since: &'static str) -> Draft {
    Draft {
        name,
        arity,
        since,
        flags: Flags::NONE,
        categories: Categories::NONE,
        keys: Keys::NONE,
        lane: Lane::Shared,
        lane_of: None,
        shape: &shape::PLAIN,
        shape_of: None,
        request_policy: RequestPolicy::OneShard,
        response_policy: ResponsePolicy::Single,
        is_retry_safe: false,
        is_replica_readable: true,
        reply_names_keys: false,
        means_other_keys: false,
        changes_untold: false,
        runs_scripts: false,
        way_of: None,
        databases_of: None,
        tips: &[],
        deprecation: None,
        is_internal: false,
    }
}

/// A row that is being written. Each method is a word of the table files.
pub(crate) struct Draft {
    name: &'static str,
    arity: i16,
    since: &'static str,
    flags: Flags,
    categories: Categories,
    keys: Keys,
    lane: Lane,
    lane_of: Option<fn(Args<'_>) -> Lane>,
    shape: &'static Shape,
    shape_of: Option<ShapeOf>,
    request_policy: RequestPolicy,
    response_policy: ResponsePolicy,
    is_retry_safe: bool,
    is_replica_readable: bool,
    reply_names_keys: bool,
    means_other_keys: bool,
    changes_untold: bool,
    runs_scripts: bool,
    way_of: Option<fn(Args<'_>) -> Option<Way>>,
    databases_of: Option<DatabasesOf>,
    tips: &'static [&'static str],
    deprecation: Option<Deprecation>,
    is_internal: bool,
}

impl Draft {
    /// These flags.
    pub(crate) const fn with_flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    /// These categories, and no others than those that follow from the flags.
    pub(crate) const fn with_categories(mut self, categories: Categories) -> Self {
        self.categories = categories;
        self
    }

    /// Flags by name. `movablekeys` is derived from the keys and not written here.
    pub(crate) const fn flags(mut self, words: &str) -> Self {
        self.flags = Flags::of(words);
        self
    }

    /// ACL categories beyond those that follow from the flags.
    pub(crate) const fn acl(mut self, words: &str) -> Self {
        self.categories = Categories::of(words);
        self
    }

    /// One key at `index`.
    pub(crate) const fn key(self, index: u8, access: &str) -> Self {
        self.spec(KeySpec::range(index, 0, 1, access))
    }

    /// Keys from `first` to `last`, every `step` arguments; a negative `last` counts from the end, -1 being the last.
    pub(crate) const fn key_range(self, first: u8, last: i8, step: u8, access: &str) -> Self {
        self.spec(KeySpec::range(first, if last < 0 { last } else { last - first as i8 }, step, access))
    }

    /// Keys behind their count, which stands at `index`.
    pub(crate) const fn counted_keys(self, index: u8, access: &str) -> Self {
        self.spec(KeySpec::counted(index, 1, access))
    }

    /// Keys with a value behind each, as many as the count at `index` says.
    pub(crate) const fn counted_pairs(self, index: u8, access: &str) -> Self {
        self.spec(KeySpec::counted(index, 2, access))
    }

    /// Adds a key specification.
    pub(crate) const fn spec(mut self, spec: KeySpec) -> Self {
        self.keys = self.keys.with(spec);
        self
    }

    /// The specifications only describe; this function finds the keys.
    pub(crate) const fn found_by(mut self, find: Irregular) -> Self {
        self.keys = self.keys.found_by(find);
        self
    }

    /// The specifications find the keys; this function tells how they are used.
    pub(crate) const fn used_by(mut self, find: Irregular) -> Self {
        self.keys = self.keys.used_by(find);
        self
    }

    /// The lane, if it is not the shared one.
    pub(crate) const fn lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// The lane is the shared one or this one, as the arguments decide.
    pub(crate) const fn lane_of(mut self, lane: Lane, decide: fn(Args<'_>) -> Lane) -> Self {
        self.lane = lane;
        self.lane_of = Some(decide);
        self
    }

    /// What the reply looks like in the two dialects, if more than its nulls differs.
    pub(crate) const fn replies(mut self, shape: &'static Shape) -> Self {
        self.shape = shape;
        self
    }

    /// The same, as the arguments decide.
    pub(crate) const fn replies_by(mut self, decide: ShapeOf) -> Self {
        self.shape_of = Some(decide);
        self
    }

    /// Redis' tips, whose policies are taken over.
    pub(crate) const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        let mut at = 0;
        while at < tips.len() {
            if let Some(policy) = RequestPolicy::of_tip(tips[at].as_bytes()) {
                self.request_policy = policy;
            }
            if let Some(policy) = ResponsePolicy::of_tip(tips[at].as_bytes()) {
                self.response_policy = policy;
            }
            at += 1;
        }
        self
    }

    /// Our own policies, where Redis gives no tip or one that does not suit a proxy.
    pub(crate) const fn policy(mut self, request: RequestPolicy, response: ResponsePolicy) -> Self {
        self.request_policy = request;
        self.response_policy = response;
        self
    }

    /// Sending it twice does no harm although it is no read of keys.
    pub(crate) const fn retry_safe(mut self) -> Self {
        self.is_retry_safe = true;
        self
    }

    /// A read that only the primary may answer.
    pub(crate) const fn primary_only(mut self) -> Self {
        self.is_replica_readable = false;
        self
    }

    /// Its reply repeats the name of a key.
    pub(crate) const fn names_keys(mut self) -> Self {
        self.reply_names_keys = true;
        self
    }

    /// It tells of keys that its arguments do not name although its categories do not say that it is about keys.
    pub(crate) const fn tells_of_keys(mut self) -> Self {
        self.means_other_keys = true;
        self
    }

    /// What it reads may change without a word to clients that track the key.
    pub(crate) const fn changes_untold(mut self) -> Self {
        self.changes_untold = true;
        self
    }

    /// It runs a script or a function.
    pub(crate) const fn runs_scripts(mut self) -> Self {
        self.runs_scripts = true;
        self.lane(Lane::Script)
    }

    /// Its arguments decide which nodes it goes to.
    pub(crate) const fn way_of(mut self, decide: fn(Args<'_>) -> Option<Way>) -> Self {
        self.way_of = Some(decide);
        self
    }

    /// Its arguments name databases, which this function finds.
    pub(crate) const fn databases(mut self, find: DatabasesOf) -> Self {
        self.databases_of = Some(find);
        self
    }

    /// Since when it is deprecated, and what to use instead.
    pub(crate) const fn deprecated(mut self, since: &'static str, replaced_by: &'static str) -> Self {
        self.deprecation = Some(Deprecation { since, replaced_by });
        self
    }

    /// For servers and their tests rather than for users.
    pub(crate) const fn internal(mut self) -> Self {
        self.is_internal = true;
        self
    }

    /// Finishes the row with what the table's macro knows.
    pub(crate) const fn finish(
        self,
        command: Command,
        group: Group,
        doc: &'static str,
        reply: &'static str,
        subcommands: &'static [Row],
    ) -> Row {
        assert!(self.keys.can_be_found(), "a row whose key specification does not suffice needs a function");
        let is_read = self.flags.has(Flags::READONLY);
        // What servers call admin and is more than a look. CLIENT is about connections to the proxy, not to servers.
        let steers = self.flags.has(Flags::ADMIN) && !self.is_retry_safe && !matches!(group, Group::Connection);
        let lane = if steers && matches!(self.lane, Lane::Shared) { Lane::Admin } else { self.lane };
        let is_plain = subcommands.is_empty()
            && self.lane_of.is_none()
            && matches!(lane, Lane::Shared)
            && matches!(self.request_policy, RequestPolicy::OneShard | RequestPolicy::SplitByKey);
        let is_set = matches!(command, Command::String(StringCommand::Set));
        // What is about keys, names none and reads or writes: other than HELP.
        let touches_keys = self.categories.has(Categories::KEYSPACE) && (is_read || self.flags.has(Flags::WRITE));
        let flags = if self.keys.are_movable() { self.flags.with(Flags::MOVABLEKEYS) } else { self.flags };
        Row {
            command,
            number: command.ordinal() as u16,
            name: self.name,
            arity: self.arity,
            flags,
            categories: self.categories.with_implied(flags),
            keys: self.keys.may_be_none(self.flags.has(Flags::NO_MANDATORY_KEYS)),
            group,
            since: self.since,
            request_policy: self.request_policy,
            response_policy: self.response_policy,
            is_retry_safe: self.is_retry_safe || is_read,
            is_replica_readable: self.is_replica_readable && is_read,
            reply_names_keys: self.reply_names_keys,
            means_other_keys: self.means_other_keys || self.keys.is_none() && touches_keys,
            changes_untold: self.changes_untold,
            runs_scripts: self.runs_scripts,
            way_of: self.way_of,
            databases_of: self.databases_of,
            tips: self.tips,
            doc: doc.trim_ascii(),
            deprecation: self.deprecation,
            is_internal: self.is_internal,
            is_plain,
            is_quick: is_plain && (self.flags.has(Flags::FAST) || is_set),
            subcommands,
            lane,
            lane_of: self.lane_of,
            shape: self.shape,
            shape_of: self.shape_of,
            reply_size: Returns::of(reply).size(),
            word: last_word(self.name),
            full_name: FullName::of(self.name),
        }
    }
}

impl Row {
    /// A row made while running, from what a node says of a command. `None`: its name is too long.
    pub(crate) fn learnt(draft: Draft, group: Group) -> Option<Self> {
        (draft.name.len() <= FullName::CAPACITY)
            .then(|| draft.finish(Command::Learnt, group, "A command of the nodes.", "", &[]))
    }
}

const fn last_word(name: &'static str) -> &'static str {
    let mut at = name.len();
    while at > 0 && name.as_bytes()[at - 1] != b' ' {
        at -= 1;
    }
    name.split_at(at).1
}

/// A row's name in small letters, `|` between container and subcommand.
#[derive(Clone, Copy)]
struct FullName {
    bytes: [u8; FullName::CAPACITY],
    len: u8,
}

impl FullName {
    /// The longest name, `cluster|count-failure-reports`, has 29 bytes.
    const CAPACITY: usize = 32;

    const fn of(name: &str) -> Self {
        let name = name.as_bytes();
        assert!(name.len() <= Self::CAPACITY, "a row's name is longer than the buffer made for it");
        let mut bytes = [0; Self::CAPACITY];
        let mut at = 0;
        while at < name.len() {
            bytes[at] = if name[at] == b' ' { b'|' } else { name[at].to_ascii_lowercase() };
            at += 1;
        }
        Self { bytes, len: name.len() as u8 }
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len as usize]).expect("made of a str, byte by byte in ASCII")
    }
}

#[cfg(test)]
mod tests {
    use respool_wire::ArgsBuf;

    use crate::{Find, Flags, GenericCommand, KeyPositions, Lane, RequestPolicy, ResponsePolicy, all};

    #[test]
    fn policies_fit_each_other() {
        // What never leaves Respool has no use for its policies; they still follow Redis' tips.
        for row in all().filter(|row| row.widest_lane().0 != Lane::Local) {
            let goes_to_one = matches!(row.request_policy, RequestPolicy::OneShard | RequestPolicy::AnyNode);
            let may_go_to_all = row.way_of.is_some();
            assert_eq!(goes_to_one && !may_go_to_all, row.response_policy == ResponsePolicy::Single, "{row:?}");
            if row.request_policy == RequestPolicy::SplitByKey {
                let to_the_end = |spec: &crate::KeySpec| matches!(spec.find, Find::Range { last: -1, .. });
                assert!(row.keys.specs().len() == 1 && to_the_end(&row.keys.specs()[0]), "{row:?}");
            }
            if row.response_policy == ResponsePolicy::KeyOrder {
                assert_eq!(row.request_policy, RequestPolicy::SplitByKey, "{row:?}");
            }
        }
    }

    #[test]
    fn short_requests_are_judged_without_a_panic() {
        // A row may be asked about a request before its arity is: words that rows look for, and as few of them as possible.
        let words = ["", "0", "-1", "SWAPDB", "OBJECT", "DB", "NUMKEYS", "STREAMS", "GET", "STORE"];
        let mut positions = KeyPositions::new();
        for row in all() {
            let name: Vec<&str> = row.full_name().split(' ').collect();
            for word in words {
                for count in 0..4 {
                    let request: ArgsBuf = name.iter().copied().chain(std::iter::repeat_n(word, count)).collect();
                    let args = request.as_args();
                    let (_, _, _) = (row.way(args), row.lane(args), row.is_admin(args));
                    let _ = (row.shape(args), row.keys.first(args), row.keys.positions(args, &mut positions));
                    row.each_database(args, |_| {});
                }
            }
        }
    }

    #[test]
    fn a_reply_is_short_unless_an_argument_makes_it_long() {
        let is_short = |request: &str| {
            let args: ArgsBuf = request.split(' ').collect();
            crate::resolve(args.as_args()).expect("it has a row").has_short_reply(args.as_args())
        };
        for request in
            ["SET k v", "SET GET get", "set k v EX 10 NX", "MSET a 1 b 2", "INCR n", "ZADD z INCR 1 m", "TYPE k"]
        {
            assert!(is_short(request), "{request}");
        }
        for request in [
            "SET k v GET",
            "set k v ex 10 get",
            "GET k",
            "MGET a b",
            "LPOS l v COUNT 0",
            "EVAL s 0",
            "ECHO a",
            "PING a",
        ] {
            assert!(!is_short(request), "{request}");
        }
        assert!(!crate::lookup(b"CONFIG").expect("a container").has_short_reply(ArgsBuf::new().as_args()));
    }

    #[test]
    fn what_changes_data_is_neither_repeated_nor_asked_of_a_replica() {
        for row in all().filter(|row| row.flags.has(Flags::WRITE)) {
            assert!(!row.is_retry_safe && !row.is_replica_readable, "{row:?}");
        }
    }

    #[test]
    fn only_what_reads_keys_may_change_untold() {
        for row in all().filter(|row| row.changes_untold) {
            assert!(row.flags.has(Flags::READONLY) && !row.keys.specs().is_empty(), "{row:?}");
        }
    }

    #[test]
    fn what_may_block_never_shares_a_connection() {
        let wait = crate::Command::Generic(GenericCommand::Wait);
        for row in all() {
            let may_block = row.flags.has(Flags::BLOCKING) || row.command == wait;
            assert_eq!(may_block, row.widest_lane().0 == Lane::Blocking, "{row:?}");
        }
    }

    #[test]
    fn what_steers_servers_is_of_the_admin_plane() {
        let is_admin = |request: &str| {
            let args: respool_wire::ArgsBuf = request.split(' ').collect();
            crate::resolve(args.as_args()).expect("it has a row").is_admin(args.as_args())
        };
        for request in [
            "SHUTDOWN",
            "DEBUG SLEEP 1",
            "CONFIG SET a b",
            "CONFIG REWRITE",
            "REPLICAOF NO ONE",
            "FAILOVER",
            "BGSAVE",
            "MODULE LOAD x",
            "CLUSTER RESET",
            "SLOWLOG RESET",
            "LATENCY RESET",
            "MONITOR",
            "PSYNC ? -1",
            "SAVE",
            "CONFIG GET require*",
            "CONFIG GET maxmemory MASTERAUTH",
            "CONFIG GET maxmemory*",
            "CONFIG GET primaryauth",
            "MODULE LIST",
            "CONFIG GET *",
            "MIGRATE h 1 k 0 10",
        ] {
            assert!(is_admin(request), "{request}");
        }
        for request in [
            "GET k",
            "FLUSHALL",
            "KEYS *",
            "CONFIG GET maxmemory",
            "SLOWLOG GET",
            "LATENCY LATEST",
            "CLUSTER INFO",
            "CLIENT LIST",
            "CLIENT KILL a:1",
            "INFO",
            "SCRIPT FLUSH",
            "EVAL s 0",
            "ROLE",
        ] {
            assert!(!is_admin(request), "{request}");
        }
    }

    #[test]
    fn what_changes_every_shard_names_no_key() {
        let changes = |name: &str| crate::lookup_full(name.as_bytes()).expect("a known command").changes_every_shard();
        for name in ["FLUSHALL", "FLUSHDB", "SWAPDB", "FUNCTION|LOAD"] {
            assert!(changes(name), "{name}");
        }
        for name in ["SET", "DEL", "DBSIZE", "FUNCTION|LIST", "PING"] {
            assert!(!changes(name), "{name}");
        }
    }

    #[test]
    fn arity_counts_the_name_too() {
        let get = crate::lookup(b"get").expect("GET has a row");
        assert!(!get.accepts(1) && get.accepts(2) && !get.accepts(3));
        let del = crate::lookup(b"del").expect("DEL has a row");
        assert!(!del.accepts(1) && del.accepts(2) && del.accepts(1_000_000));
    }
}
