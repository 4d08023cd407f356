//! `cargo xtask codegen`: files that follow from the sources, committed so that they can be read without building.

mod client;

use std::{fs, io};

use clap::Args;

use crate::{Outcome, command};

/// Write the generated files anew
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a file is not what would be written
    #[arg(long)]
    pub(crate) check: bool,
    /// Only files whose names contain this
    #[arg(long, default_value = "")]
    pub(crate) only: String,
}

/// A generated file.
struct Generated {
    /// Its place in the repository.
    name: &'static str,
    content: fn() -> io::Result<String>,
}

const FILES: &[Generated] = &[
    Generated { name: "docs/commands.md", content: || Ok(respool_command::docs_markdown()) },
    Generated { name: "docs/settings.md", content: || settings_page("markdown") },
    Generated { name: "docs/redis-conf.md", content: || settings_page("redis-conf") },
];

pub(crate) fn run(options: &Options) -> Outcome {
    let mut stale = Vec::new();
    let mut files = client::files()?;
    files.retain(|(name, _)| name.contains(&options.only));
    for Generated { name, content } in FILES.iter().filter(|file| file.name.contains(&options.only)) {
        files.push(((*name).to_owned(), content()?));
    }
    let count = files.len();
    for (name, content) in files {
        let path = command::root().join(&name);
        if fs::read_to_string(&path).ok().as_ref() == Some(&content) {
            continue;
        }
        stale.push(name);
        if !options.check {
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::write(&path, content)?;
        }
    }
    match (stale.is_empty(), options.check) {
        (true, _) => Ok(format!("{count} files are up to date")),
        (false, false) => Ok(format!("wrote {}", stale.join(", "))),
        (false, true) => Err(format!("{} stale: run `cargo xtask codegen`", stale.join(", ")).into()),
    }
}

/// The program is asked, so that this one does not have to be built with all of it inside.
fn settings_page(format: &str) -> io::Result<String> {
    let words = ["run", "--quiet", "--locked", "--package", "respool", "--", "settings", "--format", format];
    command::capture(command::cargo().args(words))
}
