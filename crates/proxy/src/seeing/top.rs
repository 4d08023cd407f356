//! The keys that are seen most often, or with the largest values: bounded tables fed by samples.

/// A key and its figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranked {
    pub(crate) key: Box<[u8]>,
    pub(crate) figure: u64,
    /// By how much the figure may be too high.
    pub(crate) error: u64,
    pub(crate) command: &'static str,
}

/// Keys by how often they are seen: the space-saving table of Metwally, Agrawal and El Abbadi. A key that is seen more
/// often than one in its length of all is in it for certain.
#[derive(Debug, Default)]
pub(crate) struct Often {
    keys: Vec<Ranked>,
    pub(crate) seen: u64,
}

impl Often {
    pub(crate) fn note(&mut self, key: &[u8], command: &'static str, length: usize) {
        self.seen += 1;
        if let Some(known) = self.keys.iter_mut().find(|known| *known.key == *key) {
            known.figure += 1;
            known.command = command;
            return;
        }
        let mut ranked = Ranked { key: key.into(), figure: 1, error: 0, command };
        if self.keys.len() < length {
            self.keys.push(ranked);
        } else if let Some(least) = self.keys.iter_mut().min_by_key(|known| known.figure) {
            ranked.figure = least.figure + 1;
            ranked.error = least.figure;
            *least = ranked;
        }
    }

    /// Halves all figures, so that what was often once is forgotten.
    pub(crate) fn age(&mut self) {
        self.seen /= 2;
        for known in &mut self.keys {
            known.figure /= 2;
            known.error /= 2;
        }
        self.keys.retain(|known| known.figure > 0);
    }

    pub(crate) fn ranked(&self) -> Vec<Ranked> {
        let mut keys = self.keys.clone();
        keys.sort_by_key(|known| std::cmp::Reverse(known.figure));
        keys
    }
}

/// Keys by the largest value that was seen.
#[derive(Debug, Default)]
pub(crate) struct Largest {
    keys: Vec<Ranked>,
}

impl Largest {
    pub(crate) fn note(&mut self, key: &[u8], command: &'static str, bytes: u64, length: usize) {
        if let Some(known) = self.keys.iter_mut().find(|known| *known.key == *key) {
            if bytes > known.figure {
                known.figure = bytes;
                known.command = command;
            }
            return;
        }
        let ranked = Ranked { key: key.into(), figure: bytes, error: 0, command };
        if self.keys.len() < length {
            self.keys.push(ranked);
        } else if let Some(least) = self.keys.iter_mut().min_by_key(|known| known.figure)
            && least.figure < bytes
        {
            *least = ranked;
        }
    }

    pub(crate) fn ranked(&self) -> Vec<Ranked> {
        let mut keys = self.keys.clone();
        keys.sort_by_key(|known| std::cmp::Reverse(known.figure));
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_often_enough_is_never_lost() {
        let mut often = Often::default();
        for n in 0..10_000u32 {
            often.note(&n.to_le_bytes(), "get", 16);
            if n % 4 == 0 {
                often.note(b"hot", "get", 16);
            }
        }
        let first = often.ranked().swap_remove(0);
        assert_eq!(&*first.key, b"hot");
        assert!(first.figure >= 2_500 && first.figure - first.error <= 2_500, "{first:?}");
        assert_eq!(often.ranked().len(), 16);
        (0..20).for_each(|_| often.age());
        assert!(often.ranked().is_empty());
    }

    #[test]
    fn the_largest_stay() {
        let mut largest = Largest::default();
        (0..100u64).for_each(|n| largest.note(&n.to_le_bytes(), "get", n, 4));
        largest.note(&99u64.to_le_bytes(), "get", 5, 4);
        assert_eq!(largest.ranked().iter().map(|ranked| ranked.figure).collect::<Vec<_>>(), [99, 98, 97, 96]);
    }
}
