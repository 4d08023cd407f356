//! Replies and values by way of serde.

mod deserialize;

use ::serde::Serialize;
use ::serde::de::DeserializeOwned;

use crate::commands::ToArg;
use crate::{Command, DecodeError, FromReply, Reply, ToArgs};

/// A value as JSON, in a string of the server's.
///
/// ```
/// use respool_client::{Json, cmd};
///
/// let point = Json([1.5, 2.0]);
/// assert_eq!(cmd("SET").key("point").arg(point).arguments(), 3);
/// ```
///
/// As an argument, a value that has no form in JSON, as a map with keys that are no text, panics; [`Json::to_text`] says so instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json<T>(pub T);

impl<T: Serialize> Json<T> {
    /// The value as JSON.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.0)
    }
}

impl<T: Serialize> ToArgs for Json<T> {
    fn write_args(&self, command: &mut Command) {
        command.push(self.to_text().expect("the value has a form in JSON").as_bytes());
    }
}

impl<T: Serialize> ToArg for Json<T> {}

impl<T: DeserializeOwned> FromReply for Json<T> {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        let bytes = bytes::Bytes::from_reply(reply)?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| DecodeError::Message(format!("not this JSON: {error}")))
    }
}

/// A reply as whatever implements serde's `Deserialize`: maps as structs, arrays as tuples, texts as enums and numbers.
///
/// ```
/// use respool_client::{FromReply, Reply, Structured};
/// use std::collections::BTreeMap;
///
/// let reply = Reply::Integer(7);
/// assert_eq!(Structured::<Option<u8>>::from_reply(reply)?.0, Some(7));
/// # Ok::<(), respool_client::DecodeError>(())
/// ```
///
/// A number may be a text and a map an array in which names and values follow each other, as RESP2 writes them. Text that is no
/// UTF-8 is bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Structured<T>(pub T);

impl<T: DeserializeOwned> FromReply for Structured<T> {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        T::deserialize(deserialize::Of::outermost(reply)).map(Self)
    }
}
