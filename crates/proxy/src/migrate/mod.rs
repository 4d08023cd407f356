//! MIGRATE of the engine in this process: keys go to another server, and are deleted here once that server has them.
//!
//! ```text
//!   MIGRATE --> some key on its way for another client? --yes: waits for that --.
//!                   | no  <------------------------------------------------------'
//!                 batch: RESTORE of the next keys, which are watched from now on --> the program sends it
//!                   ^                                                                  |  mail
//!                   |  keys that have changed meanwhile; keys that are left            v
//!                   '----------------------------------- keys that were acknowledged: DEL --> reply
//! ```
//!
//! In Redis no client is served meanwhile. Here only the client that asks waits, so others may change a key that is on its way. It is
//! not deleted then but sent once more, over what was sent before; one that has gone is deleted there. That goes on for as long as the
//! request's timeout says; a key that has not come to rest by then stays here, and the reply is an error.
//!
//! A part of a transaction is executed as a whole: the worker waits for the other server as redis-server does, and nothing can change. A client that
//! disconnects meanwhile changes nothing either, as in Redis.

mod batch;
mod request;

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{Asker, ClientId, Handle};
use crate::interfaces::call::{Call, Cost};
use crate::interfaces::engine_calls::EngineCalls;
use crate::interfaces::transfer::{Transfer, TransferEnd, TransferFailure, TransferOutcome};
use crate::limits::MIGRATIONS_MAX;
use crate::migrate::batch::{Batch, Key, Mover, Watchers};
use crate::migrate::request::MigrateRequest;
use crate::session::{Flow, Session};
use crate::slab::Slab;
use respool_command::{Execute, Row};
use respool_wire::replies;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// A key with its database.
type LockedKey = (u32, Box<[u8]>);

/// The requests of one worker that move keys.
#[derive(Debug, Default)]
pub(crate) struct Migrations {
    running: Slab<Migration>,
    /// Their keys: no key is on its way twice.
    keys: BTreeSet<LockedKey>,
    /// Those that wait for keys of others, in the order in which they came.
    waiting: Vec<Handle>,
    /// What other servers have answered while nothing may change.
    put_off: VecDeque<TransferEnd>,
    watchers: Watchers,
}

/// One request that moves keys.
#[derive(Debug)]
struct Migration {
    /// `None`: a part of a transaction, which is answered at once.
    asker: Option<Asker>,
    mover: Mover,
    row: &'static Row,
    request: MigrateRequest,
    /// Keys that are still to be sent.
    left: VecDeque<Key>,
    /// Keys that are on their way.
    sent: Batch,
    /// Keys that no other may move meanwhile.
    locked: Vec<LockedKey>,
    /// Some key was there.
    has_found: bool,
    /// The first error of the other server.
    refusal: Option<Vec<u8>>,
    /// The first error of the engine about a key that is there and stays.
    fault: Option<Vec<u8>>,
    failure: Option<Failure>,
    begun_us: u64,
    /// Until when keys that change are sent once more, since the first of them did.
    again_until_us: Option<u64>,
    /// Bytes that are accounted for.
    held_bytes: usize,
}

/// Why not all keys were moved, if the other server has not refused them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Transfer(TransferFailure),
    /// Keys have changed for as long as the timeout is.
    Changing,
}

impl Migrations {
    /// MIGRATE, for the engine in this process.
    #[cold]
    pub(crate) fn migrate(&mut self, side: &mut impl EngineCalls, call: Call<'_>) -> Flow {
        let Call { index, row, request } = call;
        let request = match MigrateRequest::read(request.args) {
            Ok(request) => request,
            Err(words) => return side.env().refuse(index, words),
        };
        let env = side.env();
        if request.target.auth.is_some() {
            env.note_secret();
        }
        let Some(mut this) = Migration::new(env, index, row, request) else { return Flow::Stop };
        if this.mover.is_in_transaction {
            return self.migrate_at_once(side, index, this);
        }
        let Some(()) = env.clients.settle_before(index) else { return Flow::Again };
        if self.running.len() >= MIGRATIONS_MAX {
            return env.refuse(index, error_text::TOO_MANY_MIGRATIONS);
        }
        if !env.may_wait(index) {
            return Flow::Stop;
        }
        let waits = this.is_locked(&self.keys);
        if !waits {
            this.take_next(side, &mut self.watchers);
            if this.sent.is_empty() {
                let reply = this.reply();
                side.env().answer(index, |out| out.raw(&reply));
                side.note_run_apart(Some(index));
                return Flow::Next;
            }
        }
        let Some(asker) = side.env().clients.expect_behind_barrier(index) else { return Flow::Stop };
        this.asker = Some(asker);
        if waits {
            this.account(side.env());
        }
        let migration = self.running.insert(this);
        if waits {
            self.waiting.push(migration);
        } else {
            self.lock_keys(migration);
            self.send(side, migration);
        }
        if side.env().clients.is_leaving(index) { Flow::Stop } else { Flow::Pause }
    }

