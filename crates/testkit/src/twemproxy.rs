//! twemproxy (Debian's `nutcracker`) as a child, for comparisons.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::{Address, PATIENCE, Process, TempDir, Transport, free_port, wait_until};

/// A twemproxy with one pool in front of the given servers: ketama, one connection per server, its defaults otherwise.
#[derive(Debug)]
pub struct Nutcracker {
    process: Process,
    address: Address,
    _directory: TempDir,
}

impl Nutcracker {
    /// Starts one that listens on a socket of the given kind.
    pub fn start(transport: Transport, nodes: &[Address]) -> io::Result<Nutcracker> {
        let directory = TempDir::new()?;
        let address = match transport {
            Transport::Tcp => Address::loopback(free_port()?),
            Transport::Unix => Address::Unix(directory.join("nutcracker.sock")),
        };
        let configuration = directory.join("nutcracker.yml");
        std::fs::write(&configuration, pool(&address, nodes))?;
        // Debian keeps it where not every user looks.
        let system = Path::new("/usr/sbin/nutcracker");
        let mut command = Command::new(if system.is_file() { system } else { Path::new("nutcracker") });
        command
            .arg("--conf-file")
            .arg(&configuration)
            .arg("--output")
            .arg(directory.join("nutcracker.log"))
            .arg("--pid-file")
            .arg(directory.join("nutcracker.pid"))
            .args(["--stats-addr", "127.0.0.1", "--stats-port", &free_port()?.to_string()]);
        let mut process = Process::spawn("nutcracker", &mut command)?;
        wait_until("nutcracker accepts connections", PATIENCE, || match process.try_wait()? {
            Some(status) => Err(io::Error::other(format!("nutcracker ended: {status}: {:?}", process.output()))),
            None => Ok(address.connect().is_ok()),
        })?;
        Ok(Nutcracker { process, address, _directory: directory })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The process itself.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

fn pool(address: &Address, nodes: &[Address]) -> String {
    let plain = |address: &Address| match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(path) => path.display().to_string(),
    };
    let mut text = format!(
        "pool:\n  listen: {}\n  redis: true\n  hash: fnv1a_64\n  distribution: ketama\n  preconnect: true\n  \
         auto_eject_hosts: false\n  backlog: 1024\n  servers:\n",
        plain(address)
    );
    for (number, node) in nodes.iter().enumerate() {
        text.push_str(&format!("    - {}:1 node{number}\n", plain(node)));
    }
    text
}
