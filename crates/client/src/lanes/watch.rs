//! Transactions that depend on what was read: `WATCH`, reads, `MULTI`, requests, `EXEC` on a connection of their own.
//!
//! The server forgets what it watches when the connection is lost. So a connection that watches is never made anew: what would be
//! sent on the next one fails instead.

use super::Side;
use super::dedicated::Kind;
use super::lane::Lane;
use super::shelf::Lease;
use crate::call::{finish_transaction, unfit_error};
use crate::cluster::refuse_for_all;
use crate::core::Ended;
use crate::parts::Kind::{Each, Whole};
use crate::run::Progress;
use crate::shards::Shards;
use crate::told::Told;
use crate::topology::Via;
use crate::{Call, Command, Config, Error, ErrorKind, FromReply, Outcome, Reply, ServerError, ToArgs, cmd};
use respool_route::cluster::Address;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What the server that watches is one of. It decides what that server is sent.
#[derive(Clone)]
enum Deployment {
    /// It is alone.
    Single,
    /// A cluster. Its nodes refuse keys that they do not have.
    Cluster,
    /// Servers that know nothing of each other.
    Shards(Arc<Shards>),
}

impl Deployment {
    fn of(via: Via<'_>) -> Self {
        match via {
            Via::Node(..) | Via::Watched(_) => Self::Single,
            Via::Cluster(_) => Self::Cluster,
            Via::Shards(shards) => Self::Shards(Arc::clone(shards)),
        }
    }
}

/// Watches keys, made by [`Client::watch`](crate::Client::watch).
#[must_use = "nothing is sent before it is awaited"]
pub struct Watch {
    call: Lane,
    deployment: Deployment,
    told: Told,
}

impl Watch {
    pub(crate) fn new(via: Via<'_>, keys: impl ToArgs) -> Self {
        let call = Lane::new(via, vec![cmd("WATCH").key(keys)], None, Kind::Plain);
        Self { call, deployment: Deployment::of(via), told: Told::default() }
    }

    /// Waits in this thread.
    pub fn wait(mut self) -> Result<Watched, Error> {
        self.begin_span();
        let result = self.call.wait();
        self.finish(result)
    }

    fn begin_span(&mut self) {
        let (config, commands) = self.call.subject();
        self.told.begin(config, commands, Each);
    }

    fn finish(&mut self, result: Result<(), Error>) -> Result<Watched, Error> {
        let ended = self.call.take_ended().pop();
        let received_bytes = ended.as_ref().map_or(0, Ended::payload);
        let watched = self.take_reply(ended, result).map_err(|error| self.call.locate(error));
        let (config, commands) = self.call.subject();
        self.told.end(config, commands, received_bytes, watched.as_ref().err());
        watched
    }

    fn take_reply(&mut self, ended: Option<Ended>, result: Result<(), Error>) -> Result<Watched, Error> {
        let of = |error: Error| error.of(b"WATCH");
        result.map_err(of)?;
        let closed = || of(Error::new(ErrorKind::Closed, Outcome::MaybeExecuted));
        let (mut lease, side) = self.call.take_lease().ok_or_else(closed)?;
        lease.is_clean = false;
        match ended {
            Some(Ended::Reply(Reply::Error(error))) => Err(of(Error::new(ErrorKind::Server(error), Outcome::Replied))),
            Some(Ended::Reply(_)) => {
                lease.core.pin(true);
                Ok(Watched { lease, side, deployment: self.deployment.clone() })
            }
            Some(Ended::Failed(kind, outcome)) => Err(of(Error::new(kind, outcome))),
            None => Err(closed()),
        }
    }
}

impl Future for Watch {
    type Output = Result<Watched, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.begin_span();
        let result = std::task::ready!(this.call.poll(cx));
        Poll::Ready(this.finish(result))
    }
}

/// A connection on which keys are watched. Nothing of another caller is sent on it.
///
/// [`Self::exec`] executes requests if none of the keys has changed since. Dropping it closes the connection, and nothing is executed.
/// If the connection is lost, all further calls on it fail: the next one would not watch the keys.
///
/// Where keys are on several servers, what is for another than the one that watches is refused unsent, and so is what is for all of them.
///
/// ```
/// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
/// # on::a_server(async |url| {
/// # let client = respool_client::Client::open(&url)?;
/// use respool_client::{ErrorKind, cmd};
///
/// client.set("stock", 8).await?;
/// loop {
///     let watched = client.watch("stock").await?;
///     let stock: i64 = watched.call(cmd("GET").key("stock")).await?;
///     match watched.exec([cmd("SET").key("stock").arg(stock - 1)]).await {
///         Err(error) if matches!(error.kind(), ErrorKind::Conflict) => continue,
///         result => break result.map(drop),
///     }
/// }
/// # });
/// ```
pub struct Watched {
    lease: Lease,
    side: Arc<Side>,
    deployment: Deployment,
}

