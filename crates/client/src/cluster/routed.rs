//! What a caller has asked a cluster for: one request, several, or a transaction, in units that are each at one node.
//!
//! Units of one call go their ways at the same time. A call is over when all of them are.
//!
//! What deletes the keys of all shards asks each of them twice. A key goes from one that has not deleted its keys yet to one that has, in the
//! middle of a slot that no table says is on its way: the second round, which begins when the first is over, finds it where it has gone.
//! A key that goes on to another shard during the second round may be left.

use super::plan::{Parts, Plan, plan, together};
use super::unit::{How, Rest, Seen, Target, Together, Unit};
use super::{Cluster, Table};
use crate::core::{Ended, standing};
use crate::fitness::deletes_all;
use crate::parts::{Join, Kind};
use crate::{Command, Error, ErrorKind, Outcome};
use respool_route::cluster::{Address, Trigger};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A call of a cluster.
pub(crate) struct Routed {
    cluster: Arc<Cluster>,
    kind: Kind,
    until_us: Option<u64>,
    state: State,
    /// What the shards are asked once more when they all have done it.
    again: Option<Command>,
    /// Where its one unit was last, once it is over.
    at: Option<Address>,
}

enum State {
    /// Until there is a table.
    New(Vec<Command>, Option<Rest>),
    Under(Vec<Unit>, Join),
    Over,
}

/// Requests for one node: which, where each goes, and its place in the call.
type Group = (usize, Vec<Target>, Vec<Command>, Vec<usize>);

impl Routed {
    pub(crate) fn new(cluster: &Arc<Cluster>, commands: &[Command], kind: Kind, limit: Option<Duration>) -> Self {
        let micros = |limit: Duration| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        let until_us = limit.map(|limit| cluster.now_us().saturating_add(micros(limit)));
        let state = State::New(commands.to_vec(), None);
        Self { cluster: Arc::clone(cluster), kind, until_us, state, again: None, at: None }
    }

    /// A call of one request, which goes on from what its unit has come to.
    pub(super) fn resumed(cluster: &Arc<Cluster>, until_us: Option<u64>, unit: Unit) -> Self {
        let state = State::Under(vec![unit], Join::Only);
        Self { cluster: Arc::clone(cluster), kind: Kind::Each, until_us, state, again: None, at: None }
    }

    fn unit(&self, commands: Vec<Command>, targets: Vec<Target>, together: Together) -> Unit {
        Unit::new(&self.cluster, commands, targets, together, self.until_us)
    }

    /// Makes units of the requests.
    fn begin(&self, mut commands: Vec<Command>, table: &Arc<Table>) -> Result<State, ErrorKind> {
        let reads = self.cluster.policy.get();
        match self.kind {
            Kind::Whole => {
                let slot = together(&commands[1..commands.len() - 1], table)?;
                let target = slot.map_or(Target::Any, |slot| Target::Slot(slot, false));
                let targets = vec![target; commands.len()];
                Ok(State::Under(vec![self.unit(commands, targets, Together::Whole)], Join::Only))
            }
            Kind::At(slot) => {
                let targets = vec![Target::Slot(slot, false); commands.len()];
                Ok(State::Under(vec![self.unit(commands, targets, Together::Each)], Join::Only))
            }
            Kind::EachShard => {
                let command = commands.swap_remove(0);
                let unit = |target| self.unit(vec![command.clone()], vec![target], Together::Each).among(table);
                let units: Vec<Unit> = table.shards().iter().map(Target::shard).map(unit).collect();
                Ok(State::Under(units, Join::Only))
            }
            Kind::Each if commands.len() == 1 => match plan(&commands[0], reads, table) {
                Plan::One(target) => {
                    Ok(State::Under(vec![self.unit(commands, vec![target], Together::Each)], Join::Only))
                }
                Plan::Parts(parts, gather, of) => {
                    let (mut units, places) = self.grouped(parts, table);
                    if of == Parts::OfNodes {
                        units = units.into_iter().map(|unit| unit.among(table)).collect();
                    }
                    Ok(State::Under(units, Join::Gathered(places, gather)))
                }
                Plan::Refused(kind) => Err(kind),
            },
            Kind::Each => {
                // What is read behind a write must see it, and not see one that stands behind: all or none goes to replicas. A replica
                // sends what writes back to its primary, and what stands behind it would be answered first, whatever the policy.
                let reads = reads.unforced();
                let mut placed = Vec::with_capacity(commands.len());
                for command in commands {
                    match plan(&command, reads, table) {
                        Plan::One(target) => placed.push((target, command)),
                        Plan::Parts(..) => {
                            return Err(ErrorKind::Unfit("is for several nodes of the cluster: call it alone"));
                        }
                        Plan::Refused(kind) => return Err(kind),
                    }
                }
                let is_fit = |target: &Target| matches!(target, Target::Slot(_, true));
                if !placed.iter().all(|(target, _)| is_fit(target)) {
                    placed.iter_mut().for_each(|(target, _)| target.use_primary());
                }
                let count = placed.len();
                let (units, places) = self.grouped(placed, table);
                Ok(State::Under(units, Join::Placed(places, count)))
            }
        }
    }

