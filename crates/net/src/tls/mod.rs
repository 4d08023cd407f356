//! TLS: what a listener shows and demands, what a dial shows and demands, and the name in a client's certificate.
//!
//! Everything here is made from PEM texts that the caller has read, holds for new connections only, and can be replaced
//! while connections are open. One provider of cryptography is named everywhere; the process' default is never asked for.
//! TLS 1.2 and 1.3, no older one.

pub(crate) mod accept;
mod certificate;
mod client;
mod identity;
mod material;
mod server;

pub use client::{ClientTls, TlsClients, TlsStream};
pub use identity::{IdentityRule, NameField};
pub use material::{KeyPair, Part, TlsError};
pub use server::{ClientCertificates, ServerTls, TlsServer};

pub(crate) use identity::IdentityError;
pub(crate) use server::Current;
