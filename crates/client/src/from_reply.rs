//! What a reply can be made into.

use crate::{DecodeError, Elements, Reply, ServerError};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

/// A type that a reply is made into.
///
/// A number may come as a string and a map as an array of pairs in either form, as RESP2 writes them. A conversion that would lose
/// something is an error, not a guess: a null is no empty text, and a number must fit.
pub trait FromReply: Sized {
    /// Whether an error of the server's is a value. Otherwise it is the error of the call.
    const TAKES_ERRORS: bool = false;

    /// Makes the value.
    fn from_reply(reply: Reply) -> Result<Self, DecodeError>;

    /// What stands for a field that a map does not have; `None`: it must have it.
    #[doc(hidden)]
    fn from_absent() -> Option<Self> {
        None
    }

    /// Whether the reply is that there is no such value, which an [`Option`] takes for `None`.
    #[doc(hidden)]
    fn is_absent(reply: &Reply) -> bool {
        reply.is_null()
    }

    /// Makes several. For `u8` a string: bytes.
    #[doc(hidden)]
    fn vec_from_reply(reply: Reply) -> Result<Vec<Self>, DecodeError> {
        elements(reply)?.map(element).collect()
    }
}

/// One element of an aggregate. An error among them is an error of the call, unless it is a value.
pub(crate) fn element<T: FromReply>(reply: Reply) -> Result<T, DecodeError> {
    match reply {
        Reply::Error(error) if !T::TAKES_ERRORS => Err(DecodeError::Server(error)),
        reply => T::from_reply(reply),
    }
}

pub(crate) fn elements(reply: Reply) -> Result<Elements, DecodeError> {
    reply.into_elements().map_err(|reply| DecodeError::wrong("an aggregate", &reply))
}

impl FromReply for Reply {
    const TAKES_ERRORS: bool = true;

    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        Ok(reply)
    }
}

impl<T: FromReply> FromReply for Result<T, ServerError> {
    const TAKES_ERRORS: bool = true;

    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        match reply {
            Reply::Error(error) => Ok(Err(error)),
            reply => T::from_reply(reply).map(Ok),
        }
    }
}

/// Any reply that is no error.
impl FromReply for () {
    fn from_reply(_: Reply) -> Result<Self, DecodeError> {
        Ok(())
    }
}

impl<T: FromReply> FromReply for Option<T> {
    const TAKES_ERRORS: bool = T::TAKES_ERRORS;

    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        if T::is_absent(&reply) { Ok(None) } else { T::from_reply(reply).map(Some) }
    }

    fn from_absent() -> Option<Self> {
        Some(None)
    }
}

impl FromReply for Bytes {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        match reply {
            Reply::Bulk(bytes) | Reply::Status(bytes) | Reply::BigNumber(bytes) => Ok(bytes),
            Reply::Integer(number) => Ok(number.to_string().into()),
            Reply::Double(number) => Ok(number.to_string().into()),
            reply => Err(DecodeError::wrong("a string", &reply)),
        }
    }
}

impl FromReply for String {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        String::from_utf8(Bytes::from_reply(reply)?.into()).map_err(|_| DecodeError::Invalid("text in UTF-8"))
    }
}

/// `true` for numbers above zero and for a status: SET answers `OK`, or a null if its condition did not hold. A negative number is neither:
/// it says that there is no such key or field (`TTL`, `HEXPIRE`).
impl FromReply for bool {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        match reply {
            Reply::Boolean(value) => Ok(value),
            Reply::Integer(number @ 0..) => Ok(number != 0),
            Reply::Status(_) => Ok(true),
            Reply::Null => Ok(false),
            Reply::Bulk(bytes) if &*bytes == b"1" => Ok(true),
            Reply::Bulk(bytes) if &*bytes == b"0" => Ok(false),
            reply => Err(DecodeError::wrong("a boolean", &reply)),
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::Invalid("a number"))
}

macro_rules! integers {
    ($($number:ty),*) => {
        $(impl FromReply for $number {
            fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
                integer(reply)
            }
        })*
    };
}

integers!(i8, i16, i32, i64, i128, isize, u16, u32, u64, u128, usize);

/// Doubles are whole numbers up to here, each of them another.
const WHOLE_MAX: f64 = (1_i64 << 53) as f64;

