//! Going through all keys of a server, or all elements of a value, page by page.

use crate::cluster;
use crate::commands::Pairs;
use crate::shards;
use crate::{Call, Client, Command, Error, FromReply, ToArgs, cmd};
use bytes::Bytes;
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// A scan: a [`Stream`] for tasks and an [`Iterator`] for threads. The next page is asked for when the last one is used up.
///
/// What is there from the beginning to the end comes at least once; what is added or removed meanwhile may come. Something may come
/// twice. The first error is the last item. A cursor means nothing to another server: a scan that goes on after a failover may miss
/// something.
///
/// ```
/// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
/// # on::a_server(async |url| {
/// # let client = respool_client::Client::open(&url)?;
/// client.mset([("user:1", "Ann"), ("user:2", "Bob"), ("page:1", "...")]).wait()?;
/// let mut users = Vec::new();
/// for key in client.scan_keys().pattern("user:*").count(1_000) {
///     users.push(key?);
/// }
/// users.sort();
/// assert_eq!(users, ["user:1", "user:2"]);
/// # Ok(()) });
/// ```
#[must_use = "nothing is sent before the first item is asked for"]
pub struct Scanner<'c, P: IntoIterator> {
    client: &'c Client,
    /// The request in front of the cursor.
    head: Command,
    /// Its options.
    tail: Command,
    page: Option<P::IntoIter>,
    /// `None` when the last page has come.
    cursor: Option<u64>,
    call: Option<Call<'c, (u64, P)>>,
    /// Of all keys of several nodes: where it is.
    walk: Option<Walk>,
    /// Of one key of a cluster: its slot, at whose primary all pages are. A cursor means nothing to a replica.
    slot: Option<u16>,
    /// For a page.
    limit: Option<Duration>,
}

/// A walk over all keys of several nodes.
#[derive(Debug)]
pub(crate) enum Walk {
    /// Of a cluster.
    Slots(cluster::Walk),
    /// Of servers among which keys are spread.
    Shards(shards::Walk),
}

impl Walk {
    /// Where the next page is, and whether what is there begins with it. `None` when all is gone through.
    fn next(&mut self) -> Option<(u16, bool)> {
        match self {
            Self::Slots(walk) => walk.slot(),
            Self::Shards(walk) => walk.next(),
        }
    }

    /// A page has come with this cursor. Returns the cursor of the next one, `None` when there is none.
    fn turn(&mut self, cursor: u64) -> Result<Option<u64>, Error> {
        match self {
            Self::Slots(walk) => walk.turn(cursor),
            Self::Shards(walk) => Ok(walk.turn(cursor)),
        }
    }
}

impl<P: IntoIterator> Unpin for Scanner<'_, P> {}

impl<'c, P: FromReply + IntoIterator> Scanner<'c, P> {
    fn new(client: &'c Client, head: Command) -> Self {
        let slot = client.slot_at(&head);
        Self {
            client,
            head,
            tail: Command::empty(),
            page: None,
            cursor: Some(0),
            call: None,
            walk: None,
            slot,
            limit: None,
        }
    }

    /// Gives only what fits the pattern.
    pub fn pattern(self, pattern: impl ToArgs) -> Self {
        self.option("MATCH", pattern)
    }

    /// How many elements the server looks at for a page.
    pub fn count(self, count: u64) -> Self {
        self.option("COUNT", count)
    }

