//! The number of nodes that Redis's radix tree would have for the first ids of a stream's runs, which `XINFO STREAM` shows.
//!
//! The tree has one root if it is empty. Otherwise it has one node per key, one per position at which keys
//! diverge, and one per run of bytes between two such positions.

use super::by_id::ById;
use super::id::Id;

/// Bytes of a key.
const KEY_BYTES: u32 = 16;

/// The length of the common prefix of two keys.
fn common(a: Id, b: Id) -> u32 {
    (a.number() ^ b.number()).leading_zeros() / 8
}

/// The number of nodes that the tree of `others` gains by inserting `key`, which it does not have. Costs a few look-ups.
pub(super) fn gained<V>(others: &ById<V>, key: Id) -> usize {
    let before = |id| others.before(id).checked_sub(1).and_then(|place| others.id_at(place));
    let neighbours = [before(key), others.id_at(others.before(key))];
    let Some(parts_at) = neighbours.into_iter().flatten().map(|other| common(other, key)).max() else {
        // The root becomes the run that leads to the only key.
        return 1;
    };
    // The key's own node, and the run that leads to it.
    let own = 1 + usize::from(parts_at + 1 < KEY_BYTES);
    // All keys with the same prefix.
    let free = u128::MAX.checked_shr(8 * parts_at).unwrap_or(0);
    let (low, high) = (Id::of_number(key.number() & !free), Id::of_number(key.number() | free));
    let kin = others.before(low)..others.up_to(high);
    let Some(first) = others.id_at(kin.start).filter(|_| !kin.is_empty()) else { return own };
    let last = others.id_at(kin.end - 1).filter(|_| kin.len() > 1);
    let run_end = last.map_or(KEY_BYTES, |last| common(first, last));
    if run_end == parts_at {
        // Other keys diverge here already.
        return own;
    }
    let around = [before(low), others.id_at(kin.end)];
    let run_start = around.into_iter().flatten().map(|other| common(other, key) + 1).max().unwrap_or(0);
    // The run in which the key diverges is split, with the rest of the run on either side.
    own + usize::from(parts_at > run_start) + usize::from(run_end > parts_at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::random::Random;

    /// Nodes below the common prefix of `depth` bytes of all these keys.
    fn counted(keys: &[[u8; 16]], depth: usize) -> usize {
        if depth == 16 {
            return 1;
        }
        let is_choice = |at: usize| keys.iter().any(|key| key[at] != keys[0][at]);
        let parts_at = (depth..16).find(|at| is_choice(*at)).unwrap_or(16);
        let run = usize::from(parts_at > depth);
        if parts_at == 16 {
            return run + 1;
        }
        let below = keys.chunk_by(|a, b| a[parts_at] == b[parts_at]).map(|keys| counted(keys, parts_at + 1));
        run + 1 + below.sum::<usize>()
    }

    #[test]
    fn nodes_are_counted_as_keys_come_and_go() {
        let mut random = Random::new(5);
        for round in 0..200 {
            let (mut keys, mut nodes) = (ById::new(), 1);
            for _ in 0..60 {
                let few =
                    |random: &mut Random| [0, 1, 255, 256, 257, 65_536, u64::MAX, 1 << 40][random.below(8) as usize];
                let id =
                    Id { ms: few(&mut random), seq: if round % 2 == 0 { few(&mut random) } else { random.below(9) } };
                if keys.remove(id).is_some() {
                    nodes -= gained(&keys, id);
                } else {
                    nodes += gained(&keys, id);
                    keys.insert(id, ());
                }
                let sorted: Vec<[u8; 16]> = keys.from(0).map(|(id, _)| id.number().to_be_bytes()).collect();
                let expected = if sorted.is_empty() { 1 } else { counted(&sorted, 0) };
                assert_eq!(nodes, expected, "{sorted:?}");
            }
        }
    }
}
