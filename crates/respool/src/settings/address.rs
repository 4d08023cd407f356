//! Addresses as people write them, for listeners and for nodes. Nothing is resolved or opened here.

use std::fmt;
use std::path::PathBuf;

use respool_route::limits::WEIGHT_MAX;

use super::tls::{ListenTls, NodeTls, PREFIX};

/// Where to listen or what to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// Every interface, IPv4 and IPv6 (`:6379`). Only to listen on.
    Any {
        /// The TCP port; 0 lets the system choose.
        port: u16,
    },
    /// A host name or IP address and a port. An IPv6 address stands here without its brackets.
    Tcp {
        /// Name or IP address.
        host: String,
        /// The TCP port; 0, to listen only, lets the system choose.
        port: u16,
    },
    /// A unix socket.
    Unix {
        /// Its path.
        path: PathBuf,
    },
}

const FORMS: &str = "host:port, :port, [v6]:port, unix:/path or /path";

impl Address {
    /// Reads an address to listen on.
    ///
    /// # Errors
    /// Says which forms there are.
    pub fn parse_listener(text: &str) -> Result<Self, String> {
        if let Some(path) = unix_path(text) {
            return unix(path);
        }
        Self::parse_tcp(text).map_err(|why| format!("{why}; an address is {FORMS}"))
    }

    /// Reads a TCP address to listen on.
    ///
    /// # Errors
    /// Says what is missing.
    pub fn parse_tcp(text: &str) -> Result<Self, String> {
        let (host, port) = text.rsplit_once(':').ok_or("the port is missing (write host:port)")?;
        let port = parse_port(port)?;
        if host.is_empty() || host == "*" {
            return Ok(Self::Any { port });
        }
        parse_host(host).map(|host| Self::Tcp { host, port })
    }

    /// The port, if it has one.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Any { port } | Self::Tcp { port, .. } => Some(*port),
            Self::Unix { .. } => None,
        }
    }

    /// Whether only this machine can reach it: a unix socket, a loopback address or the name `localhost`.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Any { .. } => false,
            Self::Tcp { host, .. } => {
                host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
            Self::Unix { .. } => true,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any { port } => write!(f, ":{port}"),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix { path } => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where to accept clients, as it was written: `127.0.0.1:6379`, `tls::6380 cert=FILE key=FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenSpec {
    /// Where.
    pub address: Address,
    /// What is said about TLS behind the address; `None`: TLS is not spoken there.
    pub tls: Option<ListenTls>,
}

impl ListenSpec {
    /// Reads an address to listen on and what stands behind it.
    ///
    /// # Errors
    /// Says which forms there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(text) = text.strip_prefix(PREFIX) else {
            return Address::parse_listener(text).map(|address| Self { address, tls: None });
        };
        let mut words = text.split_ascii_whitespace();
        let address = Address::parse_tcp(words.next().unwrap_or_default())?;
        let mut tls = ListenTls::default();
        words.try_for_each(|word| tls.hear(word))?;
        Ok(Self { address, tls: Some(tls) })
    }
}

impl fmt::Display for ListenSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tls {
            None => self.address.fmt(f),
            Some(tls) => write!(f, "{PREFIX}{}{tls}", self.address),
        }
    }
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeAddress {
    /// A server to connect to.
    Remote(Address),
    /// An engine in this process.
    Embedded,
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote(address) => address.fmt(f),
            Self::Embedded => f.write_str("embedded:"),
        }
    }
}

/// A node as it was written: `10.0.0.1:6379 name=a weight=2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSpec {
    /// What it is.
    pub address: NodeAddress,
    /// Its name, if it was given one.
    pub name: Option<String>,
    /// Its share of the keys relative to the others.
    pub weight: u32,
    /// The name of the node whose replica it is.
    pub replica_of: Option<String>,
    /// The user to authenticate as there, if not the one of the other nodes.
    pub username: Option<String>,
    /// The file whose first line is the password there, if not that of the other nodes.
    pub password_file: Option<String>,
    /// What is said about TLS behind the address; `None`: TLS is not spoken there.
    pub tls: Option<NodeTls>,
}

/// Longest name of a node; it stands in error messages, logs and labels of metrics.
const NAME_BYTES_MAX: usize = 128;

impl NodeSpec {
    /// Reads a node: an address and, behind it, `name=`, `weight=` and `replica_of=`, separated by spaces.
    ///
    /// # Errors
    /// Says what a node looks like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let address = words.next().ok_or("a node needs an address")?;
        let tls = address.strip_prefix(PREFIX);
        let address = parse_node_address(tls.unwrap_or(address))?;
        if tls.is_some() && !matches!(address, NodeAddress::Remote(Address::Tcp { .. })) {
            return Err("TLS is spoken over TCP: tls:host:port".to_owned());
        }
        let tls = tls.map(|_| NodeTls::default());
        let mut node =
            Self { address, name: None, weight: 1, replica_of: None, username: None, password_file: None, tls };
        for word in words {
            match word.split_once('=') {
                Some(("name", name)) => node.name = Some(parse_name(name)?),
                Some(("weight", weight)) => node.weight = parse_weight(weight)?,
                Some(("replica_of", name)) => node.replica_of = Some(parse_name(name)?),
                Some(("username", name)) => node.username = Some(parse_name(name)?),
                Some(("password_file", path)) if !path.is_empty() => node.password_file = Some(path.to_owned()),
                _ => match &mut node.tls {
                    Some(tls) => tls.hear(word)?,
                    None => {
                        return Err(format!(
                            "behind a node's address stand name=NAME, weight=N, replica_of=NAME, username=NAME or \
                             password_file=FILE, not {word:?}"
                        ));
                    }
                },
            }
        }
        Ok(node)
    }
}

