//! Scripts that are sent by their digest, and whole where the server does not know them.

use crate::call::convert;
use crate::{Call, Client, Command, Error, FromReply, Reply, ServerError, ToArgs, cmd};
use bytes::Bytes;
use sha1::{Digest, Sha1};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// A script and its digest, which is made once.
///
/// ```
/// # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
/// # on::a_server(async |url| {
/// # let client = respool_client::Client::open(&url)?;
/// use respool_client::Script;
///
/// let add = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
/// let sum: i64 = client.script(&add).key("sum").arg(5).call().await?;
/// assert_eq!(sum, 5);
/// # Ok(()) });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    source: Bytes,
    digest: String,
}

impl Script {
    /// A script with this text.
    pub fn new(source: impl Into<Bytes>) -> Self {
        let source = source.into();
        let mut digest = String::with_capacity(40);
        for byte in Sha1::digest(&source) {
            let _ = write!(digest, "{byte:02x}");
        }
        Self { source, digest }
    }

    /// Its SHA-1 in 40 hexadecimal digits, by which a server knows it.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// A call of a script, made by [`Client::script`].
#[derive(Debug)]
#[must_use = "nothing is sent before it is called"]
pub struct Invocation<'c> {
    client: &'c Client,
    script: &'c Script,
    keys: Command,
    arguments: Command,
    is_readonly: bool,
    is_idempotent: bool,
    limit: Option<Duration>,
}

impl<'c> Invocation<'c> {
    pub(crate) fn new(client: &'c Client, script: &'c Script) -> Self {
        let (keys, arguments) = (Command::empty(), Command::empty());
        Self { client, script, keys, arguments, is_readonly: false, is_idempotent: false, limit: None }
    }

    /// Adds keys.
    pub fn key(mut self, keys: impl ToArgs) -> Self {
        keys.write_args(&mut self.keys);
        self
    }

    /// Adds arguments.
    pub fn arg(mut self, arguments: impl ToArgs) -> Self {
        arguments.write_args(&mut self.arguments);
        self
    }

    /// The script writes nothing, which the server watches over (`EVALSHA_RO`). So it may be executed twice.
    pub fn readonly(mut self) -> Self {
        self.is_readonly = true;
        self
    }

    /// The script may be executed twice: it is sent again when it is not known whether it was executed.
    pub fn idempotent(mut self) -> Self {
        self.is_idempotent = true;
        self
    }

    /// How long the call may take, instead of what the client's settings say: that by the digest and that of the whole script together.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// A request of this call, which was begun then.
    fn send<T: FromReply>(&self, command: Command, begun: Instant) -> Call<'c, T> {
        let call = self.client.call(command);
        match self.limit {
            Some(limit) => call.deadline(limit.saturating_sub(begun.elapsed())),
            None => call,
        }
    }

    fn command(&self, name: &str, script: &Bytes) -> Command {
        let mut command = cmd(name);
        command.push_bytes(script);
        command.push_display(self.keys.arguments());
        command = command.key(self.keys.all_arguments());
        self.arguments.all_arguments().iter().for_each(|argument| command.push_bytes(argument));
        if self.is_idempotent { command.idempotent() } else { command }
    }

    fn by_digest(&self) -> Command {
        let digest = Bytes::copy_from_slice(self.script.digest.as_bytes());
        self.command(if self.is_readonly { "EVALSHA_RO" } else { "EVALSHA" }, &digest)
    }

    fn whole(&self) -> Command {
        self.command(if self.is_readonly { "EVAL_RO" } else { "EVAL" }, &self.script.source)
    }

    /// Calls it by its digest. A server that does not know it has not executed anything, and is sent it whole.
    ///
    /// # Errors
    ///
    /// As those of [`Client::call`].
    pub async fn call<T: FromReply>(self) -> Result<T, Error> {
        let begun = Instant::now();
        if !T::TAKES_ERRORS {
            return match self.send(self.by_digest(), begun).await {
                Err(error) if error.server().is_some_and(is_unknown) => self.send(self.whole(), begun).await,
                result => result,
            };
        }
        // The error would be a value.
        match self.send::<Reply>(self.by_digest(), begun).await {
            Ok(Reply::Error(error)) if is_unknown(&error) => self.send(self.whole(), begun).await,
            result => self.convert(result),
        }
    }

    /// As [`Self::call`], in this thread.
    ///
    /// # Errors
    ///
    /// As those of [`Client::call`].
    pub fn wait<T: FromReply>(self) -> Result<T, Error> {
        let begun = Instant::now();
        if !T::TAKES_ERRORS {
            return match self.send(self.by_digest(), begun).wait() {
                Err(error) if error.server().is_some_and(is_unknown) => self.send(self.whole(), begun).wait(),
                result => result,
            };
        }
        match self.send::<Reply>(self.by_digest(), begun).wait() {
            Ok(Reply::Error(error)) if is_unknown(&error) => self.send(self.whole(), begun).wait(),
            result => self.convert(result),
        }
    }

    /// Makes the reply into what was asked for.
    fn convert<T: FromReply>(&self, reply: Result<Reply, Error>) -> Result<T, Error> {
        reply.and_then(convert).map_err(|error| error.of(self.by_digest().name()))
    }
}

/// Whether the server does not know the script. A script that ends with an error of that code has other words for it, and is not called
/// again.
fn is_unknown(error: &ServerError) -> bool {
    error.text().starts_with("NOSCRIPT No matching script")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_known_by_its_digest() {
        assert_eq!(Script::new("return 1").digest(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    }
}
