//! Connections for scripts, beside those that all requests share.
//!
//! A node that runs a script answers nothing on that script's connection until it has ended. To all other connections it says
//! `BUSY` once the script has run for long, so that clients can do something else, or stop it. If a script went over the
//! connection that all share, what is asked behind it would hear nothing. So scripts have connections of their own: shared, too,
//! but by scripts alone.
//!
//! ```text
//!               runs a script, nothing is owed            asks for something else, nothing is owed
//!   [sharing] ---------------------------------> [scripting] -----------------------------------> [sharing]
//!       |                                          ^  |   ^                                 no longer mixed
//!       '-- something is owed: waits for it once --'  '---' asks while something is owed: on the same connection
//! ```
//!
//! They are classes of lanes, each beside a shared class. All requests of a client that is in one go over its lanes, so they
//! reach a node in their order, and the path of plain requests of other clients is unchanged. A client changes classes only
//! while nothing is owed to it. One that sends scripts and other requests in one pipeline waits once for that, and stays for a
//! minute (*mixed*), as long as no script holds the connection up. Nor does it change while a request of it that has timed out may
//! still be executed.
//!
//! There are two beside each class. What comes while a script has held the first one up for `SCRIPT_AHEAD_US` goes over the
//! second, which is made for that: there the node can say that it is busy.

use crate::env::Env;
use crate::ids::{ClientId, LaneKeyId};
use crate::limits::{SCRIPT_AHEAD_US, SCRIPTS_MIXED_US};
use crate::pool::key_id::KeyOwner;
use crate::pool::{Lane, LaneUse, Lanes};
use crate::session::{Flow, Session, SessionFlags};
use respool_command::{Execute, Lane as Kind, Row};
use respool_wire::Args;

impl Lanes {
    /// The class beside which one is for scripts; any other is itself.
    pub(crate) fn without_scripts(&self, class: LaneKeyId) -> LaneKeyId {
        match &self.owners[class] {
            KeyOwner::Scripts { beside } => *beside,
            _ => class,
        }
    }

    /// Whether what a client shares in this class are the connections for scripts.
    pub(crate) fn is_for_scripts(&self, class: LaneKeyId) -> bool {
        matches!(self.owners[self.sharing(class)], KeyOwner::Scripts { .. })
    }

    /// The classes for scripts beside a class.
    pub(crate) fn script_classes_of(&self, class: LaneKeyId) -> impl Iterator<Item = LaneKeyId> + use<> {
        let ways = self.script_classes.beside.get(class).copied().unwrap_or_default();
        ways.into_iter().flatten()
    }

    /// One of the classes for scripts beside a class, made if it is not there. `None`: no numbers are left.
    fn script_class(&mut self, beside: LaneKeyId, way: usize) -> Option<LaneKeyId> {
        if let Some(known) = self.script_classes.beside.get(beside).and_then(|ways| ways[way]) {
            return Some(known);
        }
        let class = self.put_class(self.state_of(beside), KeyOwner::Scripts { beside })?;
        self.script_classes.beside.get_or_default(beside)[way] = Some(class);
        Some(class)
    }

    /// The shared lanes to which the requests of a class go.
    fn lanes_of_class(&self, class: LaneKeyId) -> impl Iterator<Item = &Lane> {
        self.table.of_class(self.sharing(class)).filter_map(|lane| self.all.get(lane))
    }

    /// Whether a node has left a request on a shared lane of this class unanswered for long.
    pub(crate) fn is_busy_for_long(&self, class: LaneKeyId, now_us: u64) -> bool {
        self.lanes_of_class(class).any(|lane| {
            let oldest_us = lane.up.tickets().oldest_us();
            oldest_us.is_some_and(|oldest_us| now_us.saturating_sub(oldest_us) > SCRIPT_AHEAD_US)
        })
    }

    /// Whether a request that has timed out may still be executed on a shared lane of this class, or on a leaving lane whose
    /// successor waits for it. All lanes are searched only if the shared ones owe nothing that is late.
    fn has_late(&self, class: LaneKeyId) -> bool {
        let class = self.sharing(class);
        // Lanes taken out of sharing for a large reply (`turn` is the largest number) leave as well, but no successor
        // waits for them.
        let is_left = |lane: &Lane| {
            lane.purpose == LaneUse::Leaving
                && lane.class == class
                && !lane.is_retired
                && lane.turn < u64::MAX
                && !lane.is_settled()
        };
        self.lanes_of_class(class).any(|lane| lane.up.tickets().expired() > 0) || self.all.iter().any(is_left)
    }

