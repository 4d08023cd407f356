//! What is wrong with what was said: the sentence, the place with line and caret, and what would be right.

use std::fmt;
use std::ops::Range;

use super::raw::{FileText, Origin};
use super::suggestion::nearest;
use super::table::{ROWS, Setting};

/// One thing that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it was said.
    pub origin: Origin,
    /// What is wrong, one line.
    pub message: String,
    /// What would be right, one line.
    pub hint: Option<String>,
}

/// Most faults that are collected; more are not read at once, and a file may hold very many.
pub const FAULTS_MAX: usize = 50;

/// Adds a fault to those collected, while there is room.
pub fn add(faults: &mut Vec<Fault>, fault: impl FnOnce() -> Fault) {
    if faults.len() < FAULTS_MAX {
        faults.push(fault());
    }
}

impl Fault {
    /// A fault without a hint.
    #[must_use]
    pub fn new(origin: Origin, message: String) -> Self {
        Self { origin, message, hint: None }
    }

    /// Adds what would be right.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Everything that is wrong, with the file it may point into. `Display` prints it for people.
#[derive(Debug)]
pub struct Faults {
    /// The file that was read, if one was.
    pub file: Option<FileText>,
    /// At least one fault, in the order found.
    pub faults: Vec<Fault>,
}

impl std::error::Error for Faults {}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, fault) in self.faults.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            writeln!(f, "error: {}", fault.message)?;
            match (&fault.origin, &self.file) {
                (Origin::File { span }, Some(file)) => excerpt(f, file, span)?,
                (origin, _) => origin.describe().map_or(Ok(()), |place| writeln!(f, "  --> {place}"))?,
            }
            if let Some(hint) = &fault.hint {
                writeln!(f, "   = {hint}")?;
            }
        }
        if self.faults.len() >= FAULTS_MAX {
            writeln!(f, "\nThere may be more.")?;
        }
        Ok(())
    }
}

/// Longest part of a line that is shown; longer ones are cut around the caret.
const SHOWN_CHARS_MAX: usize = 100;

fn excerpt(f: &mut fmt::Formatter<'_>, file: &FileText, span: &Range<usize>) -> fmt::Result {
    let at = Place::of(&file.text, span);
    let margin = at.line.to_string().len().max(2);
    writeln!(f, "  --> {}:{}:{}", file.name, at.line, at.column)?;
    writeln!(f, "{:margin$} |", "")?;
    writeln!(f, "{:>margin$} | {}", at.line, at.shown)?;
    writeln!(f, "{:margin$} | {:indent$}{}", "", "", "^".repeat(at.carets), indent = at.indent)
}

/// Where a span of bytes is, for a reader.
struct Place {
    line: usize,
    column: usize,
    shown: String,
    indent: usize,
    carets: usize,
}

impl Place {
    fn of(text: &str, span: &Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let end = text.floor_char_boundary(span.end.clamp(start, line_end));
        let before = text[line_start..start].chars().count();
        let marked = text[start..end].chars().count().max(1);
        let skipped = before.saturating_sub(SHOWN_CHARS_MAX / 2);
        // One character in, one out, so that the caret stands under what it means.
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let line = without_secret(&text[line_start..line_end], &text[..line_start]);
        let shown: String = line.chars().skip(skipped).take(SHOWN_CHARS_MAX).map(plain).collect();
        Self {
            line: text[..line_start].matches('\n').count() + 1,
            column: before + 1,
            indent: before - skipped,
            carets: marked.min(SHOWN_CHARS_MAX - (before - skipped)),
            shown: shown.trim_end().to_owned(),
        }
    }
}

/// The line, with the value hidden if its key is a secret's or anything like it, also where the value began further up.
fn without_secret(line: &str, before: &str) -> String {
    // Rules of users hold passwords, also where several keys or rules stand in one line.
    if line.contains(['>', '<']) || line.contains("rules") {
        return "(hidden)".to_owned();
    }
    match line.find('=') {
        Some(equals) if is_secret(&line[..equals]) => format!("{} (hidden)", &line[..=equals]),
        Some(_) => line.to_owned(),
        None => {
            let key = before.lines().rev().find_map(|line| line.split_once('=')).map(|(key, _)| key);
            if key.is_some_and(is_secret) { "(hidden)".to_owned() } else { line.to_owned() }
        }
    }
}

fn is_secret(key: &str) -> bool {
    let nearest = nearest(key.trim(), ROWS.iter().map(|row| row.name)).and_then(Setting::named);
    key.to_ascii_lowercase().contains("pas") || nearest.is_some_and(|near| near.row().is_secret())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_a_password_does_not_show_it() {
        for line in [
            "node_pasword = \"canary\"",
            "node_password = \"canary",
            "Node_Passwort=canary",
            "node_password = \"\"\"\ncanary",
        ] {
            let at = line.find("canary").unwrap();
            assert!(!printed(line, at..at + 1).contains("canary"), "{line}");
            assert!(!printed(line, 0..1).contains("canary"), "{line}");
        }
        assert!(printed("node_password = 1", 0..1).contains("node_password = (hidden)"));
        assert!(printed("nodes = [\n  \"a:1\"", 12..13).contains("a:1"));
    }

    fn printed(text: &str, span: Range<usize>) -> String {
        let file = FileText { name: "r.toml".to_owned(), text: text.to_owned() };
        let fault = Fault::new(Origin::File { span }, "it is wrong".to_owned()).hint("right it");
        Faults { file: Some(file), faults: vec![fault] }.to_string()
    }

    #[test]
    fn the_caret_stands_under_what_is_wrong() {
        let text = "a = 1\nbé = \"x\"\n";
        let at = text.find('"').unwrap();
        assert_eq!(
            printed(text, at..at + 3),
            "error: it is wrong\n  --> r.toml:2:6\n   |\n 2 | bé = \"x\"\n   |      ^^^\n   = right it\n"
        );
    }

    #[test]
    fn any_span_of_any_text_can_be_shown() {
        let long = "x".repeat(5000);
        for text in ["", "\n", "a\r\nb", "\u{7}é", long.as_str()] {
            for start in 0..text.len() + 2 {
                for end in [start, start + 1, text.len() + 9] {
                    let shown = printed(text, start..end);
                    assert!(shown.lines().all(|line| line.chars().count() < 120), "{shown}");
                }
            }
        }
    }
}
