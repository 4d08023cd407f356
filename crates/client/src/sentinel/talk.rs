//! A connection that is asked one thing after the other: to a sentinel, and to a server before it is used.

use crate::core::{Failure, Link, Lookup, SlotId, Wait, greet};
use crate::limits::READ_BYTES;
use crate::{Config, Reply};
use respool_connection::{Event, Identity, Pushes, Segments, Upstream};
use respool_wire::{Protocol, ReplyLimits, encode_request};
use std::collections::HashMap;
use std::time::Instant;

/// The link, one's own or lent.
enum Held<'l> {
    Own(Box<Link>),
    Lent(&'l mut Link),
}

/// A connection behind its handshake.
pub(super) struct Talk<'l> {
    link: Held<'l>,
    upstream: Upstream<SlotId, Segments<bytes::Bytes>>,
    until: Instant,
    buffer: Vec<u8>,
    /// What has come and was not taken.
    heard: std::collections::VecDeque<Reply>,
}

impl Talk<'_> {
    /// Connects by these settings.
    pub(super) fn connect(settings: &Config, lookup: &Lookup, until: Instant) -> Result<Talk<'static>, Failure> {
        let link = Link::connect(settings, lookup, until)?;
        Talk::begin(settings.identity.clone(), Held::Own(Box::new(link)), until)
    }

    /// Talks over a link that is used by something else then.
    pub(super) fn over<'l>(settings: &Config, link: &'l mut Link, until: Instant) -> Result<Talk<'l>, Failure> {
        let identity = Identity {
            credentials: settings.identity.credentials.clone(),
            protocol: Protocol::Resp2,
            pacing: settings.identity.pacing,
            ..Identity::default()
        };
        Talk::begin(identity, Held::Lent(link), until)
    }

    fn begin(identity: Identity, link: Held<'_>, until: Instant) -> Result<Talk<'_>, Failure> {
        let (mut upstream, _) = greet(link.get(), identity, until)?;
        // So that what a sentinel tells comes as well as what it answers.
        upstream.set_pushes(Pushes::Only);
        let (buffer, heard) = (vec![0; READ_BYTES], std::collections::VecDeque::new());
        Ok(Talk { link, upstream, until, buffer, heard })
    }

    /// How long answers are waited for from now on.
    pub(super) fn extend(&mut self, until: Instant) {
        self.until = until;
    }

    /// Sends a request.
    pub(super) fn tell(&mut self, words: &[&[u8]]) -> Result<(), Failure> {
        let mut out = Vec::new();
        encode_request(&mut out, words.iter().copied());
        let mut rest = &out[..];
        let link = self.link.get();
        while !rest.is_empty() || !link.is_flushed() {
            match link.send(std::iter::once(rest).filter(|rest| !rest.is_empty())) {
                Ok(bytes) => rest = &rest[bytes..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if !link.wait_writable(self.until.saturating_duration_since(Instant::now()))? {
                        return Err(Failure::Lost("it takes no request".to_owned()));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// What comes next; `None` if nothing does in time.
    pub(super) fn hear(&mut self) -> Result<Option<Reply>, Failure> {
        loop {
            if let Some(reply) = self.heard.pop_front() {
                return Ok(Some(reply));
            }
            let left = self.until.saturating_duration_since(Instant::now());
            let wait = Wait::For { usual_us: 0, left_us: left.as_micros() as u64 };
            let read = match self.link.get().recv(&mut self.buffer, wait) {
                Ok(0) => return Err(Failure::Lost("closed by the other side".to_owned())),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(None),
                read => read?,
            };
            let mut input = &self.buffer[..read];
            while let Some(event) = self.upstream.next_event(&mut input, &ReplyLimits::default(), 0)? {
                if let Event::Push { bytes, .. } | Event::Reply { bytes, .. } = event {
                    let reply = Reply::copied(bytes);
                    self.heard.push_back(reply.ok_or_else(|| Failure::Lost("a reply cannot be read".to_owned()))?);
                }
            }
        }
    }

    /// Sends a request and waits for its reply. An error is a failure.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> Result<Reply, Failure> {
        self.tell(words)?;
        match self.hear()? {
            Some(Reply::Error(error)) => Err(Failure::Lost(error.to_string())),
            Some(reply) => Ok(reply),
            None => Err(Failure::Lost("it does not answer in time".to_owned())),
        }
    }

    /// As [`Self::ask`]; `None` if the other side answers with an error, as to what it does not know.
    pub(super) fn ask_if_it_may(&mut self, words: &[&[u8]]) -> Result<Option<Reply>, Failure> {
        self.tell(words)?;
        match self.hear()? {
            Some(Reply::Error(_)) => Ok(None),
            Some(reply) => Ok(Some(reply)),
            None => Err(Failure::Lost("it does not answer in time".to_owned())),
        }
    }

    /// Whether a sentinel says that it does not reach enough others for a failover of this master.
    pub(super) fn is_cut_off(&mut self, name: &str) -> Result<bool, Failure> {
        self.tell(&[b"SENTINEL", b"CKQUORUM", name.as_bytes()])?;
        Ok(matches!(self.hear()?, Some(Reply::Error(error)) if error.code() == "NOQUORUM"))
    }

    /// What a server says that it is; `None` if it may not be asked.
    pub(super) fn role(mut self) -> Result<Option<String>, Failure> {
        Ok(self.ask_if_it_may(&[b"ROLE"])?.and_then(|reply| words(reply).next()))
    }
}

impl Held<'_> {
    fn get(&self) -> &Link {
        match self {
            Self::Own(link) => link,
            Self::Lent(link) => link,
        }
    }
}

/// The texts of a list.
pub(super) fn words(reply: Reply) -> impl Iterator<Item = String> {
    let elements = reply.into_elements().into_iter().flatten();
    elements.map_while(|element| match element {
        Reply::Bulk(text) | Reply::Status(text) => Some(String::from_utf8_lossy(&text).into_owned()),
        _ => None,
    })
}

/// A list of names and values.
pub(super) fn entry(reply: Reply) -> HashMap<String, String> {
    let mut words = words(reply);
    std::iter::from_fn(|| words.next().zip(words.next())).collect()
}

/// Lists of names and values, in a list.
pub(super) fn entries(reply: Reply) -> impl Iterator<Item = HashMap<String, String>> {
    reply.into_elements().into_iter().flatten().map(entry)
}
