//! What a request takes is counted, and timed if the program gives a clock, around the feature that does it.

use crate::command_log::TimedRun;
use crate::ids::ClientId;
use crate::interfaces::call::Call;
use crate::interfaces::requests::HandleRequests;
use crate::session::Flow;
use respool_command::Row;
use respool_wire::{Args, ArgsBuf, Request};

/// Does what a request asks, whatever state its session is in. Of nodes nothing is noted; where there is no clock, calls are counted.
#[inline]
pub(crate) fn run<H: HandleRequests>(by: &mut H, call: Call<'_>) -> Flow {
    run_noted(by, call, call.request.args)
}

/// The same where a state of a session has a request done, in other words than those of its client, which are noted.
pub(crate) fn run_as<H: HandleRequests>(
    by: &mut H,
    index: ClientId,
    row: &'static Row,
    made: &ArgsBuf,
    said: Args<'_>,
) -> Flow {
    by.env().command_log.has_noted = true;
    run_noted(by, Call { index, row, request: &Request::made(made.as_args()) }, said)
}

#[inline]
fn run_noted<H: HandleRequests>(by: &mut H, call: Call<'_>, said: Args<'_>) -> Flow {
    let Call { index, row, .. } = call;
    let env = by.env();
    let (begun_us, position) = (env.times_from(), env.answer_position(index));
    if position.is_none() {
        return by.run_in_lane(call);
    }
    let before = env.clients.waiting_bytes_of(index);
    let flow = by.run_in_lane(call);
    by.env().note_run(index, row, said, TimedRun { begun_us, before, position, flow });
    flow
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Layers, env_with_engine, env_with_node, request};

    /// How often `INFO commandstats` has GET, in its words.
    fn calls(layers: &Layers) -> String {
        let mut text = String::new();
        layers.env.command_log.calls.write_commands(&mut text);
        text.split(',').next().unwrap_or_default().to_owned()
    }

    #[test]
    fn an_engines_calls_are_counted_and_waiting_requests_are_not() {
        let mut layers = Layers::new(env_with_engine());
        let client = layers.env.test_client();
        for (flow, count) in [(Flow::Next, 1), (Flow::Again, 1), (Flow::Next, 2)] {
            layers.flow = flow;
            let got = request("GET k", |row, args| {
                run(&mut layers, Call { index: client, row, request: &Request::made(args) })
            });
            assert_eq!((got, calls(&layers)), (flow, format!("cmdstat_get:calls={count}")));
        }
    }

    #[test]
    fn nodes_count_their_calls_themselves() {
        let mut layers = Layers::new(env_with_node());
        let client = layers.env.test_client();
        request("GET k", |row, args| run(&mut layers, Call { index: client, row, request: &Request::made(args) }));
        assert_eq!((calls(&layers), layers.env.take_output(client).as_str()), (String::new(), "+GET k\r\n"));
    }
}
