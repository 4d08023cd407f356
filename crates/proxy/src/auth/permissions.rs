//! The user of a client, and which of its requests are allowed.
//!
//! ```text
//!               the default user needs no password             its user may not do everything
//!   accepted --------------------------------------> known --------------------------------> known, RESTRICTED
//!      |                                               ^
//!      | else: UNAUTHENTICATED: AUTH, HELLO, RESET     |
//!      +---------------- and QUIT are all it may say --+  AUTH, HELLO AUTH
//! ```
//!
//! A plain session (the default user, all-powerful, without limits) has none of the bits and pays for nothing here.

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::ClientId;
use crate::interfaces::read_tracker::ReadTracker;
use crate::limits::UNAUTH_OUTPUT_BYTES_MAX;
use crate::observe::counters::Counters;
use crate::pool::key_id::LaneKey;
use crate::push::places::user_text;
use crate::session::disconnect_log::DisconnectReason;
use crate::session::marks::WantedState;
use crate::session::table::Clients;
use crate::session::{Flow, PauseReasons, Session, SessionFlags};
use crate::users::quota::UserQuota;
use crate::workers::shared::Shared;
use respool_access::{
    DEFAULT_USER, DEFAULT_USER_TEXT, Denial, Denied, Place, Reason, SortOption, User, Users, needs_no_auth,
};
use respool_command::{Categories, Execute, KeyPositions, Row, text as texts};
use respool_connection::{Now, Peer};
use respool_wire::{Args, Request, RequestLimits, limits as wire_limits};
use std::sync::Arc;

/// Why a client did not become another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginError {
    /// The name or password is wrong, or the user may not log in.
    Wrong,
    /// The user has as many connections as it may have.
    TooManyConnections,
    /// Too many users have connections to nodes in their own name.
    TooManyNodeUsers,
}

impl LoginError {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Wrong => texts::WRONGPASS,
            Self::TooManyConnections => error_text::TOO_MANY_OF_USER,
            Self::TooManyNodeUsers => error_text::TOO_MANY_NODE_USERS,
        }
    }

    /// Whether it is for reasons that a server would not have.
    pub(crate) fn is_ours(self) -> bool {
        self != Self::Wrong
    }
}

impl<E: Execute> Env<E> {
    /// Whether an unauthenticated client leaves more unread than it may. It is disconnected.
    pub(crate) fn cuts_off_unauthenticated(&mut self, index: ClientId) -> bool {
        let Some(session) = self.clients.sessions.at(index) else { return true };
        let is_too_much =
            session.flags.has(SessionFlags::UNAUTHENTICATED) && session.down.waiting_bytes() > UNAUTH_OUTPUT_BYTES_MAX;
        if is_too_much {
            self.cut_off(index, DisconnectReason::Unauthenticated);
        }
        is_too_much
    }

    /// Checks a request of an unauthenticated client. `None`: it is allowed.
    pub(crate) fn check_unauthenticated(&mut self, index: ClientId, row: &'static Row) -> Option<Flow> {
        if self.cuts_off_unauthenticated(index) {
            return Some(Flow::Stop);
        }
        if needs_no_auth(row) {
            return None;
        }
        self.counters.refused_unauthenticated.add(1);
        Some(self.refuse_unread(index, texts::NOAUTH))
    }

    /// Checks a request against the rights of its client's user. `None`: it is allowed.
    pub(crate) fn check_restricted(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        let user = self.clients.user_in_force(&self.users, index)?;
        let mut keys = std::mem::take(&mut self.permit_keys);
        let verdict = self.verdict(&user, row, args, &mut keys);
        self.permit_keys = keys;
        match verdict {
            Verdict::Allowed => None,
            Verdict::Denied(denial) => {
                self.note_denial(index, &user, row, args, denial);
                Some(self.refuse_known(index, row, error_text::denied(row, denial)))
            }
            Verdict::Refused(words) => {
                self.counters.denied_commands.add(1);
                Some(self.refuse_known(index, row, words))
            }
        }
    }

