//! One subscriber that does not read, among others that do.

use std::io;
use std::time::Duration;

use respool_testkit::{Client, proc_stats, request};

use super::super::client::samples::Sample;
use super::experiment::{Experiment, count, rate};
use super::subject::Server;

/// What may wait for a subscriber.
pub(super) const OUTPUT_BYTES: u64 = 32 << 20;
/// Channels in one request.
const CHUNK: u32 = 1_000;
/// Messages that are published together.
const BATCH: u16 = 32;

/// The others publish. What they lose counts, and how much memory the server takes for the one that does not read.
pub(super) fn measure(experiment: &Experiment<'_>, server: &Server, length: Duration) -> io::Result<Sample> {
    let mut stalled = server.client()?;
    subscribe(&mut stalled, experiment.channels)?;
    let gathered = experiment.gather(server, "both", &rate(BATCH, length))?;
    let before = proc_stats::resident_bytes(server.pid())?;
    proc_stats::reset_peak(server.pid())?;
    let documents = gathered.go(length)?;
    let grown = proc_stats::peak_resident_bytes(server.pid())?.saturating_sub(before);
    let mut sample = Sample::from([("memory to the limit".to_owned(), grown as f64 / OUTPUT_BYTES as f64)]);
    count(&documents, &mut sample);
    Ok(sample)
}

fn subscribe(client: &mut Client, channels: u32) -> io::Result<()> {
    let mut first = 0;
    while first < channels {
        let chunk = first..channels.min(first + CHUNK);
        let names = chunk.clone().map(|channel| channel.to_string());
        let words: Vec<String> = std::iter::once("SUBSCRIBE".to_owned()).chain(names).collect();
        client.send(&request(&words))?;
        client.replies(chunk.len())?;
        first = chunk.end;
    }
    Ok(())
}
