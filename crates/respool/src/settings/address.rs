//! Addresses and nodes as settings write them: [`Endpoint`]s, with the rules that are about settings. Nothing is resolved
//! or opened here.

use std::fmt;

use respool_connection::Endpoint;
use respool_route::limits::WEIGHT_MAX;

/// Longest path of a unix socket: the kernel's `sun_path` has 108 bytes, with a closing NUL.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Reads an address to listen on. `*` for a host is every IPv4 interface.
///
/// # Errors
/// Says what an address looks like.
pub fn parse_listener(text: &str) -> Result<Endpoint, String> {
    let endpoint = parse(&text.strip_prefix("*:").map_or_else(|| text.to_owned(), |port| format!("0.0.0.0:{port}")))?;
    match endpoint {
        Endpoint::Embedded { .. } => Err("an embedded engine is a node, not a place to listen".to_owned()),
        _ => Ok(endpoint),
    }
}

/// Reads an address to listen on with TCP.
///
/// # Errors
/// Says what an address looks like.
pub fn parse_tcp(text: &str) -> Result<Endpoint, String> {
    match parse_listener(text)? {
        endpoint @ Endpoint::Tcp { .. } => Ok(endpoint),
        _ => Err("it is served over TCP: write host:port".to_owned()),
    }
}

/// Whether only this machine can reach it: a unix socket, a loopback address or the name `localhost`.
#[must_use]
pub fn is_local(endpoint: &Endpoint) -> bool {
    match endpoint {
        Endpoint::Tcp { host, .. } => {
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
        Endpoint::Unix { .. } | Endpoint::Embedded { .. } => true,
    }
}

/// Whether it lets the system choose the port.
#[must_use]
pub fn has_any_port(endpoint: &Endpoint) -> bool {
    matches!(endpoint, Endpoint::Tcp { port: 0, .. })
}

/// A node as it was written: `10.0.0.1:6379 name=a weight=2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeText {
    /// What it is; embedded engines are not numbered yet.
    pub endpoint: Endpoint,
    /// Its name, if it was given one.
    pub name: Option<String>,
    /// Its share of the keys relative to the others.
    pub weight: u32,
}

impl NodeText {
    /// Reads a node: an address and, behind it, `name=` and `weight=`, separated by spaces.
    ///
    /// # Errors
    /// Says what a node looks like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let endpoint = parse(words.next().ok_or("a node needs an address")?)?;
        if has_any_port(&endpoint) {
            return Err("a node's port is 1 to 65535".to_owned());
        }
        let mut node = Self { endpoint, name: None, weight: 1 };
        for word in words {
            match word.split_once('=') {
                Some(("name", name)) if !name.is_empty() => node.name = Some(name.to_owned()),
                Some(("weight", weight)) => node.weight = parse_weight(weight)?,
                _ => return Err(format!("behind a node's address stand name=NAME or weight=N, not {word:.200?}")),
            }
        }
        Ok(node)
    }
}

impl fmt::Display for NodeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Endpoint::Embedded { .. } => f.write_str("embedded:")?,
            endpoint => endpoint.fmt(f)?,
        }
        if let Some(name) = &self.name {
            write!(f, " name={name}")?;
        }
        if self.weight != 1 {
            write!(f, " weight={}", self.weight)?;
        }
        Ok(())
    }
}

fn parse(text: &str) -> Result<Endpoint, String> {
    let endpoint: Endpoint = text.parse().map_err(|error: respool_connection::EndpointError| error.to_string())?;
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    match &endpoint {
        Endpoint::Tcp { host, .. } if host.contains(':') => match host.parse::<std::net::Ipv6Addr>() {
            Ok(_) => Ok(endpoint),
            Err(_) => Err("between brackets stands an IPv6 address".to_owned()),
        },
        Endpoint::Tcp { host, .. } if !host.bytes().all(is_name) => {
            Err("a host name has letters, digits, dots and dashes".to_owned())
        }
        Endpoint::Unix { path } if path.len() > SOCKET_PATH_BYTES_MAX || path.contains(|c: char| c.is_control()) => {
            Err(format!("a unix socket's path has at most {SOCKET_PATH_BYTES_MAX} bytes and no control characters"))
        }
        _ => Ok(endpoint),
    }
}

fn parse_weight(text: &str) -> Result<u32, String> {
    let weight = text.parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight));
    weight.ok_or_else(|| format!("a weight is 1 to {WEIGHT_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_read_again() {
        for (text, shown) in [
            ("127.0.0.1:6379", "127.0.0.1:6379"),
            (":6379", "127.0.0.1:6379"),
            ("*:0", "0.0.0.0:0"),
            ("cache-1.example:7000", "cache-1.example:7000"),
            ("[::1]:6379", "[::1]:6379"),
            ("unix:/run/respool.sock", "unix:/run/respool.sock"),
            ("/run/respool.sock", "unix:/run/respool.sock"),
        ] {
            let endpoint = parse_listener(text).unwrap();
            assert_eq!(endpoint.to_string(), shown);
            assert_eq!(parse_listener(shown), Ok(endpoint));
        }
        let long = format!("/{}", "x".repeat(107));
        for text in ["", "6379", "host", "host:65536", "::1:6379", "[::g]:1", "a/b:1", "embedded:", long.as_str()] {
            assert!(parse_listener(text).is_err(), "{text}");
        }
        assert!(parse_tcp("/run/respool.sock").is_err());
    }

    #[test]
    fn a_node_may_have_a_name_and_a_weight() {
        let node = NodeText::parse("10.0.0.1:6379  name=a weight=20").unwrap();
        assert_eq!(node.to_string(), "10.0.0.1:6379 name=a weight=20");
        assert_eq!(NodeText::parse("embedded").unwrap().to_string(), "embedded:");
        for text in ["", " ", "*:6379", "h:0", "h:1 weight=0", "h:1 weight=65536", "h:1 nam=a", "h:1 name=", "h:1 b"] {
            assert!(NodeText::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn local_is_what_only_this_machine_reaches() {
        for (text, local) in [
            ("127.1.2.3:1", true),
            ("localhost:1", true),
            ("[::1]:1", true),
            ("/s", true),
            (":1", true),
            ("*:1", false),
            ("0.0.0.0:1", false),
            ("10.0.0.1:1", false),
            ("example:1", false),
        ] {
            assert_eq!(is_local(&parse_listener(text).unwrap()), local, "{text}");
        }
    }
}
