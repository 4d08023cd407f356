//! Results for programs.

use serde_json::{Value, json};

use super::{Row, processor_us};
use crate::plan::{Pace, Plan};
use crate::tally::{Latencies, Timeline};

/// All rows of a run. `rows` of one test follow each other, the first target first.
pub fn document(plan: &Plan, rows: &[Row]) -> Value {
    json!({
        "format": 1,
        "program": concat!("respool ", env!("CARGO_PKG_VERSION")),
        "plan": plan_of(plan),
        "results": rows.iter().map(row_of).collect::<Vec<_>>(),
        "ratios": ratios(rows),
    })
}

fn plan_of(plan: &Plan) -> Value {
    let rate = match plan.pace {
        Pace::Closed => Value::Null,
        Pace::Open { rate, .. } => rate.into(),
    };
    json!({
        "connections": plan.connections,
        "threads": plan.threads,
        "pipeline": plan.pipeline,
        "keep_alive": plan.is_kept,
        "loop": if rate.is_null() { "closed" } else { "open" },
        "rate": rate,
        "requests": plan.requests,
        "duration_s": plan.duration.map(|duration| duration.as_secs_f64()),
        "warm_up_s": plan.warm_up.as_secs_f64(),
        "ramp_s": plan.ramp.as_secs_f64(),
        "seed": plan.seed,
    })
}

fn row_of(row: &Row) -> Value {
    let measured = &row.all;
    let tally = &measured.tally;
    let wrongs = &tally.wrongs;
    let operations = measured.work.operations.iter().zip(&tally.latencies).map(|(operation, latencies)| {
        json!({ "test": operation.title, "replies": latencies.count(), "latency_ms": latency(latencies) })
    });
    let processes = measured.processes.iter().map(|process| {
        json!({
            "pid": process.pid, "processor_s": process.processor_s,
            "resident_bytes": process.resident_bytes, "peak_resident_bytes": process.peak_resident_bytes,
        })
    });
    let rounds = row.rounds.iter().map(|round| {
        json!({
            "rps": round.rate, "p50_ms": round.p50_ms, "p99_ms": round.p99_ms,
            "processor_us_per_request": round.processor_us,
        })
    });
    json!({
        "target": measured.target,
        "test": measured.work.title,
        "replies": tally.replies,
        "sent": tally.sent,
        "seconds": tally.seconds(),
        "rps": tally.rate(),
        "latency_ms": latency(&tally.all()),
        "operations": operations.collect::<Vec<_>>(),
        "timeline": timeline(&tally.timeline),
        "errors": wrongs.errors,
        "first_error": wrongs.first_error,
        "misses": wrongs.misses,
        "verified": measured.work.shape.is_verified,
        "wrong_replies": wrongs.mismatches,
        "first_wrong_reply": wrongs.first_mismatch,
        "lost_connections": wrongs.lost_connections,
        "unanswered": wrongs.unanswered,
        "unsent": wrongs.unsent,
        "sent_late_ms": (tally.sent_late.count() > 0).then(|| latency(&tally.sent_late)),
        "own_waited_s": tally.waited_ns as f64 / 1e9,
        "own_processor_us_per_request": measured.own_processor_s * 1e6 / tally.sent.max(1) as f64,
        "processor_us_per_request": processor_us(measured),
        "processes": processes.collect::<Vec<_>>(),
        "rounds": rounds.collect::<Vec<_>>(),
    })
}

/// A latency of all that are told apart.
pub(crate) fn latency(latencies: &Latencies) -> Value {
    json!({
        "avg": latencies.mean_ms(),
        "min": latencies.min_ms(),
        "p50": latencies.percentile_ms(50.0),
        "p90": latencies.percentile_ms(90.0),
        "p95": latencies.percentile_ms(95.0),
        "p99": latencies.percentile_ms(99.0),
        "p99.9": latencies.percentile_ms(99.9),
        "p99.99": latencies.percentile_ms(99.99),
        "max": latencies.max_ms(),
    })
}

fn timeline(timeline: &Timeline) -> Value {
    let intervals = &timeline.intervals;
    let mean_ms = intervals.iter().map(|i| i.latency_sum_ns as f64 / i.replies.max(1) as f64 / 1e6);
    json!({
        "interval_s": timeline.interval_ns as f64 / 1e9,
        "replies": intervals.iter().map(|interval| interval.replies).collect::<Vec<_>>(),
        "mean_ms": mean_ms.collect::<Vec<_>>(),
        "max_ms": intervals.iter().map(|interval| interval.latency_max_ns as f64 / 1e6).collect::<Vec<_>>(),
    })
}

/// Each target compared with the first of the same test.
fn ratios(rows: &[Row]) -> Vec<Value> {
    let mut ratios = Vec::new();
    for tests in rows.chunk_by(|one, other| one.all.work.title == other.all.work.title) {
        for row in &tests[1..] {
            let of = |figure: fn(&super::Round) -> f64| {
                row.ratio(&tests[0], figure)
                    .map(|ratio| json!({ "median": ratio.median, "low": ratio.low, "high": ratio.high }))
            };
            ratios.push(json!({
                "test": row.all.work.title, "target": row.all.target, "to": tests[0].all.target,
                "rps": of(|round| round.rate), "p50": of(|round| round.p50_ms), "p99": of(|round| round.p99_ms),
                "processor_time": of(|round| round.processor_us.unwrap_or(f64::NAN)),
            }));
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    #[test]
    fn programs_find_figures_and_ratios_by_name() {
        let rows = [Row::new(measured("one", 1)), Row::new(measured("other", 2))];
        let json = document(&Plan::default(), &rows);
        assert_eq!(json["results"][0]["rps"], 1000.0);
        assert_eq!(json["results"][0]["latency_ms"]["p50"].as_f64().map(|ms| (ms * 100.0).round()), Some(50.0));
        assert_eq!(json["results"][1]["target"], "other");
        assert_eq!(json["results"][0]["timeline"]["replies"].as_array().map(Vec::len), Some(11));
        assert_eq!(json["ratios"][0]["rps"]["median"], 0.5);
        assert_eq!(json["plan"]["loop"], "closed");
    }
}
