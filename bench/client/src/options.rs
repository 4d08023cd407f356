//! The command line, which is that of the Go program as well.

use std::time::Duration;

/// What is measured, and how.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) peer: String,
    pub(crate) scenario: String,
    pub(crate) address: String,
    /// How long it is measured.
    pub(crate) time: Duration,
    pub(crate) tasks: usize,
    pub(crate) value_bytes: usize,
    /// Requests a second, of the open loop.
    pub(crate) rate: f64,
    pub(crate) seed: u64,
    /// Threads of the runtime beside the main one; with 0 the main one runs the tasks.
    pub(crate) workers: usize,
    /// Requests of a batch.
    pub(crate) batch: usize,
    /// When the load begins, in milliseconds of the system's clock. Something is done to the cluster at a third of its time.
    pub(crate) begin_ms: u64,
    /// How long a caller of a cluster waits between two pairs of requests.
    pub(crate) pause: Duration,
}

impl Options {
    /// Reads the arguments of the program: `--name value`.
    pub(crate) fn read() -> Self {
        let mut options = Self {
            peer: "respool".to_owned(),
            scenario: "closed".to_owned(),
            address: "127.0.0.1:6379".to_owned(),
            time: Duration::from_secs(2),
            tasks: 128,
            value_bytes: 64,
            rate: 10_000.0,
            seed: 1,
            workers: 0,
            batch: 10,
            begin_ms: 0,
            pause: Duration::from_millis(5),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().unwrap_or_else(|| panic!("{name} needs a value"));
            match name.as_str() {
                "--peer" => options.peer = value,
                "--scenario" => options.scenario = value,
                "--address" => options.address = value,
                "--seconds" => options.time = Duration::from_secs_f64(number(&value)),
                "--tasks" => options.tasks = number(&value) as usize,
                "--value-bytes" => options.value_bytes = number(&value) as usize,
                "--rate" => options.rate = number(&value),
                "--seed" => options.seed = number(&value) as u64,
                "--workers" => options.workers = number(&value) as usize,
                "--batch" => options.batch = number(&value) as usize,
                "--pause-ms" => options.pause = Duration::from_millis(number(&value) as u64),
                "--begin-ms" => options.begin_ms = number(&value) as u64,
                _ => panic!("{name} is not known"),
            }
        }
        options
    }
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}
