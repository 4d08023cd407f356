//! `cargo xtask codegen`: files that follow from the sources, committed so that they can be read without building.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use crate::{Outcome, command};

/// A generated file.
struct Generated {
    /// Its place in the repository.
    name: &'static str,
    content: fn() -> String,
}

const FILES: &[Generated] = &[Generated { name: "docs/commands.md", content: respool_command::docs_markdown }];

/// Write the generated files anew
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a file is not what would be written
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    if options.check {
        let stale = stale();
        return if stale.is_empty() { Ok(summary("up to date")) } else { Err(stale.join("; ").into()) };
    }
    for Generated { name, content } in FILES {
        let path = path(name);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&path, content())?;
        println!("wrote {name}");
    }
    Ok(summary("written"))
}

/// Complaints about files that are not what would be written now.
pub(crate) fn stale() -> Vec<String> {
    let is_stale = |file: &&Generated| fs::read_to_string(path(file.name)).ok() != Some((file.content)());
    let files = FILES.iter().filter(is_stale);
    files.map(|file| format!("{} is stale: run `cargo xtask codegen`", file.name)).collect()
}

fn summary(how: &str) -> String {
    format!("{} files {how}", FILES.len())
}

fn path(name: &str) -> PathBuf {
    command::root().join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_up_to_date() {
        assert_eq!(stale(), Vec::<String>::new());
    }
}
