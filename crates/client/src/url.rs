//! The address of a server as users write it, taken apart. No error repeats any of it: a password may stand where it does not
//! belong.

use crate::Error;
use crate::limits::CLUSTER_SEEDS_MAX;
use respool_connection::{Credentials, Endpoint};
use respool_route::cluster;
use respool_wire::Protocol;
use std::fmt;
use zeroize::Zeroizing;

/// What the address of a server says, as [`Config::from_url`](crate::Config::from_url) describes it.
///
/// ```
/// use respool_client::{Address, Credentials, Endpoint, Protocol};
///
/// let address = Address::parse("redis://ann:word@localhost:6380/2?protocol=2").unwrap();
/// assert_eq!(address.endpoint, Endpoint::Tcp { host: "localhost".into(), port: 6380 });
/// let Some(Credentials { username, password }) = address.credentials else { panic!() };
/// assert_eq!((username.as_deref(), &**password), (Some("ann"), "word"));
/// assert_eq!((address.database, address.protocol), (2, Some(Protocol::Resp2)));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Address {
    /// Where the server is. The profile of TLS is left empty.
    pub endpoint: Endpoint,
    /// The seeds of a cluster; none for one server.
    pub(crate) cluster: Vec<cluster::Address>,
    /// The user and the password.
    pub credentials: Option<Credentials>,
    /// The database; 0 unless said.
    pub database: u32,
    /// The dialect, if it is said.
    pub protocol: Option<Protocol>,
    /// The name that the server shows for the connection.
    pub name: Option<String>,
    #[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "TLS needs it"))]
    pub(crate) tls: TlsWords,
}

/// What an address says of TLS.
#[derive(Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "TLS needs it"))]
pub(crate) struct TlsWords {
    pub(crate) ca_file: Option<String>,
    pub(crate) cert_file: Option<String>,
    pub(crate) key_file: Option<String>,
    pub(crate) server_name: Option<String>,
    pub(crate) is_insecure: Option<bool>,
}

/// The port of a server that does not say another.
const PORT: u16 = 6379;

/// What has to be written otherwise.
const ENCODING: &str = "write @ : / ? # % in names and passwords as %40 %3A %2F %3F %23 %25";

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Tcp,
    Tls,
    Unix,
}

impl Scheme {
    fn of(text: &str) -> Option<Self> {
        let is = |names: &[&str]| names.iter().any(|name| text.eq_ignore_ascii_case(name));
        match () {
            () if is(&["redis", "valkey"]) => Some(Self::Tcp),
            () if is(&["rediss", "valkeys"]) => Some(Self::Tls),
            () if is(&["unix", "redis+unix", "redis-socket", "valkey+unix"]) => Some(Self::Unix),
            () => None,
        }
    }
}

/// What stands in the query, and what stood in front of it.
#[derive(Default)]
struct Parts {
    database: Option<u32>,
    username: Option<String>,
    password: Option<Zeroizing<String>>,
    protocol: Option<Protocol>,
    name: Option<String>,
    tls: TlsWords,
}

