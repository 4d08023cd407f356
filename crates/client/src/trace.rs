//! A span for each call, by OpenTelemetry's conventions for databases, with the feature `tracing`. Without it nothing is left of this.
//!
//! A span begins when its call is first polled, as a child of the span in which that happens, and ends with the call. No argument is in
//! it but the name of the command and of its subcommand: keys and values may be secrets.

use crate::parts::Kind;
use crate::{Command, Config, Error};

/// The span of a call.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    #[cfg(feature = "tracing")]
    span: Option<tracing::Span>,
}

#[cfg(not(feature = "tracing"))]
impl Trace {
    /// Of a part of a call, which has none of its own.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    #[inline]
    pub(crate) fn begin(&mut self, _config: &Config, _commands: &[Command], _kind: Kind) {}

    #[inline]
    pub(crate) fn is_heard(&self) -> bool {
        false
    }

    pub(crate) fn place(&self, _address: &str, _port: Option<u16>) {}

    pub(crate) fn place_by(&self, _address: &str) {}

    #[inline]
    pub(crate) fn end(&mut self, _error: Option<&Error>) {}
}

#[cfg(feature = "tracing")]
mod spans {
    use super::{Command, Config, Error, Kind, Trace};
    use crate::fitness::has_subcommand;
    use crate::{ErrorKind, Event};
    use respool_connection::Endpoint;
    use std::borrow::Cow;
    use tracing::field::{Empty, display};
    use tracing::{Level, Span};

    /// By this target the spans and events are chosen by a subscriber.
    const TARGET: &str = "respool_client";

    impl Trace {
        /// Of a part of a call, which has none of its own.
        pub(crate) fn none() -> Self {
            Self { span: Some(Span::none()) }
        }

        /// The call is polled first, or again.
        #[inline]
        pub(crate) fn begin(&mut self, config: &Config, commands: &[Command], kind: Kind) {
            if self.span.is_none() && tracing::enabled!(target: TARGET, Level::INFO) {
                self.span = Some(span(config, commands, kind));
            }
        }

        /// Whether there is a span that something hears of.
        #[inline]
        pub(crate) fn is_heard(&self) -> bool {
            self.span.as_ref().is_some_and(|span| !span.is_none())
        }

        /// Where the server is that was asked.
        #[cold]
        pub(crate) fn place(&self, address: &str, port: Option<u16>) {
            if let Some(span) = &self.span {
                place(span, address, port);
            }
        }