    /// A request of a transaction that is executed now. Its user may have lost the right to it since it was queued, even by a request
    /// before it in the same transaction, or may not be there any more. `Some`: it has, and that is its reply.
    pub(crate) fn refuse_part(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        let flags = self.clients.sessions.at(index)?.flags;
        if flags.has(SessionFlags::UNAUTHENTICATED) {
            // Without a user it would be judged by the rights of the default one.
            self.counters.refused_unauthenticated.add(1);
            return Some(self.refuse(index, texts::NOAUTH));
        }
        if !flags.has(SessionFlags::RESTRICTED) {
            return None;
        }
        let user = self.clients.user_in_force(&self.users, index)?;
        match self.verdict(&user, row, args, &mut KeyPositions::new()) {
            Verdict::Allowed => None,
            Verdict::Denied(denial) => {
                self.note_denial(index, &user, row, args, denial);
                Some(self.refuse(index, error_text::denied_in_transaction(denial)))
            }
            Verdict::Refused(words) => {
                self.counters.denied_commands.add(1);
                Some(self.refuse(index, words))
            }
        }
    }

    /// Disconnects clients that have not authenticated in time, and reads those again that had asked for too much: each that
    /// comes too early is paused again. Returns whether any was.
    pub(crate) fn check_permits(&mut self) -> bool {
        let (now_us, deadline_us) = (self.now.mono_us, self.config.access.auth_deadline_us);
        let (mut unauthenticated, mut throttled) = (Vec::new(), Vec::new());
        for (index, session) in self.clients.sessions.iter() {
            // One that has left goes with its transaction.
            let is_unauthenticated = session.flags.has(SessionFlags::UNAUTHENTICATED) && session.departure().is_none();
            if is_unauthenticated && now_us.saturating_sub(session.details.unauthenticated_since_us) > deadline_us {
                unauthenticated.push(index);
            }
            if session.pause.has(PauseReasons::RATE) {
                throttled.push(index);
            }
        }
        self.counters.auth_timeouts.add(unauthenticated.len() as u64);
        unauthenticated.into_iter().for_each(|index| self.close_client(index));
        let is_throttled = !throttled.is_empty();
        throttled.into_iter().for_each(|index| self.clients.unpause(index, PauseReasons::RATE));
        is_throttled
    }

    /// Whether a client that has just come is turned away before it is one.
    pub(crate) fn is_turned_away(&self, peer: &Peer) -> bool {
        self.config.access.is_protected
            && self.users.default_user().needs_no_password()
            && !peer.is_local()
            && self.user_of_certificate(peer).is_none()
    }

    /// The user that a client's certificate names. It is the only way to become a user without passwords.
    fn user_of_certificate(&self, peer: &Peer) -> Option<&Arc<User>> {
        self.users.user(peer.identity.as_ref()?.as_bytes()).filter(|user| user.is_enabled())
    }

    /// Puts a new client into the state that it begins in. `false`: its user has all its connections.
    pub(crate) fn welcome(&self, session: &mut Session) -> bool {
        let named = self.user_of_certificate(&session.details.peer).cloned();
        if named.is_none() && !self.users.admits_unauthenticated() {
            session.flags.add(SessionFlags::UNAUTHENTICATED);
            session.details.unauthenticated_since_us = self.now.mono_us;
            return true;
        }
        let user = named.as_ref().unwrap_or(self.users.default_user());
        if let Some(allowance) = self.allowances.get(user.name()) {
            if !allowance.enter() {
                return false;
            }
            session.details.allowance = Some(Arc::clone(allowance));
        }
        session.judge(user);
        session.details.user = named.filter(|user| user.name() != DEFAULT_USER);
        true
    }

    /// The request limits of an unauthenticated client.
    pub(crate) fn unauthenticated_limits(&self, index: ClientId) -> Option<RequestLimits> {
        let is_unauthenticated = self.clients.sessions.at(index)?.flags.has(SessionFlags::UNAUTHENTICATED);
        is_unauthenticated.then_some(RequestLimits {
            unauth_elements_max: wire_limits::UNAUTH_ELEMENTS_MAX,
            unauth_bulk_bytes_max: wire_limits::UNAUTH_BULK_BYTES_MAX,
            ..self.config.request_limits
        })
    }