fn integer<T: TryFrom<i64> + std::str::FromStr>(reply: Reply) -> Result<T, DecodeError> {
    match reply {
        Reply::Integer(number) => T::try_from(number).map_err(|_| DecodeError::Invalid("a number of this size")),
        Reply::Boolean(value) => T::try_from(i64::from(value)).map_err(|_| DecodeError::Invalid("a number")),
        // As the dialect without doubles writes it: a whole number has no point.
        Reply::Double(number) if number.fract() == 0.0 && number.abs() < WHOLE_MAX => {
            T::try_from(number as i64).map_err(|_| DecodeError::Invalid("a number of this size"))
        }
        Reply::Bulk(bytes) | Reply::Status(bytes) | Reply::BigNumber(bytes) => {
            text(&bytes)?.parse().map_err(|_| DecodeError::Invalid("a number"))
        }
        reply => Err(DecodeError::wrong("an integer", &reply)),
    }
}

impl FromReply for u8 {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        integer(reply)
    }

    fn vec_from_reply(reply: Reply) -> Result<Vec<Self>, DecodeError> {
        Bytes::from_reply(reply).map(Vec::from)
    }
}

impl FromReply for f64 {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        match reply {
            Reply::Double(number) => Ok(number),
            Reply::Integer(number) => Ok(number as Self),
            Reply::Bulk(bytes) | Reply::Status(bytes) | Reply::BigNumber(bytes) => {
                text(&bytes)?.parse().map_err(|_| DecodeError::Invalid("a number"))
            }
            reply => Err(DecodeError::wrong("a number", &reply)),
        }
    }
}

impl FromReply for f32 {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        let number = f64::from_reply(reply)?;
        let short = number as Self;
        if short.is_infinite() && number.is_finite() {
            return Err(DecodeError::Invalid("a number of this size"));
        }
        Ok(short)
    }
}

impl<T: FromReply> FromReply for Vec<T> {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        T::vec_from_reply(reply)
    }
}

impl<T: FromReply, const N: usize> FromReply for [T; N] {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        Vec::from_reply(reply)?.try_into().map_err(|_| DecodeError::Invalid("this many elements"))
    }
}

impl<T: FromReply + Hash + Eq, S: BuildHasher + Default> FromReply for HashSet<T, S> {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        elements(reply)?.map(element).collect()
    }
}

impl<T: FromReply + Ord> FromReply for BTreeSet<T> {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        elements(reply)?.map(element).collect()
    }
}

/// Pairs of a map, of an array of pairs, or of an array in which they follow each other.
pub(crate) fn pairs<K: FromReply, V: FromReply>(reply: Reply) -> impl Iterator<Item = Result<(K, V), DecodeError>> {
    let mut walk = elements(reply);
    std::iter::from_fn(move || {
        let walk = match &mut walk {
            Ok(walk) => walk,
            Err(error) => {
                let error = error.clone();
                walk = Ok(Elements::default());
                return Some(Err(error));
            }
        };
        let key = match walk.next()? {
            Reply::Array(pair) if pair.declared() == 2 => return Some(pair_of(pair)),
            key => element(key),
        };
        let Some(value) = walk.next() else { return Some(Err(DecodeError::Invalid("pairs"))) };
        Some(key.and_then(|key| Ok((key, element(value)?))))
    })
}

fn pair_of<K: FromReply, V: FromReply>(mut pair: Elements) -> Result<(K, V), DecodeError> {
    let mut next = || pair.next().ok_or(DecodeError::Invalid("pairs"));
    Ok((element(next()?)?, element(next()?)?))
}

/// A name may come again with the same value, not with another; [`Pairs`](crate::commands::Pairs) takes them as they come.
impl<K: FromReply + Hash + Eq, V: FromReply, S: BuildHasher + Default> FromReply for HashMap<K, V, S> {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        let (mut map, mut sent) = (Self::default(), HashMap::new());
        once(reply, |key, value| map.insert(key, value), |key, value| sent.insert(key, value))?;
        Ok(map)
    }
}

/// A name may come again with the same value, not with another; [`Pairs`](crate::commands::Pairs) takes them as they come.
impl<K: FromReply + Ord, V: FromReply> FromReply for BTreeMap<K, V> {
    fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
        let (mut map, mut sent) = (Self::default(), BTreeMap::new());
        once(reply, |key, value| map.insert(key, value), |key, value| sent.insert(key, value))?;
        Ok(map)
    }
}

/// Gives each pair to `insert`, which returns what it had of that name.
///
/// A name that comes again with another value would hide the one in front of it, as in an entry of a stream. With the same it hides
/// nothing: HRANDFIELD and ZRANDMEMBER with a negative count write so. Values need not be comparable, so what was sent is compared,
/// by `insert_sent`, and only once a name has come again.
fn once<K: FromReply, V: FromReply>(
    reply: Reply,
    mut insert: impl FnMut(K, V) -> Option<V>,
    mut insert_sent: impl FnMut(K, Reply) -> Option<Reply>,
) -> Result<(), DecodeError> {
    let mut is_again = false;
    for pair in pairs(reply.clone()) {
        let (key, value) = pair?;
        is_again |= insert(key, value).is_some();
    }
    if !is_again {
        return Ok(());
    }
    for pair in pairs(reply) {
        let (key, value): (K, Reply) = pair?;
        let sent = value.clone();
        if insert_sent(key, value).is_some_and(|before| before != sent) {
            return Err(DecodeError::Invalid(TWICE));
        }
    }
    Ok(())
}

