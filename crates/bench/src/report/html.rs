//! Results as one page that needs nothing else: tables, and plots in SVG.

use std::fmt::Write as _;

use plotters::prelude::*;

use super::{Row, processor_us};
use crate::plan::Plan;

const SIZE: (u32, u32) = (900, 380);
/// Nines that the plot of percentiles shows: up to 99.999 %.
const NINES_MAX: f64 = 5.0;

const STYLE: &str = "body{font-family:sans-serif;margin:2em auto;max-width:960px;color:#222}\
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:.3em .6em;text-align:right}\
td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}.bad{color:#b00}";

/// The whole page.
pub fn page(plan: &Plan, rows: &[Row]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>respool bench</title>\
         <style>{STYLE}</style></head><body>\n<h1>respool bench</h1>\n<p>{}</p>\n",
        escape(&describe(plan))
    );
    for tests in rows.chunk_by(|one, other| one.all.work.title == other.all.work.title) {
        let _ = writeln!(out, "<h2>{}</h2>", escape(&tests[0].all.work.title));
        out.push_str(&table(tests));
        let comparison = super::text::comparison(tests);
        if !comparison.is_empty() {
            let _ = writeln!(out, "<pre>{}</pre>", escape(&comparison));
        }
        for plot in [percentiles(tests), throughput(tests)] {
            // A plot that cannot be drawn is left out; the figures are in the table.
            out.push_str(&plot.unwrap_or_else(|error| format!("<p class=\"bad\">{}</p>\n", escape(&error))));
        }
    }
    out.push_str("</body></html>\n");
    out
}

fn describe(plan: &Plan) -> String {
    let pace = match plan.pace {
        crate::plan::Pace::Closed => format!("closed loop, {} requests written together", plan.pipeline),
        crate::plan::Pace::Open { rate, spacing } => format!("open loop, {rate} requests per second ({spacing:?})"),
    };
    format!("{} connections, {} threads, {pace}, seed {}", plan.connections, plan.threads, plan.seed)
}

fn table(rows: &[Row]) -> String {
    let mut out = "<table><tr><th>target</th><th>requests/s</th><th>avg ms</th><th>p50</th><th>p95</th><th>p99</th>\
                   <th>p99.9</th><th>max</th><th>server us/request</th><th>wrong</th></tr>\n"
        .to_owned();
    for row in rows {
        let tally = &row.all.tally;
        let all = tally.all();
        let _ = write!(out, "<tr><td>{}</td><td>{:.0}</td>", escape(&row.all.target), tally.rate());
        for ms in [
            all.mean_ms(),
            all.percentile_ms(50.0),
            all.percentile_ms(95.0),
            all.percentile_ms(99.0),
            all.percentile_ms(99.9),
            all.max_ms(),
        ] {
            let _ = write!(out, "<td>{ms:.3}</td>");
        }
        let processor = processor_us(&row.all).map(|us| format!("{us:.2}")).unwrap_or_default();
        let wrongs = super::text::wrongs(&tally.wrongs, false);
        let _ = writeln!(out, "<td>{processor}</td><td class=\"bad\">{}</td></tr>", escape(wrongs.trim()));
    }
    out + "</table>\n"
}

/// Latency by percentile; the axis is in nines, so that the tail has as much room as the rest.
fn percentiles(rows: &[Row]) -> Result<String, String> {
    let lines: Vec<(String, Vec<(f64, f64)>)> = rows
        .iter()
        .map(|row| {
            let all = row.all.tally.all();
            let points = (0..=100).map(|step| {
                let nines = f64::from(step) * NINES_MAX / 100.0;
                (nines, all.percentile_ms(100.0 * (1.0 - 10f64.powf(-nines))).max(1e-4))
            });
            (row.all.target.clone(), points.collect())
        })
        .collect();
    let latencies = || lines.iter().flat_map(|(_, points)| points.iter().map(|point| point.1));
    let low = latencies().fold(f64::INFINITY, f64::min);
    let high = latencies().fold(0.0, f64::max);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let range = (low * 0.8..(high * 1.25).max(low)).log_scale();
        let mut chart = ChartBuilder::on(&root)
            .caption("latency by percentile", ("sans-serif", 18))
            .margin(10)
            .margin_right(30)
            .x_label_area_size(35)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..NINES_MAX, range)
            .map_err(|error| error.to_string())?;
        chart
            .configure_mesh()
            .x_labels(6)
            .x_label_formatter(&|nines| percentile(*nines))
            .y_label_formatter(&|ms| format!("{ms:.3} ms"))
            .draw()
            .map_err(|error| error.to_string())?;
        draw(&mut chart, &lines)?;
        root.present().map_err(|error| error.to_string())?;
    }
    Ok(svg + "\n")
}

/// The percentile that has so many nines.
fn percentile(nines: f64) -> String {
    let decimals = (nines.round() as usize).saturating_sub(2);
    format!("{:.decimals$}%", 100.0 * (1.0 - 10f64.powf(-nines.round())))
}

/// Replies a second over time.
fn throughput(rows: &[Row]) -> Result<String, String> {
    let lines: Vec<(String, Vec<(f64, f64)>)> = rows
        .iter()
        .map(|row| {
            let timeline = &row.all.tally.timeline;
            let length_s = timeline.interval_ns as f64 / 1e9;
            // All rounds lie on top of each other.
            let scale = length_s * row.rounds.len() as f64;
            let points = timeline.intervals.iter().enumerate();
            let points = points.map(|(place, i)| (place as f64 * length_s, i.replies as f64 / scale));
            (row.all.target.clone(), points.collect())
        })
        .collect();
    let points = || lines.iter().flat_map(|(_, points)| points);
    let end = points().map(|point| point.0).fold(0.0, f64::max).max(1e-3);
    let most = points().map(|point| point.1).fold(0.0, f64::max).max(1.0);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .caption("replies per second over time", ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(35)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..end, 0.0..most * 1.1)
            .map_err(|error| error.to_string())?;
        chart
            .configure_mesh()
            .x_label_formatter(&|seconds| format!("{seconds:.1} s"))
            .y_label_formatter(&|rate| format!("{rate:.0}"))
            .draw()
            .map_err(|error| error.to_string())?;
        draw(&mut chart, &lines)?;
        root.present().map_err(|error| error.to_string())?;
    }
    Ok(svg + "\n")
}

fn draw<'a, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<plotters::coord::types::RangedCoordf64, Y>>,
    lines: &[(String, Vec<(f64, f64)>)],
) -> Result<(), String>
where
    Y: plotters::coord::ranged1d::Ranged<ValueType = f64>,
{
    for (number, (name, points)) in lines.iter().enumerate() {
        let colour = Palette99::pick(number).to_rgba();
        chart
            .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))
            .map_err(|error| error.to_string())?
            .label(name.clone())
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
        .map_err(|error| error.to_string())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    #[test]
    fn percentiles_are_written_without_what_rounding_leaves() {
        let labels: Vec<_> = (0..=5).map(|nines| percentile(f64::from(nines))).collect();
        assert_eq!(labels, ["0%", "90%", "99%", "99.9%", "99.99%", "99.999%"]);
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let rows = [Row::new(measured("<one>", 1)), Row::new(measured("other", 2))];
        let page = page(&Plan::default(), &rows);
        assert_eq!(page.matches("<svg").count(), 2);
        assert!(page.contains("&lt;one&gt;") && !page.contains("<one>"), "names are escaped, in plots as well");
        let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!elsewhere.contains("http") && !elsewhere.contains("<script"), "{elsewhere}");
    }
}