    /// ACL denial of a request; `None` if it is allowed. Used by EXPLAIN and by checks that send nothing.
    pub(crate) fn denial_of(&self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<ErrorReply> {
        let user = self.clients.user_in_force(&self.users, index)?;
        if user.is_all_powerful() {
            return None;
        }
        match self.verdict(&user, row, args, &mut KeyPositions::new()) {
            Verdict::Allowed => None,
            Verdict::Denied(denial) => Some(error_text::denied(row, denial)),
            Verdict::Refused(words) => Some(words.into()),
        }
    }

    fn verdict(&self, user: &User, row: &'static Row, args: Args<'_>, keys: &mut KeyPositions) -> Verdict {
        if let Err(denial) = user.check(row, args, keys) {
            return Verdict::Denied(denial);
        }
        if let Some(words) = sort_refusal(user, row, args, keys) {
            return Verdict::Refused(words);
        }
        let runs_script = row.categories.has(Categories::SCRIPTING) && !row.keys.is_none();
        // Nodes check a user that has its own name there.
        let is_known = || self.allowances.get(user.name()).is_some_and(|a| a.limits.node_credentials.is_some());
        // The engine in this process judges what its scripts call, see `auth/script_rights.rs`.
        if runs_script && self.engine.is_none() && !self.config.access.trusts_scripts && !is_known() {
            return Verdict::Refused(error_text::SCRIPT_UNTRUSTED);
        }
        Verdict::Allowed
    }

    fn note_denial(&mut self, index: ClientId, user: &User, row: &Row, args: Args<'_>, denial: Denial) {
        let (reason, object) = denial.described(row, args);
        count_denial(&self.counters, denial);
        self.clients.log_denial(self.now, &self.shared, index, reason, object, user.name());
    }

    /// Takes what users may ask for as it is now.
    pub(crate) fn adopt_allowances(&mut self) {
        self.allowances = self.shared.access.allowances();
        // Then the user of a client decides which connections it uses, and nothing may be outstanding when that changes.
        self.has_node_users = self.allowances.values().any(|allowance| allowance.limits.node_credentials.is_some());
    }

    /// A request is read. If it is one that has been put back, what was found of it then holds for it, and for none behind it.
    #[inline]
    pub(crate) fn take_marks(&mut self, index: ClientId) {
        let number = self.counters.requests.value();
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        if !(session.flags.has(SessionFlags::LIMITED) || session.flags.has(SessionFlags::HOOKED)) {
            return;
        }
        let details = &mut session.details;
        if std::mem::take(&mut details.is_charged) {
            details.charged_at = number;
        }
        if std::mem::take(&mut details.has_passed) {
            details.passed_at = number;
        }
    }

    /// The user asks for more than it may. `None`: it does not.
    pub(crate) fn ask_limited(&mut self, index: ClientId, request: &Request<'_>) -> Option<Flow> {
        let (now_us, number) = (self.now.mono_us, self.counters.requests.value());
        let session = self.clients.sessions.at_mut(index)?;
        if session.details.charged_at == number {
            return None;
        }
        let allowance = session.details.allowance.as_ref()?;
        if allowance.admits(now_us, request.consumed) {
            session.details.charged_at = number;
            return None;
        }
        session.pause.add(PauseReasons::RATE);
        self.counters.throttled.add(1);
        self.is_busy = true;
        Some(Flow::Again)
    }

    /// Makes a client a user. `command` is how it asked, for the log.
    pub(crate) fn authenticate(
        &mut self,
        reads: &mut impl ReadTracker,
        index: ClientId,
        name: &[u8],
        password: &[u8],
        command: &[u8],
    ) -> Result<(), LoginError> {
        let found = self.users.authenticate(name, password).cloned();
        let Some(user) = found else {
            self.counters.auth_failures.add(1);
            self.clients.log_denial(self.now, &self.shared, index, Reason::Auth, command, name);
            return Err(LoginError::Wrong);
        };
        let entered = self.become_user(reads, index, &user);
        match entered {
            Ok(()) => self.clients.note_met(index, &[WantedState::User]),
            // What it has sent behind this is for that user, and for no other.
            Err(_) => self.clients.note_unmet(index, WantedState::User),
        }
        entered
    }

    /// Makes a client a user, whatever it was.
    pub(crate) fn become_user(
        &mut self,
        reads: &mut impl ReadTracker,
        index: ClientId,
        user: &Arc<User>,
    ) -> Result<(), LoginError> {
        let allowance = self.allowances.get(user.name()).cloned();
        let Some(session) = self.clients.sessions.at(index) else { return Ok(()) };
        let was_it = !session.flags.has(SessionFlags::UNAUTHENTICATED) && session.user_name() == user.name();
        // A client that is refused stays the user it was, to nodes as well.
        let enters = allowance.as_ref().filter(|_| !was_it);
        if enters.is_some_and(|allowance| !allowance.enter()) {
            self.counters.refused_by_user_limit.add(1);
            return Err(LoginError::TooManyConnections);
        }
        if !self.speak_as(reads, index, allowance.as_deref()) {
            if let Some(allowance) = enters {
                allowance.leave();
            }
            return Err(LoginError::TooManyNodeUsers);
        }
        let now_us = self.now.mono_us;
        let Some(session) = self.clients.sessions.at_mut(index) else { return Ok(()) };
        if !was_it {
            session.charge_waiting(now_us);
            if let Some(before) = std::mem::replace(&mut session.details.allowance, allowance) {
                before.leave();
            }
        }
        session.flags.remove(SessionFlags::UNAUTHENTICATED);
        session.details.user = (user.name() != DEFAULT_USER).then(|| Arc::clone(user));
        session.judge(user);
        self.review_mode(index);
        if !was_it {
            reads.forget_read_as_other(self, index);
        }
        Ok(())
    }

    /// Has a client's requests go to nodes in the name of its user. `false`: there are too many such names already. What is
    /// under way in another name is answered on its connections, and waited for before anything follows on others.
    pub(crate) fn speak_as(
        &mut self,
        reads: &mut impl ReadTracker,
        index: ClientId,
        allowance: Option<&UserQuota>,
    ) -> bool {
        let credentials = allowance.and_then(|allowance| allowance.limits.node_credentials.as_ref());
        let Some(node_user) = self.node_user(credentials) else { return false };
        let Some(session) = self.clients.sessions.at_mut(index) else { return true };
        if self.lanes.node_user_of(session.class) == node_user {
            return true;
        }
        let class = LaneKey { database: session.database, protocol: session.protocol, node_user };
        let Some(class) = self.class_of(class) else { return false };
        if let Some(session) = self.clients.sessions.at_mut(index).filter(|session| !session.down.is_settled()) {
            session.flags.add(SessionFlags::OVERTAKEN);
            let own = session.class;
            self.leave_busy_own(own);
        }
        self.put_into_class(reads, index, class);
        true
    }

    /// Makes a client what every client is at first.
    pub(crate) fn forget_user(&mut self, reads: &mut impl ReadTracker, index: ClientId) {
        let now_us = self.now.mono_us;
        let default = Arc::clone(self.users.default_user());
        if self.users.admits_unauthenticated() && self.become_user(reads, index, &default).is_ok() {
            return;
        }
        self.speak_as(reads, index, None);
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        session.leave_user(now_us);
        session.flags.remove(SessionFlags::RESTRICTED);
        session.flags.add(SessionFlags::UNAUTHENTICATED);
        session.details.unauthenticated_since_us = now_us;
    }

    /// Looks at the users again. Clients whose user is gone, or that have a subscription which is not permitted any more, are
    /// disconnected as Redis does, `asker` only once its reply is written; what the others may do is judged anew.
    pub(crate) fn adopt_users(&mut self, reads: &mut impl ReadTracker, asker: Option<ClientId>) {
        let users = self.shared.access.users();
        let before = std::mem::replace(&mut self.users, Arc::clone(&users));
        self.adopt_allowances();
        let mut gone = Vec::new();
        let (mut muted, mut changed) = (Vec::new(), Vec::new());
        let mut lost = LostChannels::default();
        for index in self.clients.sessions.places(|_| true) {
            let Some(session) = self.clients.sessions.at_mut(index) else { continue };
            let known = session.details.user.clone();
            let old = known.as_ref().unwrap_or(before.default_user());
            let Some(new) = users.user(old.name()).filter(|new| new.is_same(old) || known.is_none()) else {
                gone.push(index);
                continue;
            };
            if session.flags.has(SessionFlags::UNAUTHENTICATED) {
                // A client that is being closed may have lost its user amid a transaction, and none stands in for that one.
                if users.admits_unauthenticated() && !session.pause.has(PauseReasons::CLOSING) {
                    session.flags.remove(SessionFlags::UNAUTHENTICATED);
                } else {
                    continue;
                }
            }
            let allowance = self.allowances.get(new.name());
            match (&session.details.allowance, allowance) {
                (None, Some(allowance)) => allowance.enter_anyway(),
                (Some(before), None) => before.leave(),
                // The limits were taken away and given back before this worker has heard of either.
                (Some(before), Some(allowance)) if !before.counts_with(allowance) => {
                    before.leave();
                    allowance.enter_anyway();
                }
                _ => {}
            }
            session.details.allowance = allowance.cloned();
            session.details.user = known.as_ref().map(|_| Arc::clone(new));
            session.judge(new);
            let allowance = session.details.allowance.clone();
            if !Arc::ptr_eq(new, old) && !new.is_all_powerful() && session.flags.has(SessionFlags::QUEUEING) {
                changed.push(index);
            }
            if lost.has_lost(old, new) {
                muted.push((index, Arc::clone(new)));
            }
            if !self.speak_as(reads, index, allowance.as_deref()) {
                // To nodes it would be another user.
                gone.push(index);
            }
        }
        for (index, user) in muted {
            if reads.has_forbidden_subscription(self, index, &user) {
                gone.push(index);
            }
        }
        // What was queued for EXEC was allowed under other rules.
        changed.into_iter().for_each(|index| self.clients.spoil_transaction(index));
        for index in gone {
            // It has no user now: what is left of a transaction that it is in the midst of is refused, also once it has left.
            let now_us = self.now.mono_us;
            if let Some(session) = self.clients.sessions.at_mut(index) {
                session.leave_user(now_us);
                session.flags.add(SessionFlags::UNAUTHENTICATED);
            }
            if asker == Some(index) {
                self.clients.stop_client(index);
            } else {
                self.close_client(index);
            }
        }
        self.review_streamed(false);
    }
}

impl Clients {
    pub(crate) fn log_denial(
        &self,
        now: Now,
        shared: &Shared,
        index: ClientId,
        reason: Reason,
        object: &[u8],
        user: &[u8],
    ) {
        let is_queueing = self.sessions.at(index).is_some_and(|s| s.flags.has(SessionFlags::QUEUEING));
        let place = if is_queueing { Place::Multi } else { Place::TopLevel };
        let client = self.describe_client(now, index, None);
        let unix_ms = now.unix_us / 1_000;
        shared.access.log().add(Denied { reason, place, object, user, client: &client, unix_ms });
    }

