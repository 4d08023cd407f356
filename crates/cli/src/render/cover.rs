//! What a server says, without what a terminal would take for a command.

use std::borrow::Cow;

/// The text with control characters written as `\x1b`; ends of lines and tabs stay. So do bytes that are no UTF-8 become visible: some
/// terminals take them for control characters.
pub(crate) fn covered(text: &[u8]) -> Cow<'_, [u8]> {
    let is_plain = |letter: char| matches!(letter, '\n' | '\t') || !letter.is_control();
    if std::str::from_utf8(text).is_ok_and(|text| text.chars().all(is_plain)) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() * 2);
    let cover = |bytes: &[u8], out: &mut Vec<u8>| {
        out.extend(bytes.iter().flat_map(|byte| format!("\\x{byte:02x}").into_bytes()));
    };
    for chunk in text.utf8_chunks() {
        let mut letters = chunk.valid().chars().peekable();
        while let Some(letter) = letters.next() {
            let mut bytes = [0; 4];
            let bytes = letter.encode_utf8(&mut bytes).as_bytes();
            let is_end_of_line = letter == '\r' && letters.peek() == Some(&'\n');
            if is_plain(letter) || is_end_of_line {
                out.extend_from_slice(bytes);
            } else {
                cover(bytes, &mut out);
            }
        }
        cover(chunk.invalid(), &mut out);
    }
    Cow::Owned(out)
}
