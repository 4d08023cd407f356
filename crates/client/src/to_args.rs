//! What can be an argument of a request.

use crate::Command;
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;

/// A value that stands for one argument, several or none.
///
/// Texts, bytes and numbers are one argument; slices, arrays, vectors and sets as many as they have elements; a pair or a map entry is
/// two; an [`Option`] one or none. Among the elements of a slice, vector, set or map, a pair whose value is `None` is left out whole, so that
/// what follows stays in place; a tuple that is no element is written part by part.
///
/// ```
/// use respool_client::cmd;
///
/// assert_eq!(cmd("DEL").arg(["a", "b", "c"]).arguments(), 4);
/// assert_eq!(cmd("MSET").arg([("a", 1), ("b", 2)]).arguments(), 5);
/// assert_eq!(cmd("SPOP").arg("key").arg(Some(3)).arguments(), 3);
/// assert_eq!(cmd("MSET").arg([("a", None), ("b", Some(2))]).arguments(), 3);
/// assert_eq!(cmd("SPOP").arg(("key", None::<u32>)).arguments(), 2);
/// assert_eq!(cmd("SET").arg("key").arg(b"bytes").arguments(), 3);
/// ```
pub trait ToArgs {
    /// Adds the arguments to `command`.
    fn write_args(&self, command: &mut Command);

    /// Whether it is left out where it is an element of several: an [`Option`] without a value, or a pair that ends with one.
    #[doc(hidden)]
    fn is_absent(&self) -> bool {
        false
    }

    /// Adds those of a slice. For `u8` it is one argument: bytes.
    #[doc(hidden)]
    fn write_slice(values: &[Self], command: &mut Command)
    where
        Self: Sized,
    {
        write_elements(values, command);
    }
}

/// Adds the elements of an aggregate. What is left of a pair without its value would move all that follow by one.
fn write_elements<T: ToArgs>(elements: impl IntoIterator<Item = T>, command: &mut Command) {
    elements.into_iter().filter(|element| !element.is_absent()).for_each(|element| element.write_args(command));
}

impl ToArgs for str {
    #[inline]
    fn write_args(&self, command: &mut Command) {
        command.push(self.as_bytes());
    }
}

impl ToArgs for String {
    #[inline]
    fn write_args(&self, command: &mut Command) {
        command.push(self.as_bytes());
    }
}

impl ToArgs for Bytes {
    fn write_args(&self, command: &mut Command) {
        command.push_bytes(self);
    }
}

impl ToArgs for u8 {
    fn write_args(&self, command: &mut Command) {
        command.push_display(self);
    }

    #[inline]
    fn write_slice(values: &[Self], command: &mut Command) {
        command.push(values);
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl ToArgs for $number {
            fn write_args(&self, command: &mut Command) {
                command.push_display(self);
            }
        })*
    };
}

numbers!(i8, i16, i32, i64, i128, isize, u16, u32, u64, u128, usize, f32, f64);

impl ToArgs for bool {
    fn write_args(&self, command: &mut Command) {
        command.push(if *self { b"1" } else { b"0" });
    }
}

