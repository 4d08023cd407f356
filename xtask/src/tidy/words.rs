//! Words that the repository does without: pronouns for persons where a client, a caller, a peer or an operator is meant, and
//! everyday words for terms of the field. Looked for in comments, names, string literals, pages and files of TOML.
//!
//! Text in backticks or double quotes within a comment or a page may have them.

use std::fs;
use std::path::{Path, PathBuf};

use super::rust_pieces::{Piece, pieces};
use super::text::rust_files;
use crate::command;

const WORDS: [&str; 10] =
    ["whoever", "nobody", "somebody", "anybody", "everybody", "whom", "stranger", "strangers", "let in", "brought up"];

/// Where Rust sources are.
const DIRECTORIES: [&str; 4] = ["crates", "xtask", "fuzz", "bench"];
/// Where pages are. The change log says what was said then.
const PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "SECURITY.md", "docs"];
/// This file has the words.
const ITSELF: &str = "xtask/src/tidy/words.rs";

pub(super) fn check() -> Vec<String> {
    let root = command::root();
    let mut complaints = Vec::new();
    for file in DIRECTORIES.iter().flat_map(|directory| rust_files(&root.join(directory))) {
        if file != root.join(ITSELF) {
            let text = fs::read_to_string(&file).unwrap_or_default();
            complaints.extend(
                pieces(&text).into_iter().filter_map(|piece| complaint(&file, root, piece.line, word_of(&piece)?)),
            );
        }
    }
    for file in settings(root) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        complaints.extend(in_lines(&file, root, &text, |line| word_in(&line.replace('"', " "))));
    }
    for page in PAGES.iter().flat_map(|page| pages(&root.join(page))) {
        let text = fs::read_to_string(&page).unwrap_or_default();
        complaints.extend(in_lines(&page, root, &text, word_in_prose));
    }
    complaints
}

fn in_lines(file: &Path, root: &Path, text: &str, word_in: impl Fn(&str) -> Option<&'static str>) -> Vec<String> {
    let found = text.lines().enumerate();
    found.filter_map(|(number, line)| complaint(file, root, number + 1, word_in(line)?)).collect()
}

fn complaint(file: &Path, root: &Path, line: usize, word: &str) -> Option<String> {
    let name = file.strip_prefix(root).unwrap_or(file).display();
    Some(format!("{name}:{line}: \"{word}\": name the thing, or use the field's term"))
}

fn pages(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.to_owned()] };
    let mut pages: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

/// The files of TOML: in the root, and those of the packages below the directories of sources.
fn settings(root: &Path) -> Vec<PathBuf> {
    let mut found = toml_in(root);
    for directory in DIRECTORIES.map(|directory| root.join(directory)) {
        found.extend(toml_in(&directory));
        let folders = fs::read_dir(&directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        found.extend(folders.filter(|path| path.is_dir()).flat_map(|folder| toml_in(&folder)));
    }
    found.sort();
    found
}

fn toml_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|path| path.is_file() && path.extension().is_some_and(|extension| extension == "toml")).collect()
}

/// The first of the words in a piece of code.
fn word_of(piece: &Piece<'_>) -> Option<&'static str> {
    match piece {
        Piece { comment: Some(text), .. } => word_in_prose(text),
        Piece { string: Some(text), .. } => word_in(text),
        Piece { name, .. } => word_in(&parted(name)),
    }
}

/// An identifier in snake or camel case, split into lower-case words: `BytesMax` and `bytes_max` become "bytes max".
fn parted(name: &str) -> String {
    let mut words = String::new();
    let mut was_small = false;
    for c in name.chars() {
        if c.is_uppercase() && was_small {
            words.push(' ');
        }
        was_small = c.is_lowercase();
        words.push(if c == '_' { ' ' } else { c.to_ascii_lowercase() });
    }
    words
}

/// The first of the words in prose, quotations left out.
fn word_in_prose(text: &str) -> Option<&'static str> {
    word_in(&without_quotations(&without_quotations(text, '`'), '"'))
}

/// The first of the words in a text, in the plural and genitive as well.
fn word_in(text: &str) -> Option<&'static str> {
    let plain = text.to_ascii_lowercase();
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let is_whole = |at: usize, word: &str| {
        let behind = &plain[at + word.len()..];
        let behind = behind.strip_prefix('s').unwrap_or(behind);
        !is_letter(plain[..at].chars().next_back()) && !is_letter(behind.chars().next())
    };
    WORDS.into_iter().find(|word| plain.match_indices(word).any(|(at, _)| is_whole(at, word)))
}

/// The text without what stands between pairs of `quote`. One without a partner quotes nothing.
fn without_quotations(text: &str, quote: char) -> String {
    let parts: Vec<&str> = text.split(quote).collect();
    let has_pair = |number: usize| number.is_multiple_of(2) || number + 1 == parts.len();
    parts
        .iter()
        .enumerate()
        .filter(|(number, _)| has_pair(*number))
        .map(|(_, part)| *part)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that are found in a source, with their lines.
    fn found(source: &str) -> Vec<(usize, &'static str)> {
        pieces(source).iter().filter_map(|piece| Some((piece.line, word_of(piece)?))).collect()
    }

    #[test]
    fn words_are_found_in_comments_names_and_strings() {
        assert_eq!(found("    /// Nobody waits.\n"), [(1, "nobody")]);
        assert_eq!(found("let x = 1; // of whom\n"), [(1, "whom")]);
        assert_eq!(found("fn a() {}\nfn is_let_in() {}\n"), [(2, "let in")]);
        assert_eq!(
            found("const STRANGER_BYTES_MAX: usize = 1;\nstruct NobodyWaits;\n"),
            [(1, "stranger"), (2, "nobody")]
        );
        assert_eq!(found("fn is_still_nobodys() {}\n"), [(1, "nobody")]);
        assert_eq!(
            found("x(\"nobody listens\",\n  r#\"AUTH \"somebody\" x\"#, b\"whom\")\n"),
            [(1, "nobody"), (2, "somebody"), (2, "whom")]
        );
        assert_eq!(found("x(\"one \\\n   everybody\")\n"), [(1, "everybody")], "by where the string begins");
    }

    #[test]
    fn quotations_and_parts_of_words_are_none() {
        for text in
            ["/// `nobody` logs in", "// the error \"nobody is here\" comes", "// outlet inside", "let outlet_in = 1;"]
        {
            assert_eq!(found(text), [], "{text}");
        }
        assert_eq!(word_in_prose("it's 5\" wide for nobody"), Some("nobody"), "a lone quote quotes nothing");
        assert_eq!(found("let c = '\"'; let nothing = 'n'; let d: &'static str = \"\";\n"), []);
    }

    #[test]
    fn settings_are_looked_at_with_their_quotations() {
        let files = settings(command::root());
        for name in ["Cargo.toml", "deny.toml", "crates/respool/Cargo.toml", "xtask/Cargo.toml"] {
            assert!(files.contains(&command::root().join(name)), "{name}");
        }
        let text = "description = \"for everybody who talks RESP\"\n";
        let complaints = in_lines(Path::new("a.toml"), Path::new(""), text, |line| word_in(&line.replace('"', " ")));
        assert_eq!(complaints, ["a.toml:1: \"everybody\": name the thing, or use the field's term"]);
    }

    #[test]
    fn the_repository_does_without_them() {
        assert_eq!(check(), Vec::<String>::new());
    }
}
