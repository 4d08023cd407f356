//! Parameters that say where a server listens and what its TLS shows, in the words of the settings.

use super::{Changes, Parameters};
use crate::settings::choices::TlsAuthClients;
use crate::settings::tls::ListenTls;

/// Parameters that decide where is listened. A change of one of them opens and closes listeners.
pub(crate) const ADDRESSES: [&str; 3] = ["bind", "port", "tls-port"];

/// Whether a parameter decides what TLS shows and demands.
pub(crate) fn is_about_tls(name: &str) -> bool {
    matches!(name, "tls-cert-file" | "tls-key-file" | "tls-ca-cert-file" | "tls-auth-clients")
}

/// Redis' words for what it could not do.
pub(crate) fn failure(name: &str) -> &'static str {
    match name {
        "bind" => "Failed to bind to specified addresses.",
        "port" | "tls-port" => "Unable to listen on this port. Check server logs.",
        _ => "Unable to update TLS configuration. Check server logs.",
    }
}

impl Parameters {
    /// Where to listen; nowhere if there is none. `has_address`: whether the system has an address that may be missing.
    pub fn listen_addresses(&self, has_address: &mut dyn FnMut(&str) -> bool) -> Vec<String> {
        let hosts = hosts(self.value("bind"), has_address);
        let (port, tls_port) = (self.value("port"), self.value("tls-port"));
        let mut found = Vec::new();
        if port != "0" {
            found.extend(hosts.iter().map(|host| format!("{host}:{port}")));
        }
        if tls_port != "0" {
            found.extend(hosts.iter().map(|host| format!("tls:{host}:{tls_port}")));
        }
        let socket = self.value("unixsocket");
        if !socket.is_empty() {
            found.push(format!("unix:{socket}"));
        }
        found
    }

    /// What listeners show and demand; what no parameter says is as in `before`.
    pub(crate) fn listen_tls(&self, before: &ListenTls) -> ListenTls {
        let file = |name: &str| Some(self.value(name)).filter(|path| !path.is_empty()).map(Into::into);
        let mut tls = before.clone();
        tls.own.cert = file("tls-cert-file");
        tls.own.key = file("tls-key-file");
        tls.ca = file("tls-ca-cert-file");
        tls.clients = TlsAuthClients::named(self.tls_clients());
        tls
    }

    /// The word of the settings for `tls-auth-clients`.
    pub(crate) fn tls_clients(&self) -> &'static str {
        match self.value("tls-auth-clients") {
            "no" => "off",
            "optional" => "optional",
            _ => "required",
        }
    }

    /// These parameters with what is changed.
    pub(crate) fn with(&self, changes: &Changes) -> Self {
        let mut changed = self.clone();
        changes.rows().for_each(|(row, value)| changed.put(row.name, value));
        changed
    }
}

/// The addresses of `bind`. One with a dash in front may be missing; every interface is the empty host.
fn hosts(bind: &str, has_address: &mut dyn FnMut(&str) -> bool) -> Vec<String> {
    let said: Vec<&str> = bind.split_ascii_whitespace().collect();
    let is_said = |host: &str| said.iter().any(|said| said.trim_start_matches('-') == host);
    if is_said("*") && is_said("::*") && said.len() == 2 {
        return vec![String::new()];
    }
    let mut hosts = Vec::new();
    for word in &said {
        let (host, is_optional) = word.strip_prefix('-').map_or((*word, false), |host| (host, true));
        let host = match host {
            "*" => "0.0.0.0",
            "::*" => "::",
            other => other,
        };
        if is_optional && !has_address(host) {
            continue;
        }
        hosts.push(if host.contains(':') { format!("[{host}]") } else { host.to_owned() });
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::super::{row, table};
    use super::*;

    #[test]
    fn the_parameters_of_listeners_are_those_of_the_table() {
        let is_known = |name: &str| ADDRESSES.contains(&name) || is_about_tls(name);
        assert_eq!(table::all().filter(|row| is_known(row.name)).count(), 7);
        assert!(table::all().all(|row| row.has(row::LISTENING) == is_known(row.name)));
    }
}
