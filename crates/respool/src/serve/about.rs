//! What INFO tells of the process: facts that a pure crate cannot find out.

use std::path::PathBuf;
use std::sync::Arc;

use respool_proxy::ProcessFacts;

use crate::settings::Process;

/// The facts, of a server that has read that file. `chance` names this run.
pub(super) fn process(process: &Process, chance: [u64; 3], file: Option<&PathBuf>) -> ProcessFacts {
    let tcp_port =
        process.instances.iter().flat_map(|instance| &instance.net.listen).find_map(|spec| spec.address.port());
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    ProcessFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        process_id: std::process::id(),
        os: format!("{} {} {}", std::env::consts::OS, release.trim(), std::env::consts::ARCH),
        tcp_port: Arc::new(tcp_port.unwrap_or(0).into()),
        run_id: format!("{:016x}{:016x}{:08x}", chance[0], chance[1], chance[2] as u32),
        config_file: file.map(|file| file.display().to_string()).unwrap_or_default(),
        executable: std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default(),
        pools: process.instances.len(),
    }
}
