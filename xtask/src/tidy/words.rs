//! Words that comments and pages do without: pronouns for persons where a client, a caller, a peer or an operator is meant, and
//! everyday words for terms of the field.
//!
//! Text in backticks or double quotes may have them, and so may code: user names in tests, and names of tests in pages.

use std::fs;
use std::path::{Path, PathBuf};

use super::text::rust_files;
use crate::command;

const WORDS: [&str; 10] =
    ["whoever", "nobody", "somebody", "anybody", "everybody", "whom", "stranger", "strangers", "let in", "brought up"];

/// Where Rust sources are.
const DIRECTORIES: [&str; 3] = ["crates", "xtask", "fuzz"];
/// Where pages are. The change log says what was said then.
const PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "SECURITY.md", "docs"];

pub(super) fn check() -> Vec<String> {
    let root = command::root();
    let mut complaints = Vec::new();
    for file in DIRECTORIES.iter().flat_map(|directory| rust_files(&root.join(directory))) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let comments = text.lines().map(comment_of);
        complaints.extend(complaints_about(&file, root, comments));
    }
    for page in PAGES.iter().flat_map(|page| pages(&root.join(page))) {
        let text = fs::read_to_string(&page).unwrap_or_default();
        complaints.extend(complaints_about(&page, root, text.lines()));
    }
    complaints
}

fn complaints_about<'a>(file: &Path, root: &Path, lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
    let found = lines.enumerate().filter_map(|(number, line)| {
        let word = word_in(line)?;
        Some(format!("{name}:{}: \"{word}\": name the thing, or use the field's term", number + 1))
    });
    found.collect()
}

fn pages(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.to_owned()] };
    let mut pages: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

/// The comment of a line of code. A URL is none.
fn comment_of(line: &str) -> &str {
    let starts = line.match_indices("//").map(|(at, _)| at);
    let begins = |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    starts.into_iter().find(begins).map_or("", |at| &line[at..])
}

/// The first of the words in a text, quotations left out.
fn word_in(text: &str) -> Option<&'static str> {
    let plain = without_quotations(&without_quotations(text, '`'), '"').to_ascii_lowercase();
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let is_whole = |at: usize, word: &str| {
        !is_letter(plain[..at].chars().next_back()) && !is_letter(plain[at + word.len()..].chars().next())
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

    #[test]
    fn words_are_found_in_comments_alone() {
        let line = |code: &str, comment: &str| format!("{code} /{comment}");
        assert_eq!(word_in(comment_of(&line("    ", "/ Nobody waits."))), Some("nobody"));
        assert_eq!(word_in(comment_of(&line("let nobody = 1;", "/ of whom"))), Some("whom"));
        assert_eq!(word_in(comment_of("let nobody = \"redis://nobody\";")), None);
        assert_eq!(word_in("clients that are let in"), Some("let in"));
    }

    #[test]
    fn quotations_and_parts_of_words_are_none() {
        for text in
            ["`nobody` logs in", "the error \"nobody is here\" comes", "outlet inside", "a_test_of_nobody_at_all"]
        {
            assert_eq!(word_in(text), None, "{text}");
        }
        assert_eq!(word_in("it's 5\" wide for nobody"), Some("nobody"), "a lone quote quotes nothing");
    }

    #[test]
    fn comments_and_pages_do_without_them() {
        assert_eq!(check(), Vec::<String>::new());
    }
}
