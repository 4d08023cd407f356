//! `SLOWLOG`, `COMMANDLOG` and `LATENCY` of the engine in this process.

use crate::command_log::entry::Entry;
use crate::command_log::latency::{Event, Sample};
use crate::command_log::log::{CommandLog, Kind};
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::ClientId;
use crate::observe::histogram::Histogram;
use crate::observe::terms::Terms;
use crate::session::Flow;
use respool_command::{Command, Execute, Row, ServerCommand, text as texts};
use respool_wire::{Args, Encoder};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// How many entries are shown by default.
const SHOWN: usize = 10;
/// What a histogram of a command counts in: doublings from a microsecond on.
const DOUBLINGS: u32 = 27;

/// What a request about the logs is answered with.
#[derive(Debug, PartialEq)]
enum LogReply {
    Done,
    Count(usize),
    Entries(Vec<Entry>),
    Histograms(Vec<Counts>),
    Samples(Vec<Sample>),
    /// The latest sample of each event, and the longest it has ever taken.
    Latest(Vec<(&'static str, Sample, u64)>),
    Text(String),
}

/// What is asked, or the error that says what is wrong with it.
type Answered = Result<LogReply, ErrorReply>;

impl<E: Execute> Env<E> {
    /// A request about the logs. `None`: it is about something else, or nothing is timed here.
    pub(crate) fn own_logs(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        let Command::Server(command) = row.command else { return None };
        self.times_from()?;
        let now_s = self.now.unix_us / 1_000_000;
        Some(match self.command_log.handle_request(command, args, now_s, &self.config.seeing)? {
            Ok(reply) => self.answer(index, |out| reply.write(out)),
            Err(words) => self.refuse(index, words),
        })
    }
}

impl CommandLog {
    /// A request about the logs. `None`: it is about something else, or the settings leave nothing to tell.
    fn handle_request(
        &mut self,
        command: ServerCommand,
        args: Args<'_>,
        now_s: u64,
        terms: &Terms,
    ) -> Option<Answered> {
        use ServerCommand as S;
        Some(match command {
            S::SlowlogGet if args.len() > 3 => Err(ErrorReply::of(|words| texts::subcommand_syntax(args, words))),
            S::SlowlogGet => self.show_log(args.get(2), Ok(Kind::Slow)),
            S::CommandlogGet => self.show_log(args.get(2), kind(args.at(3))),
            S::SlowlogLen => self.count_log(Ok(Kind::Slow)),
            S::CommandlogLen => self.count_log(kind(args.at(2))),
            S::SlowlogReset => self.reset_log(Ok(Kind::Slow)),
            S::CommandlogReset => self.reset_log(kind(args.at(2))),
            S::LatencyHistogram => Ok(self.histograms(args.from(2))),
            S::LatencyHistory => Ok(self.history(args.at(2))),
            S::LatencyLatest => Ok(self.latest()),
            S::LatencyReset => Ok(self.reset_latencies(args.from(2))),
            S::LatencyGraph => self.graph(args.at(2), now_s),
            // Without a threshold there is nothing to tell, which the engine says.
            S::LatencyDoctor if terms.latency_ms > 0 => Ok(self.tell_latencies(now_s)),
            _ => return None,
        })
    }

    fn show_log(&mut self, count: Option<&[u8]>, kind: Result<Kind, ErrorReply>) -> Answered {
        let count = match count.map(crate::integer::integer) {
            None => SHOWN,
            Some(Some(-1)) => usize::MAX,
            Some(Some(count)) if count >= 0 => usize::try_from(count).unwrap_or(usize::MAX),
            Some(_) => return Err(error_text::LOG_COUNT.into()),
        };
        Ok(LogReply::Entries(self.of(kind?).entries.iter().take(count).cloned().collect()))
    }

    fn count_log(&mut self, kind: Result<Kind, ErrorReply>) -> Answered {
        Ok(LogReply::Count(self.of(kind?).entries.len()))
    }

    fn reset_log(&mut self, kind: Result<Kind, ErrorReply>) -> Answered {
        self.of(kind?).entries.clear();
        Ok(LogReply::Done)
    }

    fn histograms(&self, wanted: Args<'_>) -> LogReply {
        let latencies = &self.latencies;
        let mut shown = Vec::new();
        if wanted.is_empty() {
            shown = latencies.histograms(None);
        }
        // A name that is repeated is shown once: each costs a copy of its histograms.
        let mut seen = BTreeSet::new();
        let names = wanted.iter().filter(|name| seen.insert(name.to_ascii_lowercase()));
        names.for_each(|name| shown.extend(latencies.histograms(Some(name))));
        let counts = |(name, histogram): (&'static str, &Histogram)| {
            let mut seen = 0;
            let counts = (0..DOUBLINGS).filter_map(|doubling| {
                let bound = 1 << doubling;
                // A range ends below the next power of two.
                let count = histogram.up_to(2 * bound - 1);
                (count > std::mem::replace(&mut seen, count)).then_some((bound, count))
            });
            Counts { name, calls: histogram.count(), counts: counts.collect() }
        };
        LogReply::Histograms(shown.into_iter().map(counts).collect())
    }

    fn event(&self, name: &[u8]) -> Option<&Event> {
        std::str::from_utf8(name).ok().and_then(|name| self.latencies.events.get(name))
    }

    fn history(&self, name: &[u8]) -> LogReply {
        LogReply::Samples(self.event(name).map(|event| event.samples.iter().copied().collect()).unwrap_or_default())
    }

    fn latest(&self) -> LogReply {
        let latest = self.latencies.events.iter();
        let latest = latest.filter_map(|(name, event)| Some((*name, *event.samples.back()?, event.most_ms)));
        LogReply::Latest(latest.collect())
    }

    fn reset_latencies(&mut self, names: Args<'_>) -> LogReply {
        let events = &mut self.latencies.events;
        let before = events.len();
        if names.is_empty() {
            events.clear();
        }
        events.retain(|name, _| !names.iter().any(|wanted| wanted == name.as_bytes()));
        LogReply::Count(before - events.len())
    }

    fn graph(&self, name: &[u8], now_s: u64) -> Answered {
        let event = self.event(name).ok_or_else(|| error_text::no_latency_samples(name))?;
        Ok(LogReply::Text(event.graph(&String::from_utf8_lossy(name), now_s)))
    }

    fn tell_latencies(&self, now_s: u64) -> LogReply {
        let events = &self.latencies.events;
        let mut told = match events.len() {
            0 => "No latency spike was observed since the last LATENCY RESET.\n".to_owned(),
            len => format!("{len} events had latency spikes. SLOWLOG GET shows single commands.\n\n"),
        };
        for (number, (name, event)) in events.iter().enumerate() {
            let _ = writeln!(told, "{}. {}", number + 1, event.told(name, now_s));
        }
        LogReply::Text(told)
    }
}

impl LogReply {
    fn write(&self, reply: &mut Encoder<'_>) {
        match self {
            Self::Done => reply.raw(respool_wire::replies::OK),
            Self::Count(count) => reply.integer(*count as i64),
            Self::Text(text) => reply.verbatim("txt", text.as_bytes()),
            Self::Entries(entries) => {
                reply.array(entries.len());
                entries.iter().for_each(|entry| write_entry(reply, entry));
            }
            Self::Histograms(histograms) => {
                reply.map(histograms.len());
                histograms.iter().for_each(|counts| counts.write(reply));
            }
            Self::Samples(samples) => {
                reply.array(samples.len());
                for sample in samples {
                    reply.array(2);
                    reply.integer(sample.unix_s as i64);
                    reply.integer(sample.ms as i64);
                }
            }
            Self::Latest(latest) => {
                reply.array(latest.len());
                for (name, sample, most_ms) in latest {
                    reply.array(4);
                    reply.bulk(name.as_bytes());
                    reply.integer(sample.unix_s as i64);
                    reply.integer(sample.ms as i64);
                    reply.integer(*most_ms as i64);
                }
            }
        }
    }
}

/// How often a command was called, and how often it took no longer than so many microseconds.
#[derive(Debug, PartialEq)]
struct Counts {
    name: &'static str,
    calls: u64,
    counts: Vec<(u64, u64)>,
}

impl Counts {
    fn write(&self, reply: &mut Encoder<'_>) {
        reply.bulk(self.name.as_bytes());
        reply.map(2);
        reply.bulk(b"calls");
        reply.integer(self.calls as i64);
        reply.bulk(b"histogram_usec");
        reply.map(self.counts.len());
        for (bound, count) in &self.counts {
            reply.integer(*bound as i64);
            reply.integer(*count as i64);
        }
    }
}

fn kind(word: &[u8]) -> Result<Kind, ErrorReply> {
    Kind::named(word).ok_or_else(|| error_text::LOG_TYPE.into())
}

fn write_entry(reply: &mut Encoder<'_>, entry: &Entry) {
    reply.array(6);
    reply.integer(entry.id as i64);
    reply.integer(entry.unix_s as i64);
    reply.integer(entry.figure as i64);
    reply.array(entry.arguments.len());
    entry.arguments.iter().for_each(|argument| reply.bulk(argument));
    reply.bulk(entry.address.as_bytes());
    reply.bulk(entry.name.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::{ArgsBuf, Protocol};

    fn ask(log: &mut CommandLog, command: ServerCommand, words: &[&str]) -> Option<Answered> {
        let args: ArgsBuf = words.iter().collect();
        log.handle_request(command, args.as_args(), 1_000, &Terms::default())
    }

    fn bytes(reply: &LogReply) -> String {
        let mut out = Vec::new();
        reply.write(&mut Encoder::new(&mut out, Protocol::Resp2));
        String::from_utf8(out).expect("replies of text")
    }

    #[test]
    fn a_bad_count_or_kind_of_log_changes_nothing() {
        let mut log = CommandLog::default();
        log.of(Kind::Slow).note(Entry::default(), 8);
        for count in ["-2", "x", ""] {
            let refused = ask(&mut log, ServerCommand::SlowlogGet, &["SLOWLOG", "GET", count]);
            assert_eq!(refused, Some(Err(error_text::LOG_COUNT.into())), "{count}");
        }
        let refused = ask(&mut log, ServerCommand::CommandlogReset, &["COMMANDLOG", "RESET", "quick"]);
        assert_eq!(refused, Some(Err(error_text::LOG_TYPE.into())));
        let too_many = ask(&mut log, ServerCommand::SlowlogGet, &["SLOWLOG", "GET", "1", "2"]);
        assert!(matches!(too_many, Some(Err(_))));
        assert_eq!(ask(&mut log, ServerCommand::SlowlogLen, &["SLOWLOG", "LEN"]), Some(Ok(LogReply::Count(1))));
    }

    #[test]
    fn each_log_is_shown_and_emptied_for_itself() {
        let mut log = CommandLog::default();
        (0..12).for_each(|_| log.of(Kind::Slow).note(Entry::default(), 100));
        log.of(Kind::LargeReply).note(Entry::default(), 100);
        let shown = |log: &mut CommandLog, words: &[&str]| match ask(log, ServerCommand::SlowlogGet, words) {
            Some(Ok(LogReply::Entries(entries))) => entries.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(shown(&mut log, &["SLOWLOG", "GET"]), SHOWN);
        assert_eq!(shown(&mut log, &["SLOWLOG", "GET", "-1"]), 12);
        assert_eq!(shown(&mut log, &["SLOWLOG", "GET", "0"]), 0);
        assert_eq!(ask(&mut log, ServerCommand::SlowlogReset, &["SLOWLOG", "RESET"]), Some(Ok(LogReply::Done)));
        assert_eq!(log.logs.each_ref().map(|log| log.entries.len()), [0, 0, 1]);
    }

    #[test]
    fn samples_of_an_event_are_told_until_they_are_reset() {
        let mut log = CommandLog::default();
        log.latencies.note("command", 900, 30);
        log.latencies.note("command", 901, 20);
        let latest = ask(&mut log, ServerCommand::LatencyLatest, &["LATENCY", "LATEST"]).and_then(Result::ok);
        let latest = latest.map(|reply| bytes(&reply));
        assert_eq!(latest.as_deref(), Some("*1\r\n*4\r\n$7\r\ncommand\r\n:901\r\n:20\r\n:30\r\n"));
        let graph = ask(&mut log, ServerCommand::LatencyGraph, &["LATENCY", "GRAPH", "fork"]);
        assert_eq!(graph, Some(Err(error_text::no_latency_samples(b"fork"))));
        // Without a threshold the engine says that there is nothing to tell.
        assert_eq!(ask(&mut log, ServerCommand::LatencyDoctor, &["LATENCY", "DOCTOR"]), None);
        let other = ask(&mut log, ServerCommand::LatencyReset, &["LATENCY", "RESET", "fork"]);
        assert_eq!(other, Some(Ok(LogReply::Count(0))));
        let all = ask(&mut log, ServerCommand::LatencyReset, &["LATENCY", "RESET"]);
        assert_eq!(all, Some(Ok(LogReply::Count(1))));
        let history = ask(&mut log, ServerCommand::LatencyHistory, &["LATENCY", "HISTORY", "command"]);
        assert_eq!(history, Some(Ok(LogReply::Samples(Vec::new()))));
    }

    #[test]
    fn a_histogram_named_twice_is_shown_once() {
        let mut log = CommandLog::default();
        let row = respool_command::lookup(b"GET").expect("a known command");
        [1, 1, 5].into_iter().for_each(|us| log.latencies.count(row, us));
        let words = ["LATENCY", "HISTOGRAM", "get", "GET", "nonesuch"];
        let shown = ask(&mut log, ServerCommand::LatencyHistogram, &words);
        let counts = vec![(1, 2), (4, 3)];
        assert_eq!(shown, Some(Ok(LogReply::Histograms(vec![Counts { name: "get", calls: 3, counts }]))));
        log.reset_counts();
        let shown = ask(&mut log, ServerCommand::LatencyHistogram, &words);
        assert_eq!(shown, Some(Ok(LogReply::Histograms(Vec::new()))));
    }
}