impl Address {
    /// Takes an address apart. No error repeats a part of it, since a password may be in it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            // Mostly a setting that was forgotten. `redis://` is this host.
            return Err(wrong("it is empty"));
        }
        if text.chars().any(|letter| letter.is_control() || letter == ' ') {
            return Err(wrong("it holds a blank or a control character"));
        }
        let mut is_cluster = false;
        let (scheme, rest) = match text.split_once("://") {
            None => (Scheme::Tcp, text),
            Some((scheme, rest)) => {
                let known = "its scheme is none of redis, rediss, valkey, valkeys, unix, redis+sentinel, redis+cluster and redis+shards";
                let plain = scheme.len().checked_sub("+cluster".len()).and_then(|end| scheme.split_at_checked(end));
                let plain = plain.filter(|(_, kind)| kind.eq_ignore_ascii_case("+cluster"));
                is_cluster = plain.is_some();
                let found = Scheme::of(plain.map_or(scheme, |(plain, _)| plain));
                (found.filter(|found| !is_cluster || *found != Scheme::Unix).ok_or_else(|| wrong(known))?, rest)
            }
        };
        if rest.contains('#') {
            return Err(wrong(format_args!("it holds a #; {ENCODING}")));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let start = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(start);
        if query.contains('@') || path.contains('@') && scheme != Scheme::Unix {
            return Err(wrong(format_args!("there is an @ behind its first / or ?; {ENCODING}")));
        }
        let mut parts = Parts::default();
        parts.read_query(query)?;
        if parts.tls != TlsWords::default() && scheme != Scheme::Tls {
            return Err(wrong("it says something of TLS, and its scheme is not rediss or valkeys"));
        }
        if parts.tls.cert_file.is_some() != parts.tls.key_file.is_some() {
            return Err(wrong("cert_file and key_file go together"));
        }
        if parts.tls.ca_file.is_some() && parts.tls.is_insecure.is_some() {
            return Err(wrong("it names authorities, and takes any certificate"));
        }
        let (user, place) = authority.rsplit_once('@').map_or((None, authority), |(user, place)| (Some(user), place));
        if let Some(user) = user {
            parts.read_user(user)?;
        }
        let places: Vec<&str> = if is_cluster { place.split(',').collect() } else { vec![place] };
        let place = places[0];
        let endpoint = match scheme {
            Scheme::Unix if !place.is_empty() => {
                return Err(wrong(
                    "the path of a unix socket begins with a /, so there are three: unix:///run/redis.sock",
                ));
            }
            Scheme::Unix if path.len() < 2 => return Err(wrong("it lacks the path of the unix socket")),
            Scheme::Unix => Endpoint::Unix { path: decode(path)? },
            Scheme::Tcp | Scheme::Tls => {
                if let Some(path) = path.strip_prefix('/').filter(|path| !path.is_empty()) {
                    set(&mut parts.database, parse_database(path)?, "the database")?;
                }
                let (host, port) = parse_place(place)?;
                match scheme {
                    Scheme::Tls => {
                        let server_name = host.clone();
                        Endpoint::Tls { host, port, server_name, profile: String::new() }
                    }
                    _ => Endpoint::Tcp { host, port },
                }
            }
        };
        let cluster = if is_cluster { parse_seeds(&places)? } else { Vec::new() };
        if is_cluster && parts.database.is_some_and(|database| database != 0) {
            return Err(wrong("a cluster has no other database than 0"));
        }
        let credentials = match (parts.username, parts.password) {
            (username, Some(password)) => Some(Credentials { username, password }),
            (Some(_), None) => return Err(wrong("it names a user and no password; a password alone is :password@")),
            (None, None) => None,
        };
        Ok(Self {
            endpoint,
            cluster,
            credentials,
            database: parts.database.unwrap_or(0),
            protocol: parts.protocol,
            name: parts.name,
            tls: parts.tls,
        })
    }
}

impl Parts {
    fn read_user(&mut self, text: &str) -> Result<(), Error> {
        let (username, password) = text.split_once(':').map_or((text, None), |(name, word)| (name, Some(word)));
        if !username.is_empty() {
            set(&mut self.username, decode(username)?, "the user")?;
        }
        if let Some(password) = password.filter(|password| !password.is_empty()) {
            set(&mut self.password, Zeroizing::new(decode(password)?), "the password")?;
        }
        Ok(())
    }

    fn read_query(&mut self, query: &str) -> Result<(), Error> {
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(wrong("a part behind its ? has no ="));
            };
            match name {
                "db" => set(&mut self.database, parse_database(value)?, "the database")?,
                "user" | "username" => set(&mut self.username, decode(value)?, "the user")?,
                "password" => set(&mut self.password, Zeroizing::new(decode(value)?), "the password")?,
                "name" | "client_name" => set(&mut self.name, decode(value)?, "the name")?,
                "protocol" => {
                    let protocol = match value {
                        "2" | "resp2" => Protocol::Resp2,
                        "3" | "resp3" => Protocol::Resp3,
                        _ => return Err(wrong("the protocol is neither 2 nor 3")),
                    };
                    set(&mut self.protocol, protocol, "the protocol")?;
                }
                "ca_file" => set(&mut self.tls.ca_file, decode(value)?, "the file of authorities")?,
                "cert_file" => set(&mut self.tls.cert_file, decode(value)?, "the file of the certificate")?,
                "key_file" => set(&mut self.tls.key_file, decode(value)?, "the file of the private key")?,
                "server_name" => set(&mut self.tls.server_name, decode(value)?, "the server's name")?,
                "tls" if value == "insecure" => set(&mut self.tls.is_insecure, true, "tls")?,
                "tls" => return Err(wrong("tls can be insecure and nothing else; rediss alone is secure")),
                _ => {
                    let known = "behind its ? there may be db, user, password, protocol, name, ca_file, cert_file, \
                                 key_file, server_name and tls, and there is another";
                    return Err(wrong(known));
                }
            }
        }
        Ok(())
    }
}

