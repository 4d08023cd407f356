//! The values of one instance, by the type that their rows promise.

use std::time::Duration;

use respool_command::EventClasses;

use super::address::{Address, ListenSpec, NodeSpec};
use super::row::{Secret, Value};
use super::table::Setting;

/// The values of one instance, by the type their row promises.
///
/// A value of another type cannot stand there, because the row itself made it; the tests of `resolve` ask for every one.
pub(super) struct Values<'a>(pub(super) &'a [Value]);

impl Values<'_> {
    fn of(&self, setting: Setting) -> &Value {
        &self.0[setting as usize]
    }

    pub(super) fn count(&self, setting: Setting) -> Option<u64> {
        match self.of(setting) {
            Value::Count(count) => Some(*count),
            Value::Absent => None,
            other => mismatch(setting, other),
        }
    }

    pub(super) fn bytes(&self, setting: Setting) -> u64 {
        match self.of(setting) {
            Value::Bytes(bytes) => *bytes,
            other => mismatch(setting, other),
        }
    }

    pub(super) fn bytes_if_any(&self, setting: Setting) -> Option<u64> {
        match self.of(setting) {
            Value::Absent => None,
            _ => Some(self.bytes(setting)),
        }
    }

    pub(super) fn duration(&self, setting: Setting) -> Option<Duration> {
        match self.of(setting) {
            Value::Duration(time) => Some(*time),
            Value::Absent => None,
            other => mismatch(setting, other),
        }
    }

    pub(super) fn mode(&self, setting: Setting) -> u32 {
        match self.of(setting) {
            Value::Mode(mode) => *mode,
            other => mismatch(setting, other),
        }
    }

    pub(super) fn word(&self, setting: Setting) -> usize {
        match self.of(setting) {
            Value::Word(at, _) => *at,
            other => mismatch(setting, other),
        }
    }

    pub(super) fn text(&self, setting: Setting) -> Option<&str> {
        match self.of(setting) {
            Value::Text(text) => Some(text),
            Value::Absent => None,
            other => mismatch(setting, other),
        }
    }

    pub(super) fn secret(&self, setting: Setting) -> Option<Secret> {
        match self.of(setting) {
            Value::Secret(secret) => Some(secret.clone()),
            Value::Absent => None,
            other => mismatch(setting, other),
        }
    }

    pub(super) fn tcp(&self, setting: Setting) -> Option<Address> {
        match self.of(setting) {
            Value::Tcp(address) => Some(address.clone()),
            Value::Absent => None,
            other => mismatch(setting, other),
        }
    }

    pub(super) fn listeners(&self, setting: Setting) -> &[ListenSpec] {
        match self.of(setting) {
            Value::Listeners(all) => all,
            other => mismatch(setting, other),
        }
    }

    pub(super) fn events(&self, setting: Setting) -> EventClasses {
        match self.of(setting) {
            Value::Events(classes) => *classes,
            Value::Absent => EventClasses::NONE,
            other => mismatch(setting, other),
        }
    }

    pub(super) fn nodes(&self, setting: Setting) -> &[NodeSpec] {
        match self.of(setting) {
            Value::Nodes(all) => all,
            other => mismatch(setting, other),
        }
    }
}

fn mismatch(setting: Setting, value: &Value) -> ! {
    panic!("the row of {setting:?} does not promise {value:?}")
}

/// Bounds of the table keep every count below what its target holds; a 32-bit machine gets its maximum.
pub(super) fn saturating<T: TryFrom<u64> + Bound>(count: u64) -> T {
    T::try_from(count).unwrap_or(T::MAX)
}

pub(super) trait Bound {
    const MAX: Self;
}

impl Bound for u32 {
    const MAX: Self = Self::MAX;
}

impl Bound for usize {
    const MAX: Self = Self::MAX;
}
