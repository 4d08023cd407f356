//! What can be one argument, and what can be a number. [`ToArgs`] says how it is written.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Command, ToArgs};

/// A value that is exactly one argument: a text, bytes or a number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not one argument",
    label = "a text, bytes or a number is asked for"
)]
pub trait ToArg: ToArgs {}

/// An integer.
#[diagnostic::on_unimplemented(message = "`{Self}` is no integer", label = "an integer is asked for")]
pub trait ToInteger: ToArg {}

/// A number, whole or not.
#[diagnostic::on_unimplemented(message = "`{Self}` is no number", label = "a number is asked for")]
pub trait ToDouble: ToArg {}

/// The end of a range of scores that does not belong to the range: `(1.5`.
///
/// ```
/// use respool_client::commands::{Exclusive, zcount};
///
/// let above = zcount("board", Exclusive(1.5), f64::INFINITY);
/// # let _ = above;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exclusive<N>(pub N);

impl<N: ToDouble + fmt::Display> ToArgs for Exclusive<N> {
    fn write_args(&self, command: &mut Command) {
        command.push_display(format_args!("({}", self.0));
    }
}

impl<N: ToDouble + fmt::Display> ToArg for Exclusive<N> {}
impl<N: ToDouble + fmt::Display> ToDouble for Exclusive<N> {}

macro_rules! are {
    ($($of:ident: $($type:ty),*;)*) => {
        $($(impl $of for $type {})*)*
    };
}

are! {
    ToArg: str, String, Bytes, [u8], Vec<u8>, bool, char;
    ToArg: u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64;
    ToInteger: u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize;
    ToDouble: u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64;
}

impl<const N: usize> ToArg for [u8; N] {}
impl<T: ToArg + ToOwned + ?Sized> ToArg for Cow<'_, T> {}

macro_rules! pointers {
    ($($of:ident),*) => {
        $(
            impl<T: $of + ?Sized> $of for &T {}
            impl<T: $of + ?Sized> $of for Box<T> {}
            impl<T: $of + ?Sized> $of for Arc<T> {}
        )*
    };
}

pointers!(ToArg, ToInteger, ToDouble);
