//! What one node has been told to send on a worker's push lane, what it has acknowledged, and which orders wait for that.
//!
//! A node acknowledges channel by channel in the order it was told, so the n-th acknowledgement belongs to the n-th
//! *order* of the connection and to nothing else. Orders are numbered; a channel is confirmed by the order that told of it
//! last, so that an acknowledgement from before a change is not taken for the one behind it. Losing the connection
//! forgets all orders, and the next connection is told everything anew.
//!
//! ```text
//!            note()                 write()                        acknowledge()
//!  changed ---------> [a, b, c] --------------> SUBSCRIBE a c  ------------------> told: a, c confirmed
//!                     (b came and went)         ledger: [a #7][c #8]               waits up to #8 are over
//!                                                  | -ERR to the whole command
//!                                                  '--> alone: SUBSCRIBE a, SUBSCRIBE c: who of them was meant?
//! ```
//!
//! A channel's number is held by every place here that names it.

use super::frame::{Kind, Verb};
use super::id_map::IdTable;
use super::registry::Registry;
use crate::limits::{
    PUSH_CHANGES_MIN, PUSH_COMMAND_BYTES_MAX, PUSH_COMMAND_NAMES_MAX, PUSH_PATTERN_ORDERS_MAX, PUSH_PATTERN_ORDERS_MIN,
    PUSH_PATTERN_STEPS_MAX,
};
use respool_wire::{encode_request, request_bulk, request_head};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The registries by kind.
pub type Registries = [Registry; 3];

/// One channel of a command that was written and not acknowledged.
#[derive(Clone, Copy, Debug)]
struct PendingAck {
    kind: Kind,
    verb: Verb,
    id: u32,
    /// The command's last.
    is_last: bool,
}

/// What is due next of the node.
#[derive(Clone, Copy, Debug)]
enum ExpectedAck {
    /// An acknowledgement of a channel.
    Channel(PendingAck),
    /// OK: it tells of changed keys from now on, or no more.
    Tracking,
    /// The answer to a PING: what it had to say before has come.
    SubscriberPing,
}

/// Whether the node tells of changed keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tracking {
    #[default]
    Off,
    /// It was told to, by this order.
    Told(u64),
    On,
    /// It will not.
    Refused,
}

/// What a node has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// One channel. The caller releases it.
    Channel(Kind, u32),
    /// To tell of changed keys.
    Tracking,
    /// Nothing that is waited for, or one of several channels, which are now told of one by one.
    Nothing,
}

/// The value in `told` of a channel that the node has acknowledged.
const CONFIRMED: u32 = 0;

/// See the module's text. `P` names what waits for acknowledgements.
#[derive(Debug)]
pub struct NodeLedger<P> {
    /// There is a connection that can be told.
    is_live: bool,
    /// Channels that the node has to know of, whether there is a connection or not.
    wanted: usize,
    /// The channels that the node knows of once it has read everything, with the order that told it.
    told: [IdTable<u32>; 3],
    ledger: VecDeque<ExpectedAck>,
    tracking: Tracking,
    /// A client tracks keys.
    is_tracking_wanted: bool,
    /// Orders written on this connection.
    written: u64,
    /// Orders acknowledged on this connection.
    done: u64,
    /// Channels that got their first subscriber or lost their last.
    changed: Vec<(Kind, u32)>,
    /// The same of patterns. A node looks through all that it has for each, so it is told of few at a time.
    changed_patterns: Vec<u32>,
    /// With so many in both they are put together: a channel that comes and goes while the node is told nothing is in them each time.
    changed_max: usize,
    /// Orders about patterns that are not acknowledged.
    owed_patterns: usize,
    /// Channels of a command that was refused as a whole, to be told of one by one.
    alone: Vec<(Kind, u32)>,
    /// What is still to be told of what was there before the connection was.
    restoring: Option<(usize, u32)>,
    /// Waiters for an order to be acknowledged, the next first.
    waiting: BinaryHeap<Reverse<(u64, P)>>,
    /// Requests that wait for what has not been written.
    unwritten: Vec<P>,
    /// The same, about patterns.
    unwritten_patterns: Vec<P>,
    /// One of them needs an answer of the node behind this order.
    mark_behind: Option<u64>,
    /// Waiters for everything to be restored.
    stranded: Vec<P>,
}

