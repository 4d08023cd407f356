//! What an engine does: requests, scripts, time, and what its program asks of it.

#[cfg(feature = "scripting")]
use respool_command::{Asked, ScriptCalls, ScriptRights};
use respool_command::{Change, Execute, Flags, Millis, Outcome, Row, SessionView, WaitId, Wanted, text};
use respool_wire::{Args, ArgsBuf, Encoder};

use super::Engine;
#[cfg(feature = "scripting")]
use super::EngineConfig;
use crate::commands::{self, Call, Fault, refuse};
use crate::keyspace::{At, Blocked, begin_of};
#[cfg(feature = "scripting")]
use crate::script::{self, Desk};
use crate::{limits, parameters, reload};

impl Engine {
    /// A request for a database that is not open: there is none, or a script is under way.
    #[cold]
    fn execute_closed(
        &mut self,
        row: &'static Row,
        args: Args<'_>,
        session: &mut SessionView,
        reply: &mut Encoder<'_>,
    ) -> Result<Outcome, Fault> {
        if self.open_databases > 0 {
            return Err(Fault::Text(text::DB_OUT_OF_RANGE));
        }
        self.execute_script(row, args, session, reply)
    }

    /// Sets the time at which keys are looked at outside of requests: nothing expires while a script is under way.
    fn enter(&mut self, now: Millis) -> i64 {
        let is_amid_script = self.open_databases == 0;
        self.keyspace.heap.now = if is_amid_script { i64::MIN } else { i64::try_from(now.0).unwrap_or(i64::MAX) };
        self.keyspace.heap.now
    }

    /// A request blocks from now on.
    #[cold]
    fn park(
        &mut self,
        row: &'static Row,
        args: ArgsBuf,
        session: &SessionView,
        start: usize,
        reply: &mut Encoder<'_>,
    ) -> Outcome {
        reply.truncate(start);
        let SessionView { database, client_id, .. } = *session;
        let spares_uses = self.keyspace.spares_uses();
        let blocked = Blocked { row, args, database, client_id, protocol: reply.protocol(), spares_uses };
        Outcome::Parked(self.keyspace.blocked.park(blocked))
    }

    /// A request about scripts, or one while a script is under way.
    #[cfg(feature = "scripting")]
    #[cold]
    fn execute_script(
        &mut self,
        row: &'static Row,
        args: Args<'_>,
        session: &mut SessionView,
        reply: &mut Encoder<'_>,
    ) -> Result<Outcome, Fault> {
        // A script begins with room for what it adds, and none is made within it or within a transaction.
        let is_full = match () {
            () if self.scripts.is_running() => false,
            () if session.is_in_transaction => self.began_full,
            // What only looks at scripts adds nothing, and evicts nothing.
            () if !row.runs_scripts => false,
            () => self.is_full(),
        };
        let Self { keyspace, memory_bytes_max, scripts, .. } = self;
        let mut desk = Desk { keyspace, scripts, memory_bytes_max: *memory_bytes_max, is_full };
        let outcome = script::execute(&mut desk, row, args, session, reply);
        self.keyspace.script_memory = self.scripts.memory();
        self.open_databases = if self.scripts.is_running() { 0 } else { self.databases() };
        outcome
    }

    #[cfg(feature = "scripting")]
    fn is_script_stopped(&self) -> bool {
        self.scripts.is_stopped()
    }

    #[cfg(not(feature = "scripting"))]
    fn is_script_stopped(&self) -> bool {
        false
    }

    /// Without scripts.
    #[cfg(not(feature = "scripting"))]
    #[cold]
    fn execute_script(
        &mut self,
        row: &'static Row,
        _: Args<'_>,
        _: &mut SessionView,
        _: &mut Encoder<'_>,
    ) -> Result<Outcome, Fault> {
        Err(commands::unsupported(row))
    }
}

/// Writes what has become of a request about scripts, if it is an error.
#[cold]
fn settle(answer: Result<Outcome, Fault>, start: usize, reply: &mut Encoder<'_>) -> Outcome {
    answer.unwrap_or_else(|fault| {
        refuse(fault, start, reply);
        Outcome::Done
    })
}

