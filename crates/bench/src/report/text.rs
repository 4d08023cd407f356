//! Results as redis-benchmark prints them: a line, a page, or CSV with the same columns.

use std::fmt::Write as _;

use super::{Row, processor_us, seconds};
use crate::plan::{Pace, Plan};
use crate::run::Measured;
use crate::tally::{Latencies, Wrongs};

/// The columns of CSV.
const COLUMNS: &[&str] = &[
    "test",
    "rps",
    "avg_latency_ms",
    "min_latency_ms",
    "p50_latency_ms",
    "p95_latency_ms",
    "p99_latency_ms",
    "max_latency_ms",
];

/// The head of CSV. With several targets each row has its target in front.
pub fn csv_head(has_targets: bool) -> String {
    let columns = has_targets.then_some("target").into_iter().chain(COLUMNS.iter().copied());
    row_of(columns.map(str::to_owned))
}

/// One row of CSV. Of a mix of requests there is one for each kind behind that for all.
pub fn csv_row(row: &Row, has_targets: bool, precision: usize) -> String {
    let tally = &row.all.tally;
    let mut rows = csv_line(row, &row.all.work.title, tally.rate(), &tally.all(), has_targets, precision);
    if row.all.work.operations.len() > 1 {
        for (operation, latencies) in row.all.work.operations.iter().zip(&tally.latencies) {
            let rate = tally.rate() * latencies.count() as f64 / tally.replies.max(1) as f64;
            rows += &csv_line(row, &operation.title, rate, latencies, has_targets, precision);
        }
    }
    rows
}

/// Mean, least, p50, p95, p99 and greatest latency in milliseconds, the columns of redis-benchmark.
fn figures_ms(latencies: &Latencies) -> [f64; 6] {
    [
        latencies.mean_ms(),
        latencies.min_ms(),
        latencies.percentile_ms(50.0),
        latencies.percentile_ms(95.0),
        latencies.percentile_ms(99.0),
        latencies.max_ms(),
    ]
}

fn csv_line(row: &Row, title: &str, rate: f64, latencies: &Latencies, has_targets: bool, precision: usize) -> String {
    let target = has_targets.then(|| row.all.target.clone());
    let figures = figures_ms(latencies).map(|ms| format!("{ms:.precision$}"));
    row_of(target.into_iter().chain([title.to_owned(), format!("{rate:.2}")]).chain(figures))
}

fn row_of(fields: impl Iterator<Item = String>) -> String {
    let quoted: Vec<String> = fields.map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
    quoted.join(",") + "\n"
}

/// One line for a test.
pub fn quiet(row: &Row, has_targets: bool, precision: usize) -> String {
    let tally = &row.all.tally;
    let name = name_of(&row.all, has_targets);
    let p50 = tally.all().percentile_ms(50.0);
    format!("{name}: {:.2} requests per second, p50={p50:.precision$} msec\n", tally.rate())
}

fn name_of(measured: &Measured, has_targets: bool) -> String {
    let title = &measured.work.title;
    if has_targets { format!("{title} @ {}", measured.target) } else { title.clone() }
}