/// What an aggregate is not in which a name hides a value.
pub(crate) const TWICE: &str = "a map with each name once";

/// Several pairs: each in an aggregate of its own, or one behind the other, as RESP2 writes a map and the scores of a sorted set.
fn all_pairs<K: FromReply, V: FromReply>(reply: Reply) -> Result<Vec<(K, V)>, DecodeError> {
    let first = elements(reply.clone())?.next();
    if first.is_some_and(|first| first.into_elements().is_ok()) {
        return elements(reply)?.map(element).collect();
    }
    pairs(reply).collect()
}

macro_rules! tuples {
    ($(($($name:ident),*) $(, of several $several:ident)?;)*) => {
        $(impl<$($name: FromReply),*> FromReply for ($($name,)*) {
            fn from_reply(reply: Reply) -> Result<Self, DecodeError> {
                let mut walk = elements(reply)?;
                let tuple = ($({
                    let next = walk.next().ok_or(DecodeError::Invalid("as many elements"))?;
                    element::<$name>(next)?
                },)*);
                if walk.declared() == 0 { Ok(tuple) } else { Err(DecodeError::Invalid("as few elements")) }
            }

            $(fn vec_from_reply(reply: Reply) -> Result<Vec<Self>, DecodeError> {
                $several(reply)
            })?
        })*
    };
}

