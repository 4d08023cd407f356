//! The parts of a Rust source in which there are words: comments, string literals and names.

/// One of them. A name that is neither a comment nor a string is in `name`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    /// The line on which it begins, from 1.
    pub(super) line: usize,
    pub(super) comment: Option<&'a str>,
    pub(super) string: Option<&'a str>,
    pub(super) name: &'a str,
}

/// All pieces of a source, in their order. A block comment is one piece, and so is a string over several lines.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let before = text[..at].chars().next_back();
        let (len, piece) = if rest.starts_with("//") {
            let len = rest.find('\n').unwrap_or(rest.len());
            (len, Some(Piece { comment: Some(&rest[..len]), ..Piece::default() }))
        } else if rest.starts_with("/*") {
            let len = rest.find("*/").map_or(rest.len(), |end| end + 2);
            (len, Some(Piece { comment: Some(&rest[..len]), ..Piece::default() }))
        } else if let Some((inside, len)) = string(rest) {
            (len, Some(Piece { string: Some(inside), ..Piece::default() }))
        } else if c == '\'' {
            (character(rest), None)
        } else if is_of_name(c) && !before.is_some_and(is_of_name) {
            let len = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            (len, Some(Piece { name: &rest[..len], ..Piece::default() }))
        } else {
            (c.len_utf8(), None)
        };
        found.extend(piece.map(|piece| Piece { line, ..piece }));
        line += rest[..len].matches('\n').count();
        at += len;
    }
    found
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What is inside of a string literal that `text` begins with, and the length of the literal.
fn string(text: &str) -> Option<(&str, usize)> {
    let prefix = ["\"", "b\"", "c\""].into_iter().find(|prefix| text.starts_with(prefix));
    if let Some(prefix) = prefix {
        let inside = &text[prefix.len()..];
        let mut is_escaped = false;
        let end = inside.find(|c| {
            let is_end = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        let len = end.unwrap_or(inside.len());
        return Some((&inside[..len], (prefix.len() + len + 1).min(text.len())));
    }
    let hashes_at = ["r", "br", "cr"].into_iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let hashes = hashes_at.len() - hashes_at.trim_start_matches('#').len();
    let inside = hashes_at[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let len = inside.find(&end).unwrap_or(inside.len());
    let before = text.len() - inside.len();
    Some((&inside[..len], (before + len + end.len()).min(text.len())))
}

/// The length of the character literal that `text` begins with; 1: it is a lifetime.
fn character(text: &str) -> usize {
    let inside = &text[1..];
    if inside.starts_with('\\') {
        return inside.get(2..).and_then(|behind| behind.find('\'')).map_or(1, |end| end + 4);
    }
    let mut chars = inside.chars();
    match (chars.next(), chars.next()) {
        (Some(c), Some('\'')) => c.len_utf8() + 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let show = |piece: &Piece<'_>| match piece {
            Piece { line, comment: Some(text), .. } => format!("{line} // {text}"),
            Piece { line, string: Some(text), .. } => format!("{line} \" {text}"),
            Piece { line, name, .. } => format!("{line} {name}"),
        };
        pieces(text).iter().map(show).collect()
    }

    #[test]
    fn comments_strings_and_names_are_told_apart() {
        let text = "let one = \"a // b\"; // it \"is\"\n/* two\nlines */ x(r#\"say \"c\" \"#)\n";
        assert_eq!(
            shown(text),
            ["1 let", "1 one", "1 \" a // b", "1 // // it \"is\"", "2 // /* two\nlines */", "3 x", "3 \" say \"c\" "]
        );
    }

    #[test]
    fn characters_and_escapes_end_where_they_do() {
        assert_eq!(
            shown(r#"a('"', '\'', '\\', '\u{41}', b'"', 'ä') b("\"\\") c"#),
            ["1 a", "1 b", "1 b", r#"1 " \"\\"#, "1 c"]
        );
        assert_eq!(shown("fn f<'a>(x: &'a str) {} \"s\""), ["1 fn", "1 f", "1 a", "1 x", "1 a", "1 str", "1 \" s"]);
        assert_eq!(shown("for_r\"x"), ["1 for_r", "1 \" x"], "one that does not end");
    }
}
