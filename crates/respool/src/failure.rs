//! Why the program ends without having done what it was asked: a sentence, a hint, an exit code.

use std::fmt;
use std::process::ExitCode;

/// The end of a run that failed.
#[derive(Debug)]
pub struct Failure {
    /// Whose fault it is.
    pub blame: Blame,
    /// What happened; may have several lines.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Whose fault it is; decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// What the user said: exit code 2.
    Settings,
    /// The system, or the program itself: exit code 1.
    Running,
}

impl Failure {
    /// The system refused something, or something cannot be done.
    #[must_use]
    pub fn running(message: impl Into<String>) -> Self {
        Self { blame: Blame::Running, message: message.into(), hint: None }
    }

    /// The user asked for something that makes no sense.
    #[must_use]
    pub fn settings(message: impl Into<String>) -> Self {
        Self { blame: Blame::Settings, message: message.into(), hint: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The code to end with.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self.blame {
            Blame::Running => ExitCode::from(1),
            Blame::Settings => ExitCode::from(2),
        }
    }
}

impl From<crate::settings::Faults> for Failure {
    fn from(faults: crate::settings::Faults) -> Self {
        Self::settings(faults.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::running(error.to_string())
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_said = self.message.starts_with("error:");
        writeln!(f, "{}{}", if is_said { "" } else { "error: " }, self.message.trim_end())?;
        self.hint.as_ref().map_or(Ok(()), |hint| writeln!(f, "hint: {hint}"))
    }
}