    /// A unit for each node, in order, and which of the requests it has.
    fn grouped(&self, requests: Vec<(Target, Command)>, table: &Table) -> (Vec<Unit>, Vec<Vec<usize>>) {
        let mut groups: Vec<Group> = Vec::new();
        for (place, (target, command)) in requests.into_iter().enumerate() {
            let node = match &target {
                Target::Slot(slot, _) => table.shard_of(*slot).map(|shard| Arc::as_ptr(&shard.primary)),
                Target::Node(node, _) | Target::Shard(node, _) => Some(Arc::as_ptr(node)),
                Target::Any => None,
            };
            let node = node.map_or(0, |node| node as usize);
            let group = match groups.iter().position(|group| group.0 == node) {
                Some(at) => &mut groups[at],
                None => {
                    groups.push((node, Vec::new(), Vec::new(), Vec::new()));
                    let last = groups.len() - 1;
                    &mut groups[last]
                }
            };
            group.1.push(target);
            group.2.push(command);
            group.3.push(place);
        }
        let unit = |(_, targets, commands, places)| (self.unit(commands, targets, Together::Each), places);
        groups.into_iter().map(unit).unzip()
    }

    /// Makes its units as soon as there is a table. `None`: it waits for one.
    fn make_units(&mut self, how: &How<'_, '_>) -> Option<Result<(), Error>> {
        loop {
            let State::New(commands, rest) = &mut self.state else { return Some(Ok(())) };
            let table = self.cluster.table();
            if table.is_known() {
                if let Some(rest) = rest {
                    rest.leave(&self.cluster);
                }
                let commands = std::mem::take(commands);
                self.state = State::Over;
                self.again = commands.first().filter(|first| self.kind == Kind::Each && deletes_all(first)).cloned();
                return Some(self.begin(commands, &table).map(|state| self.state = state).map_err(unsent));
            }
            let is_late = self.until_us.is_some_and(|until_us| self.cluster.now_us() >= until_us);
            if is_late || self.cluster.is_closed() {
                let why = || ErrorKind::Lost("no node has said what the cluster looks like".into());
                return Some(Err(unsent(if is_late { why() } else { ErrorKind::Closed })));
            }
            self.cluster.trigger(Trigger::Stuck);
            let until_us = self.until_us.unwrap_or(u64::MAX);
            if !rest.get_or_insert_with(|| Rest::new(until_us, Seen::new(&table, None))).is_over(&self.cluster, how) {
                return None;
            }
            *rest = None;
        }
    }

    /// All units are over. Whether they have done what is done twice, and others do it from now on.
    fn begins_again(&mut self) -> bool {
        let State::Under(units, _) = &self.state else { return false };
        let Some(command) = self.again.take().filter(|_| units.iter().all(Unit::has_succeeded)) else { return false };
        let Ok(mut state) = self.begin(vec![command], &self.cluster.table()) else { return false };
        if let State::Under(units, _) = &mut state {
            units.iter_mut().for_each(Unit::note_executed);
        }
        self.state = state;
        true
    }

    /// All units are over.
    fn finish(&mut self) -> Result<Vec<Ended>, Error> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Under(mut units, join) => {
                if let [unit] = &units[..] {
                    self.at = unit.at().cloned();
                }
                join.join(units.iter_mut().map(Unit::take_ended).collect())
            }
            State::New(..) | State::Over => Err(Error::new(ErrorKind::Closed, Outcome::MaybeExecuted)),
        }
    }

    /// The node that it was at last, if it is over and was at one at a time.
    pub(crate) fn address(&self) -> Option<Address> {
        self.at.clone()
    }

    /// Goes on in a task.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<Ended>, Error>> {
        match self.make_units(&How::Task(cx)) {
            None => return Poll::Pending,
            Some(Err(error)) => return Poll::Ready(Err(error)),
            Some(Ok(())) => {}
        }
        loop {
            let mut is_over = true;
            if let State::Under(units, _) = &mut self.state {
                units.iter_mut().for_each(|unit| is_over &= unit.poll(cx).is_ready());
            }
            if !is_over {
                return Poll::Pending;
            }
            if !self.begins_again() {
                return Poll::Ready(self.finish());
            }
        }
    }

    /// Waits in this thread.
    pub(crate) fn wait(&mut self) -> Result<Vec<Ended>, Error> {
        loop {
            match self.make_units(&How::Thread) {
                Some(result) => break result?,
                None => {
                    if let State::New(_, Some(rest)) = &self.state {
                        rest.park(&self.cluster);
                    }
                }
            }
        }
        if let State::Under(units, _) = &mut self.state
            && let [unit] = &mut units[..]
        {
            unit.wait();
            if !self.begins_again() {
                return self.finish();
            }
        }
        // A thread reads for all at one node. At several it waits as a task does.
        standing::wait(|cx| self.poll(cx))
    }
}

impl Drop for Routed {
    fn drop(&mut self) {
        if let State::New(_, Some(rest)) = &mut self.state {
            rest.leave(&self.cluster);
        }
    }
}

fn unsent(kind: ErrorKind) -> Error {
    Error::new(kind, Outcome::NotSent)
}