impl fmt::Display for NodeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tls.is_some() {
            f.write_str(PREFIX)?;
        }
        self.address.fmt(f)?;
        if let Some(name) = &self.name {
            write!(f, " name={name}")?;
        }
        if self.weight != 1 {
            write!(f, " weight={}", self.weight)?;
        }
        if let Some(primary) = &self.replica_of {
            write!(f, " replica_of={primary}")?;
        }
        if let Some(username) = &self.username {
            write!(f, " username={username}")?;
        }
        if let Some(path) = &self.password_file {
            write!(f, " password_file={path}")?;
        }
        self.tls.as_ref().map_or(Ok(()), |tls| tls.fmt(f))
    }
}

fn parse_node_address(text: &str) -> Result<NodeAddress, String> {
    if text == "embedded:" || text == "embedded" {
        return Ok(NodeAddress::Embedded);
    }
    match Address::parse_listener(text) {
        Ok(Address::Any { .. }) => Err("a node needs a host in front of its port".to_owned()),
        Ok(Address::Tcp { port: 0, .. }) => Err("a node's port is 1 to 65535".to_owned()),
        Ok(address) => Ok(NodeAddress::Remote(address)),
        Err(_) => Err("a node is host:port, [v6]:port, unix:/path, /path or embedded:".to_owned()),
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    let is_plain = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    is_plain
        .then(|| text.to_owned())
        .ok_or_else(|| format!("a name has 1 to {NAME_BYTES_MAX} visible ASCII characters"))
}

fn parse_weight(text: &str) -> Result<u32, String> {
    let weight = text.parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight));
    weight.ok_or_else(|| format!("a weight is 1 to {WEIGHT_MAX}"))
}

fn unix_path(text: &str) -> Option<&str> {
    text.strip_prefix("unix:").or_else(|| text.starts_with('/').then_some(text))
}

