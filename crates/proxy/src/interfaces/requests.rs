//! The way of a request among features: what the layers that every request passes ask of those that deal with it.
//!
//! ```text
//!   request::dispatch   which row? arity? a rare state of its session? ---- learnt_row, ask_state, run
//!   transaction         its part of a reply to EXEC ------------------------ run, end_transaction
//!   command_log::timed  what did it take? ---------------------------------- run_in_lane
//! ```
//!
//! The layers know no feature, and a feature knows nothing of them: the worker is in between.

use crate::env::Env;
use crate::ids::ClientId;
use crate::interfaces::call::Call;
use crate::interfaces::read_tracker::ReadTracker;
use crate::request::fast_path::Plain;
use crate::session::{Flow, SessionFlags};
use respool_command::{Execute, Row, UnknownCommand};
use respool_wire::Request;

/// The features behind the way of a request.
pub(crate) trait HandleRequests {
    /// The engine in this process.
    type Engine: Execute;
    /// The feature that tracks what clients read.
    type Reads: ReadTracker;

    fn parts(&mut self) -> (&mut Env<Self::Engine>, &mut Self::Reads);

    #[inline(always)]
    fn env(&mut self) -> &mut Env<Self::Engine> {
        self.parts().0
    }

    /// Does a request if it is plain. `None`: it is not, and nothing has been done.
    fn do_plain(&mut self, way: Plain, index: ClientId, request: &Request<'_>) -> Option<Flow>;

    /// The row of a command that the table does not know. `Err`: the request has been dealt with.
    fn learnt_row(
        &mut self,
        index: ClientId,
        unknown: UnknownCommand,
        request: &Request<'_>,
    ) -> Result<&'static Row, Flow>;

    /// The owner of a rare state is asked about a request. `None`: it goes on as any other.
    fn ask_state(&mut self, state: SessionFlags, call: Call<'_>) -> Option<Flow>;

    /// The debugger of a script is asked about a request. `None`: it goes on as any other.
    fn ask_debugger(&mut self, index: ClientId, request: &Request<'_>) -> Option<Flow>;

    /// Does a request, whatever state its session is in, and has what it takes counted.
    fn run(&mut self, call: Call<'_>) -> Flow;

    /// The feature of its lane does a request.
    fn run_in_lane(&mut self, call: Call<'_>) -> Flow;

    /// All parts of a transaction have been done.
    fn end_transaction(&mut self);

    /// Features are told what a request has ended.
    fn tell_ended(&mut self);
}
