//! How long servers and the proxy were ready to run and had no processor, as the kernel counts it for each of their threads.
//!
//! Where the machine has more to do than it can, a reply may come late although its server answers whatever it gets to. That is the
//! machine's doing, and here is what says so. A proxy that forgets to write a request, or to read a reply, waits for no processor.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use respool_testkit::proc_stats;

use super::layout::Nodes;

/// Samples that are kept: more than a minute of them. No request is answered later.
const SAMPLES_MAX: usize = 4_000;

/// Whose thread it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Server(Nodes),
    Proxy,
}

#[derive(Debug)]
struct Thread {
    of: Of,
    pid: u32,
    id: u32,
    /// What it had waited at the last sample.
    waited: Option<Duration>,
}

/// Since the sample before.
#[derive(Debug)]
struct Sample {
    at: Instant,
    /// How long before that the sample before was taken.
    length: Duration,
    /// By thread; threads that were not there yet are not in it.
    waited: Vec<Duration>,
}

#[derive(Debug, Default)]
struct Waits {
    threads: Vec<Thread>,
    samples: VecDeque<Sample>,
}

/// All waits of a run so far.
#[derive(Debug, Default)]
pub(super) struct Processors(Mutex<Waits>);

impl Processors {
    /// A server of these nodes runs as this process now. What it does is done by one thread.
    pub(super) fn note_server(&self, nodes: Nodes, pid: u32) {
        self.add(Of::Server(nodes), pid, vec![pid]);
    }

    /// A proxy runs as this process now, beside the one before for a while.
    pub(super) fn note_proxy(&self, pid: u32) {
        self.add(Of::Proxy, pid, proc_stats::threads(pid).unwrap_or_default());
    }

    fn add(&self, of: Of, pid: u32, ids: Vec<u32>) {
        let mut waits = self.0.lock().expect("no client panics");
        waits.threads.extend(ids.into_iter().map(|id| Thread { of, pid, id, waited: None }));
    }

    /// Looks at all threads. One that has ended has waited for nothing, and so have all on a system that does not count.
    pub(super) fn sample(&self) {
        let mut waits = self.0.lock().expect("no client panics");
        let Waits { threads, samples } = &mut *waits;
        let more = |thread: &mut Thread| {
            let waited = proc_stats::processor_wait(thread.pid, thread.id).ok()?;
            Some(waited.saturating_sub(thread.waited.replace(waited)?))
        };
        let waited = threads.iter_mut().map(|thread| more(thread).unwrap_or_default()).collect();
        let at = Instant::now();
        let length = samples.back().map_or(Duration::ZERO, |before| at - before.at);
        samples.push_back(Sample { at, length, waited });
        if samples.len() > SAMPLES_MAX {
            samples.pop_front();
        }
    }

    /// The most that a thread of a server of these nodes and one of the proxy together waited within a span of that length since then.
    /// What both waited at once counts once, as far as samples tell. The span may lie anywhere until now: when an error was written is
    /// not known.
    pub(super) fn longest(&self, nodes: Nodes, since: Instant, span: Duration) -> Duration {
        let waits = self.0.lock().expect("no client panics");
        let samples: Vec<&Sample> = waits.samples.iter().filter(|sample| sample.at >= since).collect();
        let within = |last: usize| {
            let end = samples[last].at;
            let span = || samples[..=last].iter().rev().take_while(|sample| end.duration_since(sample.at) < span);
            let those_of = |is: &dyn Fn(Of) -> bool| {
                let numbers = waits.threads.iter().enumerate().filter(|(_, thread)| is(thread.of));
                let waiting = |number: &usize| span().any(|sample| !sample.waited_by(Some(*number)).is_zero());
                let waiting = numbers.map(|(number, _)| number).filter(waiting).map(Some);
                waiting.chain([None]).collect::<Vec<_>>()
            };
            let servers = those_of(&|of| matches!(of, Of::Server(of) if of.meets(nodes)));
            let pairs = those_of(&|of| of == Of::Proxy);
            let pairs = pairs.iter().flat_map(|proxy| servers.iter().map(move |server| (*proxy, *server)));
            let sum = |(proxy, server)| span().map(|sample| sample.waited_by_either(proxy, server)).sum();
            pairs.map(sum).max().unwrap_or_default()
        };
        (0..samples.len()).map(within).max().unwrap_or_default()
    }
}