impl ToArgs for char {
    fn write_args(&self, command: &mut Command) {
        command.push(self.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// No argument.
impl ToArgs for () {
    fn write_args(&self, _: &mut Command) {}
}

impl<T: ToArgs> ToArgs for [T] {
    #[inline]
    fn write_args(&self, command: &mut Command) {
        T::write_slice(self, command);
    }
}

impl<T: ToArgs, const N: usize> ToArgs for [T; N] {
    #[inline]
    fn write_args(&self, command: &mut Command) {
        T::write_slice(self, command);
    }
}

impl<T: ToArgs> ToArgs for Vec<T> {
    #[inline]
    fn write_args(&self, command: &mut Command) {
        T::write_slice(self, command);
    }
}

impl<T: ToArgs> ToArgs for Option<T> {
    fn write_args(&self, command: &mut Command) {
        if let Some(value) = self {
            value.write_args(command);
        }
    }

    fn is_absent(&self) -> bool {
        self.as_ref().is_none_or(T::is_absent)
    }
}

macro_rules! pointers {
    ($($pointer:ty),*) => {
        $(impl<T: ToArgs + ?Sized> ToArgs for $pointer {
            #[inline]
            fn write_args(&self, command: &mut Command) {
                (**self).write_args(command);
            }

            fn is_absent(&self) -> bool {
                (**self).is_absent()
            }
        })*
    };
}

pointers!(&T, &mut T, Box<T>, Arc<T>);

impl<T: ToArgs + ToOwned + ?Sized> ToArgs for Cow<'_, T> {
    fn write_args(&self, command: &mut Command) {
        (**self).write_args(command);
    }

    fn is_absent(&self) -> bool {
        (**self).is_absent()
    }
}

macro_rules! tuples {
    ($(($($name:ident),*))*) => {
        $(impl<$($name: ToArgs),*> ToArgs for ($($name,)*) {
            #[allow(non_snake_case, reason = "one name for a type and its value")]
            fn write_args(&self, command: &mut Command) {
                let ($($name,)*) = self;
                $($name.write_args(command);)*
            }
        })*
    };
}

/// Among others a name and its value, or neither.
impl<A: ToArgs, B: ToArgs> ToArgs for (A, B) {
    fn write_args(&self, command: &mut Command) {
        self.0.write_args(command);
        self.1.write_args(command);
    }

    fn is_absent(&self) -> bool {
        self.1.is_absent()
    }
}

tuples!((A)(A, B, C)(A, B, C, D)(A, B, C, D, E)(A, B, C, D, E, F));

impl<T: ToArgs, S: BuildHasher> ToArgs for HashSet<T, S> {
    fn write_args(&self, command: &mut Command) {
        write_elements(self, command);
    }
}

impl<T: ToArgs> ToArgs for BTreeSet<T> {
    fn write_args(&self, command: &mut Command) {
        write_elements(self, command);
    }
}

impl<K: ToArgs, V: ToArgs, S: BuildHasher> ToArgs for HashMap<K, V, S> {
    fn write_args(&self, command: &mut Command) {
        write_elements(self, command);
    }
}

impl<K: ToArgs, V: ToArgs> ToArgs for BTreeMap<K, V> {
    fn write_args(&self, command: &mut Command) {
        write_elements(self, command);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd;

    fn written(value: impl ToArgs) -> Vec<Bytes> {
        cmd("X").arg(value).all_arguments().split_off(1)
    }

    #[test]
    fn a_pair_without_a_value_moves_no_other() {
        assert_eq!(written([("a", None), ("b", Some(1))]), ["b", "1"]);
        assert_eq!(written([("a", None::<u8>), ("b", None)]), [""; 0]);
        assert_eq!(written(BTreeMap::from([("a", &None), ("b", &Some("x"))])), ["b", "x"]);
        assert_eq!(written(vec![("a", Some(None::<u8>))]), [""; 0]);
        assert_eq!(written(("EX", Some(60))), ["EX", "60"]);
        assert_eq!(written([("a", ("b", None)), ("c", ("d", Some("e")))]), ["c", "d", "e"]);
        assert_eq!(written([("a", Cow::Owned::<Option<u8>>(None)), ("b", Cow::Owned(Some(1)))]), ["b", "1"]);
        assert_eq!(written([&Some(("a", None)), &Some(("b", Some(1))), &None]), ["b", "1"]);
        assert_eq!(written(BTreeSet::from([("a", None), ("b", Some(1))])), ["b", "1"]);
        assert_eq!(written(HashSet::from([("a", None), ("b", Some(1))])), ["b", "1"]);
        assert_eq!(written(HashMap::from([("a", None), ("b", Some(1))])), ["b", "1"]);
    }

    #[test]
    fn a_tuple_that_is_no_element_is_written_part_by_part() {
        assert_eq!(written((Some("NX"), None::<&str>)), ["NX"]);
        assert_eq!(written(("key", None::<u32>)), ["key"]);
        assert_eq!(written(("key", ("EX", None::<u32>), Some(1))), ["key", "EX", "1"]);
        assert_eq!(written(("key", [("a", None), ("b", Some(1))])), ["key", "b", "1"]);
        assert_eq!(written(Some(&("key", None::<u32>))), ["key"]);
    }
}