impl<P: Ord> Default for NodeLedger<P> {
    fn default() -> Self {
        Self {
            is_live: false,
            wanted: 0,
            told: Default::default(),
            ledger: VecDeque::new(),
            tracking: Tracking::Off,
            is_tracking_wanted: false,
            written: 0,
            done: 0,
            changed: Vec::new(),
            changed_patterns: Vec::new(),
            changed_max: PUSH_CHANGES_MIN,
            owed_patterns: 0,
            alone: Vec::new(),
            restoring: None,
            waiting: BinaryHeap::new(),
            unwritten: Vec::new(),
            unwritten_patterns: Vec::new(),
            mark_behind: None,
            stranded: Vec::new(),
        }
    }
}

/// A push does not match the next expected acknowledgement.
#[derive(Debug, PartialEq, Eq)]
pub struct OutOfStep;

impl<P: Copy + Ord> NodeLedger<P> {
    /// Whether the node is known to send what is published on a channel.
    pub fn is_confirmed(&self, registries: &Registries, kind: Kind, id: u32) -> bool {
        let mix = registries[kind as usize].mix();
        self.told[kind as usize].get(id, mix) == Some(CONFIRMED)
    }

    /// Whether the node has been told of a channel on this connection, acknowledged or not.
    pub fn is_told(&self, registries: &Registries, kind: Kind, id: u32) -> bool {
        self.told[kind as usize].contains(id, registries[kind as usize].mix())
    }

    /// How many channels the node has been told of.
    pub fn told(&self) -> usize {
        self.told.iter().map(IdTable::len).sum()
    }

    /// Whether there is something to write.
    pub fn has_updates(&self) -> bool {
        self.is_tracking_wanted != (self.tracking != Tracking::Off)
            || !self.changed.is_empty()
            || !self.changed_patterns.is_empty()
            || !self.alone.is_empty()
            || self.restoring.is_some()
            || !self.unwritten.is_empty()
            || !self.unwritten_patterns.is_empty()
    }

    /// Of how many patterns the node may be told now. The more it has, the longer it takes for each.
    fn room_for_patterns(&self) -> usize {
        let known = self.told[Kind::Pattern as usize].len();
        let most = (PUSH_PATTERN_STEPS_MAX / (known + 1)).clamp(PUSH_PATTERN_ORDERS_MIN, PUSH_PATTERN_ORDERS_MAX);
        most.saturating_sub(self.owed_patterns)
    }

    /// Has the node say something behind everything that it has to say: nothing but its PONG.
    pub fn ping(&mut self, out: &mut Vec<u8>) {
        self.written += 1;
        self.ledger.push_back(ExpectedAck::SubscriberPing);
        encode_request(out, [b"PING".as_slice()].into_iter());
    }

    /// The node has answered a PING.
    pub fn acknowledge_ping(&mut self) -> Result<(), OutOfStep> {
        let Some(ExpectedAck::SubscriberPing) = self.ledger.front() else { return Err(OutOfStep) };
        self.ledger.pop_front();
        self.done += 1;
        Ok(())
    }

    /// Whether the node tells of changed keys.
    pub fn is_tracking(&self) -> bool {
        self.tracking == Tracking::On
    }

    /// The node is to tell of changed keys, or no more.
    pub fn want_tracking(&mut self, is_wanted: bool) {
        self.is_tracking_wanted = is_wanted;
    }

    /// The node tells of changed keys now, or no more. Returns whether it does.
    pub fn acknowledge_tracking(&mut self) -> Result<bool, OutOfStep> {
        let Some(ExpectedAck::Tracking) = self.ledger.front() else { return Err(OutOfStep) };
        self.ledger.pop_front();
        self.done += 1;
        let is_on = self.tracking == Tracking::Told(self.done);
        if is_on {
            self.tracking = Tracking::On;
        }
        Ok(is_on)
    }

    fn tell_tracking(&mut self, out: &mut Vec<u8>) {
        self.written += 1;
        self.ledger.push_back(ExpectedAck::Tracking);
        self.tracking = if self.is_tracking_wanted { Tracking::Told(self.written) } else { Tracking::Off };
        let words: &[&[u8]] = match self.is_tracking_wanted {
            true => &[b"CLIENT", b"TRACKING", b"ON", b"BCAST"],
            false => &[b"CLIENT", b"TRACKING", b"OFF"],
        };
        encode_request(out, words.iter().copied());
    }

    /// How many acknowledgements are due.
    pub fn owed(&self) -> usize {
        self.ledger.len()
    }

