//! `client-output-buffer-limit`: classes of clients, each with a hard limit, a soft limit and seconds.

/// The classes, in the order in which they are shown.
pub(super) const CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

/// The limits of each class in [`CLASSES`]: hard, soft, seconds. Empty for a text that is none of ours.
pub(super) fn limits_of(shown: &str) -> Vec<[u64; 3]> {
    let words: Vec<&str> = shown.split(' ').collect();
    let number = |word: &str| word.parse().unwrap_or(0);
    words.chunks_exact(4).map(|limit| [number(limit[1]), number(limit[2]), number(limit[3])]).collect()
}