    /// The class that a script goes to which nothing binds to one of them, and whether that is the second.
    fn class_for_script(&mut self, beside: LaneKeyId, now_us: u64) -> Option<(LaneKeyId, bool)> {
        let first = self.script_class(beside, 0)?;
        if !self.is_busy_for_long(first, now_us) {
            return Some((first, false));
        }
        self.script_class(beside, 1).map(|second| (second, true))
    }

    /// A client in this class shares the lanes of another one from now on. Returns the class that it is in then.
    fn share(&mut self, class: LaneKeyId, with: LaneKeyId) -> LaneKeyId {
        match &mut self.owners[class] {
            KeyOwner::Client(owner) => {
                owner.base = with;
                class
            }
            _ => with,
        }
    }
}

/// Whether a client has lately sent scripts and other requests in one pipeline.
fn is_mixed(session: &Session, now_us: u64) -> bool {
    let ahead_us = session.details.scripts_ahead_us;
    ahead_us > 0 && now_us.saturating_sub(ahead_us) < SCRIPTS_MIXED_US
}

impl<E: Execute> Env<E> {
    /// A client's request runs a script: it goes over the connections for scripts, and so does what comes behind it. `Some`: not
    /// before what was asked over others has been answered.
    pub(crate) fn go_with_scripts(&mut self, index: ClientId) -> Option<Flow> {
        let now_us = self.now.mono_us;
        let session = self.clients.sessions.at_mut(index)?;
        let class = session.class;
        // A connection that the client has to itself blocks no other client.
        if self.engine.is_some() || self.lanes.owns_all(class) {
            return None;
        }
        if !session.down.is_settled() {
            let is_there = self.lanes.is_for_scripts(class);
            if !is_there || is_mixed(session, now_us) {
                session.details.scripts_ahead_us = now_us;
            }
            if is_there {
                return None;
            }
            return self.clients.settle_before(index).is_none().then_some(Flow::Again);
        }
        if self.is_behind_late(index) {
            return None;
        }
        let base = self.lanes.base(class);
        // If the class table is full, scripts use the shared lanes.
        let (with, is_second) = self.lanes.class_for_script(base, now_us)?;
        self.counters.scripts_diverted.add(u64::from(is_second));
        self.share_lanes_of(index, with);
        None
    }

    /// A client shares the connections for scripts: if nothing is owed to it and its request runs none, it leaves them.
    #[cold]
    pub(crate) fn leave_scripts_before(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) {
        let now_us = self.now.mono_us;
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let class = session.class;
        if !self.lanes.is_for_scripts(class) {
            // Its lanes were changed for another reason.
            session.flags.remove(SessionFlags::SCRIPTING);
            return;
        }
        if !session.down.is_settled() || row.runs_scripts || self.is_behind_late(index) {
            return;
        }
        let Some(session) = self.clients.sessions.at(index) else { return };
        let may_stay = is_mixed(session, now_us) && row.lane(args) == Kind::Shared;
        if may_stay && !self.lanes.is_busy_for_long(class, now_us) {
            return;
        }
        self.share_lanes_of(index, self.lanes.base(class));
    }

    /// Whether a request of a client has timed out and may still be executed where its requests go: what comes behind it goes there
    /// as well, as on a connection to a server, or a write that was acknowledged could be undone by one that was not.
    fn is_behind_late(&mut self, index: ClientId) -> bool {
        let Some(session) = self.clients.sessions.at_mut(index).filter(|session| session.details.has_late) else {
            return false;
        };
        session.details.has_late = self.lanes.has_late(session.class);
        session.details.has_late
    }

    /// A client to which nothing is owed shares the lanes of a class from now on.
    fn share_lanes_of(&mut self, index: ClientId, with: LaneKeyId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        session.class = self.lanes.share(session.class, with);
        match self.lanes.is_for_scripts(session.class) {
            true => session.flags.add(SessionFlags::SCRIPTING),
            false => session.flags.remove(SessionFlags::SCRIPTING),
        }
    }
}