    /// A part of a transaction.
    fn migrate_at_once(&mut self, side: &mut impl EngineCalls, index: ClientId, mut this: Migration) -> Flow {
        if this.is_locked(&self.keys) {
            return side.env().refuse(index, error_text::KEY_ON_ITS_WAY);
        }
        loop {
            this.take_next(side, &mut self.watchers);
            if this.sent.is_empty() {
                break;
            }
            let transfer = this.transfer(side.env(), Handle { index: 0, generation: 0 });
            let end = side.env().shared.hooks.transfer(transfer);
            let outcome = end.map_or(TransferFailure::Connecting.into(), |end| end.outcome);
            this.settle(side, outcome);
        }
        let reply = this.reply();
        let env = side.env();
        env.answer(index, |out| out.raw(&reply));
        env.catch_up_behind(index);
        Flow::Next
    }

    /// A transfer is over.
    pub(crate) fn take_end(&mut self, side: &mut impl EngineCalls, end: TransferEnd) {
        if may_change_nothing(side) {
            self.put_off.push_back(end);
            // The timers look whether the time has come.
            side.env().is_busy = true;
            return;
        }
        let Some(this) = self.running.get_mut(end.ticket) else { return };
        this.settle(side, end.outcome);
        self.go_on(side, end.ticket);
    }

    /// Whether something waits until keys may change again.
    pub(crate) fn has_put_off(&self) -> bool {
        !self.put_off.is_empty()
    }

    /// Keys may change again, perhaps: no script is late any more, or debugged among them, or clients are no longer paused.
    pub(crate) fn take_put_off(&mut self, side: &mut impl EngineCalls) {
        while !may_change_nothing(side)
            && let Some(end) = self.put_off.pop_front()
        {
            self.take_end(side, end);
        }
        self.begin_waiting(side);
    }

    /// A request has nothing on its way: what is next of it is sent, or it is answered.
    fn go_on(&mut self, side: &mut impl EngineCalls, migration: Handle) {
        let Some(this) = self.running.get_mut(migration) else { return };
        this.take_next(side, &mut self.watchers);
        if this.sent.is_empty() {
            self.end(side, migration);
            self.begin_waiting(side);
        } else {
            self.send(side, migration);
        }
    }

    /// The next keys are on their way.
    fn send(&mut self, side: &mut impl EngineCalls, migration: Handle) {
        let Some(this) = self.running.get_mut(migration) else { return };
        let env = side.env();
        this.account(env);
        let transfer = this.transfer(env, migration);
        let end = env.shared.hooks.transfer(transfer);
        let client = this.mover.client;
        let index = env.clients.sessions.get(client).map(|_| client.index);
        // Others hear of what has been deleted so far.
        side.note_run_apart(index);
        if let Some(end) = end {
            // It could not even be begun. What that leads to comes in its own time, as everything that comes by mail.
            let env = side.env();
            env.post(env.number, end);
        }
    }

    fn end(&mut self, side: &mut impl EngineCalls, migration: Handle) {
        let Some(mut this) = self.running.remove(migration.index) else { return };
        for key in this.locked.drain(..) {
            self.keys.remove(&key);
        }
        let reply = this.reply();
        let env = side.env();
        this.left.clear();
        this.account_as(env, 0);
        let client = this.mover.client;
        let index = env.clients.sessions.get(client).map(|_| client.index);
        if reply.starts_with(b"-") {
            env.command_log.count(|calls| calls.fail_waiting(this.row, &reply));
        }
        if let Some((index, _)) = index.zip(env.times_from()) {
            let us = env.now.mono_us.saturating_sub(this.begun_us);
            let reply_bytes = if this.asker.is_some_and(|asker| asker.is_wanted) { reply.len() } else { 0 };
            env.note_cost(index, this.row, this.request.args.as_args(), Cost { us, reply_bytes });
        }
        if let Some(asker) = this.asker {
            env.counters.requests_local.add(1);
            env.clients.fill(asker, &reply);
        }
        side.note_run_apart(index);
    }

    /// Keys may not be on their way any more that requests have waited for.
    fn begin_waiting(&mut self, side: &mut impl EngineCalls) {
        for migration in std::mem::take(&mut self.waiting) {
            let Some(this) = self.running.get(migration) else { continue };
            if may_change_nothing(side) || this.is_locked(&self.keys) {
                self.waiting.push(migration);
                continue;
            }
            self.lock_keys(migration);
            let Some(this) = self.running.get_mut(migration) else { continue };
            this.take_next(side, &mut self.watchers);
            if this.sent.is_empty() { self.end(side, migration) } else { self.send(side, migration) }
        }
    }

    fn lock_keys(&mut self, migration: Handle) {
        let Some(this) = self.running.get_mut(migration) else { return };
        let database = this.mover.database;
        for at in this.request.keys.clone() {
            let key: LockedKey = (database, this.request.key(at).into());
            if self.keys.insert(key.clone()) {
                this.locked.push(key);
            }
        }
    }
}

/// Whether keys stay as they are for now: a script is late or is debugged among them, so the engine replies BUSY, or CLIENT PAUSE holds,
/// under which Redis deletes nothing either.
fn may_change_nothing(side: &mut impl EngineCalls) -> bool {
    let env = side.env();
    let is_busy = env.slices.script.is_some() || env.debuggers.holds_others();
    is_busy || env.client_pause.is_some() || env.is_server_paused
}

