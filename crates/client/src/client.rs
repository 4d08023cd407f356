//! The client: a handle that threads and tasks share.

use crate::call::{Batch, Call, Transaction};
use crate::core::Core;
use crate::{Command, Config, Error, FromReply};
use std::fmt;
use std::sync::Arc;

/// A client of one server. Copies share one connection, which is made with the first call and made anew when it is lost.
///
/// It works in threads without any runtime and in tasks, also at the same time. It holds nothing of a runtime that must outlive it: when
/// the runtime that was used is gone, the connection goes on with another. It does not survive `fork`: a child must make its own.
///
/// ```no_run
/// use respool_client::{Client, cmd};
///
/// # fn main() -> Result<(), respool_client::Error> {
/// let client = Client::open("redis://localhost")?;
/// client.call::<()>(cmd("SET").key("greeting").arg("hello")).wait()?;
/// let greeting: Option<String> = client.call(cmd("GET").key("greeting")).wait()?;
/// assert_eq!(greeting.as_deref(), Some("hello"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    core: Arc<Core>,
}

/// What a client has done, and what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests that wait for replies, those whose callers have left among them.
    pub in_flight: usize,
    /// Places of callers that are taken.
    pub callers: usize,
    /// Requests that were queued.
    pub requests: u64,
    /// Writes to the socket.
    pub writes: u64,
    /// Reads from the socket.
    pub reads: u64,
    /// Connections that were made.
    pub connections: u64,
}

impl Client {
    /// A client of the server at `url`, see [`Config::from_url`]. Nothing is dialled yet.
    pub fn open(url: &str) -> Result<Self, Error> {
        Ok(Self::with_config(Config::from_url(url)?))
    }

    /// A client with these settings.
    pub fn with_config(config: Config) -> Self {
        Self { core: Core::new(config) }
    }

    /// A call of `command`, whose reply is made into `T`.
    pub fn call<T: FromReply>(&self, command: Command) -> Call<'_, T> {
        Call::new(&self.core, command)
    }

    /// Several requests that follow each other with none of another caller between them.
    pub fn batch(&self, commands: impl IntoIterator<Item = Command>) -> Batch<'_> {
        Batch::new(&self.core, commands.into_iter().collect())
    }

    /// Several requests that are executed together or not at all.
    pub fn transaction(&self, commands: impl IntoIterator<Item = Command>) -> Transaction<'_> {
        Transaction::new(&self.core, commands.into_iter().collect())
    }

    /// Ends the connection and all calls, of all copies, for good.
    pub fn close(&self) {
        self.core.close();
    }

    /// What it has done.
    pub fn stats(&self) -> Stats {
        let (in_flight, callers) = self.core.in_flight();
        let counts = self.core.counts();
        Stats {
            in_flight,
            callers,
            requests: counts.requests,
            writes: counts.writes,
            reads: counts.reads,
            connections: counts.connections,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
