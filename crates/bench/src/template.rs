//! Requests with blanks: a command whose bytes are made once, and the places in it that every request fills anew.

use respool_wire::{encode_request, request_head};

use crate::keys::Keys;
use crate::values::{Sizes, digits, write_proof};

/// What stands for a number of twelve digits, which is drawn for every request, as in redis-benchmark.
pub const RANDOM: &str = "__rand_int__";
/// What stands for the value, as a whole argument.
pub const VALUE: &str = "__data__";
/// What stands for a hash tag of the node that the request goes to, as in redis-benchmark.
pub const TAG: &str = "{tag}";

/// A command with blanks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
    sizes: Sizes,
    /// Values prove their keys.
    is_verified: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Bytes(Vec<u8>),
    Random,
    Tag,
    /// A whole argument, its head included.
    Value,
}

/// What was drawn for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// The last number that replaced [`RANDOM`]: the one that a value behind it proves.
    pub key: u64,
}

impl Template {
    /// A request of these words. With `has_keys` [`RANDOM`] is a blank, and an ordinary word without. `sizes` is what stands for
    /// [`VALUE`]; with `is_verified` values prove their keys.
    pub fn new<W: AsRef<[u8]>>(words: &[W], has_keys: bool, sizes: &Sizes, is_verified: bool) -> Self {
        let mut flat = Vec::new();
        request_head(&mut flat, words.len());
        let mut this = Self { parts: Vec::new(), sizes: sizes.clone(), is_verified };
        for word in words {
            let word = word.as_ref();
            if word == VALUE.as_bytes() {
                match sizes.only().filter(|_| !is_verified) {
                    Some(size) => respool_wire::request_bulk(&mut flat, &vec![b'x'; size]),
                    None => {
                        this.parts.push(Part::Bytes(std::mem::take(&mut flat)));
                        this.parts.push(Part::Value);
                    }
                }
                continue;
            }
            // Blanks are as long as what replaces them, so that the length that is announced holds.
            respool_wire::request_bulk(&mut flat, word);
            this.cut(&mut flat, has_keys);
        }
        this.parts.push(Part::Bytes(flat));
        this.parts.retain(|part| !matches!(part, Part::Bytes(bytes) if bytes.is_empty()));
        this
    }

    /// A request that is sent as it stands.
    pub fn verbatim(bytes: &[u8]) -> Self {
        Self { parts: vec![Part::Bytes(bytes.to_vec())], sizes: Sizes::one(0), is_verified: false }
    }

    /// Cuts `flat` at the blanks in it; what is behind the last one stays.
    fn cut(&mut self, flat: &mut Vec<u8>, has_keys: bool) {
        let find = |bytes: &[u8], blank: &str| bytes.windows(blank.len()).position(|window| window == blank.as_bytes());
        loop {
            let random = find(flat, RANDOM).filter(|_| has_keys).map(|at| (at, RANDOM, Part::Random));
            let tag = find(flat, TAG).map(|at| (at, TAG, Part::Tag));
            let Some((at, blank, part)) = [random, tag].into_iter().flatten().min_by_key(|(at, ..)| *at) else {
                return;
            };
            let rest = flat.split_off(at + blank.len());
            flat.truncate(at);
            self.parts.push(Part::Bytes(std::mem::replace(flat, rest)));
            self.parts.push(part);
        }
    }

    /// Whether it has a value.
    pub fn has_values(&self) -> bool {
        self.parts.contains(&Part::Value)
    }

    /// Appends one request. `writer` is its number, one of `tags` replaces [`TAG`], if there are any. Where values are verified the
    /// first key's number says which: each key of a node is in one slot, and is met again. Further keys of a request go where its first one is.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>, keys: &mut Keys, writer: u64, tags: &[[u8; 5]]) -> Drawn {
        let mut first = None;
        let tag = match tags {
            [] => *b"{tag}",
            tags if self.is_verified && self.parts.contains(&Part::Random) => {
                let key = *first.insert(keys.next_key());
                tags[(key % tags.len() as u64) as usize]
            }
            tags => tags[keys.below(tags.len() as u64) as usize],
        };
        let mut key = 0;
        for part in &self.parts {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(bytes),
                Part::Random => {
                    key = first.take().unwrap_or_else(|| keys.next_key());
                    out.extend_from_slice(&digits(key));
                }
                Part::Tag => out.extend_from_slice(&tag),
                Part::Value => {
                    let size = self.sizes.draw(keys);
                    out.extend_from_slice(respool_wire::Head::argument(size).as_bytes());
                    if self.is_verified {
                        write_proof(out, key, writer as u32, size);
                    } else {
                        out.resize(out.len() + size, b'x');
                    }
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
        Drawn { key }
    }
}

/// A request of plain words.
pub(crate) fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_request(&mut out, words.iter().copied());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Spread;
    use crate::values::is_proof;
    use respool_wire::{RequestDecoder, RequestLimits, Step};

