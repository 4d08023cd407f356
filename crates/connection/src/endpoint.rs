//! Where to listen or to dial, once the settings have been understood.

use std::fmt;

/// One end of a transport.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// TCP. The host is a name or an IP literal (IPv6 without its brackets).
    Tcp {
        /// Host name, IPv4 or IPv6 literal; empty, to listen only, for every address of this machine.
        host: String,
        /// Port; 0 only for listening, where it means "any free one".
        port: u16,
    },
    /// TLS over TCP. Only to dial: what listens is told about TLS in other ways.
    Tls {
        /// Host name, IPv4 or IPv6 literal.
        host: String,
        /// Port.
        port: u16,
        /// The name that the node's certificate must have.
        server_name: String,
        /// Which of the loop's TLS settings hold: the authorities that are trusted, and the certificate that is shown.
        profile: String,
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

impl Endpoint {
    /// The same with the host at this address, which is `host:port` or `[host]:port`.
    pub fn at(&self, address: &str) -> Self {
        let found = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let found = found.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(found).to_owned();
        let mut this = self.clone();
        if let Self::Tcp { host, .. } | Self::Tls { host, .. } = &mut this {
            *host = found;
        }
        this
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write_host(f, host, *port),
            Self::Tls { host, port, .. } => {
                f.write_str("tls:")?;
                write_host(f, host, *port)
            }
            Self::Unix { path } => write!(f, "unix:{path}"),
            Self::Embedded { index } => write!(f, "embedded:{index}"),
        }
    }
}

fn write_host(f: &mut fmt::Formatter<'_>, host: &str, port: u16) -> fmt::Result {
    if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_prints_as_settings_write_it() {
        for (endpoint, text) in [
            (Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 6379 }, "127.0.0.1:6379"),
            (Endpoint::Tcp { host: "::1".to_owned(), port: 6379 }, "[::1]:6379"),
            (Endpoint::Tcp { host: String::new(), port: 6379 }, ":6379"),
            (
                Endpoint::Tls {
                    host: "::1".to_owned(),
                    port: 6380,
                    server_name: "a.example".to_owned(),
                    profile: String::new(),
                },
                "tls:[::1]:6380",
            ),
            (Endpoint::Unix { path: "/run/r.sock".to_owned() }, "unix:/run/r.sock"),
            (Endpoint::Embedded { index: 2 }, "embedded:2"),
        ] {
            assert_eq!(endpoint.to_string(), text);
        }
    }
}