    /// The name of a client's user, for routes and people. One that is no text is no user that settings could name.
    pub(crate) fn user_of(&self, index: ClientId) -> &str {
        let user = self.sessions.at(index).and_then(|session| session.details.user.as_ref());
        user.map_or(DEFAULT_USER_TEXT, |user| user_text(user.name()))
    }

    /// A client's user as it is now.
    pub(crate) fn user_in_force(&self, users: &Users, index: ClientId) -> Option<Arc<User>> {
        let session = self.sessions.at(index)?;
        Some(Arc::clone(session.details.user.as_ref().unwrap_or(users.default_user())))
    }

    /// A request is put back, to be read again later.
    #[cold]
    pub(crate) fn note_put_back(&mut self, index: ClientId) {
        let number = self.counters.requests.value();
        if let Some(session) = self.sessions.at_mut(index) {
            session.details.is_charged =
                session.flags.has(SessionFlags::LIMITED) && session.details.charged_at == number;
            session.details.has_passed = session.flags.has(SessionFlags::HOOKED) && session.details.passed_at == number;
            if session.flags.has(SessionFlags::TRACKING) {
                self.keep_mark(index, number);
            }
        }
    }
}

/// Whether users may have lost channels: many clients are the same user, and most users are as they were.
#[derive(Default)]
struct LostChannels {
    asked: Option<(Arc<User>, Arc<User>, bool)>,
}

impl LostChannels {
    fn has_lost(&mut self, old: &Arc<User>, new: &Arc<User>) -> bool {
        if Arc::ptr_eq(old, new) {
            return false;
        }
        let is_asked =
            |(before, after, _): &&(Arc<User>, Arc<User>, bool)| Arc::ptr_eq(before, old) && Arc::ptr_eq(after, new);
        if let Some((.., has_lost)) = self.asked.as_ref().filter(is_asked) {
            return *has_lost;
        }
        let has_lost = new.may_have_lost_channels(old);
        self.asked = Some((Arc::clone(old), Arc::clone(new), has_lost));
        has_lost
    }
}

/// Result of an ACL check.
enum Verdict {
    Allowed,
    Denied(Denial),
    /// It is refused for another reason than that a rule is missing.
    Refused(&'static str),
}

pub(crate) fn count_denial(counters: &Counters, denial: Denial) {
    match denial {
        Denial::Command => counters.denied_commands.add(1),
        Denial::Key(_) => counters.denied_keys.add(1),
        Denial::Channel(_) => counters.denied_channels.add(1),
    }
}

/// Why a user may not ask for a `SORT` that reads keys which it does not name.
pub(crate) fn sort_refusal(
    user: &User,
    row: &'static Row,
    args: Args<'_>,
    keys: &mut KeyPositions,
) -> Option<&'static str> {
    Some(match user.denied_sort_option(row, args, keys)? {
        SortOption::By => error_text::SORT_BY_DENIED,
        SortOption::Get => error_text::SORT_GET_DENIED,
    })
}

impl Session {
    /// The name of its user.
    pub(crate) fn user_name(&self) -> &[u8] {
        self.details.user.as_ref().map_or(DEFAULT_USER, |user| user.name())
    }

