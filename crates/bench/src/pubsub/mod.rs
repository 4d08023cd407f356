//! The publish/subscribe experiment: processes that publish to many channels and processes that hear them, as the experiment with a
//! million channels did, with latencies and with what was lost.

pub mod cli;
mod machine;
mod message;
pub mod plan;

use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::clock::{monotonic_ns, own_processor_ns};
use crate::report::json::latency;
use crate::run::drive;
use crate::tally::Latencies;
use crate::target::Target;
use machine::Experiment;
use message::{Ledger, Payload, class_of};
use plan::Plan;

/// What one process has counted.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Messages that were published, and that the server has acknowledged.
    pub sent: u64,
    /// See there.
    pub acknowledged: u64,
    /// Messages that were due and not sent: the server had not acknowledged too many others.
    pub unsent: u64,
    /// Messages that came, and those of them that this process had published.
    pub received: u64,
    /// See there.
    pub own: u64,
    /// Messages of others than this program.
    pub foreign: u64,
    /// Messages that never came.
    pub missing: u64,
    /// Messages that came behind later ones.
    pub reordered: u64,
    /// Messages that came more than once, each time but the first.
    pub duplicates: u64,
    /// End markers of processes.
    pub exits: u64,
    /// From when a message was due until it came: of this process' own, and of others' on the same machine.
    pub own_latencies: Latencies,
    /// See there.
    pub other_latencies: Latencies,
    /// How long it took to subscribe everything, and how long was published, in seconds.
    pub subscribed_s: f64,
    /// See there.
    pub published_s: f64,
    /// When the first message and the last one came.
    pub first_ns: u64,
    /// See there.
    pub last_ns: u64,
}

impl Counted {
    /// Counts what came on `channel`. `own` is this process; `is_complete`: all was subscribed before anything was published.
    fn take(
        &mut self,
        channel: &[u8],
        payload: &Payload,
        read_ns: u64,
        own: u32,
        ledger: &mut Ledger,
        is_complete: bool,
    ) {
        let class = class_of(channel);
        match payload {
            Payload::Message(message) => {
                ledger.note(message, class, is_complete);
                let latency_ns = read_ns.saturating_sub(message.due_ns);
                if message.publisher.process == own {
                    self.own += 1;
                    self.own_latencies.record(latency_ns);
                } else {
                    self.other_latencies.record(latency_ns);
                }
            }
            Payload::End(end) => return ledger.note_end(end, class, is_complete),
            Payload::Exit => return,
            Payload::Foreign => self.foreign += 1,
        }
        self.received += 1;
        self.first_ns = if self.first_ns == 0 { read_ns } else { self.first_ns };
        self.last_ns = read_ns;
    }

    fn received_per_second(&self) -> f64 {
        per_second(self.received, self.last_ns.saturating_sub(self.first_ns) as f64 / 1e9)
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// How far an experiment is, for the bar on the terminal.
#[derive(Debug, Default)]
struct Figures {
    began_ns: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Figures {
    fn tell(&self, counted: &Counted) {
        self.sent.store(counted.sent, Ordering::Relaxed);
        self.received.store(counted.received, Ordering::Relaxed);
    }
}

/// How results are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// As JSON.
    pub is_json: bool,
    /// A line on a terminal meanwhile.
    pub has_bar: bool,
}

/// Runs one process of an experiment and prints what it has counted. `is_stopped` ends the publishing.
///
/// # Errors
/// In words: what could not be reached or was refused, or that a connection was lost. Messages that are missing are no error: they
/// are counted.
pub fn experiment(
    plan: &Plan,
    target: &Target,
    output: &Output,
    out: &mut dyn Write,
    is_stopped: &Arc<AtomicBool>,
) -> Result<Counted, String> {
    plan.check()?;
    let before_ns = own_processor_ns();
    let (report, ended) = channel();
    let figures = Arc::new(Figures::default());
    let machine = Experiment::new(plan.clone(), target, Arc::clone(is_stopped), Arc::clone(&figures), report);
    let tls = Arc::clone(&target.tls);
    let thread = std::thread::spawn(move || drive(machine, tls));
    let bar = output.has_bar.then(ProgressBar::new_spinner);
    if let (Some(bar), Ok(style)) = (&bar, ProgressStyle::with_template("{spinner} {msg}")) {
        bar.set_style(style);
    }
    let ended = loop {
        match ended.recv_timeout(Duration::from_millis(200)) {
            Ok(ended) => break ended,
            Err(RecvTimeoutError::Timeout) => bar.iter().for_each(|bar| show(bar, &figures)),
            Err(RecvTimeoutError::Disconnected) => break Err("the experiment ended without a result".to_owned()),
        }
    };
    bar.iter().for_each(ProgressBar::finish_and_clear);
    match thread.join() {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err("the experiment has panicked".to_owned()),
    }
    let counted = ended?;
    let processor_s = (own_processor_ns() - before_ns) as f64 / 1e9;
    let text = if output.is_json {
        format!("{:#}\n", document(plan, &counted, processor_s))
    } else {
        page(plan, &counted, processor_s)
    };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("results cannot be printed: {error}"))
        }
        _ => Ok(counted),
    }
}