impl Execute for Engine {
    #[inline]
    fn execute(
        &mut self,
        row: &'static Row,
        args: Args<'_>,
        session: &mut SessionView,
        reply: &mut Encoder<'_>,
    ) -> Outcome {
        let start = reply.position();
        let database = session.database as usize;
        let now = i64::try_from(session.now.0).unwrap_or(i64::MAX);
        self.keyspace.heap.now = now;
        let answer = if database >= self.open_databases {
            let answer = self.execute_closed(row, args, session, reply);
            return settle(answer, start, reply);
        } else if self.memory_bytes_max.is_some()
            && row.flags.has(Flags::DENYOOM)
            && !session.is_in_transaction
            && self.is_full()
        {
            Err(Fault::Text(text::OOM))
        } else {
            let at = At { database, now };
            commands::run(&mut Call { keyspace: &mut self.keyspace, row, args, at, session, start, reply })
        };
        match answer {
            Ok(()) => Outcome::Done,
            Err(Fault::Scripts) => {
                let answer = self.execute_script(row, args, session, reply);
                settle(answer, start, reply)
            }
            Err(Fault::Parameters) => {
                let answer = parameters::run(self, row, args, reply).map(|()| Outcome::Done);
                settle(answer, start, reply)
            }
            Err(Fault::Reload) => {
                let answer = reload::run(self, args, session, reply).map(|()| Outcome::Done);
                settle(answer, start, reply)
            }
            Err(Fault::Waits) => self.park(row, args.iter().collect(), session, start, reply),
            Err(Fault::WaitsFor(args)) => self.park(row, args, session, start, reply),
            Err(fault) => {
                refuse(fault, start, reply);
                Outcome::Done
            }
        }
    }

    fn tick(&mut self, now: Millis) -> Option<Millis> {
        if self.open_databases == 0 {
            // Time stands still for a script, and nothing is to come while its debugger waits.
            let wait = if self.is_script_stopped() { limits::TICK_IDLE_MS } else { 1 };
            return Some(Millis(now.0.saturating_add(wait)));
        }
        let at = self.enter(now);
        self.keyspace.forget_soonest();
        if self.keyspace.debugging.is_paused {
            return Some(Millis(now.0.saturating_add(limits::TICK_IDLE_MS)));
        }
        let _: i64 = self.keyspace.began_s(at);
        self.keyspace.peak_bytes = self.keyspace.peak_bytes.max(self.keyspace.bounded_bytes());
        let wait = if self.keyspace.may_sweep() { self.keyspace.sweep(at) } else { limits::TICK_IDLE_MS };
        let is_left = self.keyspace.reap(limits::REAPED_PER_TICK);
        let is_evicting = self.memory_bytes_max.is_some_and(|max| self.keyspace.make_room_slowly(max));
        let wait = match self.memory_bytes_max {
            _ if is_left || is_evicting => 1,
            // Requests may leave something to go on with.
            Some(_) => wait.min(limits::TICK_BUSY_MS),
            None => wait,
        };
        Some(Millis(now.0.saturating_add(wait)))
    }

    #[inline]
    fn sooner_tick(&self, now: Millis) -> Option<Millis> {
        let second = self.keyspace.soonest_second()?;
        Some(Millis(begin_of(second).max(now.0.saturating_add(limits::TICK_BUSY_MS))))
    }

    fn expire_due(&mut self, now: Millis) {
        if self.open_databases > 0 && self.keyspace.may_sweep() {
            let at = self.enter(now);
            // As in Redis, a key is there to the end of the millisecond of its deadline for a request that asks for it.
            self.keyspace.sweep_all(at.saturating_add(1));
        }
    }

