//! A raw blocking client: bytes out, whole replies in, nothing interpreted.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use crate::{Address, PATIENCE, Stream, reply_length, request};

/// A connection that sends what it is told, byte for byte, and hands back replies as the bytes they came in.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    buffer: Vec<u8>,
    /// Bytes at the start of `buffer` that were returned already.
    taken: usize,
}

impl Client {
    /// Connects. Reads and writes fail after [`PATIENCE`] unless [`Client::set_timeout`] says otherwise.
    pub fn connect(address: &Address) -> io::Result<Client> {
        let client = Client { stream: address.connect()?, buffer: Vec::new(), taken: 0 };
        client.set_timeout(PATIENCE)?;
        Ok(client)
    }

    /// How long one read or write may wait for the peer.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(timeout))?;
        self.stream.set_write_timeout(Some(timeout))
    }

    /// A second handle to write by, from another thread.
    pub fn writer(&self) -> io::Result<Stream> {
        self.stream.try_clone()
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends bytes in pieces of at most `piece` bytes, one write each.
    pub fn send_in_pieces(&mut self, bytes: &[u8], piece: usize) -> io::Result<()> {
        bytes.chunks(piece).try_for_each(|chunk| self.stream.write_all(chunk))
    }

    /// Sends one request as an array of bulk strings.
    pub fn send_command<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> io::Result<()> {
        self.send(&request(arguments))
    }

    /// Sends one request and returns its reply.
    pub fn command<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> io::Result<Vec<u8>> {
        self.send_command(arguments)?;
        self.reply()
    }

    /// Sends one request given as words with spaces between and returns its reply as text.
    pub fn ask(&mut self, words: &str) -> io::Result<String> {
        let arguments: Vec<&str> = words.split_whitespace().collect();
        self.command(&arguments).map(|reply| String::from_utf8_lossy(&reply).into_owned())
    }

    /// A number that a section of INFO has under a name.
    pub fn figure(&mut self, section: &str, name: &str) -> io::Result<u64> {
        figure(&self.ask(&format!("INFO {section}"))?, name)
    }

    /// The bytes of the next whole reply.
    pub fn reply(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let unread = &self.buffer[self.taken..];
            if let Some(length) = reply_length(unread)? {
                let reply = unread[..length].to_vec();
                self.taken += length;
                return Ok(reply);
            }
            if self.fill()? == 0 {
                let message = format!("closed after {} bytes of a reply", self.buffer.len() - self.taken);
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
            }
        }
    }

    /// The next `count` replies.
    pub fn replies(&mut self, count: usize) -> io::Result<Vec<Vec<u8>>> {
        (0..count).map(|_| self.reply()).collect()
    }

    /// All that comes until the peer closes the connection; a reset counts as a close.
    pub fn read_to_close(&mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.fill() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                Err(error) => return Err(error),
            }
        }
        Ok(self.buffer.split_off(self.taken))
    }

    /// What has arrived and was not returned yet; nothing is waited for but the scheduler. Nothing more comes from a connection
    /// that was closed.
    pub fn take_arrived(&mut self) -> io::Result<Vec<u8>> {
        self.stream.set_nonblocking(true)?;
        let ended = loop {
            match self.fill() {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.stream.set_nonblocking(false)?;
        ended?;
        let arrived = self.buffer.split_off(self.taken);
        self.buffer.clear();
        self.taken = 0;
        Ok(arrived)
    }

    /// Tells the peer that nothing more will be sent; its replies can still be read.
    pub fn finish_sending(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Closes the connection at once. A drop alone may take longer: a process that another thread is starting has a copy of the
    /// socket until it runs its program.
    pub fn close(self) -> io::Result<()> {
        match self.stream.shutdown(Shutdown::Both) {
            // The peer has closed it already.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }

    /// The stream itself and what was read from it but not returned yet.
    pub fn into_parts(mut self) -> (Stream, Vec<u8>) {
        let unread = self.buffer.split_off(self.taken);
        (self.stream, unread)
    }

    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.drain(..std::mem::take(&mut self.taken));
        let mut piece = [0; 16 * 1024];
        let count = self.stream.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..count]);
        Ok(count)
    }
}

/// The number that what INFO said has under a name.
pub fn figure(info: &str, name: &str) -> io::Result<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let figure = line.and_then(|figure| figure.trim().parse().ok());
    figure.ok_or_else(|| io::Error::other(format!("no number {name} in: {info}")))
}
