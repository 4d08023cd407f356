//! What is known of MULTI on a connection.

use crate::error_reply::ErrorReply;

/// What is known of MULTI on a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Multi {
    /// Nothing.
    #[default]
    Unknown,
    /// It is being tried.
    Tried,
    /// The node takes it.
    Taken,
    /// The node refused it.
    Refused(ErrorReply),
}

impl Multi {
    pub(crate) fn is_taken(&self) -> bool {
        *self == Self::Taken
    }

    /// It may be tried again, although it was refused before.
    pub(crate) fn doubt(&mut self) {
        if matches!(self, Self::Refused(_)) {
            *self = Self::Unknown;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_is_doubted() {
        let doubted = |mut multi: Multi| {
            multi.doubt();
            multi
        };
        assert_eq!(doubted(Multi::Refused("NOPERM no".into())), Multi::Unknown);
        assert_eq!(doubted(Multi::Taken), Multi::Taken);
        assert_eq!(doubted(Multi::Tried), Multi::Tried, "its trial is under way");
    }
}