    /// Whether there is a connection that can be told.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// There is a channel more that the node has to know of, or one less.
    pub fn count(&mut self, is_wanted: bool) {
        self.wanted = if is_wanted { self.wanted + 1 } else { self.wanted.saturating_sub(1) };
    }

    /// Whether the node has to know of any channel.
    pub fn is_wanted(&self) -> bool {
        self.wanted > 0
    }

    /// A channel got its first subscriber, or lost its last. Without a connection there is nothing to note:
    /// the next one is told everything.
    pub fn note(&mut self, registries: &mut Registries, kind: Kind, id: u32) {
        let is_noted = match kind {
            Kind::Pattern => self.changed_patterns.last() == Some(&id),
            Kind::Channel | Kind::Shard => self.changed.last() == Some(&(kind, id)),
        };
        if self.is_live && !is_noted {
            registries[kind as usize].retain(id);
            match kind {
                Kind::Pattern => self.changed_patterns.push(id),
                Kind::Channel | Kind::Shard => self.changed.push((kind, id)),
            }
            if self.changed.len() + self.changed_patterns.len() > self.changed_max {
                self.put_changes_together(registries);
            }
        }
    }

    /// Has each channel once among those that have changed. The next time is when there are twice as many as are left.
    #[cold]
    fn put_changes_together(&mut self, registries: &mut Registries) {
        let mut is_again = |kind: Kind, id: u32, is_same: bool| {
            if is_same {
                registries[kind as usize].release(id);
            }
            is_same
        };
        self.changed.sort_unstable();
        self.changed.dedup_by(|later, first| is_again(later.0, later.1, later == first));
        self.changed_patterns.sort_unstable();
        self.changed_patterns.dedup_by(|later, first| is_again(Kind::Pattern, *later, later == first));
        self.changed_max = PUSH_CHANGES_MIN.max(2 * (self.changed.len() + self.changed_patterns.len()));
    }

    /// `pending` is over once the node has acknowledged everything of its kind noted so far; without a connection, once there is
    /// one and it has acknowledged everything.
    pub fn await_acknowledgements(&mut self, pending: P, kind: Kind) {
        match (self.is_live, kind) {
            (true, Kind::Pattern) => self.unwritten_patterns.push(pending),
            (true, Kind::Channel | Kind::Shard) => self.unwritten.push(pending),
            (false, _) => self.stranded.push(pending),
        }
    }

    /// `pending` is over once everything has come that the node has said by now: behind its next acknowledgement, or, if it is
    /// told of nothing, behind its answer to a PING. There is a connection.
    pub fn await_word(&mut self, pending: P, kind: Kind) {
        self.mark_behind = Some(self.written);
        self.await_acknowledgements(pending, kind);
    }

    /// `pending`, which has just begun to wait, does so no more.
    pub fn forget_pending(&mut self, pending: P) {
        for list in [&mut self.unwritten, &mut self.stranded] {
            list.pop_if(|last| *last == pending);
        }
    }

    /// Takes all that wait for this node.
    pub fn take_pending(&mut self) -> Vec<P> {
        let mut all = std::mem::take(&mut self.unwritten);
        all.append(&mut self.unwritten_patterns);
        all.append(&mut self.stranded);
        all.extend(self.waiting.drain().map(|Reverse((_, pending))| pending));
        all
    }

    /// There is a new connection: all channels that `write` finds to belong to it are to be told.
    pub fn begin(&mut self) {
        self.is_live = true;
        self.restoring = Some((0, 0));
    }

    /// The connection is gone, and with it everything the node was told.
    pub fn lose(&mut self, registries: &mut Registries) {
        for due in self.ledger.drain(..) {
            if let ExpectedAck::Channel(order) = due {
                registries[order.kind as usize].release(order.id);
            }
        }
        for (kind, id) in self.changed.drain(..).chain(self.alone.drain(..)) {
            registries[kind as usize].release(id);
        }
        self.changed_patterns.drain(..).for_each(|id| registries[Kind::Pattern as usize].release(id));
        for (registry, told) in registries.iter_mut().zip(&mut self.told) {
            std::mem::take(told).ids().for_each(|id| registry.release(id));
        }
        self.stranded = self.take_pending();
        let (stranded, is_tracking_wanted) = (std::mem::take(&mut self.stranded), self.is_tracking_wanted);
        *self = Self { stranded, is_tracking_wanted, wanted: self.wanted, ..Self::default() };
    }

