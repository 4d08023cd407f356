//! The pages for people: their links lead somewhere, and the sources that they name are there.

use std::fs;
use std::path::{Path, PathBuf};

use super::text::rust_files;
use crate::command;

pub(super) fn check() -> Vec<String> {
    let root = command::root();
    pages(root).iter().flat_map(|page| complaints_about(page, root)).collect()
}

/// All pages: those of the root and below `docs`.
fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = [root.to_owned(), root.join("docs")]
        .iter()
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

fn complaints_about(page: &Path, root: &Path) -> Vec<String> {
    let name = page.strip_prefix(root).unwrap_or(page).display();
    let text = match fs::read_to_string(page) {
        Ok(text) => text,
        Err(error) => return vec![format!("{name}: {error}")],
    };
    let mut complaints = Vec::new();
    for (number, line) in prose(&text) {
        let links = links(line).into_iter().filter_map(|link| Some((link, why_dead(link, page, root)?)));
        let sources =
            sources(line).into_iter().filter(|path| !is_source(path, root)).map(|path| (path, "no such file"));
        complaints.extend(links.chain(sources).map(|(what, why)| format!("{name}:{number}: {what}: {why}")));
    }
    complaints
}

/// Numbered lines outside of fenced blocks.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_fenced = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            lines.push((number + 1, line));
        }
    }
    lines
}

/// Targets of `[text](target)` that are not addresses of other places.
fn links(line: &str) -> Vec<&str> {
    let targets = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// Why a link leads nowhere, if it does.
fn why_dead(link: &str, page: &Path, root: &Path) -> Option<&'static str> {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = match path {
        "" => page.to_owned(),
        // What begins with a slash means the root of a site, which is not known here.
        _ if path.starts_with('/') => return Some("not relative"),
        _ => page.parent().unwrap_or(root).join(path),
    };
    if !target.exists() {
        return Some("no such file");
    }
    let text = fs::read_to_string(target).unwrap_or_default();
    let is_there = anchor.is_none_or(|anchor| anchors(&text).iter().any(|known| known == anchor));
    (!is_there).then_some("no such heading")
}

/// What headings are linked by: their words in small letters, with hyphens for spaces and without other signs.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let is_kept = |sign: &char| sign.is_alphanumeric() || "-_ ".contains(*sign);
        let anchor: String = heading.trim().to_lowercase().chars().filter(is_kept).collect();
        let anchor = anchor.replace(' ', "-");
        // A heading that was there before gets a number.
        let is_number =
            |rest: &str| rest.strip_prefix('-').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let is_repetition = |known: &&String| {
            known.strip_prefix(anchor.as_str()).is_some_and(|rest| rest.is_empty() || is_number(rest))
        };
        match anchors.iter().filter(is_repetition).count() {
            0 => anchors.push(anchor),
            count => anchors.push(format!("{anchor}-{count}")),
        }
    }
    anchors
}

/// Paths of Rust sources between backticks.
fn sources(line: &str) -> Vec<&str> {
    let spans = line.split('`').skip(1).step_by(2);
    spans.filter(|span| span.ends_with(".rs") && !span.contains(['<', '*', ' '])).collect()
}

/// Whether a path is one from the root, within `crates` or within the binary's crate; a name alone may be anywhere.
fn is_source(path: &str, root: &Path) -> bool {
    if path.contains('/') {
        return ["", "crates", "crates/respool"].iter().any(|base| root.join(base).join(path).is_file());
    }
    let mut files = ["crates", "xtask", "fuzz"].iter().flat_map(|directory| rust_files(&root.join(directory)));
    files.any(|file| file.file_name().is_some_and(|name| name == path))
}

#[cfg(test)]
mod tests {
    use respool_testkit::TempDir;

    use super::*;

    #[test]
    fn links_lead_somewhere() {
        assert_eq!(check(), Vec::<String>::new());
    }

    #[test]
    fn dead_links_are_found() {
        let directory = TempDir::new().unwrap();
        let root = directory.path();
        for (path, text) in [
            ("docs/two.md", "# A *head*, with `code`: 2\n\n## Again\n\n## Again\n\n## A\n\n```sh\n# no heading\n```\n"),
            ("crates/wire/src/reply.rs", ""),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let page = root.join("docs/one.md");
        let complaints = |text: &str| {
            fs::write(&page, text).unwrap();
            complaints_about(&page, root)
        };
        for good in [
            "see [two](two.md), [there](../docs/two.md#a-head-with-code-2) or [again](two.md#again-1)",
            "[short](two.md#a)",
            "# One\n[here](#one), [elsewhere](https://example.com/nothing#at-all)",
            "```\n[no link](nothing.md)\n```",
            "`wire/src/reply.rs`, `crates/wire/src/reply.rs`, `reply.rs` and `command/src/<group>.rs`",
        ] {
            assert_eq!(complaints(good), Vec::<String>::new(), "{good}");
        }
        for (bad, why) in [
            ("[two](three.md)", "docs/one.md:1: three.md: no such file"),
            ("\n[two](two.md#nothing)", "docs/one.md:2: two.md#nothing: no such heading"),
            ("[two](two.md#no-heading)", "docs/one.md:1: two.md#no-heading: no such heading"),
            ("[two](/docs/two.md)", "docs/one.md:1: /docs/two.md: not relative"),
            ("[one](two.md) and [two](#two)", "docs/one.md:1: #two: no such heading"),
            ("it is in `wire/src/request.rs`", "docs/one.md:1: wire/src/request.rs: no such file"),
            ("it is in `request.rs`", "docs/one.md:1: request.rs: no such file"),
        ] {
            assert_eq!(complaints(bad), [why], "{bad}");
        }
    }
}
