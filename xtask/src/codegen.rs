//! `cargo xtask codegen`: files that follow from the sources, committed so that they can be read without building.

use std::{fs, io};

use clap::Args;

use crate::{Outcome, command};

/// Write the generated files anew
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a file is not what would be written
    #[arg(long)]
    pub(crate) check: bool,
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
    for Generated { name, content } in FILES {
        let path = command::root().join(name);
        let content = content()?;
        if fs::read_to_string(&path).ok().as_ref() == Some(&content) {
            continue;
        }
        stale.push(*name);
        if !options.check {
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::write(&path, content)?;
        }
    }
    match (stale.is_empty(), options.check) {
        (true, _) => Ok(format!("{} files are up to date", FILES.len())),
        (false, false) => Ok(format!("wrote {}", stale.join(", "))),
        (false, true) => Err(format!("{} stale: run `cargo xtask codegen`", stale.join(", ")).into()),
    }
}

/// The program is asked, so that this one does not have to be built with all of it inside.
fn settings_page(format: &str) -> io::Result<String> {
    let words = ["run", "--quiet", "--locked", "--package", "respool", "--", "settings", "--format", format];
    command::capture(command::cargo().args(words))
}
