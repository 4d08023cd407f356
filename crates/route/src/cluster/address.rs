//! Where a member of a cluster is reached: a host and a port, as nodes write them.

use std::fmt;

use crate::limits::HOST_BYTES_MAX;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    host: Box<str>,
    port: u16,
}

impl Address {
    /// `None` if the host cannot be one: it is empty, too long, or has other letters than names and IP addresses have. Nor is there an
    /// address with port 0, which is what nodes write for a port that they do not listen on.
    pub fn new(host: &str, port: u16) -> Option<Self> {
        (is_host(host) && port != 0).then(|| Self { host: host.into(), port })
    }

    /// Host name, IPv4 or IPv6 literal without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port: never 0.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Reads `host:port` as nodes write it, which is without brackets around IPv6. An empty host and `?` mean the host of the node that has
    /// written it, `asked`.
    pub fn read(text: &[u8], asked: &Address) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (host, port) = text.rsplit_once(':')?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Self::beside(Some(host), port_of(port)?, asked)
    }

    /// The address with a host that nodes may leave out (null, empty, `?`): then it is the host of the node that was `asked`.
    pub(super) fn beside(host: Option<&str>, port: u16, asked: &Address) -> Option<Self> {
        match host {
            None | Some("" | "?") => Self::new(&asked.host, port),
            Some(host) => Self::new(host, port),
        }
    }
}

/// A port in digits alone: `parse` would take a sign as well.
fn port_of(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn is_host(host: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    (1..=HOST_BYTES_MAX).contains(&host.len()) && host.bytes().all(is_fit)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_nodes_write_it() {
        let asked = Address::new("seed.example", 7000).unwrap();
        for (text, expected) in [
            ("10.0.0.1:6379", Some("10.0.0.1:6379")),
            ("a.example:1", Some("a.example:1")),
            ("::1:7001", Some("[::1]:7001")),
            ("[::1]:7001", Some("[::1]:7001")),
            ("2001:db8::5:6:65535", Some("[2001:db8::5:6]:65535")),
            ("fe80::1%eth0:7001", Some("[fe80::1%eth0]:7001")),
            (":7001", Some("seed.example:7001")),
            ("?:7001", Some("seed.example:7001")),
            ("a:0", None),
            ("a:65536", None),
            ("a:+1", None),
            ("a:", None),
            ("a", None),
            ("", None),
            ("a b:1", None),
            ("a\r\nb:1", None),
            ("a/../b:1", None),
            ("\u{e4}:1", None),
        ] {
            let read = Address::read(text.as_bytes(), &asked).map(|address| address.to_string());
            assert_eq!(read.as_deref(), expected, "{text:?}");
        }
        assert_eq!(Address::read(b"\xff:1", &asked), None);
        assert_eq!(Address::new(&"a".repeat(HOST_BYTES_MAX + 1), 1), None);
    }
}
