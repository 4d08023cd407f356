//! Scopes: bytes in front of a channel's name that tell channels of the same name apart, where they are called so by different users,
//! in different databases, or at different nodes.

/// What a channel's name means something in: bytes in front of the name.
pub type Scope = Box<[u8]>;

/// Bytes of a scope's length.
const LENGTH_BYTES: usize = size_of::<u16>();

/// Behind a scope: the name alone.
pub fn behind(scoped: &[u8]) -> &[u8] {
    split(scoped).1
}

/// A name's scope, and the name.
pub fn split(scoped: &[u8]) -> (&[u8], &[u8]) {
    let length = scoped.first_chunk::<LENGTH_BYTES>().map_or(0, |length| usize::from(u16::from_be_bytes(*length)));
    let (scope, name) = scoped.split_at_checked(LENGTH_BYTES + length).unwrap_or((scoped, &[]));
    (scope.get(LENGTH_BYTES..).unwrap_or_default(), name)
}

/// The bytes in front of a name of this scope.
pub fn scope(words: &[&[u8]]) -> Scope {
    let words = words.concat();
    // Names of users are far shorter.
    let length = words.len().min(usize::from(u16::MAX));
    [&(length as u16).to_be_bytes()[..], &words[..length]].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scoped_name_is_taken_apart_whatever_bytes_it_has() {
        for (words, name) in [
            (&[&b"ann"[..], &7u32.to_be_bytes()][..], &b"news"[..]),
            (&[], b"news"),
            (&[b"\0\x01"], b"\0\x05\xff"),
            (&[b"ann"], b""),
        ] {
            let scoped = [&*scope(words), name].concat();
            assert_eq!(split(&scoped), (&*words.concat(), name));
            assert_eq!(behind(&scoped), name);
        }
    }

    #[test]
    fn names_of_two_scopes_never_meet() {
        let one = [&*scope(&[b"a"]), b"bc"].concat();
        let other = [&*scope(&[b"ab"]), b"c"].concat();
        assert_ne!(one, other);
    }

    #[test]
    fn bytes_that_are_no_scoped_name_have_no_name() {
        for bytes in [&b""[..], b"\0", b"\0\x09ab"] {
            assert_eq!(behind(bytes), b"", "{bytes:?}");
        }
    }
}
