//! TLS as people write it: words behind an address, and the values of a pool that hold where no word says otherwise.
//! Nothing is read or checked here but how it is written; the files are read when listeners are opened.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::choices::{NodeTlsVerify, TlsAuthClients, TlsIdentity};

/// The prefix of an address where TLS is spoken.
pub const PREFIX: &str = "tls:";

/// A certificate and its key, which go together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pair {
    /// File with the certificate chain.
    pub cert: Option<PathBuf>,
    /// File with its private key.
    pub key: Option<PathBuf>,
}

/// What a listener shows and demands; as words behind its address, or as the pool's own values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListenTls {
    /// What clients are shown.
    pub own: Pair,
    /// File with the authorities of clients' certificates.
    pub ca: Option<PathBuf>,
    /// File with the lists of revoked certificates.
    pub crl: Option<PathBuf>,
    /// Whether clients show a certificate.
    pub clients: Option<TlsAuthClients>,
    /// Which of its names is the user of a client.
    pub identity: Option<TlsIdentity>,
}

/// What a dial shows and demands; as words behind a node's address, or as the pool's own values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeTls {
    /// The name in the node's certificate, if it is not the host of its address.
    pub server_name: Option<String>,
    /// File with the authorities of nodes' certificates.
    pub ca: Option<PathBuf>,
    /// What nodes are shown.
    pub own: Pair,
    /// Whether nodes' certificates are checked.
    pub verify: Option<NodeTlsVerify>,
}

/// What holds in a pool where an address says nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct TlsSettings {
    /// For listeners.
    pub listen: ListenTls,
    /// For nodes.
    pub nodes: NodeTls,
    /// Users of names in certificates; `None`: a name is its user's.
    pub users: Option<HashMap<String, String>>,
    /// How long a client's handshake may take.
    pub handshake_timeout: Duration,
}

const LISTEN_WORDS: &str = "cert=FILE, key=FILE, ca=FILE, crl=FILE, clients=off|optional|required, \
                            identity=off|cn|dns|uri|email";
const NODE_WORDS: &str = "server_name=NAME, ca=FILE, cert=FILE, key=FILE or verify=on|off";

impl Pair {
    /// Takes a word about one of the two; `false`: it is about something else.
    fn hear(&mut self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "cert" => self.cert = Some(path(value)?),
            "key" => self.key = Some(path(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Both as they are said here, or both as in `other`.
    fn or(&self, other: &Self) -> Self {
        if *self == Self::default() { other.clone() } else { self.clone() }
    }
}

impl ListenTls {
    /// Takes one word behind an address.
    ///
    /// # Errors
    /// Says which words there are.
    pub fn hear(&mut self, word: &str) -> Result<(), String> {
        let wrong = || format!("behind a TLS listener's address stand {LISTEN_WORDS}, not {word:?}");
        let (name, value) = word.split_once('=').ok_or_else(wrong)?;
        if self.own.hear(name, value)? {
            return Ok(());
        }
        match name {
            "ca" => self.ca = Some(path(value)?),
            "crl" => self.crl = Some(path(value)?),
            "clients" => self.clients = Some(TlsAuthClients::named(value).ok_or_else(wrong)?),
            "identity" => self.identity = Some(TlsIdentity::named(value).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
        Ok(())
    }

    /// These words, and `other` where they say nothing. A certificate and its key go together.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            own: self.own.or(&other.own),
            ca: self.ca.clone().or_else(|| other.ca.clone()),
            crl: self.crl.clone().or_else(|| other.crl.clone()),
            clients: self.clients.or(other.clients),
            identity: self.identity.or(other.identity),
        }
    }

    /// What is missing, if something is.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let clients = self.clients.unwrap_or(TlsAuthClients::Off);
        let is_named = self.identity.is_some_and(|identity| identity != TlsIdentity::Off);
        match (&self.own.cert, &self.own.key) {
            (None, _) => Some("TLS needs a certificate: say cert=FILE behind the address, or tls_cert_file"),
            (_, None) => Some("a certificate needs its key: say key=FILE behind the address, or tls_key_file"),
            _ if clients != TlsAuthClients::Off && self.ca.is_none() => {
                Some("clients' certificates need an authority: say ca=FILE behind the address, or tls_client_ca_file")
            }
            _ if self.crl.is_some() && clients == TlsAuthClients::Off => {
                Some("no client is asked for a certificate that could be revoked: set tls_auth_clients")
            }
            _ if is_named && clients == TlsAuthClients::Off => {
                Some("no client is asked for a certificate that could say who it is: set tls_auth_clients")
            }
            _ => None,
        }
    }
}

impl NodeTls {
    /// Takes one word behind a node's address.
    ///
    /// # Errors
    /// Says which words there are.
    pub fn hear(&mut self, word: &str) -> Result<(), String> {
        let wrong = || format!("behind a TLS node's address stand name=NAME, weight=N, {NODE_WORDS}, not {word:?}");
        let (name, value) = word.split_once('=').ok_or_else(wrong)?;
        if self.own.hear(name, value)? {
            return Ok(());
        }
        match name {
            "server_name" if !value.is_empty() => self.server_name = Some(value.to_owned()),
            "ca" => self.ca = Some(path(value)?),
            "verify" => self.verify = Some(NodeTlsVerify::named(value).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
        Ok(())
    }

    /// These words, and `other` where they say nothing. A certificate and its key go together.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            server_name: self.server_name.clone().or_else(|| other.server_name.clone()),
            ca: self.ca.clone().or_else(|| other.ca.clone()),
            own: self.own.or(&other.own),
            verify: self.verify.or(other.verify),
        }
    }

    /// What is missing, if something is.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        match (&self.own.cert, &self.own.key) {
            (None, Some(_)) => Some("a key for the nodes has no certificate: say both"),
            (Some(_), None) => Some("a certificate for the nodes has no key: say both"),
            _ => None,
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(f, "cert", self.cert.as_deref())?;
        write_path(f, "key", self.key.as_deref())
    }
}

impl fmt::Display for ListenTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.own.fmt(f)?;
        write_path(f, "ca", self.ca.as_deref())?;
        write_path(f, "crl", self.crl.as_deref())?;
        self.clients.map_or(Ok(()), |clients| write!(f, " clients={}", clients.name()))?;
        self.identity.map_or(Ok(()), |identity| write!(f, " identity={}", identity.name()))
    }
}

