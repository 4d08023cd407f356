//! Round trips: a PING every ten milliseconds, and how long it took.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::console::Console;
use crate::render::Format;
use crate::session::Failure;

/// Between two samples.
const PAUSE: Duration = Duration::from_millis(10);

/// What was measured, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    min: f64,
    max: f64,
    sum: f64,
    count: u64,
}

impl Figures {
    fn add(&mut self, ms: f64) {
        self.min = if self.count == 0 { ms } else { self.min.min(ms) };
        self.max = self.max.max(ms);
        self.sum += ms;
        self.count += 1;
    }

    fn average(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    fn sentence(&self) -> String {
        format!("min: {:.2}, max: {:.2}, avg: {:.2} ({} samples)", self.min, self.max, self.average(), self.count)
    }

    /// For programs.
    fn line(&self, format: &Format) -> String {
        let Self { min, max, count, .. } = self;
        let average = self.average();
        match format {
            Format::Csv => format!("{min:.2},{max:.2},{average:.2},{count}"),
            Format::Json | Format::QuotedJson => {
                format!("{{\"min\":{min:.2},\"max\":{max:.2},\"avg\":{average:.2},\"count\":{count}}}")
            }
            Format::Terminal | Format::Raw { .. } => format!("{min:.2} {max:.2} {average:.2} {count}"),
        }
    }
}

/// One round trip, in milliseconds.
fn sample(console: &mut Console<'_>) -> Result<f64, Failure> {
    console.connect()?;
    let begun = Instant::now();
    console.session.ask(&["PING"])?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

fn is_live(console: &Console<'_>) -> bool {
    console.options.is_output_terminal && console.options.format == Format::Terminal
}

/// On a terminal the figures so far, again and again; else those of one interval.
pub(crate) fn live(console: &mut Console<'_>) -> Result<bool, Failure> {
    if is_live(console) {
        return rounds(console, None, Some(1));
    }
    let interval = console.options.interval.unwrap_or(Duration::from_secs(1));
    rounds(console, Some(interval), Some(1))
}

/// A line for every interval.
pub(crate) fn history(console: &mut Console<'_>) -> Result<bool, Failure> {
    let interval = console.options.interval.unwrap_or(Duration::from_secs(15));
    let count = console.options.rounds();
    rounds(console, Some(interval), count)
}

fn rounds(console: &mut Console<'_>, interval: Option<Duration>, count: Option<u64>) -> Result<bool, Failure> {
    let is_live = is_live(console);
    let mut done = 0;
    while count.is_none_or(|count| done < count) && !console.session.is_stopped() {
        let begun = Instant::now();
        let mut figures = Figures::default();
        while interval.is_none_or(|interval| begun.elapsed() < interval) && !console.session.is_stopped() {
            match sample(console) {
                Ok(ms) => figures.add(ms),
                Err(Failure::Interrupted) => break,
                Err(failure) => return Err(failure),
            }
            if is_live {
                // The cursor to the start of the line, and the line emptied.
                write!(console.out, "\x1b[0G\x1b[2K{}", figures.sentence())?;
                console.out.flush()?;
            }
            console.session.pause(PAUSE);
        }
        done += 1;
        match (is_live, interval) {
            (true, Some(_)) => writeln!(console.out, " -- {:.2} seconds range", begun.elapsed().as_secs_f64())?,
            (true, None) => writeln!(console.out)?,
            (false, _) => writeln!(console.out, "{}", figures.line(&console.options.format))?,
        }
        console.out.flush()?;
    }
    Ok(true)
}

/// Upper ends of the columns of a spectrum in microseconds, and their signs.
const COLUMNS: [(u64, char); 32] = [
    (10, '.'),
    (125, '-'),
    (250, '*'),
    (500, '#'),
    (1_000, '1'),
    (2_000, '2'),
    (3_000, '3'),
    (4_000, '4'),
    (5_000, '5'),
    (6_000, '6'),
    (7_000, '7'),
    (8_000, '8'),
    (9_000, '9'),
    (10_000, 'A'),
    (20_000, 'B'),
    (30_000, 'C'),
    (40_000, 'D'),
    (50_000, 'E'),
    (100_000, 'F'),
    (200_000, 'G'),
    (300_000, 'H'),
    (400_000, 'I'),
    (500_000, 'J'),
    (1_000_000, 'K'),
    (2_000_000, 'L'),
    (4_000_000, 'M'),
    (8_000_000, 'N'),
    (16_000_000, 'O'),
    (30_000_000, 'P'),
    (60_000_000, 'Q'),
    (120_000_000, 'R'),
    (u64::MAX, '?'),
];

/// Colours of a terminal with 256 of them, from none of the samples to all.
const COLOURS: [u8; 19] = [0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 144, 143, 142, 184, 226, 214, 208, 202, 196];

/// Lines behind which the key is printed again.
const LINES: u64 = 20;

/// A line of coloured signs for every interval.
pub(crate) fn distribution(console: &mut Console<'_>) -> Result<bool, Failure> {
    let interval = console.options.interval.unwrap_or(Duration::from_secs(1));
    let count = console.options.rounds();
    let mut done = 0;
    while count.is_none_or(|count| done < count) && !console.session.is_stopped() {
        if done % LINES == 0 {
            write!(console.out, "{}", key_of_spectrum())?;
        }
        let begun = Instant::now();
        let mut counts = [0_u64; COLUMNS.len()];
        while begun.elapsed() < interval && !console.session.is_stopped() {
            match sample(console) {
                Ok(ms) => counts[column((ms * 1e3) as u64)] += 1,
                Err(Failure::Interrupted) => break,
                Err(failure) => return Err(failure),
            }
            console.session.pause(PAUSE);
        }
        done += 1;
        writeln!(console.out, "{}", spectrum(&counts))?;
        console.out.flush()?;
    }
    Ok(true)
}

fn column(us: u64) -> usize {
    COLUMNS.iter().position(|(end, _)| us <= *end).unwrap_or(COLUMNS.len() - 1)
}

/// The colour of a share of all samples.
fn colour(count: u64, total: u64) -> u8 {
    let share = count as f64 / total.max(1) as f64;
    COLOURS[(share * (COLOURS.len() - 1) as f64).ceil() as usize]
}

fn spectrum(counts: &[u64; COLUMNS.len()]) -> String {
    let total = counts.iter().sum();
    let mut line = String::new();
    for (count, (_, sign)) in counts.iter().zip(COLUMNS) {
        let colour = colour(*count, total);
        // The sign in black on bright colours and the other way round.
        let text = if colour >= 142 { 0 } else { colour };
        let _ = write!(line, "\x1b[38;5;{text}m\x1b[48;5;{colour}m{sign}");
    }
    line.push_str("\x1b[0m");
    line
}

fn key_of_spectrum() -> String {
    let mut text = String::from(
        "---------------------------------------------\n\
         . - * #          .01 .125 .25 .5 milliseconds\n\
         1,2,3,...,9      from 1 to 9     milliseconds\n\
         A,B,C,D,E        10,20,30,40,50  milliseconds\n\
         F,G,H,I,J        .1,.2,.3,.4,.5       seconds\n\
         K,L,M,N,O,P,Q,R  1,2,4,8,16,30,60,120 seconds\n\
         From 0 to 100%: ",
    );
    for colour in COLOURS {
        let _ = write!(text, "\x1b[48;5;{colour}m ");
    }
    text.push_str("\x1b[0m\n---------------------------------------------\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_samples() {
        let mut figures = Figures::default();
        [2.0, 1.0, 3.0].into_iter().for_each(|ms| figures.add(ms));
        assert_eq!(figures.line(&Format::raw()), "1.00 3.00 2.00 3");
        assert_eq!(figures.line(&Format::Csv), "1.00,3.00,2.00,3");
        assert_eq!(figures.line(&Format::Json), "{\"min\":1.00,\"max\":3.00,\"avg\":2.00,\"count\":3}");
        assert_eq!(figures.sentence(), "min: 1.00, max: 3.00, avg: 2.00 (3 samples)");
    }

    #[test]
    fn every_latency_has_a_column_and_every_share_a_colour() {
        assert_eq!([column(0), column(10), column(11), column(u64::MAX)], [0, 0, 1, 31]);
        assert!(COLUMNS.is_sorted_by_key(|(end, _)| *end));
        assert_eq!((colour(0, 0), colour(0, 5), colour(5, 5)), (0, 0, 196));
        assert!(colour(1, 1_000_000) > 0, "a lone sample is seen");
    }
}
