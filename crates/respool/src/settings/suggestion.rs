//! The name that was probably meant, for hints.

/// The candidate most like `text`, if any is like it at all.
#[must_use]
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A text of any length can come from a file; comparing costs its length times the candidate's.
    const COMPARED_BYTES_MAX: usize = 64;
    if text.len() > COMPARED_BYTES_MAX {
        return None;
    }
    let text = text.to_ascii_lowercase();
    let likeness = |name: &'a str| (strsim::jaro_winkler(&text, name), name);
    let best = candidates.into_iter().map(likeness).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}