/// A page for a test. `facts` are lines about the server.
pub fn page(row: &Row, plan: &Plan, facts: &[String], has_targets: bool, precision: usize) -> String {
    let measured = &row.all;
    let tally = &measured.tally;
    let all = tally.all();
    let mut out = format!("====== {} ======\n", name_of(measured, has_targets));
    let length = seconds(std::time::Duration::from_secs_f64(tally.seconds()));
    let _ = writeln!(out, "  {} requests completed in {length} seconds", tally.replies);
    let _ = writeln!(out, "  {} parallel clients", plan.connections);
    match measured.work.shape.sizes.only() {
        Some(size) => out.push_str(&format!("  {size} bytes payload\n")),
        None => out.push_str("  bytes payload of several sizes\n"),
    }
    let _ = writeln!(out, "  keep alive: {}", u8::from(plan.is_kept));
    if let Pace::Open { rate, spacing } = plan.pace {
        let _ = writeln!(out, "  open loop: {rate} requests per second due, {spacing:?}; latency from the due time");
    }
    facts.iter().for_each(|fact| out.push_str(&format!("  {fact}\n")));
    let threads = if plan.threads > 1 { "yes" } else { "no" };
    let _ = writeln!(out, "  multi-thread: {threads}");
    if plan.threads > 1 {
        let _ = writeln!(out, "  threads: {}", plan.threads);
    }
    out.push_str("\nLatency by percentile distribution:\n");
    for (percent, ms, count) in all.steps() {
        let _ = writeln!(out, "{percent:.3}% <= {ms:.precision$} milliseconds (cumulative count {count})");
    }
    out.push_str("\nCumulative distribution of latencies:\n");
    for (ms, count) in distribution(&all) {
        let percent = count as f64 * 100.0 / all.count().max(1) as f64;
        let _ = writeln!(out, "{percent:.3}% <= {ms:.3} milliseconds (cumulative count {count})");
    }
    out.push_str("\nSummary:\n");
    let _ = writeln!(out, "  throughput summary: {:.2} requests per second", tally.rate());
    out.push_str("  latency summary (msec):\n          avg       min       p50       p95       p99       max\n");
    out.push_str(&summary(&all, precision));
    if measured.work.operations.len() > 1 {
        for (operation, latencies) in measured.work.operations.iter().zip(&tally.latencies) {
            let _ = writeln!(out, "  of {} {}:", latencies.count(), operation.title);
            out.push_str(&summary(latencies, precision));
        }
    }
    out.push_str(&costs(measured));
    out.push_str(&wrongs(&tally.wrongs, measured.work.shape.is_verified));
    out.push('\n');
    out
}

fn summary(latencies: &Latencies, precision: usize) -> String {
    let cells: Vec<String> = figures_ms(latencies).iter().map(|ms| format!("{ms:>9.precision$}")).collect();
    format!("    {}\n", cells.join(" "))
}

/// Tenths of a millisecond up to two, milliseconds up to a hundred, then ever larger steps; without those that add nothing.
fn distribution(all: &Latencies) -> Vec<(f64, u64)> {
    let tenths = (1..=20).map(|step| f64::from(step) / 10.0);
    let ones = (3..=100).map(f64::from);
    let tens = (11..=100).map(|step| f64::from(step) * 10.0);
    let seconds = (2..=100).map(|step| f64::from(step) * 1000.0);
    let mut steps: Vec<(f64, u64)> =
        tenths.chain(ones).chain(tens).chain(seconds).map(|ms| (ms, all.up_to(ms))).collect();
    steps.dedup_by_key(|(_, count)| *count);
    steps
}

/// Below this a wait for a processor is too short to be seen in a percentile.
const WAITED_NS_SHOWN: u64 = 1_000_000;

/// What the processes used, and what made latencies longer that is not the server's.
fn costs(measured: &Measured) -> String {
    let mut out = String::new();
    let own_us = measured.own_processor_s * 1e6 / measured.tally.sent.max(1) as f64;
    let _ = writeln!(out, "  processor time of this program: {own_us:.3} us per request");
    let late = &measured.tally.sent_late;
    if late.count() > 0 {
        let [p50, p99, most] = [late.percentile_ms(50.0), late.percentile_ms(99.0), late.max_ms()];
        let _ = writeln!(out, "  sent after their time: p50 {p50:.3} ms, p99 {p99:.3} ms, {most:.3} ms at most");
    }
    if measured.tally.waited_ns > WAITED_NS_SHOWN {
        let waited_ms = measured.tally.waited_ns as f64 / 1e6;
        let _ = writeln!(out, "  this program waited {waited_ms:.1} ms for a processor, which latencies contain");
    }
    if let Some(us) = processor_us(measured) {
        let _ = writeln!(out, "  processor time of the servers: {us:.3} us per request");
    }
    for process in &measured.processes {
        let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let _ = writeln!(
            out,
            "  process {}: {:.2} s of a processor, {:.1} MB resident, {:.1} MB at most",
            process.pid,
            process.processor_s,
            megabytes(process.resident_bytes),
            megabytes(process.peak_resident_bytes)
        );
    }
    out
}