    /// Sets the bits that follow from its user.
    fn judge(&mut self, user: &User) {
        if user.is_all_powerful() {
            self.flags.remove(SessionFlags::RESTRICTED);
        } else {
            self.flags.add(SessionFlags::RESTRICTED);
        }
        if self.details.allowance.as_ref().is_some_and(|allowance| allowance.limits.has_rates()) {
            self.flags.add(SessionFlags::LIMITED);
        } else {
            self.flags.remove(SessionFlags::LIMITED);
        }
    }

    /// Replies have been written: their bytes are charged to the quota of its user, but for those that another user has asked for.
    #[cold]
    #[inline(never)]
    pub(crate) fn charge_written(&mut self, now_us: u64, bytes: usize) {
        let ahead = self.details.charged_ahead.min(bytes);
        self.details.charged_ahead -= ahead;
        if let Some(allowance) = &self.details.allowance {
            allowance.charge(now_us, bytes - ahead);
        }
    }

    /// It is about to be another user, and nothing is outstanding: what waits to be written is charged to the user that it was.
    fn charge_waiting(&mut self, now_us: u64) {
        let waiting = self.down.waiting_bytes();
        if self.flags.has(SessionFlags::LIMITED)
            && let Some(allowance) = &self.details.allowance
        {
            allowance.charge(now_us, waiting.saturating_sub(self.details.charged_ahead));
        }
        self.details.charged_ahead = waiting;
    }

