//! What a caller holds: one request, several that follow each other, or a transaction.

use crate::core::Ended;
use crate::fitness::{self, Fitness, fitness, unfit, unfit_dedicated};
use crate::lanes::{DedicatedBatch, Kind as LaneKind, Lane};
use crate::parts::Kind;
use crate::run::Run;
use crate::topology::Via;
use crate::{Command, Error, ErrorKind, FromReply, Outcome, Reply, ServerError, cmd};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// A call that waits for its reply: as a future, or by [`Self::wait`] in a thread. Nothing is sent before.
///
/// Dropping it abandons the request. One that was sent may be executed all the same; its reply is discarded.
#[must_use = "nothing is sent before it is awaited"]
pub struct Call<'c, T> {
    run: Run<'c>,
    command: Command,
    fitness: Fitness,
    /// Its caller has said how long it may take.
    is_limited: bool,
    dedicated: Option<Box<Lane>>,
    output: PhantomData<fn() -> T>,
}

impl<'c, T: FromReply> Call<'c, T> {
    pub(crate) fn new(via: Via<'c>, command: Command) -> Self {
        let fitness = fitness(&command);
        Self { run: Run::new(via), command, fitness, is_limited: false, dedicated: None, output: PhantomData }
    }

    /// At the node of a cluster that has this slot.
    pub(crate) fn at(via: Via<'c>, slot: u16, command: Command) -> Self {
        let mut call = Self::new(via, command);
        call.run.kind = Kind::At(slot);
        call
    }

    /// The reply is made into another type.
    pub fn cast<U: FromReply>(self) -> Call<'c, U> {
        let Self { run, command, fitness, is_limited, dedicated, .. } = self;
        Call { run, command, fitness, is_limited, dedicated, output: PhantomData }
    }

    /// Adds an argument.
    pub fn arg(mut self, value: impl crate::ToArgs) -> Self {
        value.write_args(&mut self.command);
        self.fitness = fitness(&self.command);
        self
    }

    /// How long the call may take, instead of what the client's settings say. If the request waits on the server for longer than that,
    /// the server is asked to let it go, and what it has taken until then is the reply all the same.
    pub fn deadline(mut self, limit: Duration) -> Self {
        (self.run.progress.limit, self.is_limited) = (Some(limit), true);
        self
    }

    /// Waits in this thread, which reads for all callers of the client meanwhile.
    pub fn wait(mut self) -> Result<T, Error> {
        if self.fitness != Fitness::Shared {
            let result = self.begin_dedicated().and_then(Lane::wait);
            return self.finish_dedicated(result);
        }
        let result = self.run.wait(std::slice::from_ref(&self.command));
        self.finish(result)
    }

    /// The call on a connection of its own.
    fn begin_dedicated(&mut self) -> Result<&mut Lane, Error> {
        if let Fitness::Unfit(why) = self.fitness {
            return Err(Error::new(ErrorKind::Unfit(why), Outcome::NotSent));
        }
        let Self { run, command, is_limited, dedicated, .. } = self;
        run.begin_dedicated(std::slice::from_ref(command));
        let limit = run.progress.limit.filter(|_| *is_limited);
        let begin = || Box::new(Lane::new(run.via(), vec![command.clone()], limit, LaneKind::Blocking));
        Ok(dedicated.get_or_insert_with(begin))
    }

    #[cold]
    fn poll_dedicated(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let polled = match self.begin_dedicated() {
            Ok(dedicated) => std::task::ready!(dedicated.poll(cx)),
            Err(error) => Err(error),
        };
        Poll::Ready(self.finish_dedicated(polled))
    }

    fn finish_dedicated(&mut self, result: Result<(), Error>) -> Result<T, Error> {
        self.run.note_written(std::slice::from_ref(&self.command));
        let missing = || Ended::Failed(ErrorKind::Closed, Outcome::MaybeExecuted);
        let ended = self.dedicated.as_mut().and_then(|dedicated| dedicated.take_ended().pop());
        let received_bytes = ended.as_ref().map_or(0, Ended::payload);
        let reply = result.and_then(|()| reply(ended.unwrap_or_else(missing)));
        let located = |error: Error| match &self.dedicated {
            Some(dedicated) => dedicated.locate(error),
            None => error,
        };
        let result = reply.and_then(convert).map_err(|error| located(error.of(self.command.name())));
        self.run.end_span(result.as_ref().err());
        if self.run.is_observed() {
            self.run.tell_done(std::slice::from_ref(&self.command), received_bytes, result.as_ref().err());
        }
        result
    }

    #[inline]
    fn finish(&mut self, result: Result<(), Error>) -> Result<T, Error> {
        self.run.note_written(std::slice::from_ref(&self.command));
        self.run.note_sizes(std::slice::from_ref(&self.command));
        let mut received_bytes = 0;
        let result = match (result, self.run.progress.ended.take()) {
            (Ok(()), Some(Ended::Reply(reply))) => {
                if let Reply::Error(error) = &reply {
                    self.run.note_error(error);
                }
                received_bytes = reply.payload();
                convert(reply)
            }
            (Ok(()), Some(Ended::Failed(kind, outcome))) => Err(Error::new(kind, outcome)),
            (Ok(()), None) => Err(Error::new(ErrorKind::Closed, Outcome::MaybeExecuted)),
            (Err(error), _) => Err(error),
        };
        let commands = std::slice::from_ref(&self.command);
        let result = result.map_err(|error| self.run.locate(error.of(self.command.name()), commands));
        self.run.end_span(result.as_ref().err());
        if self.run.is_observed() {
            let ended = result.as_ref().map(drop);
            self.run.tell_done(std::slice::from_ref(&self.command), received_bytes, ended.err());
        }
        result
    }
}