tuples! {
    (A);
    (A, B), of several all_pairs;
    (A, B, C);
    (A, B, C, D);
    (A, B, C, D, E);
    (A, B, C, D, E, F);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: FromReply>(bytes: &[u8]) -> Result<T, DecodeError> {
        T::from_reply(Reply::copied(bytes).unwrap())
    }

    #[test]
    fn numbers_come_in_any_form_and_must_fit() {
        assert_eq!(read::<u8>(b":255\r\n"), Ok(255));
        assert!(read::<u8>(b":256\r\n").is_err() && read::<u8>(b":-1\r\n").is_err());
        assert_eq!(read::<i64>(b"$2\r\n-7\r\n"), Ok(-7));
        assert_eq!(read::<u64>(b"(18446744073709551615\r\n"), Ok(u64::MAX));
        assert_eq!(read::<f64>(b"$3\r\ninf\r\n"), Ok(f64::INFINITY));
        assert!(read::<i64>(b"$1\r\nx\r\n").is_err() && read::<i64>(b"_\r\n").is_err());
        assert!(read::<f32>(b",1e300\r\n").is_err() && read::<f32>(b"$5\r\n1e300\r\n").is_err());
        assert_eq!(read::<f32>(b",inf\r\n"), Ok(f32::INFINITY));
    }

    #[test]
    fn a_score_is_the_same_number_in_both_dialects() {
        for (double, text) in [(&b",3\r\n"[..], &b"$1\r\n3\r\n"[..]), (b",-7\r\n", b"$2\r\n-7\r\n")] {
            assert_eq!(read::<i64>(double), read::<i64>(text));
            assert!(read::<i64>(double).is_ok());
        }
        for double in [&b",1.5\r\n"[..], b",inf\r\n", b",nan\r\n", b",1e300\r\n"] {
            assert!(read::<i64>(double).is_err());
        }
        assert!(read::<u8>(b",256\r\n").is_err() && read::<u64>(b",-1\r\n").is_err());
    }

    #[test]
    fn a_negative_number_is_neither_yes_nor_no() {
        assert_eq!(read::<Vec<bool>>(b"*3\r\n:0\r\n:1\r\n:2\r\n"), Ok(vec![false, true, true]));
        // A field that does not exist (HEXPIRE), a key that does not (TTL).
        assert!(read::<Vec<bool>>(b"*1\r\n:-2\r\n").is_err() && read::<bool>(b":-2\r\n").is_err());
    }

    #[test]
    fn a_name_that_comes_twice_hides_no_value() {
        let twice = b"*4\r\n$1\r\na\r\n:1\r\n$1\r\na\r\n:2\r\n";
        assert!(read::<HashMap<String, u32>>(twice).is_err() && read::<BTreeMap<String, u32>>(twice).is_err());
        let pairs = read::<crate::commands::Pairs<String, u32>>(twice).unwrap();
        assert_eq!(pairs.0, [("a".to_owned(), 1), ("a".to_owned(), 2)]);
    }

    #[test]
    fn a_name_that_comes_twice_with_its_value_is_one_entry() {
        // As HRANDFIELD and ZRANDMEMBER with a negative count write them, in both dialects.
        for again in [
            &b"*6\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\na\r\n$1\r\n1\r\n"[..],
            b"*3\r\n*2\r\n$1\r\na\r\n,1\r\n*2\r\n$1\r\nb\r\n,2\r\n*2\r\n$1\r\na\r\n,1\r\n",
        ] {
            let expected = [("a".to_owned(), 1), ("b".to_owned(), 2)];
            assert_eq!(read::<HashMap<String, u32>>(again), Ok(expected.clone().into()));
            assert_eq!(read::<BTreeMap<String, u32>>(again), Ok(expected.into()));
        }
        // Again with its value, and then with another.
        let differs = b"*6\r\n$1\r\na\r\n:1\r\n$1\r\na\r\n:1\r\n$1\r\na\r\n:2\r\n";
        assert!(read::<HashMap<String, u32>>(differs).is_err() && read::<BTreeMap<String, u32>>(differs).is_err());
    }

    #[test]
    fn pairs_are_the_same_in_both_dialects() {
        let expected = vec![("a".to_owned(), 1.0), ("b".to_owned(), 2.5)];
        for bytes in [
            &b"*2\r\n*2\r\n$1\r\na\r\n,1\r\n*2\r\n$1\r\nb\r\n,2.5\r\n"[..],
            b"*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$3\r\n2.5\r\n",
            b"%2\r\n$1\r\na\r\n,1\r\n$1\r\nb\r\n$3\r\n2.5\r\n",
        ] {
            assert_eq!(read::<Vec<(String, f64)>>(bytes), Ok(expected.clone()));
        }
        for none in [&b"*0\r\n"[..], b"%0\r\n"] {
            assert_eq!(read::<Vec<(String, f64)>>(none), Ok(Vec::new()));
        }
        assert!(read::<Vec<(String, f64)>>(b"*3\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n").is_err());
        assert!(read::<Vec<(String, f64)>>(b"*2\r\n$1\r\na\r\n-ERR no\r\n").is_err());
        // Each is an aggregate of two.
        let nested = b"*2\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n*2\r\n$1\r\nb\r\n*0\r\n";
        let expected = vec![("a".to_owned(), vec![1]), ("b".to_owned(), vec![])];
        assert_eq!(read::<Vec<(String, Vec<u32>)>>(nested), Ok(expected));
        assert!(read::<Vec<(String, u32)>>(b"*2\r\n*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n").is_err());
    }

    #[test]
    fn a_null_is_no_empty_text() {
        assert!(read::<String>(b"$-1\r\n").is_err());
        assert_eq!(read::<Option<String>>(b"$-1\r\n"), Ok(None));
        assert_eq!(read::<Option<String>>(b"$0\r\n\r\n"), Ok(Some(String::new())));
    }

    #[test]
    fn bytes_are_a_string_and_numbers_an_array() {
        assert_eq!(read::<Vec<u8>>(b"$2\r\n\xff1\r\n"), Ok(vec![0xff, b'1']));
        assert_eq!(read::<Vec<u16>>(b"*2\r\n:1\r\n$1\r\n2\r\n"), Ok(vec![1, 2]));
        assert_eq!(read::<[u16; 2]>(b"*2\r\n:1\r\n:2\r\n"), Ok([1, 2]));
        assert!(read::<[u16; 3]>(b"*2\r\n:1\r\n:2\r\n").is_err());
    }

    #[test]
    fn a_map_comes_in_three_forms() {
        let expected: BTreeMap<String, u32> = [("a".to_owned(), 1), ("b".to_owned(), 2)].into();
        for bytes in [
            &b"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n"[..],
            b"*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n$1\r\n2\r\n",
            b"*2\r\n*2\r\n+a\r\n:1\r\n*2\r\n+b\r\n:2\r\n",
        ] {
            assert_eq!(read::<BTreeMap<String, u32>>(bytes), Ok(expected.clone()));
        }
        assert!(read::<BTreeMap<String, u32>>(b"*1\r\n+a\r\n").is_err());
        assert!(read::<BTreeMap<String, u32>>(b":1\r\n").is_err());
    }

    #[test]
    fn an_error_among_elements_is_an_error_unless_it_is_a_value() {
        let bytes = b"*2\r\n:1\r\n-ERR no\r\n";
        assert!(matches!(read::<Vec<i64>>(bytes), Err(DecodeError::Server(_))));
        let values = read::<Vec<Result<i64, ServerError>>>(bytes).unwrap();
        assert!(matches!(&values[..], [Ok(1), Err(error)] if error.code() == "ERR"));
    }
}
