//! The `respool` program; see ARCHITECTURE.md and [`respool::cli`].
#![forbid(unsafe_code)]

#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    #[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
    respool::allocator::set_up();
    respool::cli::main()
}