/// A reply, or how it was lost.
fn reply(ended: Ended) -> Result<Reply, Error> {
    match ended {
        Ended::Reply(reply) => Ok(reply),
        Ended::Failed(kind, outcome) => Err(Error::new(kind, outcome)),
    }
}

/// Whether any of several requests was sent, so that it cannot be said of all that they were not executed.
pub(crate) fn is_any_sent<'e>(mut ended: impl Iterator<Item = &'e Ended>) -> bool {
    ended.any(|ended| !matches!(ended, Ended::Failed(_, Outcome::NotSent)))
}

/// A reply made into what was asked for.
pub(crate) fn convert<T: FromReply>(reply: Reply) -> Result<T, Error> {
    match reply {
        Reply::Error(error) if !T::TAKES_ERRORS => Err(Error::new(ErrorKind::Server(error), Outcome::Replied)),
        reply => T::from_reply(reply).map_err(|error| Error::new(ErrorKind::Decode(error), Outcome::Replied)),
    }
}

impl<T: FromReply> Future for Call<'_, T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.fitness != Fitness::Shared {
            return this.poll_dedicated(cx);
        }
        match this.run.poll(std::slice::from_ref(&this.command), cx) {
            Poll::Ready(result) => Poll::Ready(this.finish(result)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Several requests that follow each other on the connection: no request of another caller comes between them. The result of each
/// is its reply, or the server's error. If the connection is lost in between, the result of all is an error, and [`Error::replies`] has what had
/// come until then. In a cluster this holds for those at one node; a request that goes to several is refused.
#[must_use = "nothing is sent before it is awaited"]
pub struct Batch<'c> {
    run: Run<'c>,
    is_limited: bool,
    commands: Vec<Command>,
    refusal: Option<Error>,
}

impl<'c> Batch<'c> {
    pub(crate) fn new(via: Via<'c>, commands: Vec<Command>) -> Self {
        let refusal = unfit_error(&commands);
        Self { run: Run::new(via), is_limited: false, refusal, commands }
    }

    pub(crate) fn each_shard(via: Via<'c>, command: Command) -> Self {
        let mut batch = Self::new(via, vec![command]);
        batch.run.kind = Kind::EachShard;
        batch.refusal = batch.refusal.or_else(|| unfit_for_each(&batch.commands));
        batch
    }

    /// The requests are sent on a connection that no other caller uses meanwhile. So they may wait on the server, and `WAIT` counts the
    /// writes in front of it:
    ///
    /// ```
    /// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
    /// # on::a_server(async |url| {
    /// # let client = respool_client::Client::open(&url)?;
    /// use respool_client::cmd;
    ///
    /// let write = cmd("SET").key("k").arg("v");
    /// // How many replicas have the write, of which one is waited for, and for 100 ms.
    /// let replies = client.batch([write, cmd("WAIT").arg(1).arg(100)]).dedicated().await?;
    /// assert_eq!(replies.len(), 2);
    /// # Ok(()) });
    /// ```
    ///
    /// Unless it is set, its time is that of a call, and that for which its requests wait on the server.
    ///
    /// What [`Client::each_shard`](crate::Client::each_shard) gives is refused with [`ErrorKind::Unfit`] unless there is one server. A
    /// connection of its own is to one server, and a request without keys has nothing there to wait for or to count: for each of several, make
    /// a dedicated batch with the writes that it is to count, whose keys are at that server.
    pub fn dedicated(self) -> DedicatedBatch {
        let unfit = self.commands.iter().find_map(|command| Some((command, unfit_dedicated(command)?)));
        let refusal =
            unfit.map(|(command, why)| Error::new(ErrorKind::Unfit(why), Outcome::NotSent).of(command.name()));
        let refusal = refusal.or_else(|| too_many(&self.commands)).or_else(|| self.unfit_dedicated_for_each());
        let limit = self.run.progress.limit.filter(|_| self.is_limited);
        DedicatedBatch::new(Lane::new(self.run.via(), self.commands, limit, LaneKind::Plain), refusal)
    }

    /// Why a request to each shard cannot have a connection of its own: it would be one, to one of several servers.
    fn unfit_dedicated_for_each(&self) -> Option<Error> {
        if self.run.kind != Kind::EachShard {
            return None;
        }
        let is_for_several = matches!(self.run.via(), Via::Cluster(_) | Via::Shards(_));
        let why = "is for each of several servers, and a connection of its own is to one of them: make a dedicated batch for each, with keys \
                   that are there";
        let name = self.commands.first().map_or(&b""[..], Command::name);
        let refusal = is_for_several.then(|| Error::new(ErrorKind::Unfit(why), Outcome::NotSent).of(name));
        refusal.or_else(|| unfit_for_each(&self.commands))
    }

    /// How long the call may take, instead of what the client's settings say.
    pub fn deadline(mut self, limit: Duration) -> Self {
        (self.run.progress.limit, self.is_limited) = (Some(limit), true);
        self
    }

    /// Waits in this thread.
    pub fn wait(mut self) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        self.wait_once()
    }

    fn wait_once(&mut self) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        if let Some(error) = self.refusal.take() {
            return Err(error);
        }
        let result = self.run.wait(&self.commands);
        self.finish(result)
    }

    fn finish(&mut self, result: Result<(), Error>) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        self.run.note_written(&self.commands);
        let first = self.commands.first().map_or(&b""[..], Command::name);
        let result = result.map_err(|error| self.run.locate(error.of(first), &self.commands));
        if self.run.kind != Kind::Whole {
            self.run.end_span(result.as_ref().err());
        }
        if self.run.is_observed() {
            let progress = &self.run.progress;
            let received = progress.ended_before.iter().chain(&progress.ended).map(Ended::payload).sum();
            self.run.tell_done(&self.commands, received, result.as_ref().err());
        }
        result?;
        self.run.note_sizes(&self.commands);
        let is_any_sent = is_any_sent(self.run.progress.ended_before.iter().chain(&self.run.progress.ended));
        let ended = self.run.progress.ended_before.drain(..).chain(self.run.progress.ended.take());
        // Each shard has replied to the one request.
        let mut replies = Vec::with_capacity(self.commands.len());
        let mut failure = None;
        for (ended, command) in ended.zip(self.commands.iter().cycle()) {
            match reply(ended) {
                Ok(Reply::Error(error)) => replies.push(Err(error)),
                Ok(reply) => replies.push(Ok(reply)),
                Err(error) => {
                    failure = Some(error.of_several(is_any_sent).of(command.name()));
                    break;
                }
            }
        }
        for error in replies.iter().filter_map(|reply| reply.as_ref().err()) {
            self.run.note_error(error);
        }
        match failure {
            None => Ok(replies),
            Some(error) => Err(self.run.locate(error.behind(replies), &self.commands)),
        }
    }
}