    /// How long the call for a page may take, instead of what the client's settings say.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    fn option(mut self, name: &str, value: impl ToArgs) -> Self {
        self.tail = self.tail.arg(name).arg(value);
        self
    }

    fn command(&self, cursor: u64) -> Command {
        let mut command = self.head.clone();
        command.push_display(cursor);
        self.tail.all_arguments().iter().for_each(|argument| command.push_bytes(argument));
        command
    }

    /// The request for the next page.
    fn request(&mut self, cursor: u64) -> Call<'c, (u64, P)> {
        let call = match (self.walk.as_mut().and_then(Walk::next), self.slot) {
            (None, None) => self.client.call(self.command(cursor)),
            (None, Some(slot)) => self.client.call_at(slot, self.command(cursor)),
            (Some((slot, is_first)), _) => self.client.call_at(slot, self.command(if is_first { 0 } else { cursor })),
        };
        match self.limit {
            Some(limit) => call.deadline(limit),
            None => call,
        }
    }

    /// The next item of the page; `Err` with the cursor of the next page, or `None` when there is none.
    fn next_of_page(&mut self) -> Result<P::Item, Option<u64>> {
        match self.page.as_mut().and_then(Iterator::next) {
            Some(item) => Ok(item),
            None => Err(self.cursor),
        }
    }

    /// A page has come, or none will. Returns the error that is the last item.
    fn turn(&mut self, page: Result<(u64, P), Error>) -> Option<Error> {
        let next = page.and_then(|(cursor, page)| match &mut self.walk {
            None => Ok(((cursor != 0).then_some(cursor), page)),
            Some(walk) => Ok((walk.turn(cursor)?, page)),
        });
        match next {
            Ok((cursor, page)) => {
                (self.cursor, self.page) = (cursor, Some(page.into_iter()));
                None
            }
            Err(error) => {
                (self.cursor, self.page) = (None, None);
                Some(error)
            }
        }
    }
}

impl<P: FromReply + IntoIterator> Stream for Scanner<'_, P> {
    type Item = Result<P::Item, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let cursor = match this.next_of_page() {
                Ok(item) => return Poll::Ready(Some(Ok(item))),
                Err(None) => return Poll::Ready(None),
                Err(Some(cursor)) => cursor,
            };
            let mut call = match this.call.take() {
                Some(call) => call,
                None => this.request(cursor),
            };
            match std::future::Future::poll(Pin::new(&mut call), cx) {
                Poll::Pending => {
                    this.call = Some(call);
                    return Poll::Pending;
                }
                Poll::Ready(page) => {
                    if let Some(error) = this.turn(page) {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
        }
    }
}

impl<P: FromReply + IntoIterator> Iterator for Scanner<'_, P> {
    type Item = Result<P::Item, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let cursor = match self.next_of_page() {
                Ok(item) => return Some(Ok(item)),
                Err(cursor) => cursor?,
            };
            // A page that a task has asked for is asked for again.
            self.call = None;
            let page = self.request(cursor).wait();
            if let Some(error) = self.turn(page) {
                return Some(Err(error));
            }
        }
    }
}

impl<P: FromReply + IntoIterator> Scanner<'_, P> {
    /// The next item, in a task. Nothing is lost if it is dropped before it is over.
    pub fn item(&mut self) -> impl Future<Output = Option<Result<P::Item, Error>>> + '_ {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx))
    }
}

impl<P: IntoIterator> fmt::Debug for Scanner<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanner").field("head", &self.head).finish_non_exhaustive()
    }
}

impl Client {
    /// Goes through all keys of the database, and of all nodes of a cluster, or all servers.
    pub fn scan_keys(&self) -> Scanner<'_, Vec<Bytes>> {
        Scanner { walk: self.walk(), ..Scanner::new(self, cmd("SCAN")) }
    }

    /// Goes through the members of a set.
    pub fn scan_set(&self, key: impl ToArgs) -> Scanner<'_, Vec<Bytes>> {
        Scanner::new(self, cmd("SSCAN").key(key))
    }

    /// Goes through the fields of a hash and their values.
    pub fn scan_hash(&self, key: impl ToArgs) -> Scanner<'_, Pairs<Bytes, Bytes>> {
        Scanner::new(self, cmd("HSCAN").key(key))
    }

    /// Goes through the members of a sorted set and their scores.
    pub fn scan_sorted_set(&self, key: impl ToArgs) -> Scanner<'_, Pairs<Bytes, f64>> {
        Scanner::new(self, cmd("ZSCAN").key(key))
    }
}

impl Scanner<'_, Vec<Bytes>> {
    /// Gives only keys of values of this type, as `string` or `hash`. Of keys alone.
    pub fn kind(self, kind: &str) -> Self {
        self.option("TYPE", kind)
    }
}