/// What went wrong, if anything did.
pub fn wrongs(wrongs: &Wrongs, is_verified: bool) -> String {
    let mut out = String::new();
    let mut line = |count: u64, what: &str, first: Option<&String>| {
        if count > 0 {
            let first = first.map(|first| format!(", the first: {first}")).unwrap_or_default();
            let _ = writeln!(out, "  {count} {what}{first}");
        }
    };
    line(wrongs.errors, "error replies", wrongs.first_error.as_ref());
    line(wrongs.mismatches, "WRONG REPLIES", wrongs.first_mismatch.as_ref());
    line(wrongs.misses, "replies without a value", None);
    line(wrongs.lost_connections, "lost connections", None);
    line(wrongs.unanswered, "requests that were never answered", None);
    line(wrongs.unsent, "requests that were due and not sent", None);
    if is_verified && wrongs.mismatches == 0 {
        out.push_str("  every value proved its key\n");
    }
    out
}

/// How the targets of one test compare with the first of them.
pub fn comparison(rows: &[Row]) -> String {
    let Some((first, others)) = rows.split_first() else { return String::new() };
    let mut out = String::new();
    for row in others {
        let _ = write!(out, "{}: {} / {}:", row.all.work.title, row.all.target, first.all.target);
        let mut figure = |name: &str, of: fn(&super::Round) -> f64| {
            if let Some(ratio) = row.ratio(first, of) {
                let _ = write!(out, "  {name} {:.3} ({:.3}..{:.3})", ratio.median, ratio.low, ratio.high);
            }
        };
        figure("rps", |round| round.rate);
        figure("p50", |round| round.p50_ms);
        figure("p99", |round| round.p99_ms);
        figure("processor time", |round| round.processor_us.unwrap_or(f64::NAN));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    #[test]
    fn csv_has_the_columns_of_redis_benchmark() {
        assert_eq!(
            csv_head(false),
            "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n"
        );
        let row = Row::new(measured("one", 1));
        let line = csv_row(&row, false, 3);
        assert!(
            line.starts_with("\"GET\",\"1000.00\",\"0.5")
                && line.ends_with("\"0.001\",\"0.500\",\"0.950\",\"0.990\",\"1.000\"\n"),
            "{line}"
        );
        assert!(csv_row(&row, true, 3).starts_with("\"one\",\"GET\","));
    }

    #[test]
    fn the_line_and_the_page_read_as_redis_benchmarks() {
        let row = Row::new(measured("one", 1));
        assert_eq!(quiet(&row, false, 3), "GET: 1000.00 requests per second, p50=0.500 msec\n");
        let page = page(&row, &Plan::default(), &["host configuration \"save\": ".to_owned()], false, 3);
        for part in [
            "====== GET ======\n  1000 requests completed in 1.00 seconds\n  50 parallel clients\n  3 bytes payload\n",
            "  keep alive: 1\n  host configuration \"save\": \n  multi-thread: no\n",
            "50.000% <= 0.500 milliseconds (cumulative count 500)\n",
            "100.000% <= 1.000 milliseconds (cumulative count 1000)\n",
            "  throughput summary: 1000.00 requests per second\n",
            "process 7: 0.50 s of a processor, 1.0 MB resident, 2.0 MB at most",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }

    #[test]
    fn what_the_load_itself_adds_to_latencies_is_said() {
        let mut row = Row::new(measured("one", 1));
        let page_of = |row: &Row| page(row, &Plan::default(), &[], false, 3);
        assert!(!page_of(&row).contains("after their time") && !page_of(&row).contains("waited"));
        row.all.tally.sent_late.record(2_000_000);
        row.all.tally.waited_ns = 30_000_000;
        let page = page_of(&row);
        assert!(
            page.contains("  sent after their time: p50 2.0") && page.contains("this program waited 30.0 ms"),
            "{page}"
        );
    }

    #[test]
    fn targets_are_compared_with_the_first() {
        let rows = [Row::new(measured("one", 1)), Row::new(measured("other", 2))];
        assert!(comparison(&rows).contains("other / one:  rps 0.500 (0.500..0.500)"), "{}", comparison(&rows));
        assert_eq!(comparison(&rows[..1]), "");
    }

    #[test]
    fn what_went_wrong_is_said_and_nothing_else() {
        assert_eq!(wrongs(&Wrongs::default(), false), "");
        let bad = Wrongs { mismatches: 2, first_mismatch: Some("x".to_owned()), ..Wrongs::default() };
        assert_eq!(wrongs(&bad, true), "  2 WRONG REPLIES, the first: x\n");
    }
}
