//! What a session sends between MULTI and EXEC: who judges it before it is queued or executed.

use crate::ids::ClientId;
use crate::session::Flow;
use crate::transaction::Queueing;
use crate::transaction::exec_reply::continue_exec_reply;
use crate::worker::Worker;
use respool_command::{Execute, Row};
use respool_wire::Request;

impl<E: Execute> Worker<E> {
    /// A request of a session that is queueing. `None`: it is not queued but done as any other.
    pub(crate) fn while_queueing(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Option<Flow> {
        match self.env.while_queueing(index, row, request.args) {
            Queueing::Leaves => None,
            Queueing::Refused(flow) => Some(flow),
            Queueing::Executes => {
                let held = self.hold_for_client_pause(index, row, request.args);
                Some(held.unwrap_or_else(|| self.exec(index)))
            }
            Queueing::Queued => {
                let refused = self.engine_side().refuse_to_queue(index, row);
                Some(refused.unwrap_or_else(|| self.env.queue_allowed(index, row, request)))
            }
        }
    }

    /// EXEC of a session that is queueing.
    fn exec(&mut self, index: ClientId) -> Flow {
        let refused = self.env.refuse_exec(index).or_else(|| self.engine_side().refuse_exec(index));
        refused.or_else(|| self.env.send_queued(index)).unwrap_or_else(|| continue_exec_reply(self, index))
    }
}
