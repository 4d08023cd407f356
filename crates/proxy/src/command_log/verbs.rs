//! `SLOWLOG`, `COMMANDLOG` and `LATENCY` of the engine in this process.

use super::latency::Event;
use crate::command_log::entry::Entry;
use crate::command_log::log::Kind;
use crate::env::Env;
use crate::error_text;
use crate::session::Flow;
use crate::session::id::ClientId;
use respool_command::{Command, Execute, Row, ServerCommand, text as texts};
use respool_wire::{Args, Encoder};
use std::collections::BTreeSet;

/// How many entries are shown by default.
const SHOWN: usize = 10;
/// What a histogram of a command counts in: doublings from a microsecond on.
const DOUBLINGS: u32 = 27;

impl<E: Execute> Env<E> {
    /// Whether a request may be about the logs.
    #[inline]
    pub(crate) fn is_own_log(&self, row: &Row) -> bool {
        matches!(row.command, Command::Server(_))
    }

    /// A request about the logs. `None`: it is about something else, or nothing is timed here.
    pub(crate) fn own_logs(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        let Command::Server(command) = row.command else { return None };
        if command == ServerCommand::ConfigResetstat {
            // The engine has figures of its own, and answers.
            self.command_log.latencies.forget_commands();
            self.command_log.calls.reset();
            return None;
        }
        self.times_from()?;
        let said = match command {
            ServerCommand::SlowlogGet if args.len() > 3 => {
                let mut words = Vec::new();
                texts::subcommand_syntax(args, &mut words);
                Err(words)
            }
            ServerCommand::SlowlogGet => self.show_log(index, args.get(2), Ok(Kind::Slow)),
            ServerCommand::CommandlogGet => self.show_log(index, args.get(2), kind(args.at(3))),
            ServerCommand::SlowlogLen => self.count_log(index, Ok(Kind::Slow)),
            ServerCommand::CommandlogLen => self.count_log(index, kind(args.at(2))),
            ServerCommand::SlowlogReset => self.reset_log(index, Ok(Kind::Slow)),
            ServerCommand::CommandlogReset => self.reset_log(index, kind(args.at(2))),
            ServerCommand::LatencyHistogram => {
                self.show_histograms(index, args.from(2));
                Ok(())
            }
            ServerCommand::LatencyHistory => {
                self.show_history(index, args.at(2));
                Ok(())
            }
            ServerCommand::LatencyLatest => {
                self.show_latest(index);
                Ok(())
            }
            ServerCommand::LatencyReset => {
                self.reset_latencies(index, args.from(2));
                Ok(())
            }
            ServerCommand::LatencyGraph => self.show_graph(index, args.at(2)),
            // Without a threshold there is nothing to tell, which the engine says.
            ServerCommand::LatencyDoctor if self.config.seeing.latency_ms > 0 => {
                self.tell_latencies(index);
                Ok(())
            }
            _ => return None,
        };
        Some(match said {
            Ok(()) => Flow::Next,
            Err(words) => self.refuse(index, &words),
        })
    }

    fn show_log(&mut self, index: ClientId, count: Option<&[u8]>, kind: Result<Kind, Vec<u8>>) -> Result<(), Vec<u8>> {
        let count = match count.map(crate::integer::integer) {
            None => SHOWN,
            Some(Some(-1)) => usize::MAX,
            Some(Some(count)) if count >= 0 => usize::try_from(count).unwrap_or(usize::MAX),
            Some(_) => return Err(error_text::LOG_COUNT.into()),
        };
        let log = self.command_log.of(kind?);
        let shown: Vec<Entry> = log.entries.iter().take(count).cloned().collect();
        self.answer(index, |reply| {
            reply.array(shown.len());
            shown.iter().for_each(|entry| write_entry(reply, entry));
        });
        Ok(())
    }

    fn count_log(&mut self, index: ClientId, kind: Result<Kind, Vec<u8>>) -> Result<(), Vec<u8>> {
        let len = self.command_log.of(kind?).entries.len();
        self.answer(index, |reply| reply.integer(len as i64));
        Ok(())
    }

    fn reset_log(&mut self, index: ClientId, kind: Result<Kind, Vec<u8>>) -> Result<(), Vec<u8>> {
        self.command_log.of_mut(kind?).entries.clear();
        self.answer(index, |reply| reply.raw(respool_wire::replies::OK));
        Ok(())
    }

