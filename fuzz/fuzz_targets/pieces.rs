//! How the input of a fuzz target arrives.

/// Ends of the pieces in which `length` bytes arrive, ascending, the last one `length`; their sizes are drawn from `seed`.
pub(crate) fn of(length: usize, seed: u8) -> Vec<usize> {
    let mut state = u32::from(seed).wrapping_mul(2_654_435_761).wrapping_add(1);
    let largest = 1 << (seed % 8);
    let mut ends = Vec::new();
    let mut end = 0;
    while end < length {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        end = length.min(end + 1 + (state >> 16) as usize % largest);
        ends.push(end);
    }
    ends
}
