//! Parameters that are settings of the process: what each is there, and how it is changed while clients are served.

use std::time::Duration;

use respool_command::EventClasses;
use respool_engine::EvictionPolicy;

use super::output_limits::limits_of;
use crate::settings::config::ClientMemory;
use crate::settings::{LogLevel, Process};

/// A parameter that is a setting.
#[derive(Debug)]
pub struct Live {
    /// Its value as `CONFIG GET` shows it.
    pub(super) show: fn(&Process, usize) -> String,
    /// Takes a value that has been checked. The process may be held to narrower bounds than redis-server.
    pub(super) take: fn(&mut Process, usize, &str),
}

/// Bytes that stand for no bound where the process needs one.
const UNBOUNDED: u64 = 64 << 30;
/// What a client may be owed where redis-server has no bound: what `client_output_hard_bytes` is by default.
const OUTPUT_BYTES: u64 = 256 << 20;
/// The least that a client may be owed: its buffer alone takes 64 KB, which redis-server does not count.
const OUTPUT_BYTES_MIN: u64 = 128 << 10;
/// The same for a subscriber's messages.
const MESSAGE_BYTES_MIN: u64 = 4 << 10;
/// The largest request and bulk string that are taken, whatever is said.
const REQUEST_BYTES_MAX: usize = (4 << 30) - 1;
const BULK_BYTES_MAX: usize = 2 << 30;
/// Linux takes at most 32,767 seconds.
const KEEPALIVE_MAX: Duration = Duration::from_secs(9 * 3600);
/// Entries of the slow log.
const SLOW_ENTRIES_MAX: usize = 100_000;

/// Keys of each database that are looked at for one that is evicted.
const EVICTION_SAMPLES_MAX: usize = 64;

