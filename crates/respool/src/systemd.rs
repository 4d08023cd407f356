//! What a service manager is told: that this process is ready, and that it is the one to watch.

use std::io;
use std::os::unix::net::UnixDatagram;

/// The environment variable that names the socket to tell it to.
const SOCKET_ENV: &str = "NOTIFY_SOCKET";

/// Tells the service manager, if there is one, that this process is ready. After a takeover it is another process than the
/// one that was started.
pub fn say_ready() {
    let Some(socket) = std::env::var_os(SOCKET_ENV) else { return };
    let message = format!("MAINPID={}\nREADY=1\n", std::process::id());
    if let Err(error) = tell(&socket.to_string_lossy(), &message) {
        tracing::warn!(%error, "the service manager cannot be told that this process is ready");
    }
}

fn tell(socket: &str, message: &str) -> io::Result<()> {
    let sender = UnixDatagram::unbound()?;
    match socket.strip_prefix('@') {
        #[cfg(target_os = "linux")]
        Some(name) => {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            sender.send_to_addr(message.as_bytes(), &address)?;
        }
        _ => {
            sender.send_to(message.as_bytes(), socket)?;
        }
    }
    Ok(())
}