        /// As [`Self::place`], by what an error says of it.
        #[cold]
        pub(crate) fn place_by(&self, address: &str) {
            match address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?))) {
                Some((host, port)) => self.place(host.trim_start_matches('[').trim_end_matches(']'), Some(port)),
                None => self.place(address, None),
            }
        }

        /// The call is over.
        #[inline]
        pub(crate) fn end(&mut self, error: Option<&Error>) {
            let Some(span) = self.span.replace(Span::none()) else { return };
            if let Some(error) = error {
                note_error(&span, error);
            }
        }
    }

    impl Drop for Trace {
        fn drop(&mut self) {
            // A call that was dropped before it was over.
            if let Some(span) = self.span.take().filter(|span| !span.is_none()) {
                span.record("error.type", "cancelled");
            }
        }
    }

    #[cold]
    fn span(config: &Config, commands: &[Command], kind: Kind) -> Span {
        let operation = operation(commands, kind);
        let span = tracing::info_span!(
            target: TARGET,
            "call",
            otel.name = &*operation,
            otel.kind = "client",
            otel.status_code = Empty,
            otel.status_description = Empty,
            db.system.name = "redis",
            db.namespace = display(config.identity.database),
            db.operation.name = &*operation,
            db.operation.batch.size = Empty,
            db.response.status_code = Empty,
            server.address = Empty,
            server.port = Empty,
            network.transport = Empty,
            error.type = Empty,
            respool.outcome = Empty,
        );
        let requests = if kind == Kind::Whole { commands.len().saturating_sub(2) } else { commands.len() };
        // A single request in a batch is none by the conventions.
        if requests != 1 {
            span.record("db.operation.batch.size", requests as u64);
        }
        // Which node of a cluster, server of several, or server that sentinels know, is not known before it is asked.
        if config.cluster.is_empty() && config.sentinels.is_none() && config.shards.is_none() {
            match &config.endpoint {
                Endpoint::Tcp { host, port } | Endpoint::Tls { host, port, .. } => place(&span, host, Some(*port)),
                Endpoint::Unix { path } => {
                    place(&span, path, None);
                    span.record("network.transport", "unix");
                }
                Endpoint::Embedded { .. } => {}
            }
        }
        span
    }

    fn place(span: &Span, address: &str, port: Option<u16>) {
        span.record("server.address", address);
        if let Some(port) = port {
            span.record("server.port", port);
        }
    }

    /// What a call is named by: its command, and what kind of several requests it is.
    fn operation(commands: &[Command], kind: Kind) -> Cow<'_, str> {
        let (many, commands) = match (kind, commands) {
            (Kind::Whole, [_, inner @ .., _]) => ("MULTI", inner),
            (_, [_, _, ..]) => ("PIPELINE", commands),
            _ => ("", commands),
        };
        let mut names = commands.iter().map(name);
        let first = names.next().unwrap_or_default();
        let is_same = names.all(|name| name == first);
        match many {
            "" => first,
            many if is_same && !first.is_empty() => format!("{many} {first}").into(),
            many => many.into(),
        }
    }

    /// The words of the command, as the program says them.
    fn name(command: &Command) -> Cow<'_, str> {
        let (name, second) = command.words();
        let name = String::from_utf8_lossy(name);
        if has_subcommand(command) { format!("{name} {}", String::from_utf8_lossy(second)).into() } else { name }
    }

    #[cold]
    fn note_error(span: &Span, error: &Error) {
        span.record("otel.status_code", "ERROR");
        // A server's words may repeat arguments, and passwords among them.
        match (error.server(), error.kind()) {
            (Some(server), _) => span.record("otel.status_description", server.code()),
            (None, ErrorKind::Refused(words)) => {
                let code = words.split(' ').next().unwrap_or_default();
                span.record("otel.status_description", code)
            }
            (None, ErrorKind::Decode(_)) => span.record("otel.status_description", kind_name(error.kind())),
            (None, _) => span.record("otel.status_description", display(error)),
        };
        span.record("respool.outcome", tracing::field::debug(error.outcome()));
        match error.server() {
            Some(server) => {
                span.record("db.response.status_code", server.code());
                span.record("error.type", server.code());
            }
            None => drop(span.record("error.type", kind_name(error.kind()))),
        }
    }

    fn kind_name(kind: &ErrorKind) -> &'static str {
        match kind {
            ErrorKind::Server(_) => "server",
            ErrorKind::Decode(_) => "decode",
            ErrorKind::Timeout(_) => "timeout",
            ErrorKind::Lost(_) => "connection_lost",
            ErrorKind::Refused(_) => "handshake_refused",
            ErrorKind::Overloaded => "overloaded",
            ErrorKind::Closed => "closed",
            ErrorKind::Unfit(_) => "unfit",
            ErrorKind::Conflict => "conflict",
            ErrorKind::CrossSlot => "cross_slot",
            ErrorKind::Config(_) => "config",
        }
    }

    /// Whether anything hears of connections.
    pub(crate) fn hears() -> bool {
        tracing::enabled!(target: TARGET, Level::WARN)
    }

    /// Something has happened beside calls.
    pub(crate) fn tell(event: &Event<'_>) {
        match event {
            Event::Connected { endpoint, failures } => {
                tracing::debug!(target: TARGET, server = endpoint, failures, "connected");
            }
            Event::NotConnected { endpoint, why } => {
                tracing::warn!(target: TARGET, server = endpoint, why, "not connected");
            }
            Event::Lost { endpoint, how, unanswered } => {
                tracing::warn!(target: TARGET, server = endpoint, how, unanswered, "connection lost");
            }
            Event::SlotsChanged { primaries } => {
                tracing::debug!(target: TARGET, primaries, "the slots of the cluster have changed");
            }
            Event::Redirected { to, is_asking } => {
                tracing::trace!(target: TARGET, server = to, is_asking, "redirected");
            }
            Event::NotRefreshed { endpoint } => {
                tracing::warn!(target: TARGET, server = endpoint, "the node does not say what the cluster looks like");
            }
            // Its elements may be secrets, and the observer has them.
            Event::Orphan { command, .. } => {
                tracing::error!(target: TARGET, command, "a reply had no caller any longer");
            }
            #[cfg(feature = "cache")]
            Event::CachedRead { .. } | Event::Invalidated { .. } => {}
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::cmd;

        #[test]
        fn a_span_is_named_by_what_is_asked() {
            let [get, set, multi, exec] = ["GET", "SET", "MULTI", "EXEC"].map(|name| cmd(name).arg("secret"));
            let of = |commands: &[&Command], kind| {
                let commands: Vec<Command> = commands.iter().copied().cloned().collect();
                operation(&commands, kind).into_owned()
            };
            assert_eq!(of(&[&get], Kind::Each), "GET");
            assert_eq!(of(&[&cmd("CONFIG GET").arg("secret")], Kind::Each), "CONFIG GET");
            assert_eq!(of(&[&get, &set], Kind::Each), "PIPELINE");
            assert_eq!(of(&[&get, &get], Kind::Each), "PIPELINE GET");
            assert_eq!(of(&[&multi, &get, &set, &exec], Kind::Whole), "MULTI");
            assert_eq!(of(&[&multi, &set, &exec], Kind::Whole), "MULTI SET");
            assert_eq!(of(&[&multi, &exec], Kind::Whole), "MULTI");
            assert_eq!(of(&[], Kind::Each), "");
        }
    }
}

#[cfg(feature = "tracing")]
pub(crate) use spans::{hears, tell};