    fn keys() -> Keys {
        Keys::new(Spread::Sequence, 100, 1, 0, 1)
    }

    fn words(bytes: &[u8]) -> Vec<Vec<u8>> {
        match RequestDecoder::new().decode(bytes, &RequestLimits::default()) {
            Ok(Step::Request(request)) if request.consumed == bytes.len() => {
                request.args.iter().map(<[u8]>::to_vec).collect()
            }
            other => panic!("{other:?} of {:?}", String::from_utf8_lossy(bytes)),
        }
    }

    fn written(template: &Template, keys: &mut Keys) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        template.write(&mut out, keys, 9, &[*b"{abc}"]);
        words(&out)
    }

    #[test]
    fn every_blank_is_filled_anew() {
        let template =
            Template::new(&["MSET", "k:__rand_int__", "v", "{tag}__rand_int__x"], true, &Sizes::one(3), false);
        let mut keys = keys();
        assert_eq!(written(&template, &mut keys), [&b"MSET"[..], b"k:000000000000", b"v", b"{abc}000000000001x"]);
        assert_eq!(written(&template, &mut keys)[1], b"k:000000000002");
    }

    #[test]
    fn a_verified_key_has_the_same_tag_whenever_it_is_drawn() {
        let template = Template::new(&["GET", "key:{tag}:__rand_int__"], true, &Sizes::one(40), true);
        let mut keys = Keys::new(Spread::Uniform, 10, 1, 0, 1);
        let tags = [*b"{000}", *b"{111}", *b"{222}"];
        let mut drawn = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut out = Vec::new();
            let key = template.write(&mut out, &mut keys, 0, &tags).key;
            let tag = String::from_utf8_lossy(&tags[key as usize % 3]).into_owned();
            assert_eq!(words(&out)[1], format!("key:{tag}:{key:012}").into_bytes());
            drawn.insert(key);
        }
        assert_eq!(drawn.len(), 10);
    }

    #[test]
    fn without_keys_the_word_stays_as_it_is() {
        let template = Template::new(&["GET", "key:__rand_int__"], false, &Sizes::one(3), false);
        assert_eq!(written(&template, &mut keys())[1], b"key:__rand_int__");
    }

    #[test]
    fn each_value_proves_the_key_in_front_of_it() {
        let words = ["MSET", "k:__rand_int__", VALUE, "k:__rand_int__", VALUE];
        let template = Template::new(&words, true, &Sizes::one(40), true);
        let words = written(&template, &mut keys());
        assert_eq!((&words[1][..], &words[3][..]), (&b"k:000000000000"[..], &b"k:000000000001"[..]));
        assert!(is_proof(&words[2], 0, &mut Vec::new()));
        assert!(is_proof(&words[4], 1, &mut Vec::new()));
    }

    #[test]
    fn a_key_of_two_numbers_is_proven_and_read_alike() {
        let set = Template::new(&["SET", "__rand_int__:__rand_int__", VALUE], true, &Sizes::one(40), true);
        let get = Template::new(&["GET", "__rand_int__:__rand_int__"], true, &Sizes::one(40), true);
        let value = written(&set, &mut keys()).swap_remove(2);
        let read = get.write(&mut Vec::new(), &mut keys(), 9, &[*b"{abc}"]);
        assert!(is_proof(&value, read.key, &mut Vec::new()));
    }

    #[test]
    fn values_have_their_size_and_prove_their_key() {
        let plain = Template::new(&["SET", "__rand_int__", VALUE], true, &Sizes::one(5), false);
        assert_eq!(written(&plain, &mut keys())[2], b"xxxxx");
        let mixed = Template::new(&["SET", "__rand_int__", VALUE], true, &Sizes::parse("35:1,40:1").unwrap(), true);
        let mut keys = Keys::new(Spread::Uniform, 1000, 1, 0, 1);
        for _ in 0..20 {
            let mut out = Vec::new();
            let drawn = mixed.write(&mut out, &mut keys, 9, &[*b"{abc}"]);
            let words = words(&out);
            assert!([35, 40].contains(&words[2].len()));
            assert!(is_proof(&words[2], drawn.key, &mut Vec::new()));
        }
    }
}
