//! Arguments that are overwritten when they are not needed any more.

use respool_command::{Command, Row, ServerCommand};
use respool_wire::{Args, ArgsBuf};

/// Arguments that are overwritten when they are given up.
#[derive(Debug)]
pub(crate) struct SecretArgs(ArgsBuf);

impl SecretArgs {
    /// A copy of these.
    pub(crate) fn of(args: Args<'_>) -> Self {
        let mut own = ArgsBuf::with_room(args.len(), args.iter().map(<[u8]>::len).sum());
        args.iter().for_each(|arg| {
            own.push(arg);
        });
        Self(own)
    }

    pub(crate) fn as_args(&self) -> Args<'_> {
        self.0.as_args()
    }
}

impl Drop for SecretArgs {
    fn drop(&mut self) {
        self.0.wipe();
    }
}

/// Whether a row shows what may hold secrets. Every client may ask for it, and is shown less.
pub(crate) fn shows_secrets(row: &Row) -> bool {
    matches!(row.command, Command::Server(ServerCommand::ConfigGet | ServerCommand::ModuleList))
}

#[cfg(test)]
mod tests {
    use super::{SecretArgs, shows_secrets};
    use respool_command::resolve;
    use respool_wire::ArgsBuf;

    fn args(request: &str) -> ArgsBuf {
        request.split(' ').collect()
    }

    #[test]
    fn a_copy_has_the_same_arguments() {
        let request = args("AUTH ann secret");
        let copy = SecretArgs::of(request.as_args());
        assert_eq!(copy.as_args().iter().collect::<Vec<_>>(), [&b"AUTH"[..], b"ann", b"secret"]);
    }

    #[test]
    fn settings_and_modules_may_show_secrets() {
        let shows = |request| shows_secrets(resolve(args(request).as_args()).expect("it has a row"));
        assert!(shows("CONFIG GET x") && shows("MODULE LIST"));
        assert!(!shows("CONFIG SET x y") && !shows("GET x"));
    }
}