    fn show_histograms(&mut self, index: ClientId, wanted: Args<'_>) {
        let latencies = &self.command_log.latencies;
        let mut shown = Vec::new();
        if wanted.is_empty() {
            shown = latencies.histograms(None);
        }
        // A name that is repeated is shown once: each costs a copy of its histograms.
        let mut seen = BTreeSet::new();
        let names = wanted.iter().filter(|name| seen.insert(name.to_ascii_lowercase()));
        names.for_each(|name| shown.extend(latencies.histograms(Some(name))));
        let shown: Vec<Counts> = shown
            .into_iter()
            .map(|(name, histogram)| {
                let mut seen = 0;
                let counts = (0..DOUBLINGS).filter_map(|doubling| {
                    let bound = 1 << doubling;
                    // A range ends below the next power of two.
                    let count = histogram.up_to(2 * bound - 1);
                    (count > std::mem::replace(&mut seen, count)).then_some((bound, count))
                });
                Counts { name, calls: histogram.count(), counts: counts.collect() }
            })
            .collect();
        self.answer(index, |reply| {
            reply.map(shown.len());
            for Counts { name, calls, counts } in &shown {
                reply.bulk(name.as_bytes());
                reply.map(2);
                reply.bulk(b"calls");
                reply.integer(*calls as i64);
                reply.bulk(b"histogram_usec");
                reply.map(counts.len());
                for (bound, count) in counts {
                    reply.integer(*bound as i64);
                    reply.integer(*count as i64);
                }
            }
        });
    }

    fn event(&self, name: &[u8]) -> Option<&Event> {
        std::str::from_utf8(name).ok().and_then(|name| self.command_log.latencies.events.get(name))
    }

    fn show_history(&mut self, index: ClientId, name: &[u8]) {
        let samples = self.event(name).map(|event| event.samples.clone()).unwrap_or_default();
        self.answer(index, |reply| {
            reply.array(samples.len());
            for sample in &samples {
                reply.array(2);
                reply.integer(sample.unix_s as i64);
                reply.integer(sample.ms as i64);
            }
        });
    }

    fn show_latest(&mut self, index: ClientId) {
        let events = &self.command_log.latencies.events;
        let shown: Vec<_> =
            events.iter().filter_map(|(name, event)| Some((*name, *event.samples.back()?, event.most_ms))).collect();
        self.answer(index, |reply| {
            reply.array(shown.len());
            for (name, sample, most_ms) in &shown {
                reply.array(4);
                reply.bulk(name.as_bytes());
                reply.integer(sample.unix_s as i64);
                reply.integer(sample.ms as i64);
                reply.integer(*most_ms as i64);
            }
        });
    }

    fn reset_latencies(&mut self, index: ClientId, names: Args<'_>) {
        let events = &mut self.command_log.latencies.events;
        let before = events.len();
        if names.is_empty() {
            events.clear();
        }
        events.retain(|name, _| !names.iter().any(|wanted| wanted == name.as_bytes()));
        let gone = before - events.len();
        self.answer(index, |reply| reply.integer(gone as i64));
    }

    fn show_graph(&mut self, index: ClientId, name: &[u8]) -> Result<(), Vec<u8>> {
        let now_s = self.now.unix_us / 1_000_000;
        let Some(event) = self.event(name) else { return Err(error_text::no_latency_samples(name)) };
        let graph = event.graph(&String::from_utf8_lossy(name), now_s);
        self.answer(index, |reply| reply.verbatim("txt", graph.as_bytes()));
        Ok(())
    }

    fn tell_latencies(&mut self, index: ClientId) {
        let events = &self.command_log.latencies.events;
        let mut told = match events.len() {
            0 => "No latency spike was observed since the last LATENCY RESET.\n".to_owned(),
            len => format!("{len} events had latency spikes. SLOWLOG GET shows single commands.\n\n"),
        };
        events.iter().for_each(|(name, event)| told += &event.told(name));
        self.answer(index, |reply| reply.verbatim("txt", told.as_bytes()));
    }
}

/// How often a command was called, and how often it took no longer than so many microseconds.
struct Counts {
    name: &'static str,
    calls: u64,
    counts: Vec<(u64, u64)>,
}

fn kind(word: &[u8]) -> Result<Kind, Vec<u8>> {
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
