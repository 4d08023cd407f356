//! Requests at times of their own on connections of this process, for what a load generator beside the servers cannot do: one
//! thread that fills in keys and asks for others meanwhile.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use respool_testkit::{Address, Rng};

/// What is not answered by then never is.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Latencies are kept in nanoseconds, to three digits.
pub(super) const LATENCY_MAX_NS: u64 = 10_000_000_000;

/// One connection, and when what is under way on it was to be sent.
pub(super) struct Line {
    stream: TcpStream,
    /// What every request is answered.
    reply: &'static [u8],
    due: VecDeque<Instant>,
    /// What did not fit into the socket.
    unsent: Vec<u8>,
    received: Vec<u8>,
}

/// How long after one request the next one comes: on average so many a second, each independent of the others.
pub(super) fn pause(rng: &mut Rng, rate: u32) -> Duration {
    let uniform = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    Duration::from_secs_f64(-(1.0 - uniform).ln() / f64::from(rate))
}

impl Line {
    pub(super) fn connect(address: &Address, reply: &'static [u8]) -> io::Result<Line> {
        let Address::Tcp(address) = address else { return Err(io::Error::other("over TCP only")) };
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Line { stream, reply, due: VecDeque::new(), unsent: Vec::new(), received: Vec::new() })
    }

    pub(super) fn ask(&mut self, due: Instant, request: &[u8]) -> io::Result<()> {
        self.due.push_back(due);
        self.unsent.extend_from_slice(request);
        self.send()
    }

    /// Requests that are not answered yet.
    pub(super) fn under_way(&self) -> usize {
        self.due.len()
    }

    /// Sends several requests in one write.
    pub(super) fn ask_all(&mut self, due: Instant, requests: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
        for request in requests {
            self.due.push_back(due);
            self.unsent.extend_from_slice(&request);
        }
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes all whole replies.
    pub(super) fn take(&mut self, mut answered: impl FnMut(Instant)) -> io::Result<u64> {
        let expected = self.reply;
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a connection was closed")),
            Ok(count) => self.received.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error),
        }
        let whole = self.received.len() / expected.len();
        for reply in self.received[..whole * expected.len()].chunks(expected.len()) {
            if reply != expected {
                return Err(io::Error::other(format!("a request got {:?}", String::from_utf8_lossy(reply))));
            }
            let due = self.due.pop_front().ok_or_else(|| io::Error::other("a reply that was not asked for"))?;
            answered(due);
        }
        self.received.drain(..whole * expected.len());
        self.send()?;
        Ok(whole as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_the_rate_as_their_mean_and_no_memory() {
        let mut rng = Rng::new(1);
        let pauses: Vec<f64> = (0..100_000).map(|_| pause(&mut rng, 1_000).as_secs_f64() * 1e3).collect();
        let mean = pauses.iter().sum::<f64>() / pauses.len() as f64;
        assert!((0.98..1.02).contains(&mean), "{mean} ms");
        // Of an exponential distribution a share of 1/e is longer than the mean.
        let longer = pauses.iter().filter(|pause| **pause > 1.0).count() as f64 / pauses.len() as f64;
        assert!((0.36..0.376).contains(&longer), "{longer}");
    }
}
