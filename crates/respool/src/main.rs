//! The `respool` program; see ARCHITECTURE.md and [`respool::cli`].
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    respool::cli::main()
}
