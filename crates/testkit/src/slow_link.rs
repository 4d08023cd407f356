//! A long way to a server: a TCP forwarder that hands every byte on after a fixed delay, as many at a time as come.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Address, Stream};

/// Listens on a TCP port of the loopback interface and forwards to `target`; bytes arrive `delay` after they were sent,
/// in both directions, at any rate.
#[derive(Debug)]
pub struct SlowLink {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl SlowLink {
    /// Opens the link.
    pub fn open(target: Address, delay: Duration) -> io::Result<SlowLink> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        thread::spawn(move || {
            for near in listener.incoming() {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                // A connection that cannot be forwarded is closed, as a broken link would.
                let _ = near.and_then(|near| forward(near, &target, delay));
            }
        });
        Ok(SlowLink { address, is_over })
    }

    /// The near end.
    pub fn address(&self) -> Address {
        Address::Tcp(self.address)
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts; connections end with their peers.
        drop(TcpStream::connect(self.address));
    }
}

fn forward(near: TcpStream, target: &Address, delay: Duration) -> io::Result<()> {
    near.set_nodelay(true)?;
    let (near, far) = (Stream::Tcp(near), target.connect()?);
    one_way(near.try_clone()?, far.try_clone()?, delay);
    one_way(far, near, delay);
    Ok(())
}

/// One thread takes bytes and the time, the other hands them on when their time has come.
fn one_way(mut from: Stream, to: Stream, delay: Duration) {
    let (sender, receiver): (Sender<(Instant, Vec<u8>)>, Receiver<_>) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if sender.send((Instant::now() + delay, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        let mut to = to;
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // The other end learns that nothing more will come.
        let _ = to.shutdown(Shutdown::Both);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, RedisServer, request};

    #[test]
    fn bytes_arrive_late_but_not_one_after_the_other() -> io::Result<()> {
        let server = RedisServer::start()?;
        let link = SlowLink::open(server.tcp(), Duration::from_millis(200))?;
        let mut client = Client::connect(&link.address())?;
        let started = Instant::now();
        for _ in 0..20 {
            client.send(&request(&["INCR", "k"]))?;
        }
        let replies = client.replies(20)?;
        let took = started.elapsed();
        assert_eq!(replies.last().map(Vec::as_slice), Some(&b":20\r\n"[..]));
        assert!(took >= Duration::from_millis(400), "{took:?}");
        // One after the other they take eight seconds.
        assert!(took < Duration::from_secs(4), "{took:?} for twenty requests in one go");
        server.client()?.ask("SHUTDOWN NOSAVE").ok();
        assert!(client.read_to_close()?.is_empty());
        Ok(())
    }
}
