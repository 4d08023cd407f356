//! Looking up the name of a host, which the C library does for as long as it likes: in a thread that is left to it when the time is
//! over. There is one such thread of a client at a time.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Whether a name is being looked up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookup {
    is_running: Arc<AtomicBool>,
}

impl Lookup {
    /// The addresses of a host, within `limit`.
    pub(crate) fn addresses(&self, host: &str, port: u16, limit: Duration) -> io::Result<Vec<SocketAddr>> {
        let find = move |host: &str| -> io::Result<Vec<SocketAddr>> { Ok((host, port).to_socket_addrs()?.collect()) };
        if host.parse::<std::net::IpAddr>().is_ok() {
            return find(host);
        }
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the host's name was not looked up in time");
        if self.is_running.swap(true, Ordering::AcqRel) {
            // An earlier attempt's is not through. A second one would wait for the same.
            return Err(late());
        }
        let (found, finding) = channel();
        let (host, is_running) = (host.to_owned(), Arc::clone(&self.is_running));
        let spawned = std::thread::Builder::new().name("respool-name".to_owned()).spawn(move || {
            let addresses = find(&host);
            is_running.store(false, Ordering::Release);
            let _ = found.send(addresses);
        });
        if let Err(error) = spawned {
            self.is_running.store(false, Ordering::Release);
            return Err(error);
        }
        finding.recv_timeout(limit).map_err(|_| late())?
    }
}