impl Watched {
    /// A call on this connection. One that waits on the server has another, and sees nothing of what is watched here.
    pub fn call<T: FromReply>(&self, command: Command) -> Call<'_, T> {
        let via = match self.deployment {
            Deployment::Single => self.node(),
            Deployment::Cluster | Deployment::Shards(_) => Via::Watched(self),
        };
        Call::new(via, command)
    }

    /// The way to the server that watches.
    pub(crate) fn node(&self) -> Via<'_> {
        Via::Node(&self.lease.core, &self.side)
    }

    /// The settings of its connection.
    pub(crate) fn config(&self) -> &Config {
        &self.lease.core.config
    }

    /// What else there is at the server that watches.
    pub(crate) fn side(&self) -> &Arc<Side> {
        &self.side
    }

    /// # Errors
    ///
    /// Why the server that watches must not be sent these.
    pub(crate) fn check(&self, commands: &[Command]) -> Result<(), ErrorKind> {
        match &self.deployment {
            Deployment::Single => Ok(()),
            Deployment::Cluster => refuse_for_all(commands),
            Deployment::Shards(shards) => shards.check_at(&self.side, commands),
        }
    }

    /// The node that watches, if it has a host.
    pub(crate) fn address(&self) -> Option<Address> {
        self.lease.core.config.address()
    }

    /// Executes requests if no watched key has changed, and gives the connection back. Otherwise the error's kind is
    /// [`ErrorKind::Conflict`].
    pub fn exec(self, commands: impl IntoIterator<Item = Command>) -> Exec {
        let mut all = vec![cmd("MULTI")];
        all.extend(commands);
        let misplaced = |kind| Error::new(kind, Outcome::NotSent).of(b"EXEC");
        let refusal = unfit_error(&all[1..]).or_else(|| self.check(&all[1..]).err().map(misplaced));
        all.push(cmd("EXEC"));
        let limit = self.side.core.config.deadline;
        let (lease, progress) = (Some(self.lease), Progress::new(limit));
        Exec { lease, progress, commands: all, refusal, told: Told::default() }
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

/// A transaction behind [`Watched`], made by [`Watched::exec`]. Dropping it closes the connection; a transaction that was sent may be
/// executed all the same.
#[must_use = "nothing is sent before it is awaited"]
pub struct Exec {
    lease: Option<Lease>,
    progress: Progress,
    commands: Vec<Command>,
    refusal: Option<Error>,
    told: Told,
}

impl Exec {
    /// How long it may take, instead of what the client's settings say.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.progress.limit = Some(limit);
        self
    }

    /// Waits in this thread.
    pub fn wait(mut self) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        if let Some(error) = self.refusal.take() {
            return Err(error);
        }
        let Some(core) = self.lease.as_ref().map(|lease| Arc::clone(&lease.core)) else { return Ok(Vec::new()) };
        self.told.begin(&core.config, &self.commands, Whole);
        let result = self.progress.wait(&core, &self.commands);
        self.finish(result)
    }

    fn finish(&mut self, result: Result<(), Error>) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        let core = self.lease.as_ref().map(|lease| Arc::clone(&lease.core));
        let received_bytes = self.progress.ended_before.iter().chain(&self.progress.ended).map(Ended::payload).sum();
        let located = |error: Error| error.at(core.as_ref().map(|core| core.shown()), None);
        let replies = self.take_replies(result).map_err(located);
        if let Some(core) = &core {
            self.told.end(&core.config, &self.commands, received_bytes, replies.as_ref().err());
        }
        replies
    }

    fn take_replies(&mut self, result: Result<(), Error>) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        if let Some(lease) = &self.lease {
            lease.core.config.note_written(&self.commands);
            self.progress.note_errors(&lease.core);
        }
        result.map_err(|error| error.of(b"EXEC"))?;
        let mut ended = std::mem::take(&mut self.progress.ended_before);
        ended.extend(self.progress.ended.take());
        let was_executed = matches!(ended.last(), Some(Ended::Reply(Reply::Array(_) | Reply::Null)));
        if let Some(lease) = self.lease.as_mut().filter(|_| was_executed) {
            // The server watches nothing any longer.
            lease.core.pin(false);
            lease.is_clean = true;
        }
        self.lease = None;
        let replies = ended.into_iter().map(|ended| match ended {
            Ended::Reply(Reply::Error(error)) => Ok(Err(error)),
            Ended::Reply(reply) => Ok(Ok(reply)),
            Ended::Failed(kind, outcome) => Err(Error::new(kind, outcome).of(b"EXEC")),
        });
        finish_transaction(replies.collect())
    }
}

impl Future for Exec {
    type Output = Result<Vec<Result<Reply, ServerError>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(error) = this.refusal.take() {
            return Poll::Ready(Err(error));
        }
        let Some(core) = this.lease.as_ref().map(|lease| Arc::clone(&lease.core)) else { return Poll::Pending };
        this.told.begin(&core.config, &this.commands, Whole);
        let result = std::task::ready!(this.progress.poll(&core, &this.commands, cx));
        Poll::Ready(this.finish(result))
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        if let Some(lease) = &self.lease {
            self.progress.abandon(&lease.core);
        }
    }
}
