//! What the pages for users show is what the program understands.

use std::fs;
use std::path::{Path, PathBuf};

use respool::settings::{RawSettings, file, resolve};

/// README and everything under `docs`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).expect("the pages are there");
    let pages = docs.map(|entry| entry.expect("it can be read").path());
    pages.chain([root.join("README.md")]).filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

/// The blocks of a page that are in this language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn settings_files_on_pages_are_settings_files() {
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("it can be read");
        for block in blocks(&text, "toml") {
            let mut said = RawSettings::default();
            let faults = file::hear(&mut said, &page.display().to_string(), block.to_owned());
            assert_eq!(faults, [], "{}\n{block}", page.display());
            // Files with secrets are elsewhere.
            let understood = resolve(&said, &|_| Ok("secret\n".to_owned()));
            if let Err(faults) = understood {
                panic!("{faults}");
            }
            count += 1;
        }
    }
    assert!(count >= 5, "only {count} are found");
}