fn set<T>(place: &mut Option<T>, value: T, what: &str) -> Result<(), Error> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(wrong(format_args!("{what} is said twice"))),
    }
}

pub(crate) fn wrong(why: impl fmt::Display) -> Error {
    Error::config(format!("the address cannot be used: {why}"))
}

fn parse_database(text: &str) -> Result<u32, Error> {
    text.parse().map_err(|_| wrong(format_args!("the database is no number; {ENCODING}")))
}

fn parse_place(place: &str) -> Result<(String, u16), Error> {
    parse_place_or(place, PORT)
}

/// A host and a port, which is `usual` unless it is said.
pub(crate) fn parse_place_or(place: &str, usual: u16) -> Result<(String, u16), Error> {
    let port = |text: &str| match text.parse() {
        Ok(0) | Err(_) => Err(wrong(format_args!("the port is no number from 1 to 65535; {ENCODING}"))),
        Ok(port) => Ok(port),
    };
    if let Some(rest) = place.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or_else(|| wrong("it lacks a ]"))?;
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(wrong("what stands in [] is no IPv6 address"));
        }
        return match rest.strip_prefix(':') {
            Some(text) => Ok((host.to_owned(), port(text)?)),
            None if rest.is_empty() => Ok((host.to_owned(), usual)),
            None => Err(wrong("something that is no port follows the ]")),
        };
    }
    let (host, port) = match place.split_once(':') {
        None => (place, usual),
        Some((_, rest)) if rest.contains(':') => {
            return Err(wrong("it holds several colons; an IPv6 address stands in []"));
        }
        Some((host, text)) => (host, port(text)?),
    };
    if host.contains(',') {
        return Err(wrong("it names several servers"));
    }
    let host = if host.is_empty() { "127.0.0.1".to_owned() } else { decode(host)? };
    Ok((host, port))
}

/// The nodes of a cluster that are asked for the others.
fn parse_seeds(places: &[&str]) -> Result<Vec<cluster::Address>, Error> {
    if places.len() > CLUSTER_SEEDS_MAX {
        return Err(wrong(format_args!("it names more than {CLUSTER_SEEDS_MAX} servers")));
    }
    let seed = |place: &&str| {
        if place.is_empty() && places.len() > 1 {
            return Err(wrong("a server that it names is empty"));
        }
        let (host, port) = parse_place(place)?;
        cluster::Address::new(&host, port).ok_or_else(|| wrong("a host of it cannot be one"))
    };
    places.iter().map(seed).collect()
}

