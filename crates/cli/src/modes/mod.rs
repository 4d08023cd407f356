//! What is asked for by a flag instead of a command.

mod intrinsic;
mod keys;
mod latency;
mod pipe;
mod stat;

use respool_wire::{Part, part};

use crate::console::Console;
use crate::options::Task;
use crate::session::Failure;

/// Does what `mode` asks. Whether it went well.
pub(crate) fn run(console: &mut Console<'_>, mode: &Task) -> Result<bool, Failure> {
    match mode {
        Task::Stat => stat::run(console),
        Task::Scan(which) => keys::names(console, which),
        Task::BigKeys(which) => keys::largest(console, which, &keys::Measure::Elements),
        Task::MemoryKeys(which, samples) => keys::largest(console, which, &keys::Measure::Memory(*samples)),
        Task::HotKeys(which) => keys::hottest(console, which),
        Task::Latency => latency::live(console),
        Task::LatencyHistory => latency::history(console),
        Task::LatencyDistribution => latency::distribution(console),
        Task::Pipe { timeout } => pipe::run(console, *timeout),
        Task::Intrinsic(duration) => intrinsic::run(console, *duration),
        Task::Shell | Task::Once(_) => Ok(true),
    }
}

/// The server has answered something that a mode cannot go on with.
fn refused(what: &str, reply: &[u8]) -> Result<bool, Failure> {
    let words = match part(reply) {
        Some(Part::Leaf(_, text)) => String::from_utf8_lossy(text).into_owned(),
        _ => "something else than expected".to_owned(),
    };
    Err(Failure::Lost(format!("{what}: {words}")))
}
