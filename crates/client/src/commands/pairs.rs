//! Names and values in the order in which the server gives them.

use std::ops::Deref;

use crate::from_reply::pairs;
use crate::{DecodeError, FromReply, Reply};

/// Names and values in the order in which the server gives them: members and scores, fields and values.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs<K, V>(pub Vec<(K, V)>);

impl<K: FromReply, V: FromReply> FromReply for Pairs<K, V> {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        pairs(reply).collect::<Result<_, _>>().map(Self)
    }
}

impl<K, V> Deref for Pairs<K, V> {
    type Target = [(K, V)];

    fn deref(&self) -> &[(K, V)] {
        &self.0
    }
}

impl<K, V> IntoIterator for Pairs<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