impl Sample {
    fn waited_by(&self, thread: Option<usize>) -> Duration {
        thread.and_then(|number| self.waited.get(number)).copied().unwrap_or_default()
    }

    /// The most of the time that may have gone by while one or the other waited. The kernel counts a wait when it ends, so both have
    /// ended in this sample: from when the longer may have begun.
    fn waited_by_either(&self, one: Option<usize>, other: Option<usize>) -> Duration {
        let (one, other) = (self.waited_by(one), self.waited_by(other));
        (one + other).min(one.max(other) + self.length)
    }
}

#[cfg(test)]
impl Processors {
    /// A server of these nodes and a proxy waited so long until then.
    pub(super) fn of(nodes: Nodes, server: Duration, proxy: Duration, at: Instant) -> Processors {
        let thread = |of| Thread { of, pid: 0, id: 0, waited: None };
        let threads = vec![thread(Of::Server(nodes)), thread(Of::Proxy)];
        let samples = [Sample { at, length: server + proxy, waited: vec![server, proxy] }].into();
        Processors(Mutex::new(Waits { threads, samples }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_millis(250);

    #[test]
    fn what_was_waited_within_a_span_is_added_up() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        let processors = Processors::of(Nodes::one(1), ms(60), ms(20), begin + ms(100));
        for (at, server, proxy) in [(300, 70, 30), (420, 5, 1)] {
            let sample = Sample { at: begin + ms(at), length: ms(100), waited: vec![ms(server), ms(proxy)] };
            processors.0.lock().expect("no panic").samples.push_back(sample);
        }
        let longest = |nodes, since| processors.longest(nodes, begin + ms(since), SPAN);
        assert_eq!(longest(Nodes::one(1), 0), ms(60 + 20 + 70 + 30), "the third is too far from the first");
        assert_eq!(longest(Nodes::one(1), 200), ms(70 + 30 + 5 + 1), "the first is over");
        assert_eq!(longest(Nodes::one(0), 0), ms(20 + 30), "no server of that node waited");
        assert_eq!(longest(Nodes::ALL, 500), Duration::ZERO);
    }

    #[test]
    fn what_two_threads_waited_at_once_delays_a_reply_once() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        let threads = [Of::Server(Nodes::one(1)), Of::Proxy, Of::Proxy];
        let threads = threads.map(|of| Thread { of, pid: 0, id: 0, waited: None });
        let sample = |(at, waited): (u64, [u64; 3])| Sample {
            at: begin + ms(at),
            length: ms(20),
            waited: waited.map(ms).into(),
        };
        let samples = [(200, [100, 90, 0]), (220, [0, 5, 20]), (240, [10, 8, 0])].map(sample);
        let processors = Processors(Mutex::new(Waits { threads: threads.into(), samples: samples.into() }));
        assert_eq!(processors.longest(Nodes::one(1), begin, SPAN), ms(120 + 5 + 18), "with one thread, not with both");
        assert_eq!(processors.longest(Nodes::one(0), begin, SPAN), ms(90 + 5 + 8), "no server of that node waited");
    }

    #[test]
    fn the_kernel_counts_for_a_thread_that_is_there() {
        let processors = Processors::default();
        processors.note_proxy(std::process::id());
        processors.note_server(Nodes::ALL, std::process::id());
        let before = Instant::now();
        (0..2).for_each(|_| processors.sample());
        let waits = processors.0.lock().expect("no panic");
        // Those of other tests may end meanwhile. The process's first one stays, of the proxy and of the server.
        let first = |thread: &&Thread| thread.id == std::process::id() && thread.waited.is_some();
        assert_eq!(waits.threads.iter().filter(first).count(), 2, "{waits:?}");
        drop(waits);
        assert!(processors.longest(Nodes::ALL, before, SPAN) < Duration::from_secs(60));
    }
}
