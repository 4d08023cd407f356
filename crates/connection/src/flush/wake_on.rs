//! What ends a hold before its time.

/// What held bytes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeOn {
    /// Replies on their connection.
    Replies,
    /// Clients that are about to send: the loop lets others run and looks again.
    Clients,
    /// Requests that arrive meanwhile: the loop sleeps until the time, and nodes alone wake it.
    Deadline,
    /// Nothing in particular; every turn looks whether they may be written.
    Anything,
}