    /// Appends commands for what has changed, until `room` bytes are used up or nothing is left. `belongs` says whether a
    /// channel is this node's business.
    pub fn write(
        &mut self,
        registries: &mut Registries,
        belongs: impl Fn(Kind, &[u8]) -> bool,
        room: usize,
        out: &mut Vec<u8>,
    ) {
        let begun = out.len();
        if self.is_tracking_wanted != (self.tracking != Tracking::Off) {
            self.tell_tracking(out);
        }
        while out.len() - begun < room {
            if let Some((kind, id)) = self.alone.pop() {
                self.tell(registries, &[(kind, id)], out);
                registries[kind as usize].release(id);
            } else if !self.changed.is_empty() {
                let from = self.changed.len().saturating_sub(PUSH_COMMAND_NAMES_MAX);
                let batch = self.changed.split_off(from);
                self.tell(registries, &batch, out);
                batch.iter().for_each(|(kind, id)| registries[*kind as usize].release(*id));
            } else if !self.changed_patterns.is_empty() && self.room_for_patterns() > 0 {
                let most = self.room_for_patterns().min(PUSH_COMMAND_NAMES_MAX);
                let from = self.changed_patterns.len().saturating_sub(most);
                let batch: Vec<_> = self.changed_patterns.drain(from..).map(|id| (Kind::Pattern, id)).collect();
                self.tell(registries, &batch, out);
                batch.iter().for_each(|(kind, id)| registries[*kind as usize].release(*id));
            } else if let Some((kind, next)) = self.restoring
                && (Kind::ALL.get(kind) != Some(&Kind::Pattern) || self.room_for_patterns() > 0)
            {
                self.restore(registries, &belongs, kind, next, out);
            } else {
                break;
            }
        }
        if self.changed.is_empty() && self.alone.is_empty() {
            let has_told_all = self.changed_patterns.is_empty();
            let is_word_awaited = !self.unwritten.is_empty() || has_told_all && !self.unwritten_patterns.is_empty();
            if is_word_awaited && self.mark_behind.is_some_and(|order| order == self.written) {
                self.ping(out);
            }
            let unwritten = std::mem::take(&mut self.unwritten);
            self.await_all(unwritten);
            if has_told_all {
                let unwritten = std::mem::take(&mut self.unwritten_patterns);
                self.await_all(unwritten);
            }
            if self.restoring.is_none() && has_told_all {
                let stranded = std::mem::take(&mut self.stranded);
                self.await_all(stranded);
            }
        }
    }

    fn await_all(&mut self, pending: Vec<P>) {
        let written = self.written;
        self.waiting.extend(pending.into_iter().map(|pending| Reverse((written, pending))));
    }

    /// Tells of the next few channels that were subscribed to before the connection was.
    fn restore(
        &mut self,
        registries: &mut Registries,
        belongs: &impl Fn(Kind, &[u8]) -> bool,
        kind: usize,
        next: u32,
        out: &mut Vec<u8>,
    ) {
        let Some(registry) = registries.get(kind) else {
            self.restoring = None;
            return;
        };
        let looked_at: Vec<u32> = registry.active_from(next).take(PUSH_COMMAND_NAMES_MAX).collect();
        self.restoring = Some(match looked_at.last() {
            Some(last) => (kind, last + 1),
            None => (kind + 1, 0),
        });
        let named = Kind::ALL[kind];
        let batch: Vec<_> =
            looked_at.into_iter().filter(|id| belongs(named, registry.full_name(*id))).map(|id| (named, id)).collect();
        self.tell(registries, &batch, out);
    }

    /// Writes the commands that make what the node knows of these channels what it should know.
    fn tell(&mut self, registries: &mut Registries, batch: &[(Kind, u32)], out: &mut Vec<u8>) {
        for kind in Kind::ALL {
            for verb in Verb::BOTH {
                let mut news = Vec::new();
                let mut bytes = 0;
                for (_, id) in batch.iter().filter(|(k, _)| *k == kind) {
                    if self.change(registries, kind, verb, *id) {
                        bytes += registries[kind as usize].name(*id).len();
                        news.push(*id);
                    }
                    if bytes > PUSH_COMMAND_BYTES_MAX {
                        self.command(registries, kind, verb, &std::mem::take(&mut news), out);
                        bytes = 0;
                    }
                }
                self.command(registries, kind, verb, &news, out);
            }
        }
    }

