//! A script of the engine in this process that has become late.

use crate::session::id::ClientHandle;
use respool_command::{Command, Row, ScriptingCommand, text as texts};

/// A script that has become late.
#[derive(Debug)]
pub(crate) struct LateScript {
    pub(crate) client: ClientHandle,
    /// The client's number, which the engine knows it by.
    pub(crate) id: u64,
    pub(crate) row: &'static Row,
    pub(crate) database: u32,
}

impl LateScript {
    /// The reply to others.
    pub(crate) fn busy(&self) -> &'static str {
        match self.row.command {
            Command::Scripting(ScriptingCommand::Fcall | ScriptingCommand::FcallRo) => texts::BUSY_FUNCTION,
            _ => texts::BUSY_SCRIPT,
        }
    }
}