    /// It has no user any more: counted out of its user's connections.
    pub(crate) fn leave_user(&mut self, now_us: u64) {
        self.charge_waiting(now_us);
        if let Some(allowance) = self.details.allowance.take() {
            allowance.leave();
        }
        self.details.user = None;
        self.flags.remove(SessionFlags::LIMITED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::testing::{env_of, roomy_config};
    use crate::users::access::AccessRules;

    #[test]
    fn a_client_without_a_user_is_closed_behind_its_deadline() {
        let access = AccessRules { auth_deadline_us: 10, ..AccessRules::default() };
        let mut env = env_of(Config { access, ..roomy_config() }, None);
        let [unauthenticated, known] = [(), ()].map(|()| env.test_client());
        env.test_session(unauthenticated).flags.add(SessionFlags::UNAUTHENTICATED);
        env.test_session(unauthenticated).details.unauthenticated_since_us = env.now.mono_us;
        env.now.mono_us += 10;
        env.check_permits();
        assert!(env.clients.sessions.at(unauthenticated).is_some(), "there is time");
        env.now.mono_us += 1;
        env.check_permits();
        assert!(env.clients.sessions.at(unauthenticated).is_none() && env.clients.sessions.at(known).is_some());
        assert_eq!(env.counters.auth_timeouts.value(), 1);
    }
}
