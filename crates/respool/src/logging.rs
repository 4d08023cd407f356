//! Logs: lines for people or JSON, to standard error, at a level that can change while running.
//!
//! Nothing is logged per request, and no secret is ever an argument of a log line: secrets are
//! [`Secret`](crate::settings::Secret)s, which print as `(hidden)`.

mod redis_format;

use std::io::{self, IsTerminal};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Registry, fmt, reload};

pub use redis_format::LogFile;

use self::redis_format::RedisFormat;
use crate::settings::{LogFormat, LogLevel, LogSettings};

/// The handle by which the level is changed.
#[derive(Debug, Clone)]
pub struct Logging {
    level: reload::Handle<LevelFilter, Registry>,
}

impl Logging {
    /// Starts logging; to be called once in a process.
    ///
    /// # Errors
    /// Something in this process logs already.
    pub fn start(settings: &LogSettings) -> Result<Self, TryInitError> {
        let (filter, level) = reload::Layer::new(filter(settings.level));
        // A standard error without a reader must not bring the process down.
        let lines = fmt::layer().with_writer(io::stderr).log_internal_errors(false);
        let lines = match settings.format {
            LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).with_target(false).boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        tracing_subscriber::registry().with(filter).with(lines).try_init()?;
        Ok(Self { level })
    }

    /// Starts logging as redis-server does; to be called once in a process.
    ///
    /// # Errors
    /// Something in this process logs already.
    pub fn start_as_redis_server(level: LogLevel, file: LogFile) -> Result<Self, TryInitError> {
        let (filter, level) = reload::Layer::new(filter(level));
        let lines =
            fmt::layer().event_format(RedisFormat).with_writer(file).with_ansi(false).log_internal_errors(false);
        tracing_subscriber::registry().with(filter).with(lines).try_init()?;
        Ok(Self { level })
    }

    /// Logs at another level from now on.
    pub fn set_level(&self, level: LogLevel) {
        // It fails only when the subscriber is gone, and then there is no log.
        let _ = self.level.reload(filter(level));
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
