//! What clients say in confidence, overwritten once it has been read.
//!
//! Passwords come with AUTH and HELLO, with ACL SETUSER and CONFIG SET, and with whatever else a client sends that mistakes
//! us for something. They lie in the buffer of all reads, in a client's own input if a request came in pieces, in the
//! decoder's text if it was inline, and in a transaction until EXEC. Reads after it would write over most of that sooner or
//! later; the handler of such a request overwrites it at once, and no other request pays for it: the worker writes a
//! letter to itself. What is sent to nodes in the proxy's own name is overwritten where it is written from, in
//! `respool-connection`.

use crate::env::Env;
use crate::mail::Mail;
use respool_command::Execute;
use respool_connection::{Action, ServiceAction};

impl<E: Execute> Env<E> {
    /// The request that is being read may hold a secret. It is overwritten as soon as it is not read any more.
    #[cold]
    pub(crate) fn note_secret(&mut self) {
        if !std::mem::replace(&mut self.has_read_secret, true) {
            self.actions.push_back(Action::Service(ServiceAction::Post { worker: self.number, mail: Mail::Wipe }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::env_with_node;

    #[test]
    fn a_secret_is_overwritten_once() {
        let mut env = env_with_node();
        env.note_secret();
        env.note_secret();
        assert!(env.has_read_secret);
        let wipe = |action: &Action<_>| matches!(action, Action::Service(ServiceAction::Post { mail: Mail::Wipe, .. }));
        assert!(env.actions.len() == 1 && env.actions.iter().all(wipe));
    }
}
