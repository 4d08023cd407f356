//! What a client is told: where the server is, who it is to it, and how much may wait.

use crate::Error;
use crate::limits::{QUEUED_BYTES_MAX, REQUESTS_MAX};
use respool_connection::{ClientInfo, Credentials, Endpoint, Identity, Pacing, ReconnectTerms};
use respool_wire::Protocol;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// What happens to a call when too much waits already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overload {
    /// It waits for room, within its time.
    #[default]
    Wait,
    /// It fails at once with [`ErrorKind::Overloaded`](crate::ErrorKind::Overloaded).
    Fail,
}

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) endpoint: Endpoint,
    pub(crate) identity: Identity,
    pub(crate) deadline: Option<Duration>,
    pub(crate) connect_limit: Duration,
    pub(crate) requests_max: usize,
    pub(crate) queued_bytes_max: usize,
    pub(crate) overload: Overload,
    pub(crate) reconnect: ReconnectTerms,
}

impl Config {
    /// Settings from an address:
    ///
    /// * `redis://[[user]:password@]host[:port][/database]`, or `host[:port]` alone
    /// * `unix:///path/to/socket[?db=database]`
    ///
    /// Letters that mean something in an address are written as `%40`, also in names and passwords.
    ///
    /// ```
    /// use respool_client::Config;
    ///
    /// let config = Config::from_url("redis://ann:p%40ss@localhost:6380/2").unwrap();
    /// assert!(!format!("{config:?}").contains("p@ss"));
    /// assert!(Config::from_url("http://localhost").is_err());
    /// ```
    pub fn from_url(url: &str) -> Result<Self, Error> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("redis", url));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut database = None;
        for (name, value) in
            query.split('&').filter(|part| !part.is_empty()).map(|p| p.split_once('=').unwrap_or((p, "")))
        {
            match name {
                "db" => database = Some(parse_database(value)?),
                other => return Err(Error::config(format!("unknown part of the address: {other}"))),
            }
        }
        let (endpoint, credentials) = match scheme {
            "redis" => {
                let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
                if !path.is_empty() {
                    database = Some(parse_database(path)?);
                }
                let (user, place) = place.rsplit_once('@').map_or((None, place), |(user, place)| (Some(user), place));
                let (host, port) = parse_place(place)?;
                (Endpoint::Tcp { host, port }, user.map(parse_credentials).transpose()?)
            }
            "unix" | "redis+unix" => (Endpoint::Unix { path: decode(rest)? }, None),
            other => return Err(Error::config(format!("unknown kind of address: {other}"))),
        };
        let client = ClientInfo {
            name: None,
            library: Some("respool".to_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        };
        let identity = Identity {
            database: database.unwrap_or(0),
            protocol: Protocol::Resp3,
            credentials: credentials.map(Arc::new),
            client: Some(Arc::new(client)),
            pacing: Pacing::Sequential,
            ..Identity::default()
        };
        Ok(Self {
            endpoint,
            identity,
            deadline: Some(Duration::from_secs(5)),
            connect_limit: Duration::from_secs(1),
            requests_max: REQUESTS_MAX,
            queued_bytes_max: QUEUED_BYTES_MAX,
            overload: Overload::Wait,
            reconnect: ReconnectTerms::default(),
        })
    }

    /// How long a call may take, from when it is made; `None` without end. 5 s unless set.
    #[must_use]
    pub fn deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long connecting and each answer of the handshake may take. 1 s unless set.
    #[must_use]
    pub fn connect_limit(mut self, limit: Duration) -> Self {
        self.connect_limit = limit;
        self
    }

    /// The name that the server shows for the connection.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        let mut client = self.identity.client.as_deref().cloned().unwrap_or_default();
        client.name = Some(name.to_owned());
        self.identity.client = Some(Arc::new(client));
        self
    }

    /// The user and the password. Without a user it is the password of the default user.
    #[must_use]
    pub fn credentials(mut self, username: Option<&str>, password: &str) -> Self {
        let credentials =
            Credentials { username: username.map(str::to_owned), password: Zeroizing::new(password.to_owned()) };
        self.identity.credentials = Some(Arc::new(credentials));
        self
    }

    /// How many requests may wait for replies, and how many bytes to be written.
    #[must_use]
    pub fn limits(mut self, requests_max: usize, queued_bytes_max: usize) -> Self {
        (self.requests_max, self.queued_bytes_max) = (requests_max.max(1), queued_bytes_max.max(1));
        self
    }

    /// What happens to a call when that many wait.
    #[must_use]
    pub fn overload(mut self, overload: Overload) -> Self {
        self.overload = overload;
        self
    }

    /// How long the pauses between attempts to connect are, and how many attempts there may be.
    #[must_use]
    pub fn reconnect(mut self, terms: ReconnectTerms) -> Self {
        self.reconnect = terms;
        self
    }
}

fn parse_database(text: &str) -> Result<u32, Error> {
    text.parse().map_err(|_| Error::config(format!("the database is no number: {text}")))
}

fn parse_place(place: &str) -> Result<(String, u16), Error> {
    let wrong_port = |_| Error::config("the port is no number below 65536");
    if let Some(rest) = place.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or_else(|| Error::config("the address lacks a ]"))?;
        let port = port.strip_prefix(':').map_or(Ok(6379), str::parse).map_err(wrong_port)?;
        return Ok((host.to_owned(), port));
    }
    let (host, port) = place.split_once(':').unwrap_or((place, "6379"));
    let host = if host.is_empty() { "127.0.0.1".to_owned() } else { decode(host)? };
    Ok((host, port.parse().map_err(wrong_port)?))
}

fn parse_credentials(text: &str) -> Result<Credentials, Error> {
    let (username, password) = text.split_once(':').unwrap_or(("", text));
    let username = (!username.is_empty()).then(|| decode(username)).transpose()?;
    Ok(Credentials { username, password: Zeroizing::new(decode(password)?) })
}

/// Undoes `%40`.
fn decode(text: &str) -> Result<String, Error> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            decoded.push(first);
            continue;
        }
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(byte.ok_or_else(|| Error::config("a % in the address is not followed by two digits"))?);
        rest = &tail[2..];
    }
    String::from_utf8(decoded).map_err(|_| Error::config("the address is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_where_and_who() {
        let config = Config::from_url("redis://ann:p%40s%3As@[::1]:7000/3").unwrap();
        assert_eq!(config.endpoint, Endpoint::Tcp { host: "::1".to_owned(), port: 7000 });
        let credentials = config.identity.credentials.clone().unwrap();
        assert_eq!((credentials.username.as_deref(), &**credentials.password), (Some("ann"), "p@s:s"));
        assert_eq!(config.identity.database, 3);
        let config = Config::from_url("unix:///run/a%20b.sock?db=2").unwrap();
        assert_eq!(config.endpoint, Endpoint::Unix { path: "/run/a b.sock".to_owned() });
        assert_eq!(config.identity.database, 2);
        let config = Config::from_url("redis://:secret@localhost").unwrap();
        assert_eq!(config.identity.credentials.clone().unwrap().username, None);
        let config = Config::from_url("localhost:1").unwrap();
        assert_eq!(config.endpoint, Endpoint::Tcp { host: "localhost".to_owned(), port: 1 });
    }

    #[test]
    fn a_wrong_address_is_refused() {
        for url in [
            "http://a",
            "redis://a:b",
            "redis://a:70000",
            "redis://a/x",
            "redis://[::1",
            "unix:///a%2",
            "redis://a?tls=1",
        ] {
            assert!(Config::from_url(url).is_err(), "{url}");
        }
    }
}