macro_rules! live {
    ($($(#[$doc:meta])* $name:ident: |$process:ident, $number:ident| $show:expr, |$text:ident| $take:expr;)+) => {
        $($(#[$doc])*
        pub(super) const $name: Live = Live {
            show: |$process, $number| { let _ = $number; $show },
            take: |$process, $number, $text| { let _ = $number; $take },
        };)+
    };
}

live! {
    /// `maxclients`.
    MAXCLIENTS: |process, number| process.clients_max.to_string(), |text| process.clients_max = count(text);
    /// `timeout`, in seconds.
    TIMEOUT: |process, number| seconds(process.instances[number].proxy.timeouts.client_idle),
        |text| process.instances[number].proxy.timeouts.client_idle = some_seconds(text);
    /// `tcp-keepalive`, in seconds.
    TCP_KEEPALIVE: |process, number| seconds(process.instances[number].net.keepalive),
        |text| process.instances[number].net.keepalive = some_seconds(text).map(|time| time.min(KEEPALIVE_MAX));
    /// `slowlog-log-slower-than`, in microseconds; below zero for never.
    SLOWLOG_THRESHOLD: |process, number| match process.instances[number].proxy.seeing.slow_log_threshold {
            Some(time) => time.as_micros().to_string(),
            None => "-1".to_owned(),
        },
        |text| process.instances[number].proxy.seeing.slow_log_threshold = text.parse().ok().map(Duration::from_micros);
    /// `slowlog-max-len`.
    SLOWLOG_LEN: |process, number| process.instances[number].proxy.seeing.slow_log_entries.to_string(),
        |text| process.instances[number].proxy.seeing.slow_log_entries = count(text).min(SLOW_ENTRIES_MAX);
    /// `commandlog-request-larger-than`, in bytes; below zero for never.
    LARGE_REQUEST_BYTES: |process, number| bytes_or_never(process.instances[number].proxy.seeing.large_requests.bytes_min),
        |text| process.instances[number].proxy.seeing.large_requests.bytes_min = text.parse().unwrap_or(u64::MAX);
    /// `commandlog-large-request-max-len`.
    LARGE_REQUEST_LEN: |process, number| process.instances[number].proxy.seeing.large_requests.entries_max.to_string(),
        |text| process.instances[number].proxy.seeing.large_requests.entries_max = count(text).min(SLOW_ENTRIES_MAX);
    /// `commandlog-reply-larger-than`, in bytes; below zero for never.
    LARGE_REPLY_BYTES: |process, number| bytes_or_never(process.instances[number].proxy.seeing.large_replies.bytes_min),
        |text| process.instances[number].proxy.seeing.large_replies.bytes_min = text.parse().unwrap_or(u64::MAX);
    /// `commandlog-large-reply-max-len`.
    LARGE_REPLY_LEN: |process, number| process.instances[number].proxy.seeing.large_replies.entries_max.to_string(),
        |text| process.instances[number].proxy.seeing.large_replies.entries_max = count(text).min(SLOW_ENTRIES_MAX);
    /// `latency-monitor-threshold`, in milliseconds; 0 for never.
    LATENCY_THRESHOLD: |process, number| process.instances[number].proxy.seeing.latency_ms.to_string(),
        |text| process.instances[number].proxy.seeing.latency_ms = text.parse().unwrap_or(0);
    /// `latency-tracking`.
    LATENCY_TRACKING: |process, number| if process.instances[number].proxy.seeing.tracks_latency { "yes" } else { "no" }.to_owned(),
        |text| process.instances[number].proxy.seeing.tracks_latency = text == "yes";
    /// `proto-max-bulk-len`.
    BULK_BYTES: |process, number| process.instances[number].proxy.requests.bulk_bytes_max.to_string(),
        |text| process.instances[number].proxy.requests.bulk_bytes_max = count(text).min(BULK_BYTES_MAX);
    /// `client-query-buffer-limit`.
    REQUEST_BYTES: |process, number| process.instances[number].proxy.requests.request_bytes_max.to_string(),
        |text| process.instances[number].proxy.requests.request_bytes_max = count(text).min(REQUEST_BYTES_MAX);
    /// `client-output-buffer-limit`: of classes that there are here.
    OUTPUT_LIMITS: |process, number| {
            let subscriber = process.instances[number].proxy.pooling.subscriber_output;
            let [normal, soft] = process.instances[number].proxy.budgets.soft_limits;
            format!(
                "normal 0 {} {} slave 268435456 67108864 60 pubsub {subscriber} {} {}",
                normal.0, normal.1, soft.0, soft.1
            )
        },
        |text| {
            let limits = limits_of(text);
            let proxy = &mut process.instances[number].proxy;
            if let [[normal, normal_bytes, normal_s], _, [subscriber, subscriber_bytes, subscriber_s]] = limits[..] {
                proxy.budgets.soft_limits = [(normal_bytes, normal_s), (subscriber_bytes, subscriber_s)];
                let hard = &mut proxy.budgets.client_output_hard;
                *hard = if normal > 0 { normal.max(OUTPUT_BYTES_MIN) } else { (*hard).max(OUTPUT_BYTES) };
                proxy.pooling.subscriber_output = if subscriber > 0 { subscriber.max(MESSAGE_BYTES_MIN) } else { UNBOUNDED };
            }
        };
    /// `tracking-table-max-keys`.
    TRACKED_KEYS: |process, number| process.instances[number].proxy.pooling.tracked_keys_max.to_string(),
        |text| process.instances[number].proxy.pooling.tracked_keys_max = count(text);
    /// `shutdown-timeout`, in seconds.
    SHUTDOWN_TIMEOUT: |process, number| process.drain_timeout.as_secs().to_string(),
        |text| process.drain_timeout = some_seconds(text).unwrap_or_default();
    /// `acllog-max-len`.
    ACLLOG_LEN: |process, number| process.users.log_entries_max.to_string(),
        |text| process.users.log_entries_max = count(text);
    /// `protected-mode`.
    PROTECTED_MODE: |process, number| if process.users.is_protected { "yes" } else { "no" }.to_owned(),
        |text| process.users.is_protected = text == "yes";
    /// `loglevel`.
    LOGLEVEL: |process, number| redis_level(process.log.level).to_owned(), |text| process.log.level = level(text);
    /// `notify-keyspace-events`.
    EVENTS: |process, number| process.instances[number].engine.keyspace_events.letters(),
        |text| process.instances[number].engine.keyspace_events = EventClasses::parse(text.as_bytes()).unwrap_or(EventClasses::NONE);
    /// `cross-slot`.
    CROSS_SLOT: |process, number| if process.instances[number].proxy.splits { "split" } else { "refuse" }.to_owned(),
        |text| process.instances[number].proxy.splits = text == "split";
    /// `maxmemory`, in bytes.
    MAXMEMORY: |process, number| process.instances[number].engine.memory_bytes_max.unwrap_or(0).to_string(),
        |text| process.instances[number].engine.memory_bytes_max = text.parse().ok().filter(|bytes| *bytes > 0);
    /// `maxmemory-clients`, in bytes or as a part of `maxmemory`.
    MAXMEMORY_CLIENTS: |process, number| match process.instances[number].engine.client_memory {
            ClientMemory::Bytes(bytes) => bytes.to_string(),
            ClientMemory::Percent(percent) => format!("{percent}%"),
        },
        |text| process.instances[number].engine.client_memory = match text.strip_suffix('%') {
            Some(percent) => ClientMemory::Percent(percent.parse().unwrap_or(0)),
            None => ClientMemory::Bytes(text.parse().unwrap_or(0)),
        };
    /// `maxmemory-policy`.
    MAXMEMORY_POLICY: |process, number| process.instances[number].engine.eviction.name().to_owned(),
        |text| {
            let policy = EvictionPolicy::ALL.iter().find(|(_, name)| *name == text);
            process.instances[number].engine.eviction = policy.map_or_else(EvictionPolicy::default, |(policy, _)| *policy);
        };
    /// `maxmemory-samples`.
    MAXMEMORY_SAMPLES: |process, number| process.instances[number].engine.eviction_samples.to_string(),
        |text| process.instances[number].engine.eviction_samples = count(text).min(EVICTION_SAMPLES_MAX);
    /// `busy-reply-threshold`, in milliseconds.
    BUSY: |process, number| process.instances[number].engine.busy_reply_threshold.as_millis().to_string(),
        |text| process.instances[number].engine.busy_reply_threshold = Duration::from_millis(text.parse().unwrap_or(0));
}

/// A bound in bytes as its parameter shows it.
fn bytes_or_never(bytes: u64) -> String {
    if bytes == u64::MAX { "-1".to_owned() } else { bytes.to_string() }
}

fn count(text: &str) -> usize {
    text.parse().unwrap_or(usize::MAX)
}

fn some_seconds(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or(0, |time| time.as_secs()).to_string()
}

/// The level of the log that redis-server's word means.
#[must_use]
pub(super) fn level(word: &str) -> LogLevel {
    match word {
        "debug" => LogLevel::Trace,
        "verbose" => LogLevel::Debug,
        "warning" => LogLevel::Warn,
        "nothing" => LogLevel::Off,
        _ => LogLevel::Info,
    }
}

fn redis_level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Trace => "debug",
        LogLevel::Debug => "verbose",
        LogLevel::Info => "notice",
        LogLevel::Warn | LogLevel::Error => "warning",
        LogLevel::Off => "nothing",
    }
}