    /// Whether the node has to be told `verb` of a channel; if so that is noted as told.
    fn change(&mut self, registries: &mut Registries, kind: Kind, verb: Verb, id: u32) -> bool {
        let registry = &mut registries[kind as usize];
        let told = &mut self.told[kind as usize];
        let is_wanted = registry.count(id) > 0;
        let is_told = told.contains(id, registry.mix());
        let number = order_number(self.written + 1);
        match verb {
            Verb::Subscribe if is_wanted && !is_told => {
                told.insert(id, number, registry.mix());
                // One hold for the table, one for the ledger.
                registry.retain(id);
                registry.retain(id);
            }
            // The ledger takes over the table's hold.
            Verb::Unsubscribe if !is_wanted && is_told => _ = told.remove(id, registry.mix()),
            _ => return false,
        }
        self.written += 1;
        self.owed_patterns += usize::from(kind == Kind::Pattern);
        self.ledger.push_back(ExpectedAck::Channel(PendingAck { kind, verb, id, is_last: false }));
        true
    }

    fn command(&mut self, registries: &Registries, kind: Kind, verb: Verb, ids: &[u32], out: &mut Vec<u8>) {
        if ids.is_empty() {
            return;
        }
        if let Some(ExpectedAck::Channel(last)) = self.ledger.back_mut() {
            last.is_last = true;
        }
        request_head(out, ids.len() + 1);
        request_bulk(out, kind.word(verb));
        ids.iter().for_each(|id| request_bulk(out, registries[kind as usize].name(*id)));
    }

    /// The node has done what it was told about a channel.
    pub fn acknowledge(
        &mut self,
        registries: &mut Registries,
        kind: Kind,
        verb: Verb,
        name: &[u8],
    ) -> Result<(), OutOfStep> {
        let registry = &mut registries[kind as usize];
        let order = match self.ledger.front() {
            Some(ExpectedAck::Channel(order)) if order.kind == kind && order.verb == verb => *order,
            _ => return Err(OutOfStep),
        };
        if registry.name(order.id) != name {
            return Err(OutOfStep);
        }
        self.ledger.pop_front();
        self.done += 1;
        self.owed_patterns -= usize::from(kind == Kind::Pattern);
        let number = order_number(self.done);
        if verb == Verb::Subscribe && self.told[kind as usize].get(order.id, registry.mix()) == Some(number) {
            self.told[kind as usize].insert(order.id, CONFIRMED, registry.mix());
        }
        registry.release(order.id);
        Ok(())
    }

    /// The node gave a channel up on its own account (a shard that moved). It is told anew.
    pub fn retract(&mut self, registries: &mut Registries, kind: Kind, name: &[u8]) {
        let registry = &mut registries[kind as usize];
        let Some(id) = registry.find(name) else { return };
        if self.told[kind as usize].get(id, registry.mix()) == Some(CONFIRMED) {
            self.told[kind as usize].remove(id, registry.mix());
            // The table's hold becomes that of the list.
            match kind {
                Kind::Pattern => self.changed_patterns.push(id),
                Kind::Channel | Kind::Shard => self.changed.push((kind, id)),
            }
        }
    }

    /// The node refused the command whose acknowledgements are due next. A command about several channels is repeated
    /// channel by channel.
    pub fn refuse(&mut self, registries: &mut Registries) -> Result<Refusal, OutOfStep> {
        if let Some(ExpectedAck::Tracking) = self.ledger.front() {
            self.ledger.pop_front();
            self.done += 1;
            let is_about_now = self.tracking == Tracking::Told(self.done);
            self.tracking = if is_about_now { Tracking::Refused } else { self.tracking };
            return Ok(if is_about_now { Refusal::Tracking } else { Refusal::Nothing });
        }
        if self.acknowledge_ping().is_ok() {
            // It has said so in another way.
            return Ok(Refusal::Nothing);
        }
        let is_last = |due: &ExpectedAck| matches!(due, ExpectedAck::Channel(order) if order.is_last);
        let end = self.ledger.iter().position(is_last).ok_or(OutOfStep)?;
        let drained = self.ledger.drain(..=end);
        let refused: Vec<PendingAck> =
            drained.filter_map(|due| if let ExpectedAck::Channel(order) = due { Some(order) } else { None }).collect();
        for order in &refused {
            self.done += 1;
            self.owed_patterns -= usize::from(order.kind == Kind::Pattern);
            let registry = &mut registries[order.kind as usize];
            let told = &mut self.told[order.kind as usize];
            if told.get(order.id, registry.mix()) == Some(order_number(self.done)) {
                told.remove(order.id, registry.mix());
                registry.release(order.id);
            }
        }
        if let [order] = refused[..] {
            let is_subscription = order.verb == Verb::Subscribe;
            // The caller still needs the name; it releases what it gets.
            if !is_subscription {
                registries[order.kind as usize].release(order.id);
            }
            return Ok(if is_subscription { Refusal::Channel(order.kind, order.id) } else { Refusal::Nothing });
        }
        // The ledger's holds become those of the list.
        self.alone.extend(refused.iter().map(|order| (order.kind, order.id)));
        self.unwritten.extend(self.waiting.drain().map(|Reverse((_, pending))| pending));
        Ok(Refusal::Nothing)
    }

