//! `respool bench`: tests against targets in rounds, and results as they come.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use respool_wire::Value;

use crate::ask::ask;
use crate::cli::{Options, Show};
use crate::plan::Plan;
use crate::report::{Row, html, json, text};
use crate::run::{Progress, run};
use crate::target::Target;

/// Does what `options` ask, and prints results to `out`. `is_stopped` ends it early, with the results so far.
///
/// # Errors
/// In words. What was printed before holds.
pub fn bench(mut options: Options, out: &mut dyn Write, is_stopped: &AtomicBool) -> Result<(), String> {
    if options.is_cluster {
        options.targets.iter_mut().try_for_each(Target::find_cluster)?;
    }
    let has_targets = options.targets.len() > 1;
    let facts: Vec<Vec<String>> = match options.show {
        Show::Page => options.targets.iter().map(facts_about).collect(),
        _ => vec![Vec::new(); options.targets.len()],
    };
    let targets: Vec<Arc<Target>> = std::mem::take(&mut options.targets).into_iter().map(Arc::new).collect();
    if options.show == Show::Csv {
        print(out, &text::csv_head(has_targets))?;
    }
    let mut rows: Vec<Row> = Vec::new();
    loop {
        rows.clear();
        for work in &options.works {
            let bar = options.has_bar.then(|| Bar::new(&options.plan, &work.title));
            let mut of_test: Vec<Row> = Vec::new();
            for round in 0..options.rounds {
                for turn in 0..targets.len() {
                    // Another target is the first in each round, so that no place is always the same one's.
                    let place = (round + turn) % targets.len();
                    let tell = |progress| bar.iter().for_each(|bar| bar.show(progress));
                    let measured = run(&options.plan, work, &targets[place], is_stopped, tell)?;
                    match of_test.iter_mut().find(|row| row.all.target == measured.target) {
                        Some(row) => row.add(&measured),
                        None => of_test.push(Row::new(measured)),
                    }
                }
            }
            drop(bar);
            let place_of = |row: &Row| targets.iter().position(|target| target.name == row.all.target);
            of_test.sort_by_key(place_of);
            for (row, facts) in of_test.iter().zip(&facts) {
                print(out, &shown(row, &options, facts, has_targets))?;
            }
            if options.show != Show::Csv {
                print(out, &text::comparison(&of_test))?;
            }
            rows.append(&mut of_test);
            if is_stopped.load(Ordering::Relaxed) {
                break;
            }
        }
        if !options.is_endless || is_stopped.load(Ordering::Relaxed) {
            break;
        }
    }
    if options.show == Show::Quiet {
        print(out, "\n")?;
    }
    if let Some(path) = &options.json {
        let document = format!("{:#}\n", json::document(&options.plan, &rows));
        save(path, &document, out)?;
    }
    if let Some(path) = &options.html {
        save(path, &html::page(&options.plan, &rows), out)?;
    }
    verdict(&rows)
}

/// Wrong replies make a run fail, whatever its figures are.
fn verdict(rows: &[Row]) -> Result<(), String> {
    let wrong: u64 = rows.iter().map(|row| row.all.tally.wrongs.mismatches).sum();
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} replies were not those to their requests")) }
}

fn shown(row: &Row, options: &Options, facts: &[String], has_targets: bool) -> String {
    match options.show {
        Show::Csv => text::csv_row(row, has_targets, options.precision),
        Show::Quiet => {
            let wrongs = text::wrongs(&row.all.tally.wrongs, false);
            text::quiet(row, has_targets, options.precision) + &wrongs
        }
        Show::Page => text::page(row, &options.plan, facts, has_targets, options.precision),
    }
}

/// How the server is configured, as redis-benchmark shows it; nothing where it does not tell.
fn facts_about(target: &Target) -> Vec<String> {
    let Some(node) = target.nodes.first() else { return Vec::new() };
    let questions: [&[&[u8]]; 2] = [&[b"CONFIG", b"GET", b"save"], &[b"CONFIG", b"GET", b"appendonly"]];
    let replies = ask(&node.endpoint, &target.identity, &target.tls, &questions).unwrap_or_default();
    let facts = replies.iter().zip(["save", "appendonly"]).filter_map(|(reply, name)| {
        let value = match reply {
            Value::Array(pair) => pair.get(1),
            Value::Map(pairs) => pairs.first().map(|(_, value)| value),
            _ => None,
        };
        match value {
            Some(Value::Bulk(value)) => {
                Some(format!("host configuration \"{name}\": {}", String::from_utf8_lossy(value)))
            }
            _ => None,
        }
    });
    facts.collect()
}

fn print(out: &mut dyn Write, text: &str) -> Result<(), String> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| format!("results cannot be printed: {error}")),
    }
}

fn save(path: &Path, text: &str, out: &mut dyn Write) -> Result<(), String> {
    if path == Path::new("-") {
        return print(out, text);
    }
    std::fs::write(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// How far a run is, on a terminal; where standard error is none, nothing is shown.
struct Bar {
    bar: ProgressBar,
    /// How long the run takes, if its length is not a number of requests.
    length: Option<Duration>,
}

impl Bar {
    fn new(plan: &Plan, title: &str) -> Self {
        let length = plan.duration.map(|duration| duration + plan.warm_up).filter(|_| plan.requests.is_none());
        let units = length.map_or(plan.requests.unwrap_or(0), |length| length.as_millis() as u64);
        let bar = ProgressBar::new(units);
        let style = ProgressStyle::with_template("{prefix} [{bar:40}] {percent}% {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        bar.set_prefix(title.to_owned());
        Self { bar, length }
    }

    fn show(&self, progress: Progress) {
        let position = match self.length {
            Some(_) => progress.elapsed.as_millis() as u64,
            None => progress.replies,
        };
        self.bar.set_position(position);
        let rate = progress.replies as f64 / progress.elapsed.as_secs_f64().max(1e-3);
        self.bar.set_message(format!("{rate:.0} replies/s"));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
