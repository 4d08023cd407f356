//! Clients in the place of a pool's connections, for programs and frameworks that are written for a pool.

use crate::{Client, Error, Reply, cmd};

/// What a pool of `bb8` or `deadpool` makes its connections by, with the feature of that name: each of them is a copy of one client.
///
/// A client needs no pool: copies share its connections, which are made anew by themselves. This is for code that takes one. What is
/// checked out is used as before, and the pool's size is how many callers use the client at a time.
///
#[cfg_attr(feature = "bb8", doc = "```")]
#[cfg_attr(not(feature = "bb8"), doc = "```ignore")]
/// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
/// # on::a_server(async |url| {
/// use respool_client::{Client, pool};
///
/// let manager = pool::Manager::new(Client::open(&url)?);   // "redis://localhost"
/// let pool = bb8::Pool::builder().max_size(16).build(manager).await?;
/// let client = pool.get().await.unwrap();
/// client.set("k", 1).await?;
/// assert_eq!(client.incr("k").await?, 2);
/// # Ok(()) });
/// ```
///
#[cfg_attr(feature = "deadpool", doc = "```")]
#[cfg_attr(not(feature = "deadpool"), doc = "```ignore")]
/// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
/// # on::a_server(async |url| {
/// use deadpool::managed::Pool;
/// use respool_client::{Client, pool};
///
/// let manager = pool::Manager::new(Client::open(&url)?);   // "redis://localhost"
/// let pool: Pool<pool::Manager> = Pool::builder(manager).max_size(16).build().unwrap();
/// let client = pool.get().await.unwrap();
/// client.set("k", 1).await?;
/// assert_eq!(client.incr("k").await?, 2);
/// # Ok(()) });
/// ```
#[derive(Clone, Debug)]
pub struct Manager {
    client: Client,
}

impl Manager {
    /// Whose "connections" are copies of `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A copy, once the server has answered: a pool says here that it cannot be reached.
    async fn copy(&self) -> Result<Client, Error> {
        // A user who may not ask this is connected as well.
        self.client.call::<Reply>(cmd("PING")).await?;
        Ok(self.client.clone())
    }
}

/// Nothing is tested before use and nothing is thrown away: a connection that is lost is made anew by the next call.
#[cfg(feature = "bb8")]
impl bb8::ManageConnection for Manager {
    type Connection = Client;
    type Error = Error;

    async fn connect(&self) -> Result<Client, Error> {
        self.copy().await
    }

    async fn is_valid(&self, _: &mut Client) -> Result<(), Error> {
        Ok(())
    }

    fn has_broken(&self, _: &mut Client) -> bool {
        false
    }
}

/// As for `bb8`.
#[cfg(feature = "deadpool")]
impl deadpool::managed::Manager for Manager {
    type Type = Client;
    type Error = Error;

    async fn create(&self) -> Result<Client, Error> {
        self.copy().await
    }

    async fn recycle(&self, _: &mut Client, _: &deadpool::managed::Metrics) -> deadpool::managed::RecycleResult<Error> {
        Ok(())
    }
}
