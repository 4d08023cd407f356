//! The `respool` program; see ARCHITECTURE.md and [`respool::cli`].
#![forbid(unsafe_code)]

#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
mod allocator;

fn main() -> std::process::ExitCode {
    #[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
    allocator::set_up();
    respool::cli::main()
}
