//! Replies as text, byte for byte as redis-cli 7.0 writes them.
//!
//! Owns the formats and nothing else: a complete reply goes in, bytes go out. What redis-cli cannot show (big numbers, attributes)
//! is shown here: a big number by its digits, an attribute not at all.

mod cover;
mod csv;
mod json;
mod quote;
mod raw;
mod terminal;

use respool_wire::{Part, ReplyKind, part};

pub(crate) use cover::covered;
pub use quote::quote;

/// How replies are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// With types and places, for people.
    Terminal,
    /// The bytes of the reply, for programs.
    Raw {
        /// What stands between the elements of a reply.
        between_elements: Vec<u8>,
        /// What stands behind a reply.
        behind_replies: Vec<u8>,
    },
    /// Values separated by commas.
    Csv,
    /// JSON. Bytes that are no UTF-8 are passed on as they are.
    Json,
    /// JSON whose strings are written as in the terminal format: ASCII alone.
    QuotedJson,
}

impl Format {
    /// The raw format with newlines.
    #[must_use]
    pub fn raw() -> Self {
        Self::Raw { between_elements: b"\n".to_vec(), behind_replies: b"\n".to_vec() }
    }
}

/// Appends a complete reply and what stands behind it. `is_text`: the reply is text for people, which the formats for people and the raw
/// one both show as it is.
pub fn render(reply: &[u8], format: &Format, is_text: bool, out: &mut Vec<u8>) {
    match format {
        // It ends its lines itself.
        _ if is_text => raw::write(reply, b"\n", out),
        Format::Terminal => terminal::write(reply, &mut Vec::new(), out),
        Format::Raw { between_elements, behind_replies } => {
            raw::write(reply, between_elements, out);
            out.extend_from_slice(behind_replies);
        }
        Format::Csv => {
            csv::write(reply, out);
            out.push(b'\n');
        }
        Format::Json | Format::QuotedJson => {
            json::write(reply, *format == Format::QuotedJson, out);
            out.push(b'\n');
        }
    }
}

/// Whether a reply is an error.
#[must_use]
pub fn is_error(reply: &[u8]) -> bool {
    matches!(part(reply), Some(Part::Leaf(ReplyKind::Error | ReplyKind::BlobError, _)))
}

/// What a leaf says: a verbatim string without its format.
fn said(kind: ReplyKind, text: &[u8]) -> &[u8] {
    if kind == ReplyKind::Verbatim { text.get(4..).unwrap_or_default() } else { text }
}

#[cfg(test)]
mod tests;