fn show(bar: &ProgressBar, figures: &Figures) {
    let began_ns = figures.began_ns.load(Ordering::Relaxed);
    if began_ns == 0 {
        return bar.set_message("subscribing, and waiting for the other processes");
    }
    let (sent, received) = (figures.sent.load(Ordering::Relaxed), figures.received.load(Ordering::Relaxed));
    let seconds = monotonic_ns().saturating_sub(began_ns) as f64 / 1e9;
    let rates = (per_second(sent, seconds), per_second(received, seconds));
    bar.set_message(format!("{sent} sent, {:.0}/s; {received} received, {:.0}/s", rates.0, rates.1));
}

fn page(plan: &Plan, counted: &Counted, processor_s: f64) -> String {
    let mut out = String::new();
    if plan.subscribes {
        let what = if plan.has_patterns { "patterns for" } else { "channels:" };
        let _ = writeln!(out, "subscribed {what} {} in {:.2} s", plan.channels, counted.subscribed_s);
    }
    if plan.publishes {
        let rate = per_second(counted.sent, counted.published_s);
        let _ = writeln!(out, "sent {} messages in {:.2} s, {rate:.2} per second", counted.sent, counted.published_s);
        let lost = counted.sent - counted.acknowledged.min(counted.sent);
        for (count, what) in [(lost, "not acknowledged"), (counted.unsent, "due and not sent")] {
            if count > 0 {
                let _ = writeln!(out, "  {count} {what}");
            }
        }
    }
    if plan.subscribes {
        let rate = counted.received_per_second();
        let _ = writeln!(out, "received {} messages, {rate:.2} per second", counted.received);
        let _ = writeln!(
            out,
            "  {} missing, {} out of order, {} twice",
            counted.missing, counted.reordered, counted.duplicates
        );
        if counted.foreign > 0 {
            let _ = writeln!(out, "  {} of other programs", counted.foreign);
        }
        for (name, latencies) in [("own", &counted.own_latencies), ("others'", &counted.other_latencies)] {
            if latencies.count() > 0 {
                let figures = [
                    ("min", latencies.min_ms()),
                    ("mean", latencies.mean_ms()),
                    ("p50", latencies.percentile_ms(50.0)),
                    ("p99", latencies.percentile_ms(99.0)),
                    ("p99.9", latencies.percentile_ms(99.9)),
                    ("max", latencies.max_ms()),
                ];
                let figures: Vec<String> = figures.iter().map(|(name, ms)| format!("{name} {ms:.3}")).collect();
                let _ = writeln!(out, "latency of {name} messages (ms): {}", figures.join("  "));
            }
        }
    }
    let _ = writeln!(out, "processor time of this program: {processor_s:.2} s");
    out
}

fn document(plan: &Plan, counted: &Counted, processor_s: f64) -> Value {
    json!({
        "format": 1,
        "program": concat!("respool ", env!("CARGO_PKG_VERSION")),
        "channels": plan.channels,
        "subscribed_s": counted.subscribed_s,
        "sent": counted.sent,
        "acknowledged": counted.acknowledged,
        "unsent": counted.unsent,
        "published_s": counted.published_s,
        "sent_per_s": per_second(counted.sent, counted.published_s),
        "received": counted.received,
        "received_own": counted.own,
        "received_foreign": counted.foreign,
        "received_per_s": counted.received_per_second(),
        "missing": counted.missing,
        "out_of_order": counted.reordered,
        "duplicates": counted.duplicates,
        "ended_processes": counted.exits,
        "own_latency_ms": latency(&counted.own_latencies),
        "others_latency_ms": latency(&counted.other_latencies),
        "own_processor_s": processor_s,
    })
}
