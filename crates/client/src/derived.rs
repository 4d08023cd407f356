//! What derived implementations of [`FromReply`] and [`ToArgs`](crate::ToArgs) call.

use bytes::Bytes;

use crate::commands::ToArg;
use crate::from_reply::{TWICE, element, elements, pairs};
use crate::{Command, DecodeError, Elements, FromReply, Reply};

/// A value of a named field: one argument, or an `Option` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not one argument",
    label = "a named field is a text, bytes, a number, or an `Option` of one"
)]
pub trait ToValue {
    /// Adds the name and the value; neither if there is none.
    fn write_named(&self, name: &str, command: &mut Command);
}

impl<T: ToArg> ToValue for T {
    fn write_named(&self, name: &str, command: &mut Command) {
        command.push(name.as_bytes());
        self.write_args(command);
    }
}

impl<T: ToArg> ToValue for Option<T> {
    fn write_named(&self, name: &str, command: &mut Command) {
        if let Some(value) = self {
            value.write_named(name, command);
        }
    }
}

/// Names and values of a map in any of its forms.
pub fn entries(reply: Reply) -> impl Iterator<Item = Result<(Bytes, Reply), DecodeError>> {
    pairs(reply)
}

/// Reads the value of the field of this name, which comes once.
pub fn read<T: FromReply>(place: &mut Option<T>, name: &'static str, value: Reply) -> Result<(), DecodeError> {
    let of = |error| DecodeError::Field(name, Box::new(error));
    match place.replace(element(value).map_err(of)?) {
        None => Ok(()),
        Some(_) => Err(of(DecodeError::Invalid(TWICE))),
    }
}

/// What was read, or what stands for a field that was not there.
pub fn present<T: FromReply>(name: &'static str, value: Option<T>) -> Result<T, DecodeError> {
    value.or_else(T::from_absent).ok_or(DecodeError::Missing(name))
}

/// An array of so many elements.
pub fn elements_of(reply: Reply, count: usize) -> Result<Elements, DecodeError> {
    let elements = elements(reply)?;
    if elements.declared() == count as u64 { Ok(elements) } else { Err(DecodeError::Invalid("this many elements")) }
}

/// The next of them.
pub fn next<T: FromReply>(elements: &mut Elements) -> Result<T, DecodeError> {
    element(elements.next().ok_or(DecodeError::Invalid("this many elements"))?)
}

/// A null, and a map without entries.
pub fn is_no_record(reply: &Reply) -> bool {
    match reply {
        Reply::Null => true,
        Reply::Map(elements) | Reply::Array(elements) => elements.declared() == 0,
        _ => false,
    }
}

#[cfg(all(test, feature = "derive", feature = "serde"))]
mod tests;