    #[cfg(feature = "scripting")]
    fn copy_for_debugging(&self, now: Millis) -> Result<Self, &'static str> {
        let bytes = self.used_bytes();
        if bytes > limits::DEBUGGER_COPY_BYTES_MAX {
            return Err("the keys take more memory than may be copied; SCRIPT DEBUG SYNC needs no copy");
        }
        if self.keyspace.copy_effort() > limits::DEBUGGER_COPY_PARTS_MAX {
            return Err("there are more keys and elements than may be copied; SCRIPT DEBUG SYNC needs no copy");
        }
        // What its script adds is memory of this process beside that of the keys, and nothing makes room for it.
        let room = (bytes + limits::DEBUGGER_COPY_BYTES_ADDED) as u64;
        let config = EngineConfig {
            databases: self.databases(),
            encodings: *self.encodings(),
            script_busy_after_ms: self.scripts.busy_after_ms(),
            memory_bytes_max: Some(self.memory_bytes_max.map_or(room, |max| max.min(room))),
            ..EngineConfig::default()
        };
        // Clients know the time, and not what the server's own keyed function makes of it.
        let seed = [1, 2].map(|number| self.keyspace.heap.hasher.hash(&[now.0, number].map(u64::to_le_bytes).concat()));
        let mut copy = Self::new(config, seed);
        copy.scripts.set_renames(self.scripts.renames());
        copy.scripts.bound_strictly();
        let now = i64::try_from(now.0).unwrap_or(i64::MAX);
        copy.keyspace.heap.now = now;
        self.keyspace.copy_to(&mut copy.keyspace, now).map_err(|_| "a key cannot be copied")?;
        Ok(copy)
    }

    fn poll_ready(&mut self, now: Millis, reply: &mut Vec<u8>) -> Option<WaitId> {
        if self.open_databases == 0 {
            return None;
        }
        let time = self.enter(now);
        while let Some((database, key)) = self.keyspace.blocked.ready_key() {
            let at = At { database, now: time };
            let kind = self.keyspace.peek(at, &key).map(|found| self.keyspace.kind(found));
            let Some((wait, blocked)) = self.keyspace.blocked.next(kind) else { continue };
            let (row, args, protocol) = (blocked.row, blocked.for_key(&key), blocked.protocol);
            let spares_uses = blocked.spares_uses;
            let mut session = SessionView {
                database: blocked.database,
                now,
                client_id: blocked.client_id,
                has_waited: true,
                ..SessionView::default()
            };
            let start = reply.len();
            let mut reply = Encoder::new(reply, protocol);
            let keyspace = &mut self.keyspace;
            let was_spared = keyspace.spare_uses(spares_uses);
            let call =
                &mut Call { keyspace, row, args: args.as_args(), at, session: &mut session, start, reply: &mut reply };
            let answer = commands::run(call);
            self.keyspace.spare_uses(was_spared);
            match answer {
                Ok(()) => {}
                Err(Fault::Waits | Fault::WaitsFor(_)) => {
                    reply.truncate(start);
                    self.keyspace.blocked.leave_waiting(wait);
                    continue;
                }
                Err(fault) => refuse(fault, start, &mut reply),
            }
            self.keyspace.blocked.forget(wait);
            return Some(wait);
        }
        None
    }

    fn cancel(&mut self, wait: WaitId) {
        self.keyspace.blocked.forget(wait);
    }

    fn awaited_keys(&self) -> usize {
        self.keyspace.blocked.keys()
    }

    #[cfg(feature = "scripting")]
    fn asked(&mut self) -> Option<Asked> {
        self.scripts.asked()
    }

    #[cfg(feature = "scripting")]
    fn answer_asked(&mut self, reply: &[u8]) {
        self.scripts.answer_asked(reply);
    }

    #[cfg(feature = "scripting")]
    fn set_script_rights(&mut self, rights: Option<Box<dyn ScriptRights>>) {
        self.scripts.set_rights(rights);
    }

    #[cfg(feature = "scripting")]
    fn script_calls(&mut self) -> ScriptCalls {
        self.scripts.take_calls()
    }

    #[cfg(feature = "scripting")]
    fn watch_scripts(&mut self, is_watched: bool) {
        self.scripts.watched.watch(is_watched);
    }

    #[cfg(feature = "scripting")]
    fn script_lines(&mut self) -> Vec<(u32, ArgsBuf)> {
        self.scripts.watched.take()
    }

    #[cfg(feature = "scripting")]
    fn keep_script_reads(&mut self, is_wanted: bool) {
        self.scripts.reads.set_wanted(is_wanted);
    }

    #[cfg(feature = "scripting")]
    fn script_reads(&mut self) -> Option<Vec<Box<[u8]>>> {
        self.scripts.reads.take()
    }

    fn watch(&mut self, client: u64, database: u32, now: Millis, keys: Args<'_>) -> usize {
        let at = At { database: database as usize, now: self.enter(now) };
        if at.database < self.databases() {
            keys.iter().for_each(|key| self.keyspace.watch(at, client, key));
        }
        self.keyspace.watched_bytes(client)
    }

    fn is_dirty(&mut self, client: u64, now: Millis) -> bool {
        let now = self.enter(now);
        self.keyspace.is_dirty(now, client)
    }

    fn unwatch(&mut self, client: u64) {
        self.keyspace.unwatch(client);
    }

    fn spare_uses(&mut self, is_spared: bool) -> bool {
        self.keyspace.spare_uses(is_spared)
    }

    fn keep_keys(&mut self, is_kept: bool) {
        self.keyspace.keeps_keys = is_kept;
    }

    fn make_room(&mut self, now: Millis) -> bool {
        if self.open_databases > 0 {
            self.enter(now);
            self.began_full = self.is_full();
        }
        !self.began_full
    }

    fn changes(&mut self, wanted: Wanted, see: &mut dyn FnMut(Change<'_>)) {
        self.keyspace.take_journal(wanted).show(see);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Script;

    #[test]
    fn a_removed_name_is_not_found_elsewhere() {
        // The store searches by a byte of the hash first. These names share the one that an empty place comes nearest to.
        let mut script = Script::new();
        let hasher = &script.engine.keyspace_mut().heap.hasher;
        let is_near = |name: &String| hasher.hash(name.as_bytes()) >> 56 <= 1;
        let names: Vec<String> = (0..).map(|number| format!("n{number}")).filter(is_near).take(2).collect();
        let (a, b) = (&names[0], &names[1]);
        // A hash and a set that are no longer compact.
        let long = "x".repeat(80);
        for request in ["HSET h", "HSET g"].map(|command| format!("{command} {long} 1")) {
            script.say(&request);
        }
        script.say(&format!("SADD t {long}"));
        script.say(&format!("SADD u {long}"));
        script.say(&format!("HSET h {a} 1 {b} 2"));
        assert_eq!(script.say(&format!("HDEL h {b}")), ":1");
        script.say(&format!("HSET g {b} 3"));
        assert_eq!(script.say(&format!("HGET h {b}")), "$-1");
        assert_eq!(script.say(&format!("HDEL h {b}")), ":0");
        assert_eq!(script.say(&format!("HGET g {b}")), "$1 3");
        script.say(&format!("SADD t {a} {b}"));
        assert_eq!(script.say(&format!("SREM t {b}")), ":1");
        script.say(&format!("SADD u {b}"));
        assert_eq!(script.say(&format!("SISMEMBER t {b}")), ":0");
        // Keys of two databases.
        script.say("FLUSHALL");
        script.say(&format!("MSET {a} 1 {b} 2"));
        assert_eq!(script.say(&format!("DEL {b}")), ":1");
        script.session.database = 1;
        script.say(&format!("SET {b} 3"));
        script.session.database = 0;
        assert_eq!(script.say(&format!("GET {b}")), "$-1");
        assert_eq!(script.say(&format!("DEL {b}")), ":0");
    }

    #[test]
    fn what_is_only_read_has_not_changed() {
        let mut script = Script::new();
        for request in ["SET s 1", "HSET h a 1 b 2", "RPUSH l 1 2", "SADD t 1 2", "ZADD z 1 a 2 b"] {
            script.say(request);
        }
        let wanted = Wanted { keys: true, ..Wanted::default() };
        script.engine.changes(wanted, &mut |_| ());
        let changed = |script: &mut Script| {
            let mut keys = Vec::new();
            script.engine.changes(wanted, &mut |change| match change {
                Change::Key(key) => keys.push(Some(key.to_vec())),
                _ => keys.push(None),
            });
            keys
        };
        for request in [
            "GET s",
            "HGETALL h",
            "HRANDFIELD h",
            "HRANDFIELD h 2 WITHVALUES",
            "HRANDFIELD h -3",
            "LRANGE l 0 -1",
            "SORT l",
            "SRANDMEMBER t",
            "SRANDMEMBER t -3",
            "SRANDMEMBER t 1",
            "ZRANDMEMBER z",
            "ZRANDMEMBER z 1",
            "ZRANDMEMBER z -2 WITHSCORES",
            "SORT z BY nosort",
            "TYPE s",
            "TTL s",
            "COPY s s2",
        ] {
            script.say(request);
            let expected = if request.starts_with("COPY") { vec![Some(b"s2".to_vec())] } else { Vec::new() };
            assert_eq!(changed(&mut script), expected, "{request}");
        }
        script.say("SPOP t");
        assert_eq!(changed(&mut script), [Some(b"t".to_vec())]);
    }

    /// What takes time when keys are copied is what is made anew, in keys and in values.
    #[cfg(feature = "scripting")]
    #[test]
    fn the_effort_of_a_copy_is_that_of_its_parts() {
        let mut script = Script::new();
        let mut added = |requests: &[&str]| {
            let before = script.engine.keyspace.copy_effort();
            requests.iter().for_each(|request| _ = script.say(request));
            script.engine.keyspace.copy_effort() - before
        };
        assert_eq!(added(&["SET s 1", "SET s 2", "SET t 3"]), 2);
        let many = |command: &str, element: &dyn Fn(usize) -> String| {
            (0..1000).fold(command.to_owned(), |request, number| request + " " + &element(number))
        };
        assert_eq!(added(&["HSET h a 1 b 2"]), 2, "a key, and bytes in a row");
        assert_eq!(added(&[&*many("SADD i", &|number| number.to_string())]), 1001);
        assert_eq!(added(&[&*many("SADD m", &|number| format!("m{number}"))]), 1001);
        assert_eq!(added(&[&*many("HSET g", &|number| format!("f{number} v"))]), 1001);
        assert_eq!(added(&[&*many("ZADD z", &|number| format!("{number} m{number}"))]), 1001);
        assert!((2..20).contains(&added(&[&*many("RPUSH l", &|number| number.to_string())])));
        assert_eq!(added(&["XADD x 1 a b", "XADD x 2 a b", "XGROUP CREATE x one 0", "XGROUP CREATE x two 0"]), 4);
        assert_eq!(added(&["XREADGROUP GROUP two c STREAMS x >", "XGROUP CREATECONSUMER x one d"]), 4);
        assert_eq!(added(&["MSET a 1 b 2", "DEL s"]), 1);
    }
}
