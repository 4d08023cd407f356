//! A blocking client on [`Upstream`]: pipelines, subscriptions on the same connection (RESP3), reconnection.
//! `cargo run -p respool-connection --example blocking_client -- 127.0.0.1:6379`
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the machine knows no socket and no clock")]

use respool_connection::*;
use respool_wire::{Protocol, ReplyKind, ReplyLimits, Value, encode_request};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::{collections::VecDeque, net::TcpStream, thread, time::Duration, time::Instant};

/// What ends a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want {
    /// A reply.
    Reply,
    /// A push that confirms it: SUBSCRIBE of one channel.
    Confirmation,
    /// Nothing: the reply is discarded.
    Tombstone,
}

impl Ticket for Want {
    fn tombstone() -> Self {
        Self::Tombstone
    }
    fn takes_pieces(&self) -> bool {
        *self == Self::Tombstone
    }
    fn is_ended_by(&mut self, push: &[u8]) -> bool {
        *self == Self::Confirmation && push.starts_with(b">3\r\n$9\r\nsubscribe\r\n")
    }
}

/// One connection, made anew when it was lost.
pub struct Client {
    address: String,
    socket: Option<TcpStream>,
    up: Upstream<Want>,
    pool: BufferPool,
    reconnect: Reconnect,
    since: Instant,
    channels: Vec<String>,
    pushes: VecDeque<Value>,
}

impl Client {
    /// A client of the server at `address`, which is dialled with the first request.
    pub fn new(address: &str) -> Self {
        let (protocol, pacing) = (Protocol::Resp3, Pacing::Pipelined);
        let identity = Identity { protocol, pacing, ..Identity::default() };
        let mut up = Upstream::new(identity, FlushPolicy::EachTurn);
        up.set_pushes(Pushes::Delivered);
        let (pool, reconnect, since) = (BufferPool::new(), Reconnect::default(), Instant::now());
        let (address, channels, pushes) = (address.to_owned(), Vec::new(), VecDeque::new());
        Self { address, socket: None, up, pool, reconnect, since, channels, pushes }
    }

    /// Sends all requests together and waits for their replies. An error: some may have been executed, none is sent again.
    pub fn pipeline(&mut self, requests: &[&[&str]]) -> Result<Vec<Value>> {
        self.connect()?;
        self.ask(Want::Reply, requests)
    }

    /// Subscribes for good: a new connection is subscribed again.
    pub fn subscribe(&mut self, channel: &str) -> Result<()> {
        self.connect()?;
        if let Some(refusal) = self.ask(Want::Confirmation, &[&["SUBSCRIBE", channel]])?.pop() {
            return Err(Error::other(format!("{refusal:?}")));
        }
        self.channels.push(channel.to_owned());
        Ok(())
    }

    /// What is pushed next. What was published while there was no connection is lost.
    pub fn next_push(&mut self) -> Result<Value> {
        loop {
            self.connect()?;
            match self.pushes.pop_front() {
                Some(push) => return Ok(push),
                None => drop(self.turn(&mut Vec::new())),
            }
        }
    }

    fn ask(&mut self, want: Want, requests: &[&[&str]]) -> Result<Vec<Value>> {
        for words in requests {
            let words = words.iter().map(|word| word.as_bytes());
            self.up.send(want, self.now_us(), &mut self.pool, |out| encode_request(out, words));
        }
        let mut replies = Vec::new();
        while !self.up.tickets().is_empty() {
            self.turn(&mut replies)?;
        }
        Ok(replies)
    }

    /// Dials until there is a connection, with pauses, five times at most.
    fn connect(&mut self) -> Result<()> {
        while !self.up.is_ready() {
            if let DialAdvice::Wait(until_us) = self.reconnect.poll(self.now_us()) {
                thread::sleep(Duration::from_micros(until_us.saturating_sub(self.now_us())));
            } else if let Err(error) = self.dial().inspect_err(|_| self.lose())
                && self.reconnect.failures() >= 5
            {
                return Err(error);
            }
        }
        Ok(())
    }

    fn dial(&mut self) -> Result<()> {
        self.up.begin_dial();
        self.socket = Some(TcpStream::connect(&self.address)?);
        self.up.handle_connected(self.now_us(), &mut self.pool);
        while !self.up.is_ready() {
            self.turn(&mut Vec::new())?;
        }
        self.reconnect.note_ready();
        for channel in self.channels.clone() {
            self.ask(Want::Confirmation, &[&["SUBSCRIBE", &channel]])?;
        }
        Ok(())
    }

    /// Writes what waits, reads once, and takes what has come. After an error there is no connection.
    fn turn(&mut self, replies: &mut Vec<Value>) -> Result<()> {
        self.exchange(replies).inspect_err(|_| self.lose())
    }

    fn exchange(&mut self, replies: &mut Vec<Value>) -> Result<()> {
        let (limits, now_us) = (ReplyLimits::default(), self.now_us());
        let socket = self.socket.as_mut().ok_or(ErrorKind::NotConnected)?;
        while !self.up.output().is_empty() {
            let written = socket.write(self.up.output())?;
            self.up.handle_written(written, now_us, &mut self.pool);
        }
        let mut buffer = [0; 16 * 1024];
        let read = socket.read(&mut buffer)?;
        let mut input = buffer.get(..read).filter(|input| !input.is_empty()).ok_or(ErrorKind::UnexpectedEof)?;
        if !self.up.is_ready() {
            return self.up.shake(input, &limits, now_us, &mut self.pool).map(|_| ()).map_err(Error::other);
        }
        while let Some(event) = self.up.next_event(&mut input, &limits, now_us).map_err(Error::other)? {
            match event {
                Event::Reply { bytes, kind, .. } if kind != ReplyKind::Push => {
                    replies.push(Value::parse(bytes).map_err(Error::other)?)
                }
                Event::Push { bytes, .. } => self.pushes.push_back(Value::parse(bytes).map_err(Error::other)?),
                _ => {}
            }
        }
        Ok(())
    }

    fn lose(&mut self) {
        self.socket = None;
        self.up.reset(&mut self.pool).for_each(drop);
        self.reconnect.note_lost(self.now_us(), u64::from(self.since.elapsed().subsec_nanos()));
    }

    fn now_us(&self) -> u64 {
        self.since.elapsed().as_micros() as u64
    }
}

/// Shows all three.
pub fn main() -> Result<()> {
    let mut client = Client::new(&std::env::args().nth(1).unwrap_or("127.0.0.1:6379".to_owned()));
    println!("{:?}", client.pipeline(&[&["SET", "key", "value"], &["GET", "key"], &["INCR", "count"]])?);
    client.subscribe("news")?;
    client.pipeline(&[&["PUBLISH", "news", "hello"]])?;
    println!("{:?}", client.next_push()?);
    Ok(())
}
