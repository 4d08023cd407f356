//! `LATENCY`: there is no latency monitor, so each subcommand replies as redis-server does while its monitor is disabled.
//!
//! How long requests take is measured by the host of the engine.

use super::super::{Answer, Call, Fault};

/// What `LATENCY DOCTOR` says.
const DISABLED: &str = "Latency monitoring is disabled. CONFIG SET latency-monitor-threshold <milliseconds> enables it; see PROXY LATENCY and the slow log, too.\n";

/// `LATENCY DOCTOR`.
pub(super) fn doctor(call: &mut Call<'_, '_>) -> Answer {
    call.reply.verbatim("txt", DISABLED.as_bytes());
    Ok(())
}

/// `LATENCY LATEST` and `LATENCY HISTORY event`: no samples.
pub(super) fn samples(call: &mut Call<'_, '_>) -> Answer {
    call.reply.array(0);
    Ok(())
}

/// `LATENCY HISTOGRAM [command ...]`: no histograms.
pub(super) fn histograms(call: &mut Call<'_, '_>) -> Answer {
    call.reply.map(0);
    Ok(())
}

/// `LATENCY RESET [event ...]`: how many events were forgotten.
pub(super) fn reset(call: &mut Call<'_, '_>) -> Answer {
    call.reply_integer(0)
}

/// `LATENCY GRAPH event`.
pub(super) fn graph(call: &mut Call<'_, '_>) -> Answer {
    Err(Fault::Written([b"ERR No samples available for event '", call.arg(2), b"'"].concat()))
}
