//! One run: threads that ask, a clock beside them, and what came out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use respool_connection::{Service, WorkerId};
use respool_net::{Setup, TransportOptions, Worker, mailbox};

use crate::clock::{monotonic_ns, own_processor_ns};
use crate::load::{Load, Shared};
use crate::plan::Plan;
use crate::processes::{Used, used};
use crate::tally::Tally;
use crate::target::Target;
use crate::work::Work;

/// What came out of a run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What was asked.
    pub work: Arc<Work>,
    /// The name of what was asked.
    pub target: String,
    /// What was counted.
    pub tally: Tally,
    /// What this process has used meanwhile, in seconds of a processor.
    pub own_processor_s: f64,
    /// What the processes of the target have used meanwhile: time within the run, memory at its end.
    pub processes: Vec<Used>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Replies so far.
    pub replies: u64,
    /// Since the run began; zero while connections are made.
    pub elapsed: Duration,
}

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);

/// Runs `plan` once. `is_stopped` ends it early, with what was counted by then.
///
/// # Errors
/// In words: what could not be reached, was refused or lost.
pub fn run(
    plan: &Plan,
    work: &Arc<Work>,
    target: &Arc<Target>,
    is_stopped: &AtomicBool,
    mut progress: impl FnMut(Progress),
) -> Result<Measured, String> {
    let shared = Arc::new(Shared::new(plan));
    let plan = Arc::new(plan.clone());
    let before: Vec<Used> = target.pids.iter().map(|&pid| used_by(pid)).collect::<Result<_, _>>()?;
    let own_before_ns = own_processor_ns();
    let (report, ends) = channel();
    let threads: Vec<_> = (0..plan.threads)
        .map(|number| {
            let (plan, work, target) = (Arc::clone(&plan), Arc::clone(work), Arc::clone(target));
            let (shared, report) = (Arc::clone(&shared), report.clone());
            thread::spawn(move || {
                let tls = Arc::clone(&target.tls);
                let load = Load::new(plan, work, target, shared, number, report);
                drive(load, tls)
            })
        })
        .collect();
    drop(report);
    let mut tally = Tally::new(work.operations.len(), plan.interval.as_nanos() as u64);
    let mut failure = None;
    let mut ended = 0;
    while ended < threads.len() {
        match ends.recv_timeout(TICK) {
            Ok(Ok(part)) => {
                tally.add(&part);
                ended += 1;
            }
            Ok(Err(why)) => {
                failure.get_or_insert(why);
                ended += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if is_stopped.load(Ordering::Relaxed) {
            shared.stop();
        }
        let began_ns = shared.began_ns();
        let elapsed = if began_ns == 0 { 0 } else { monotonic_ns().saturating_sub(began_ns) };
        progress(Progress { replies: shared.replies(), elapsed: Duration::from_nanos(elapsed) });
    }
    for thread in threads {
        match thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => drop(failure.get_or_insert(error.to_string())),
            Err(_) => drop(failure.get_or_insert("a thread has panicked".to_owned())),
        }
    }
    let own_processor_s = (own_processor_ns() - own_before_ns) as f64 / 1e9;
    if let Some(why) = failure {
        return Err(why);
    }
    let since = |before: &Used| {
        let now = used_by(before.pid)?;
        Ok(Used { processor_s: now.processor_s - before.processor_s, ..now })
    };
    let processes = before.iter().map(since).collect::<Result<_, String>>()?;
    Ok(Measured { work: Arc::clone(work), target: target.name.clone(), tally, own_processor_s, processes })
}

fn used_by(pid: u32) -> Result<Used, String> {
    used(pid).map_err(|error| format!("what process {pid} uses cannot be read: {error}"))
}

/// Runs a machine on this thread until it wants to exit.
pub(crate) fn drive<M: Service>(machine: M, tls: Arc<respool_net::tls::TlsClients>) -> std::io::Result<()> {
    let (mail_sender, inbox) = mailbox();
    let setup = Setup {
        machine,
        inbox,
        workers: vec![mail_sender],
        number: WorkerId::FIRST,
        listeners: Vec::new(),
        engines: Vec::new(),
        transport: TransportOptions { keepalive: None, ..TransportOptions::default() },
        tls,
        sockets: Arc::default(),
    };
    Worker::new(setup)?.run()
}