    /// The next one whose wait is over.
    pub fn next_over(&mut self) -> Option<P> {
        let Reverse((number, pending)) = *self.waiting.peek()?;
        if number > self.done {
            return None;
        }
        self.waiting.pop();
        Some(pending)
    }
}

/// An order's number as the table keeps it: never [`CONFIRMED`].
fn order_number(order: u64) -> u32 {
    (order % u64::from(u32::MAX)) as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registries() -> Registries {
        [1, 2, 3].map(Registry::new)
    }

    fn begun() -> (NodeLedger<u32>, Registries) {
        let mut book = NodeLedger::default();
        book.begin();
        (book, registries())
    }

    fn write(book: &mut NodeLedger<u32>, registries: &mut Registries) -> String {
        let mut out = Vec::new();
        book.write(registries, |_, _| true, usize::MAX, &mut out);
        let words: Vec<&str> = std::str::from_utf8(&out).unwrap().split("\r\n").collect();
        words.into_iter().filter(|word| !word.starts_with(['*', '$'])).collect::<Vec<_>>().join(" ").trim().to_owned()
    }

    fn join(book: &mut NodeLedger<u32>, registries: &mut Registries, name: &str) -> u32 {
        let id = registries[0].intern(name.as_bytes());
        if registries[0].join(id, 1) {
            book.note(registries, Kind::Channel, id);
        }
        id
    }

    fn leave(book: &mut NodeLedger<u32>, registries: &mut Registries, name: &str) {
        let id = registries[0].find(name.as_bytes()).unwrap();
        registries[0].retain(id);
        if registries[0].leave(id, 1) {
            book.note(registries, Kind::Channel, id);
        }
        registries[0].release(id);
    }

    fn done(book: &mut NodeLedger<u32>, registries: &mut Registries, verb: Verb, name: &str) {
        book.acknowledge(registries, Kind::Channel, verb, name.as_bytes()).unwrap();
    }

    #[test]
    fn channels_that_come_and_go_untold_take_no_more_room() {
        let (mut book, mut registries) = begun();
        for _ in 0..100_000 {
            for name in ["a", "b"] {
                join(&mut book, &mut registries, name);
            }
            for name in ["a", "b"] {
                leave(&mut book, &mut registries, name);
            }
            for (kind, name) in [(Kind::Pattern, b"p"), (Kind::Pattern, b"q")] {
                let id = registries[kind as usize].intern(name);
                book.note(&mut registries, kind, id);
            }
        }
        let noted = book.changed.len() + book.changed_patterns.len();
        assert!(noted < 100_000, "{noted}");
        join(&mut book, &mut registries, "b");
        assert_eq!(write(&mut book, &mut registries), "subscribe b");
        leave(&mut book, &mut registries, "b");
        done(&mut book, &mut registries, Verb::Subscribe, "b");
        assert_eq!(write(&mut book, &mut registries), "unsubscribe b");
        done(&mut book, &mut registries, Verb::Unsubscribe, "b");
        let left = registries.iter().flat_map(|registry| [&b"a"[..], b"b", b"p", b"q"].map(|name| registry.find(name)));
        assert!(left.flatten().next().is_none(), "nothing holds the names any more");
    }

    #[test]
    fn a_change_is_over_with_the_last_acknowledgement_it_needs() {
        let (mut book, mut registries) = begun();
        join(&mut book, &mut registries, "a");
        book.await_acknowledgements(1, Kind::Channel);
        assert_eq!(write(&mut book, &mut registries), "subscribe a");
        join(&mut book, &mut registries, "b");
        book.await_acknowledgements(2, Kind::Channel);
        assert_eq!(write(&mut book, &mut registries), "subscribe b");
        assert_eq!(book.next_over(), None);
        done(&mut book, &mut registries, Verb::Subscribe, "a");
        assert_eq!(book.next_over(), Some(1));
        assert_eq!(book.next_over(), None);
        done(&mut book, &mut registries, Verb::Subscribe, "b");
        assert_eq!(book.next_over(), Some(2));
    }

    #[test]
    fn what_comes_and_goes_within_a_turn_is_never_told() {
        let (mut book, mut registries) = begun();
        join(&mut book, &mut registries, "a");
        leave(&mut book, &mut registries, "a");
        assert_eq!(write(&mut book, &mut registries), "");
        assert_eq!(registries[0].bytes(), 0, "its number is given away");
    }

    #[test]
    fn an_old_acknowledgement_confirms_nothing_new() {
        let (mut book, mut registries) = begun();
        let id = join(&mut book, &mut registries, "a");
        write(&mut book, &mut registries);
        leave(&mut book, &mut registries, "a");
        assert_eq!(write(&mut book, &mut registries), "unsubscribe a");
        join(&mut book, &mut registries, "a");
        assert_eq!(write(&mut book, &mut registries), "subscribe a");
        done(&mut book, &mut registries, Verb::Subscribe, "a");
        assert!(!book.is_confirmed(&registries, Kind::Channel, id), "the first SUBSCRIBE has been undone");
        done(&mut book, &mut registries, Verb::Unsubscribe, "a");
        done(&mut book, &mut registries, Verb::Subscribe, "a");
        assert!(book.is_confirmed(&registries, Kind::Channel, id));
        let wrong = book.acknowledge(&mut registries, Kind::Channel, Verb::Subscribe, b"a");
        assert_eq!(wrong, Err(OutOfStep), "one too many");
    }

    #[test]
    fn a_lost_connection_forgets_all_and_the_next_is_told_all() {
        let (mut book, mut registries) = begun();
        for name in ["a", "b", "c"] {
            join(&mut book, &mut registries, name);
        }
        book.await_acknowledgements(1, Kind::Channel);
        write(&mut book, &mut registries);
        book.lose(&mut registries);
        leave(&mut book, &mut registries, "b");
        book.lose(&mut registries);
        assert_eq!(book.next_over(), None);
        book.begin();
        assert_eq!(write(&mut book, &mut registries), "subscribe a c");
        done(&mut book, &mut registries, Verb::Subscribe, "a");
        assert_eq!(book.next_over(), None);
        done(&mut book, &mut registries, Verb::Subscribe, "c");
        assert_eq!(book.next_over(), Some(1));
        assert_eq!(book.told(), 2);
    }

    #[test]
    fn a_refused_command_is_repeated_channel_by_channel() {
        let (mut book, mut registries) = begun();
        for name in ["a", "b"] {
            join(&mut book, &mut registries, name);
        }
        book.await_acknowledgements(1, Kind::Channel);
        assert_eq!(write(&mut book, &mut registries), "subscribe a b");
        assert_eq!(book.refuse(&mut registries), Ok(Refusal::Nothing));
        assert_eq!(write(&mut book, &mut registries), "subscribe b subscribe a");
        done(&mut book, &mut registries, Verb::Subscribe, "b");
        assert_eq!(book.next_over(), None, "a is not through yet");
        let Ok(Refusal::Channel(kind, id)) = book.refuse(&mut registries) else { panic!("one channel is to blame") };
        assert_eq!(registries[0].name(id), b"a");
        registries[kind as usize].release(id);
        assert_eq!(book.told(), 1);
    }

    #[test]
    fn many_channels_are_told_in_bounded_pieces() {
        let (mut book, mut registries) = begun();
        for number in 0..5_000 {
            join(&mut book, &mut registries, &format!("channel{number}"));
        }
        book.lose(&mut registries);
        book.begin();
        let mut writes = 0;
        while book.has_updates() {
            let mut out = Vec::new();
            book.write(&mut registries, |_, name| name.last() == Some(&b'7'), 1_000, &mut out);
            assert!(out.len() < 1_000 + 3 * PUSH_COMMAND_BYTES_MAX);
            writes += 1;
        }
        assert!(writes > 3, "{writes}");
        assert_eq!(book.told(), 500);
    }
}
