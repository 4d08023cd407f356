//! What the end of a connection says to those whose `SELECT` waited for it.

use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::pool::{DialRefusal, LaneEnd};
use respool_connection::Fault;

/// Whether a node that refuses `SELECT` says that there is no such database. Anything else is about the node or about us.
pub(crate) fn says_that_there_is_none(words: &str) -> bool {
    let known = ["ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed in cluster mode"];
    known.iter().any(|start| words.starts_with(start))
}

/// Why a SELECT is not done on a lane that has ended, as its client is told, and whether it is certain that there is no such
/// database. `error`: what is told of any other request there.
pub(crate) fn why_missed(ending: &LaneEnd, error: &ErrorReply) -> (bool, ErrorReply) {
    let (words, is_of_select) = match ending {
        LaneEnd::Fault(Fault::NoDatabase(words)) => (Some(words), true),
        LaneEnd::Fault(Fault::Refused(words)) => (Some(words), false),
        LaneEnd::DialRefusal(DialRefusal { words, .. }) => (words.as_ref(), true),
        _ => (None, false),
    };
    match words {
        Some(words) => (is_of_select && says_that_there_is_none(words), error_text::verbatim(words)),
        None => (false, error.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_for_no_such_database_are_taken_for_that() {
        for words in
            ["ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed in cluster mode"]
        {
            assert!(says_that_there_is_none(words), "{words}");
        }
        for words in
            ["NOPERM this user has no permissions to run the 'select' command", "LOADING Redis is loading", "ERR"]
        {
            assert!(!says_that_there_is_none(words), "{words}");
        }
    }
}
