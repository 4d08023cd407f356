//! The files of TLS, read and understood: at the start, at every reload, and for `respool check`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use respool_net::tls::{
    ClientCertificates, ClientTls, IdentityRule, KeyPair, NameField, Part, ServerTls, TlsClients, TlsError, TlsServer,
};

use crate::failure::Failure;
use crate::settings::choices::{NodeTlsVerify, TlsAuthClients, TlsIdentity};
use crate::settings::tls::{ListenTls, NodeTls, PREFIX, Pair, TlsSettings};
use crate::settings::{Instance, ListenSpec};

/// Largest file that is read: every authority that a system trusts is a tenth of it.
const PEM_BYTES_MAX: u64 = 4 << 20;

/// Where systems keep the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// A listener, and what is shown and demanded there.
type ListenerTls = (ListenSpec, Option<Arc<TlsServer>>);

/// What one instance shows and demands.
#[derive(Debug)]
pub(super) struct InstanceTls {
    /// Its listeners in order, with `None` where TLS is not spoken.
    listeners: Mutex<Vec<ListenerTls>>,
    /// Its nodes, by [`profile`].
    pub(super) nodes: Arc<TlsClients>,
}

/// The name of what a node's own words say; with the pool's values it is the same for all of them.
pub(super) fn profile(words: &NodeTls) -> String {
    words.to_string()
}

impl InstanceTls {
    /// Reads everything.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub(super) fn load(instance: &Instance) -> Result<Self, Failure> {
        let tls = &instance.tls;
        let server = |spec: &ListenSpec| {
            let Some(words) = &spec.tls else { return Ok(None) };
            let words = words.or(&tls.listen);
            let whose = format!("{PREFIX}{}", spec.address);
            let made = TlsServer::new(&server_terms(&words, tls)?);
            made.map(Some)
                .map_err(|error| blame(&error, &whose, [&words.own.cert, &words.own.key, &words.ca, &words.crl]))
        };
        let with_tls = |spec: &ListenSpec| Ok::<_, Failure>((spec.clone(), server(spec)?));
        let listeners = Mutex::new(instance.net.listen.iter().map(with_tls).collect::<Result<_, _>>()?);
        let nodes = Arc::new(TlsClients::default());
        for node in instance.nodes() {
            let Some(own) = &node.tls else { continue };
            let words = own.or(&tls.nodes);
            let set = nodes.set(&profile(own), &client(&words)?);
            set.map_err(|error| {
                blame(&error, &format!("node {}", node.name), [&words.own.cert, &words.own.key, &words.ca, &None])
            })?;
        }
        Ok(Self { listeners, nodes })
    }

    /// Reads everything anew; what it says then holds for new connections. If anything is wrong, everything stays.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub(super) fn reload(&self, instance: &Instance) -> Result<(), Failure> {
        let new = Self::load(instance)?;
        self.nodes.become_like(&new.nodes);
        for ((_, old), new) in lock(&self.listeners).iter().zip(new.take_listeners()) {
            if let (Some(old), Some(new)) = (old, new) {
                old.become_like(&new);
            }
        }
        Ok(())
    }

    /// What is shown and demanded at each listener, in order.
    pub(super) fn take_listeners(&self) -> Vec<Option<Arc<TlsServer>>> {
        std::mem::take(&mut *lock(&self.listeners)).into_iter().map(|(_, server)| server).collect()
    }

    /// The same, kept.
    pub(super) fn servers(&self) -> Vec<Option<Arc<TlsServer>>> {
        lock(&self.listeners).iter().map(|(_, server)| server.clone()).collect()
    }

    /// What is shown and demanded at one listener.
    pub(super) fn listener(&self, spec: &ListenSpec) -> Option<Arc<TlsServer>> {
        lock(&self.listeners).iter().find(|(known, _)| known == spec).and_then(|(_, server)| server.clone())
    }

    /// Other listeners are open from now on.
    pub(super) fn set_listeners(&self, listeners: Vec<ListenerTls>) {
        *lock(&self.listeners) = listeners;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn server_terms(words: &ListenTls, tls: &TlsSettings) -> Result<ServerTls, Failure> {
    let clients = match words.clients.unwrap_or(TlsAuthClients::Off) {
        TlsAuthClients::Off => ClientCertificates::Off,
        TlsAuthClients::Optional => ClientCertificates::Optional,
        TlsAuthClients::Required => ClientCertificates::Required,
    };
    let field = match words.identity.unwrap_or(TlsIdentity::Off) {
        TlsIdentity::Off => None,
        TlsIdentity::Cn => Some(NameField::CommonName),
        TlsIdentity::Dns => Some(NameField::Dns),
        TlsIdentity::Uri => Some(NameField::Uri),
        TlsIdentity::Email => Some(NameField::Email),
    };
    let missing = || Failure::settings("TLS needs a certificate");
    Ok(ServerTls {
        own: key_pair(&words.own)?.ok_or_else(missing)?,
        client_authorities_pem: words.ca.as_deref().map(read).transpose()?,
        client_revocations_pem: words.crl.as_deref().map(read).transpose()?,
        clients,
        identity: field.map(|field| IdentityRule { field, users: tls.users.clone() }),
        handshake_timeout: tls.handshake_timeout,
    })
}

fn client(words: &NodeTls) -> Result<ClientTls, Failure> {
    let authorities_pem = match (words.verify, &words.ca) {
        (Some(NodeTlsVerify::Off), _) => None,
        (_, Some(ca)) => Some(read(ca)?),
        (_, None) => Some(system_authorities()?),
    };
    Ok(ClientTls { authorities_pem, own: key_pair(&words.own)? })
}

fn system_authorities() -> Result<Vec<u8>, Failure> {
    match SYSTEM_AUTHORITIES.iter().map(Path::new).find(|path| path.exists()) {
        Some(path) => read(path),
        None => Err(Failure::settings("this system says nowhere which authorities it trusts")
            .hint("set node_tls_ca_file, or say ca=FILE behind the node's address")),
    }
}

fn key_pair(files: &Pair) -> Result<Option<KeyPair>, Failure> {
    match (&files.cert, &files.key) {
        (Some(cert), Some(key)) => Ok(Some(KeyPair { certificate_pem: read(cert)?, key_pem: read(key)?.into() })),
        _ => Ok(None),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(PEM_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > PEM_BYTES_MAX => {
            Err(Failure::settings(format!("{} is larger than {PEM_BYTES_MAX} bytes", path.display())))
        }
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::settings(format!("{} cannot be read: {error}", path.display()))),
    }
}

/// Points at the file that is wrong: of the certificate, the key, the authorities or the revoked.
fn blame(error: &TlsError, whose: &str, [cert, key, ca, crl]: [&Option<PathBuf>; 4]) -> Failure {
    let file = match error.part {
        Part::Certificate => cert,
        Part::Key => key,
        Part::Authorities => ca,
        Part::Revocations => crl,
        Part::ServerName => &None,
    };
    let place = file.as_ref().map_or_else(String::new, |file| format!("{}: ", file.display()));
    Failure::settings(format!("TLS of {whose}: {place}{error}"))
}
