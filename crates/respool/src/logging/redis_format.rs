//! A log as redis-server writes it: `PID:M DD Mon YYYY HH:MM:SS.mmm * text`, to standard output or a file. Times are in UTC.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// The lines.
#[derive(Debug)]
pub(super) struct RedisFormat;

impl<S, N> FormatEvent<S, N> for RedisFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mark = match *event.metadata().level() {
            Level::ERROR | Level::WARN => '#',
            Level::INFO => '*',
            Level::DEBUG => '-',
            Level::TRACE => '.',
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        write!(out, "{}:M ", std::process::id())?;
        write_time(&mut out, since.as_secs(), since.subsec_millis())?;
        write!(out, " {mark} ")?;
        context.field_format().format_fields(out.by_ref(), event)?;
        out.write_char('\n')
    }
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn write_time(out: &mut impl fmt::Write, seconds: u64, millis: u32) -> fmt::Result {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    write!(out, "{day:02} {} {year} {hour:02}:{minute:02}:{second:02}.{millis:03}", MONTHS[month])
}

/// The year, the month from 0 and the day from 1 of a day since 1970. Years are counted from the first of March, so that a leap day is
/// the last of its year; 146,097 days are 400 years.
fn date(days: u64) -> (u64, usize, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let from_january = (month + 2) % 12;
    let year = era * 400 + year + u64::from(from_january < 2);
    (year, usize::try_from(from_january).unwrap_or(0), day - (153 * month + 2) / 5 + 1)
}

/// Where the log goes. A file is opened for each line, so that it may be moved away.
#[derive(Debug, Clone)]
pub struct LogFile(Option<PathBuf>);

impl LogFile {
    /// The file of that name; standard output for none.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self((!name.is_empty()).then(|| PathBuf::from(name)))
    }

    /// Whether it can be written.
    ///
    /// # Errors
    /// What the system says.
    pub fn check(&self) -> io::Result<()> {
        self.open().map(drop)
    }

    fn open(&self) -> io::Result<Option<File>> {
        let open = |path: &PathBuf| OpenOptions::new().append(true).create(true).open(path);
        self.0.as_ref().map(open).transpose()
    }

    /// Writes a text that is no line of the log. There is nowhere to report that this failed.
    pub fn write(&self, text: &[u8]) {
        let _ = self.make_writer().write_all(text);
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Box<dyn Write>;

    fn make_writer(&'a self) -> Self::Writer {
        match self.open() {
            Ok(Some(file)) => Box::new(file),
            Ok(None) => Box::new(io::stdout()),
            Err(_) => Box::new(io::sink()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_dates() {
        for (seconds, shown) in [
            (0, "01 Jan 1970 00:00:00.007"),
            (951_782_399, "28 Feb 2000 23:59:59.007"),
            (951_782_400, "29 Feb 2000 00:00:00.007"),
            (1_709_251_199, "29 Feb 2024 23:59:59.007"),
            (1_735_689_599, "31 Dec 2024 23:59:59.007"),
            (4_107_542_400, "01 Mar 2100 00:00:00.007"),
        ] {
            let mut text = String::new();
            write_time(&mut text, seconds, 7).expect("a text takes it");
            assert_eq!(text, shown);
        }
    }
}
