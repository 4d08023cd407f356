//! The folders of the proxy: few files and lines in each, so that a reader can know one folder at a time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::text::{lines_of_code, rust_files};
use crate::command;

/// Files in one folder, those of its subfolders not counted.
const FILES_MAX: usize = 13;
/// Lines in them, unit tests not counted.
const LINES_MAX: usize = 4_000;

const SOURCES: &str = "crates/proxy/src";

pub(super) fn check() -> Vec<String> {
    let directory = command::root().join(SOURCES);
    let files = rust_files(&directory).into_iter().map(|file| {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let lines = lines_of_code(&text).count();
        let folder = file.parent().unwrap_or(Path::new("")).strip_prefix(command::root());
        (folder.unwrap_or(Path::new("")).to_string_lossy().into_owned(), lines)
    });
    complaints_about(files)
}

/// `files`: the folder and the lines of each.
fn complaints_about(files: impl Iterator<Item = (String, usize)>) -> Vec<String> {
    let mut folders: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (folder, lines) in files {
        let (count, sum) = folders.entry(folder).or_default();
        *count += 1;
        *sum += lines;
    }
    let mut complaints = Vec::new();
    for (folder, (count, lines)) in folders {
        if count > FILES_MAX {
            complaints.push(format!("{folder} has {count} files, more than {FILES_MAX}: divide it by feature"));
        }
        if lines > LINES_MAX {
            complaints.push(format!("{folder} has {lines} lines, more than {LINES_MAX}: divide it by feature"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_small() {
        assert_eq!(check(), Vec::<String>::new());
    }

    #[test]
    fn a_wide_folder_is_found() {
        let files = |count: usize, lines: usize| (0..count).map(move |_| ("proxy".to_owned(), lines));
        assert_eq!(complaints_about(files(FILES_MAX, 1)), Vec::<String>::new());
        assert_eq!(complaints_about(files(FILES_MAX + 1, 1)).len(), 1);
        assert_eq!(complaints_about(files(2, LINES_MAX)).len(), 1);
        let apart = (0..FILES_MAX * 2).map(|number| (format!("proxy/{}", number % 2), 1));
        assert_eq!(complaints_about(apart), Vec::<String>::new());
    }
}
