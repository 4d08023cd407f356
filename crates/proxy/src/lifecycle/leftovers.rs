//! What a worker is still about. Once every client has left and every connection to a node has ended this is nothing: tests of
//! whole worlds ask, whatever has happened in them before.

use crate::pool::session_mode::KeyOwner;
use crate::worker::Worker;
use respool_command::Execute;

impl<E: Execute> Worker<E> {
    /// Everything that is still waited for or held, by kind, with how much of it there is.
    pub fn remains(&self) -> Vec<(&'static str, usize)> {
        let owners = self.env.lanes.owners.iter().filter(|owner| matches!(owner, KeyOwner::Client(_))).count();
        let lanes = self.env.lanes.all.iter();
        let outstanding = lanes.map(|lane| lane.up.tickets().len() + lane.selects.len() + lane.throttled.len()).sum();
        let [queued, taken] = self.blocking.waiting();
        let [asked_for, held] = self.learnings.counts();
        let all = [
            ("clients", self.env.clients.sessions.len()),
            ("clients to go on with", self.env.clients.resuming.len() + self.env.clients.doomed.len()),
            ("clients expected to ask again", self.env.clients.awaited.count()),
            ("requests in parts", self.env.scatters.len()),
            ("tasks", self.env.tasks.len()),
            ("requests that may wait", self.blocking.requests.len()),
            ("elements to put back", self.blocking.returns.len()),
            ("places in queues", queued),
            ("connections on which a client waits", taken),
            ("keys of an engine that a client waits for", self.env.awaited_keys()),
            ("queries that workers have not answered", self.queries.len()),
            ("orders whose reply waits", self.admin.waits()),
            ("subscribers", self.subscriptions.remains()),
            ("commands asked for", asked_for),
            ("clients whose turn to ask for a command has not come", held),
            ("clients with connections of their own", owners),
            ("replies that are owed", outstanding),
            ("clients with connections for good", self.dedicated.len()),
            ("ends that features have not heard of", self.env.ended.len()),
            ("connections that are lent", self.env.lanes.lent()),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}
