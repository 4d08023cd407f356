//! What can be wrong with a rule, and how rules that were torn apart are put together again.

use std::fmt;

use zeroize::Zeroizing;

/// Why a rule was not accepted. `Display` is Redis' text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// The command, subcommand or category does not exist.
    Unknown,
    /// It is no rule, or its pattern has a blank.
    Syntax,
    /// All keys are allowed already.
    KeyAfterAll,
    /// All channels are allowed already.
    ChannelAfterAll,
    /// The password that is to be removed is not there.
    NoSuchPassword,
    /// A password's hash is not 64 small hexadecimal digits.
    BadHash,
    /// A first argument of a subcommand.
    FirstArgumentOfSubcommand,
    /// The user would have more rules than [`limits`](crate::limits) allow. Not an error of Redis.
    TooMany,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "Unknown command or category name in ACL",
            Self::Syntax => "Syntax error",
            Self::KeyAfterAll => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. \
                 Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::ChannelAfterAll => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels"
            }
            Self::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            Self::BadHash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            Self::FirstArgumentOfSubcommand => "Allowing first-arg of a subcommand is not supported",
            Self::TooMany => "The user would have more rules than a user can have",
        })
    }
}

impl std::error::Error for RuleError {}

/// Joins the rules of a selector that came as several, `(~a*` `+get)`, with single blanks. An error is the position of the rule
/// whose parenthesis is not closed.
pub(crate) fn joined<'a>(rules: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Zeroizing<Vec<u8>>>, usize> {
    let mut whole: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    let mut open: Option<(usize, Vec<u8>)> = None;
    for (at, rule) in rules.enumerate() {
        if rule.first() == Some(&b'(') && rule.last() != Some(&b')') {
            open = Some((at, rule.to_vec()));
            continue;
        }
        match open.take() {
            Some((start, mut selector)) => {
                selector.push(b' ');
                // Redis appends C strings.
                selector.extend_from_slice(respool_command::words::until_nul(rule));
                if rule.last() == Some(&b')') {
                    whole.push(selector.into());
                } else {
                    open = Some((start, selector));
                }
            }
            // It may be a password.
            None => whole.push(rule.to_vec().into()),
        }
    }
    match open {
        Some((at, _)) => Err(at),
        None => Ok(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn selectors_in_pieces_are_joined() {
        let joined = |rules: &[&str]| {
            joined(rules.iter().map(|rule| rule.as_bytes()))
                .map(|whole| whole.iter().map(|rule| String::from_utf8_lossy(rule).into_owned()).collect::<Vec<_>>())
        };
        assert_eq!(joined(&["on", "(~a", "+get)", "off"]), Ok(vec!["on".into(), "(~a +get)".into(), "off".into()]));
        assert_eq!(joined(&["(", ")"]), Ok(vec!["( )".into()]));
        assert_eq!(joined(&["()"]), Ok(vec!["()".into()]));
        assert_eq!(joined(&["on", "(a", "b"]), Err(1));
        assert_eq!(joined(&["("]), Err(0));
    }
}