impl Future for Batch<'_> {
    type Output = Result<Vec<Result<Reply, ServerError>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(error) = this.refusal.take() {
            return Poll::Ready(Err(error));
        }
        match this.run.poll(&this.commands, cx) {
            Poll::Ready(result) => Poll::Ready(this.finish(result)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Why requests cannot be sent on a connection that others use.
pub(crate) fn unfit_error(commands: &[Command]) -> Option<Error> {
    let unfit = commands.iter().find_map(|command| Some((command, unfit(command)?)));
    let unfit = unfit.map(|(command, why)| Error::new(ErrorKind::Unfit(why), Outcome::NotSent).of(command.name()));
    unfit.or_else(|| too_many(commands))
}

/// Why a request is not sent to each shard.
fn unfit_for_each(commands: &[Command]) -> Option<Error> {
    let (unfit, why) = commands.iter().find_map(|command| Some((command, fitness::unfit_for_each(command)?)))?;
    Some(Error::new(ErrorKind::Unfit(why), Outcome::NotSent).of(unfit.name()))
}

fn too_many(commands: &[Command]) -> Option<Error> {
    let is_too_many = commands.len() > crate::limits::BATCH_MAX;
    is_too_many.then(|| Error::new(ErrorKind::Overloaded, Outcome::NotSent))
}

/// Requests that are executed together or not at all: `MULTI`, the requests, `EXEC`, contiguous on the connection. The results are those
/// of `EXEC`.
///
/// In a cluster all keys must be in one slot, and a transaction follows its slot as a whole.
///
/// If the server refuses `MULTI`, as it does to a user who may not use it, it executes the requests behind it one by one: the error
/// has the outcome [`Outcome::MaybeExecuted`].
#[must_use = "nothing is sent before it is awaited"]
pub struct Transaction<'c>(Batch<'c>);

impl<'c> Transaction<'c> {
    pub(crate) fn new(via: Via<'c>, commands: Vec<Command>) -> Self {
        let mut batch = Batch::new(via, commands);
        batch.commands.insert(0, cmd("MULTI"));
        batch.commands.push(cmd("EXEC"));
        batch.run.kind = Kind::Whole;
        Self(batch)
    }

    /// How long the call may take, instead of what the client's settings say.
    pub fn deadline(self, limit: Duration) -> Self {
        Self(self.0.deadline(limit))
    }

    /// Waits in this thread.
    pub fn wait(mut self) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        let replies = self.0.wait_once();
        self.finish(replies)
    }

    fn finish(
        &mut self,
        replies: Result<Vec<Result<Reply, ServerError>>, Error>,
    ) -> Result<Vec<Result<Reply, ServerError>>, Error> {
        let result = finish_transaction(replies).map_err(|error| self.0.run.locate(error, &self.0.commands));
        self.0.run.end_span(result.as_ref().err());
        result
    }
}

