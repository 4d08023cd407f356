//! Where to listen or to dial: an address as settings write it.

use crate::limits::HOST_BYTES_MAX;
use std::fmt;
use std::str::FromStr;

/// One end of a transport.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// TCP. The host is a name or an IP literal (IPv6 without its brackets).
    Tcp {
        /// Host name, IPv4 or IPv6 literal.
        host: String,
        /// Port; 0 only for listening, where it means "any free one".
        port: u16,
    },
    /// A unix socket.
    Unix {
        /// The socket's path.
        path: String,
    },
    /// An engine in a thread of the same process.
    Embedded {
        /// Which one, from 0, in the order of the settings.
        index: usize,
    },
}

/// Why a text is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointError {
    /// There is nothing in it.
    Empty,
    /// The port is missing or not a number from 0 to 65535.
    Port(String),
    /// The host is too long, or an IPv6 literal lacks its brackets.
    Host(String),
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an address is missing; write host:port, [v6]:port, unix:/path or /path"),
            Self::Port(said) => write!(f, "'{said}' has no valid port; write host:port with a port up to 65535"),
            Self::Host(said) => write!(f, "'{said}' has no valid host; an IPv6 address is written [::1]:6379"),
        }
    }
}

impl std::error::Error for EndpointError {}

impl FromStr for Endpoint {
    type Err = EndpointError;

    /// Reads `host:port`, `:port` (the loopback address), `[v6]:port`, `unix:/path`, `/path`, and `tcp://`, `redis://` and
    /// `unix://` before them. `embedded:` is read as the first embedded engine; who reads a list numbers them.
    fn from_str(said: &str) -> Result<Self, EndpointError> {
        let text = said.trim();
        let text = text.strip_prefix("tcp://").or_else(|| text.strip_prefix("redis://")).unwrap_or(text);
        if text.is_empty() {
            return Err(EndpointError::Empty);
        }
        if text == "embedded:" || text == "embedded" {
            return Ok(Self::Embedded { index: 0 });
        }
        let path = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unix:"));
        if let Some(path) = path.or_else(|| text.starts_with(['/', '.']).then_some(text)) {
            return if path.is_empty() { Err(EndpointError::Empty) } else { Ok(Self::Unix { path: path.to_owned() }) };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| EndpointError::Port(said.to_owned()))?;
        let is_number = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        let port = port.parse().ok().filter(|_| is_number).ok_or_else(|| EndpointError::Port(said.to_owned()))?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').filter(|h| h.contains(':')),
            None if host.is_empty() => Some("127.0.0.1"),
            None => Some(host).filter(|h| !h.contains(':')),
        };
        let is_sane =
            |h: &&str| h.len() <= HOST_BYTES_MAX && !h.contains(|c: char| c.is_whitespace() || c.is_control());
        let host = host.filter(is_sane).ok_or_else(|| EndpointError::Host(said.to_owned()))?;
        Ok(Self::Tcp { host: host.to_owned(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix { path } => write!(f, "unix:{path}"),
            Self::Embedded { index } => write!(f, "embedded:{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Tcp { host: host.to_owned(), port }
    }

    #[test]
    fn every_form_is_read() {
        for (said, meant) in [
            ("127.0.0.1:6379", tcp("127.0.0.1", 6379)),
            (":7000", tcp("127.0.0.1", 7000)),
            ("[::1]:6379", tcp("::1", 6379)),
            ("tcp://cache.example:1", tcp("cache.example", 1)),
            ("redis://a:6379", tcp("a", 6379)),
            ("unix:/run/r.sock", Endpoint::Unix { path: "/run/r.sock".to_owned() }),
            ("/run/r.sock", Endpoint::Unix { path: "/run/r.sock".to_owned() }),
            ("./r.sock", Endpoint::Unix { path: "./r.sock".to_owned() }),
            ("embedded:", Endpoint::Embedded { index: 0 }),
        ] {
            assert_eq!(said.parse(), Ok(meant), "{said}");
        }
    }

    #[test]
    fn what_is_no_address_says_why() {
        assert_eq!("".parse::<Endpoint>(), Err(EndpointError::Empty));
        assert_eq!("unix:".parse::<Endpoint>(), Err(EndpointError::Empty));
        for said in ["host", "host:", "host:65536", "host:+1", "host:6379x"] {
            assert_eq!(said.parse::<Endpoint>(), Err(EndpointError::Port(said.to_owned())));
        }
        for said in ["::1:6379", "[::1:6379", "[host]:1", "a b:1"] {
            assert_eq!(said.parse::<Endpoint>(), Err(EndpointError::Host(said.to_owned())), "{said}");
        }
    }

    #[test]
    fn an_endpoint_reads_what_it_prints() {
        for said in ["127.0.0.1:6379", "[::1]:6379", "unix:/run/r.sock"] {
            assert_eq!(said.parse::<Endpoint>().unwrap().to_string(), said);
        }
    }
}
