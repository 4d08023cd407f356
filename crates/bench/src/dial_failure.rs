//! Why a connection was not made.

use respool_connection::DialFailure;

/// Why a dial failed, in words.
pub(crate) fn words_of(failure: DialFailure) -> String {
    match failure {
        DialFailure::Unresolvable(words) | DialFailure::Refused(words) => words,
        DialFailure::TimedOut => "timed out".to_owned(),
        DialFailure::NoDescriptor => "this process may have no more files open (see `ulimit -n`)".to_owned(),
    }
}