/// What EXEC has answered. If it was refused, the first request that was says why.
pub(crate) fn finish_transaction(
    replies: Result<Vec<Result<Reply, ServerError>>, Error>,
) -> Result<Vec<Result<Reply, ServerError>>, Error> {
    // What was answered in front of EXEC says of no request that it was executed.
    let mut replies = replies.map_err(|error| error.behind(Vec::new()))?;
    match replies.pop() {
        Some(Ok(Reply::Null)) => Err(Error::new(ErrorKind::Conflict, Outcome::Replied)),
        Some(Ok(exec)) => convert(exec),
        Some(Err(refused)) => {
            // Without MULTI, what follows was executed at once.
            let was_begun = !matches!(replies.first(), Some(Err(_)));
            let outcome = if was_begun { Outcome::Replied } else { Outcome::MaybeExecuted };
            let why = replies.into_iter().find_map(Result::err).unwrap_or(refused);
            Err(Error::new(ErrorKind::Server(why), outcome).of(b"EXEC"))
        }
        None => Ok(Vec::new()),
    }
}

impl Future for Transaction<'_> {
    type Output = Result<Vec<Result<Reply, ServerError>>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let replies = std::task::ready!(Pin::new(&mut self.0).poll(cx));
        Poll::Ready(self.finish(replies))
    }
}
