//! The plot: operations a second, and the time of one caller's GET, as bars.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::OURS;
use super::samples::Samples;

const WIDTH: u32 = 1000;
const ROW: u32 = 24;
const HEAD: u32 = 40;

/// What is drawn: scenario, figure, words.
const PANELS: [(&str, &str, &str); 3] = [
    ("closed-128", "ops_s", "128 callers: ops/s"),
    ("closed-1000", "ops_s", "1,000 callers: ops/s"),
    ("serial", "p50_us", "one caller: GET p50, us"),
];

/// One SVG.
pub(crate) fn plot(peers: &[&str], samples: &Samples) -> Result<String, String> {
    let mut svg = String::new();
    let size = (WIDTH, HEAD + ROW * peers.len() as u32);
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&root, peers, samples).map_err(|error| error.to_string())?;
        root.present().map_err(|error| error.to_string())?;
    }
    Ok(svg + "\n")
}

fn draw(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    peers: &[&str],
    samples: &Samples,
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    root.fill(&WHITE)?;
    let font = |pixels: i32| ("sans-serif", pixels).into_font().color(&BLACK);
    let left = font(13).pos(Pos::new(HPos::Left, VPos::Center));
    let right = font(13).pos(Pos::new(HPos::Right, VPos::Center));
    let head = font(15).pos(Pos::new(HPos::Left, VPos::Center));
    let names = 140;
    let panel = (WIDTH as i32 - names) / PANELS.len() as i32;
    let middle = |row: usize| (HEAD + ROW * row as u32 + ROW / 2) as i32;
    for (row, peer) in peers.iter().enumerate() {
        root.draw(&Text::new(*peer, (names - 10, middle(row)), right.clone()))?;
    }
    for (place, (scenario, figure, words)) in PANELS.iter().enumerate() {
        let start = names + panel * place as i32;
        root.draw(&Text::new(*words, (start, HEAD as i32 / 2), head.clone()))?;
        let most = peers.iter().filter_map(|peer| samples.median(scenario, peer, figure)).fold(0.0, f64::max);
        for (row, peer) in peers.iter().enumerate() {
            let Some(value) = samples.median(scenario, peer, figure) else { continue };
            let length = (value / most * f64::from(panel - 80)) as i32;
            let colour = if OURS.contains(peer) { RGBColor(200, 60, 40) } else { RGBColor(120, 140, 170) };
            let corners = [(start, middle(row) - 8), (start + length, middle(row) + 8)];
            root.draw(&Rectangle::new(corners, colour.filled()))?;
            let digits = usize::from(value < 100.0);
            root.draw(&Text::new(format!("{value:.digits$}"), (start + length + 5, middle(row)), left.clone()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::samples::Sample;
    use super::*;

    #[test]
    fn every_client_has_its_bar() {
        let mut samples = Samples::default();
        samples.add("serial", "one", Sample::from([("p50_us".to_owned(), 20.5)]));
        let svg = plot(&["one", "two"], &samples).unwrap();
        assert!(svg.contains("20.5") && svg.contains("two") && svg.starts_with("<svg"), "{svg}");
    }
}