impl Session {
    /// So many bytes are held for it of keys that are on their way.
    fn hold_moving(&mut self, bytes: usize) {
        self.pins_mut().moving_bytes = bytes;
        self.settle_pins();
    }
}

impl Migration {
    fn new(env: &Env<impl Execute>, index: ClientId, row: &'static Row, request: MigrateRequest) -> Option<Self> {
        let (client, session) = env.clients.sessions.handle(index).zip(env.clients.sessions.at(index))?;
        let is_in_transaction = session.is_amid_exec_reply();
        let mover = Mover { client, id: session.id, database: session.database, is_in_transaction };
        Some(Self {
            asker: None,
            mover,
            row,
            left: request.keys.clone().map(|at| Key { at, was_sent: false }).collect(),
            request,
            sent: Batch::default(),
            locked: Vec::new(),
            has_found: false,
            refusal: None,
            fault: None,
            failure: None,
            begun_us: env.now.mono_us,
            again_until_us: None,
            held_bytes: 0,
        })
    }

    fn is_locked(&self, keys: &BTreeSet<LockedKey>) -> bool {
        let database = self.mover.database;
        !keys.is_empty() && self.request.keys.clone().any(|at| keys.contains(&(database, self.request.key(at).into())))
    }

    /// Takes the next keys, as they are now. If there are none, nothing is left to do.
    fn take_next(&mut self, side: &mut impl EngineCalls, watchers: &mut Watchers) {
        let Self { mover, request, left, .. } = self;
        self.sent =
            if self.failure.is_none() { Batch::build(side, *mover, request, left, watchers) } else { Batch::default() };
        self.has_found |= !self.sent.is_empty();
        self.fault = self.fault.take().or(self.sent.fault.take());
    }

    fn transfer(&mut self, env: &Env<impl Execute>, ticket: Handle) -> Transfer {
        Transfer {
            worker: env.number,
            target: Arc::clone(&self.request.target),
            requests: std::mem::take(&mut self.sent.requests),
            ends: std::mem::take(&mut self.sent.ends),
            is_waited_for: self.mover.is_in_transaction,
            ticket,
        }
    }

    /// The other server has answered.
    fn settle(&mut self, side: &mut impl EngineCalls, outcome: TransferOutcome) {
        let TransferOutcome { acknowledged, refusal, failure } = outcome;
        let sent = std::mem::take(&mut self.sent);
        let (changed, fault) = sent.settle(side, self.mover, &self.request, &acknowledged);
        self.refusal = self.refusal.take().or(refusal);
        self.fault = self.fault.take().or(fault);
        self.failure = failure.map(Failure::Transfer);
        if changed.is_empty() {
            return;
        }
        let now_us = side.env().now.mono_us;
        let until_us = *self.again_until_us.get_or_insert(now_us + self.request.target.timeout_ms * 1000);
        if now_us > until_us {
            self.failure = self.failure.or(Some(Failure::Changing));
        }
        self.left.extend(changed);
    }

    /// The reply to its client, in the words of Redis.
    fn reply(&self) -> Vec<u8> {
        let words = match (&self.refusal, self.failure) {
            (Some(refusal), _) => return error_text::refused_by_target(refusal).into_bytes(),
            (None, None) => {
                return match &self.fault {
                    Some(words) => ErrorReply::new(words).into_bytes(),
                    None if self.has_found => replies::OK.to_vec(),
                    None => b"+NOKEY\r\n".to_vec(),
                };
            }
            (None, Some(Failure::Changing)) => error_text::KEYS_CHANGE_TOO_OFTEN,
            (None, Some(Failure::Transfer(TransferFailure::Connecting))) => error_text::NO_TARGET,
            (None, Some(Failure::Transfer(TransferFailure::Writing))) => error_text::TARGET_NOT_WRITTEN,
            (None, Some(Failure::Transfer(TransferFailure::Reading | TransferFailure::Refused))) => {
                error_text::TARGET_NOT_READ
            }
        };
        ErrorReply::new(words).into_bytes()
    }

    /// What is on its way counts as its client's memory, or where that has gone as the worker's.
    fn account(&mut self, env: &mut Env<impl Execute>) {
        let words = self.request.args.as_args().iter().map(|word| word.len() + size_of::<Key>()).sum::<usize>();
        let locked = self.locked.iter().map(|(_, name)| 2 * (name.len() + size_of::<LockedKey>())).sum::<usize>();
        self.account_as(env, size_of::<Self>() + words + locked + self.sent.held_bytes());
    }

    fn account_as(&mut self, env: &mut Env<impl Execute>, bytes: usize) {
        let before = std::mem::replace(&mut self.held_bytes, bytes);
        let client = self.mover.client;
        match env.clients.sessions.get_mut(client) {
            Some(session) => {
                session.hold_moving(bytes);
                session.account(&env.shared.ledger);
                env.clients.list(client.index);
            }
            None => env.shared.ledger.account(before, bytes),
        }
    }
}