/// Undoes `%40`.
pub(crate) fn decode(text: &str) -> Result<String, Error> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            decoded.push(first);
            continue;
        }
        let digits = tail.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(byte.ok_or_else(|| wrong("a % is not followed by two digits"))?);
        rest = &tail[2..];
    }
    String::from_utf8(decoded).map_err(|_| wrong("it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Tcp { host: host.to_owned(), port }
    }

    #[test]
    fn an_address_says_where_and_who() {
        let address = parse("redis://ann:p%40s%3As@[::1]:7000/3");
        assert_eq!((&address.endpoint, address.database), (&tcp("::1", 7000), 3));
        let credentials = address.credentials.unwrap();
        assert_eq!((credentials.username.as_deref(), &**credentials.password), (Some("ann"), "p@s:s"));
        assert_eq!(parse("localhost:1").endpoint, tcp("localhost", 1));
        assert_eq!(parse("redis://").endpoint, tcp("127.0.0.1", 6379));
        assert_eq!(parse(":7000").endpoint, tcp("127.0.0.1", 7000));
        assert!(Address::parse("").is_err(), "a setting that was forgotten");
        assert_eq!(parse("valkey://h/").endpoint, tcp("h", 6379));
        assert_eq!(parse("redis://:secret@h").credentials.unwrap().username, None);
        assert!(parse("redis://@h").credentials.is_none());
    }

    #[test]
    fn options_stand_behind_the_question_mark() {
        let address = parse("redis://h?db=4&user=ann&password=a%26b&protocol=2&name=web");
        assert_eq!(
            (address.database, address.protocol, address.name.as_deref()),
            (4, Some(Protocol::Resp2), Some("web"))
        );
        let credentials = address.credentials.unwrap();
        assert_eq!((credentials.username.as_deref(), &**credentials.password), (Some("ann"), "a&b"));
        assert_eq!(parse("redis://h?protocol=3").protocol, Some(Protocol::Resp3));
    }

    #[test]
    fn a_cluster_is_named_by_some_of_its_nodes() {
        let seeds = |text: &str| -> Vec<String> { parse(text).cluster.iter().map(ToString::to_string).collect() };
        assert_eq!(seeds("redis+cluster://:secret@a:7000,b,[::1]:7002"), ["a:7000", "b:6379", "[::1]:7002"]);
        assert_eq!(seeds("valkey+cluster://a/0"), ["a:6379"]);
        assert_eq!(seeds("redis://a"), [""; 0]);
        let Endpoint::Tls { host, .. } = parse("rediss+cluster://a,b").endpoint else { panic!("no TLS") };
        assert_eq!(host, "a");
    }

    #[test]
    fn a_unix_socket_may_have_a_password_and_a_database() {
        let address = parse("unix:///run/a%20b.sock?db=2");
        assert_eq!((address.endpoint, address.database), (Endpoint::Unix { path: "/run/a b.sock".to_owned() }, 2));
        let address = parse("redis+unix://ann:word@/run/r@1.sock");
        assert_eq!(address.endpoint, Endpoint::Unix { path: "/run/r@1.sock".to_owned() });
        assert_eq!(address.credentials.unwrap().username.as_deref(), Some("ann"));
    }

    #[test]
    fn an_encrypted_address_says_which_name_is_expected() {
        let Endpoint::Tls { host, port, server_name, .. } = parse("rediss://db.example:6380").endpoint else {
            panic!("no TLS")
        };
        assert_eq!((&*host, port, &*server_name), ("db.example", 6380, "db.example"));
    }

    #[test]
    fn a_wrong_address_is_refused() {
        for text in [
            "http://a",
            "redis://a:b",
            "redis://a:0",
            "redis://a:70000",
            "redis://a:1:2",
            "redis://::1",
            "redis://a/x",
            "redis://a/1/2",
            "redis://[::1",
            "redis://[::1]6379",
            "redis://[a]",
            "redis://a,b",
            "redis://a b",
            "redis://a\r\nb",
            "unix:///a%2",
            "unix:///a%+1",
            "unix://run/a",
            "unix://",
            "redis://a?tls=insecure",
            "redis://a?ca_file=/x",
            "rediss://a?tls=1",
            "rediss://a?cert_file=/x",
            "rediss://a?key_file=/x",
            "rediss://a?tls=insecure&ca_file=/x",
            "redis://a?db",
            "redis://a?protocol=4",
            "redis://a/1?db=2",
            "redis://ann@a",
            "redis://:a@b?password=c",
            "redis+cluster://a/1",
            "redis+cluster://a,",
            "redis+cluster://a,b:0",
            "unix+cluster:///a",
            "http+cluster://a",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_error_repeats_a_password() {
        for text in [
            "redis://:sesame/open@h",
            "redis://:sesame?open@h",
            "redis://:sesame#open@h",
            "redis://:open@sesame@h:x",
            "redis://ann:sesame%@h",
            "redis://sesame@h",
            "redis://h/sesame",
            "redis://h?sesame=1",
            "redis://h?db=sesame",
            "redis://h?protocol=sesame",
            "redis://h:sesame",
            "sesame://h",
            "redis+cluster://sesame@h,i",
            "redis+cluster://h,i:sesame",
            "unix://:sesame@h/x",
            "redis://:sesame@h?password=sesame",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("sesame"), "{text}: {error}");
        }
        assert!(!format!("{:?}", parse("redis://ann:sesame@h")).contains("sesame"));
    }
}
