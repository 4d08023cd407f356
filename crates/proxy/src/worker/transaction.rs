//! What a session sends between MULTI and EXEC: the checks before it is queued or executed.

use crate::ids::ClientId;
use crate::session::Flow;
use crate::transaction::Queueing;
use crate::transaction::engine::{refuse_exec, refuse_to_queue};
use crate::transaction::exec_reply::continue_exec_reply;
use crate::worker::Worker;
use respool_command::{Execute, Row};
use respool_wire::{Args, Request};

impl<E: Execute> Worker<E> {
    /// A request of a session that is queueing. `None`: it is not queued but done as any other.
    pub(crate) fn while_queueing(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Option<Flow> {
        match self.env.while_queueing(index, row, request.args) {
            Queueing::Leaves => None,
            Queueing::Refused(flow) => Some(flow),
            Queueing::Executes => {
                self.hold_for_client_pause(index, row, request.args).or_else(|| Some(self.exec(index, request.args)))
            }
            Queueing::Queued => refuse_to_queue(&mut self.engine_side(), index, row)
                .or_else(|| Some(self.env.queue_allowed(index, row, request))),
        }
    }

    /// EXEC of a session that is queueing.
    fn exec(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let refused = self.env.refuse_exec(index).or_else(|| refuse_exec(&mut self.engine_side(), index));
        refused.or_else(|| self.env.send_queued(index, args)).unwrap_or_else(|| continue_exec_reply(self, index))
    }
}