impl fmt::Display for NodeTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server_name.as_ref().map_or(Ok(()), |name| write!(f, " server_name={name}"))?;
        write_path(f, "ca", self.ca.as_deref())?;
        self.own.fmt(f)?;
        self.verify.map_or(Ok(()), |verify| write!(f, " verify={}", verify.name()))
    }
}

fn write_path(f: &mut fmt::Formatter<'_>, word: &str, path: Option<&Path>) -> fmt::Result {
    path.map_or(Ok(()), |path| write!(f, " {word}={}", path.display()))
}

fn path(text: &str) -> Result<PathBuf, String> {
    let is_plain = !text.is_empty() && !text.contains(|c: char| c.is_control());
    is_plain.then(|| PathBuf::from(text)).ok_or_else(|| "a file's path is needed".to_owned())
}

/// Reads `name=user` pairs, separated by spaces.
///
/// # Errors
/// Names the pair that is none.
pub fn users(text: &str) -> Result<HashMap<String, String>, String> {
    let mut users = HashMap::new();
    for pair in text.split_ascii_whitespace() {
        // A URI may well have an equals sign in it, a user's name has none.
        let named = pair.rsplit_once('=').filter(|(name, user)| !name.is_empty() && !user.is_empty());
        let (name, user) = named.ok_or_else(|| format!("{pair:?} is not NAME=USER"))?;
        if users.insert(name.to_owned(), user.to_owned()).is_some() {
            return Err(format!("{name:?} is said twice"));
        }
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_overrule_the_pool_and_pairs_stay_together() {
        let mut pool = ListenTls::default();
        for word in ["cert=/p.crt", "key=/p.key", "ca=/ca", "clients=required"] {
            pool.hear(word).unwrap();
        }
        let mut own = ListenTls::default();
        own.hear("cert=/own.crt").unwrap();
        assert_eq!(own.or(&pool).to_string(), " cert=/own.crt ca=/ca clients=required");
        assert!(own.or(&pool).fault().unwrap().contains("key"));
        assert_eq!(ListenTls::default().or(&pool).fault(), None);
        for word in ["cert", "cert=", "clients=maybe", "weight=1", "identity=ip"] {
            assert!(own.hear(word).is_err(), "{word}");
        }
    }

    #[test]
    fn users_are_pairs() {
        let users = super::users("alice=a spiffe://x/y?k=v=b").unwrap();
        assert_eq!((users["alice"].as_str(), users["spiffe://x/y?k=v"].as_str()), ("a", "b"));
        for text in ["alice", "alice=", "=a", "a=b a=c"] {
            assert!(super::users(text).is_err(), "{text}");
        }
    }
}