fn unix(path: &str) -> Result<Address, String> {
    // The kernel's sun_path holds 108 bytes with the closing NUL.
    if path.is_empty() || path.len() > 107 || path.contains(|c: char| c.is_control()) {
        return Err("a unix socket's path has 1 to 107 bytes and no control characters".to_owned());
    }
    Ok(Address::Unix { path: PathBuf::from(path) })
}

fn parse_port(text: &str) -> Result<u16, String> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit());
    let port = text.parse().ok().filter(|_| is_plain);
    port.ok_or_else(|| "a port is 0 to 65535".to_owned())
}

fn parse_host(text: &str) -> Result<String, String> {
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let v6 = inner.parse::<std::net::Ipv6Addr>().map_err(|_| "between brackets stands an IPv6 address")?;
        return Ok(v6.to_string());
    }
    if text.contains(':') {
        return Err("an IPv6 address needs brackets".to_owned());
    }
    let is_name = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if !is_name || text.len() > 253 {
        return Err("a host name has letters, digits, dots and dashes".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_come_in_five_forms() {
        for (text, shown) in [
            ("127.0.0.1:6379", "127.0.0.1:6379"),
            (":6379", ":6379"),
            ("*:0", ":0"),
            ("cache-1.example:7000", "cache-1.example:7000"),
            ("[::1]:6379", "[::1]:6379"),
            ("unix:/run/respool.sock", "unix:/run/respool.sock"),
            ("unix:relative.sock", "unix:relative.sock"),
            ("/run/respool.sock", "unix:/run/respool.sock"),
        ] {
            let address = Address::parse_listener(text).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(Address::parse_listener(shown), Ok(address), "what is shown can be read again");
        }
        for text in ["", "6379", "host", "host:", "host:+1", "host:65536", "::1:6379", "[::g]:1", "a b:1", "unix:"] {
            assert!(Address::parse_listener(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_node_may_have_a_name_and_a_weight() {
        let node = NodeSpec::parse("10.0.0.1:6379  name=a weight=20").unwrap();
        assert_eq!(node.to_string(), "10.0.0.1:6379 name=a weight=20");
        assert_eq!(NodeSpec::parse("embedded").unwrap().to_string(), "embedded:");
        for text in [
            "",
            " ",
            ":6379",
            "h:0",
            "h:1 weight=0",
            "h:1 weight=65536",
            "h:1 nam=a",
            "h:1 name=",
            "h:1 name=\u{7}",
            "h:1 b",
        ] {
            assert!(NodeSpec::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tls_is_a_prefix_with_words_behind_the_address() {
        let spec = ListenSpec::parse("tls::6380  cert=/c key=/k clients=optional identity=cn").unwrap();
        assert_eq!(spec.to_string(), "tls::6380 cert=/c key=/k clients=optional identity=cn");
        assert_eq!(ListenSpec::parse(&spec.to_string()), Ok(spec));
        let node = NodeSpec::parse("tls:h:1 name=a verify=off server_name=b.example").unwrap();
        assert_eq!(node.to_string(), "tls:h:1 name=a server_name=b.example verify=off");
        assert_eq!(NodeSpec::parse(&node.to_string()), Ok(node));
        for text in ["tls:", "tls:/s", "tls:unix:/s", "tls:h:1 cert", "h:1 cert=/c"] {
            assert!(ListenSpec::parse(text).is_err(), "{text}");
        }
        for text in ["tls:/s", "tls:embedded:", "tls:h:1 clients=off", "h:1 verify=off", "tls:h:1 server_name="] {
            assert!(NodeSpec::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn local_is_what_only_this_machine_reaches() {
        for (text, is_local) in [
            ("127.0.0.1:1", true),
            ("127.1.2.3:1", true),
            ("localhost:1", true),
            ("[::1]:1", true),
            ("/s", true),
            (":1", false),
            ("0.0.0.0:1", false),
            ("10.0.0.1:1", false),
        ] {
            assert_eq!(Address::parse_listener(text).unwrap().is_local(), is_local, "{text}");
        }
    }
}
