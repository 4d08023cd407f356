//! A property of the loop, tried with real sockets: whatever a machine leaves unread and reads again later, whatever a write leaves over, is tried
//! again before the kernel says so, and however little one turn may read, every byte comes through, and then the end.

use super::Worker;
use crate::limits::CLIENT_BYTES_PER_TURN;
use crate::testing::alone_with;
use crate::{TransportOptions, bind, mailbox};
use respool_connection::{Action, ConnId, DialFailure, Endpoint, Machine, Now, Peer, Service, ServiceAction};
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Each peer sends so many bytes, several turns' worth, and gets them back.
const BYTES: usize = 24 * CLIENT_BYTES_PER_TURN;
const CLIENTS: u32 = 10;
const NODES: u32 = 3;
/// A byte that does not come within this time never does.
const PATIENCE: Duration = Duration::from_secs(30);

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[derive(Default)]
struct Conn {
    /// What it is owed.
    output: VecDeque<u8>,
    is_blocked: bool,
    /// It is not read until then.
    paused_until_us: Option<u64>,
    has_ended: bool,
}

/// Gives back what it is sent, and reads each connection only now and then.
struct Echo {
    conns: BTreeMap<u32, Conn>,
    listed: Vec<ConnId>,
    actions: VecDeque<Action<ServiceAction<()>>>,
    buffer: Vec<u8>,
    chance: Chance,
    now_us: u64,
    accepted: u32,
    closed: u32,
}

impl Echo {
    fn close_if_done(&mut self, conn: ConnId) {
        if self.conns.get(&conn.to_bits()).is_some_and(|this| this.has_ended && this.output.is_empty()) {
            self.conns.remove(&conn.to_bits());
            self.actions.push_back(Action::Close { conn });
            self.closed += 1;
            if self.closed == CLIENTS + NODES {
                self.actions.push_back(Action::Service(ServiceAction::Exit));
            }
        }
    }
}

impl Machine for Echo {
    type ServiceAction = ServiceAction<()>;

    fn begin_turn(&mut self, now: Now) {
        self.now_us = now.mono_us;
    }

    fn read_buffer(&mut self, conn: ConnId) -> Option<&mut [u8]> {
        self.conns.get(&conn.to_bits()).filter(|this| this.paused_until_us.is_none())?;
        let room = 1 + self.chance.below(self.buffer.len());
        Some(&mut self.buffer[..room])
    }

    fn handle_read(&mut self, conn: ConnId, bytes: usize) {
        let this = self.conns.get_mut(&conn.to_bits()).expect("it is read");
        this.output.extend(&self.buffer[..bytes]);
        self.listed.push(conn);
        if self.chance.below(3) == 0 {
            this.paused_until_us = Some(self.now_us + self.chance.below(2_000) as u64);
        }
    }

    fn handle_ended(&mut self, conn: ConnId) {
        if let Some(this) = self.conns.get_mut(&conn.to_bits()) {
            this.has_ended = true;
        }
        self.close_if_done(conn);
    }

    fn handle_broken(&mut self, conn: ConnId, error: &str) {
        panic!("{conn:?} broke: {error}");
    }

    fn handle_connected(&mut self, conn: ConnId) {
        self.conns.insert(conn.to_bits(), Conn::default());
    }

    fn handle_dial_failed(&mut self, conn: ConnId, failure: DialFailure) {
        panic!("{conn:?} could not be dialled: {failure:?}");
    }

    fn end_turn(&mut self) {
        for (conn, this) in &mut self.conns {
            if this.is_blocked && self.chance.below(4) == 0 {
                self.actions.push_back(Action::TryWrite { conn: ConnId::from_bits(*conn) });
            }
            if this.paused_until_us.is_some_and(|until_us| until_us <= self.now_us) {
                this.paused_until_us = None;
                self.actions.push_back(Action::Resume { conn: ConnId::from_bits(*conn) });
            }
        }
    }

    fn poll_action(&mut self) -> Option<Action<ServiceAction<()>>> {
        self.actions.pop_front()
    }

    fn poll_output(&mut self) -> Option<ConnId> {
        while let Some(conn) = self.listed.pop() {
            if let Some(this) = self.conns.get_mut(&conn.to_bits())
                && !this.is_blocked
                && !this.output.is_empty()
            {
                this.output.make_contiguous();
                return Some(conn);
            }
        }
        None
    }

    fn output(&self, conn: ConnId) -> &[u8] {
        self.conns.get(&conn.to_bits()).map_or(&[], |this| this.output.as_slices().0)
    }

    fn handle_written(&mut self, conn: ConnId, bytes: usize) {
        let Some(this) = self.conns.get_mut(&conn.to_bits()) else { return };
        this.output.drain(..bytes);
        this.is_blocked = !this.output.is_empty();
        self.close_if_done(conn);
    }

    fn handle_writable(&mut self, conn: ConnId) {
        if let Some(this) = self.conns.get_mut(&conn.to_bits()) {
            this.is_blocked = false;
            self.listed.push(conn);
        }
    }

    fn next_wakeup_us(&self) -> Option<u64> {
        self.conns.values().filter_map(|this| this.paused_until_us).min()
    }
}

impl Service for Echo {
    type Mail = ();

    fn handle_accept(&mut self, _: Peer) -> Result<ConnId, Vec<u8>> {
        let conn = ConnId::client(self.accepted);
        self.accepted += 1;
        self.conns.insert(conn.to_bits(), Conn::default());
        Ok(conn)
    }

    fn handle_mail(&mut self, (): ()) {}
}

/// The other end: sends and reads at once, each as it likes.
trait Stream: Read + Write + Send + Sized + 'static {
    fn twin(&self) -> Self;
    fn end(&self);
    fn be_patient(&self);
}

impl Stream for UnixStream {
    fn twin(&self) -> Self {
        self.try_clone().expect("there is a descriptor")
    }
    fn end(&self) {
        self.shutdown(Shutdown::Write).expect("it is connected");
    }
    fn be_patient(&self) {
        self.set_read_timeout(Some(PATIENCE)).and_then(|()| self.set_write_timeout(Some(PATIENCE))).expect("a timeout");
    }
}

impl Stream for TcpStream {
    fn twin(&self) -> Self {
        self.try_clone().expect("there is a descriptor")
    }
    fn end(&self) {
        self.shutdown(Shutdown::Write).expect("it is connected");
    }
    fn be_patient(&self) {
        self.set_read_timeout(Some(PATIENCE)).and_then(|()| self.set_write_timeout(Some(PATIENCE))).expect("a timeout");
    }
}

/// The byte at a place of what a peer sends.
fn byte(name: u32, at: usize) -> u8 {
    (at / 7 + at * 13) as u8 ^ name as u8
}

fn talk(mut stream: impl Stream, name: u32, seed: u64) {
    stream.be_patient();
    let mut writer = stream.twin();
    let mut chance = Chance(seed ^ (u64::from(name) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let sender = thread::spawn(move || {
        let sent: Vec<u8> = (0..BYTES).map(|at| byte(name, at)).collect();
        let mut rest = sent.as_slice();
        while !rest.is_empty() {
            let most = [10, 3_000, 100_000][chance.below(3)];
            let (now, later) = rest.split_at(rest.len().min(1 + chance.below(most)));
            writer.write_all(now).unwrap_or_else(|error| panic!("peer {name} cannot send on: {error}"));
            rest = later;
            if chance.below(40) == 0 {
                thread::sleep(Duration::from_micros(chance.below(3_000) as u64));
            }
        }
        writer.end();
    });
    let (mut at, mut buffer) = (0, vec![0; 20_000]);
    let mut chance = Chance(seed.rotate_left(name) | 1);
    loop {
        let most = 1 + chance.below(buffer.len());
        let bytes = stream.read(&mut buffer[..most]);
        let bytes =
            bytes.unwrap_or_else(|error| panic!("peer {name} has {at} of {BYTES} bytes and no more come: {error}"));
        if bytes == 0 {
            break;
        }
        let is_right = buffer[..bytes].iter().enumerate().all(|(offset, got)| *got == byte(name, at + offset));
        assert!(is_right, "peer {name}, around byte {at}");
        at += bytes;
        if chance.below(60) == 0 {
            thread::sleep(Duration::from_micros(chance.below(3_000) as u64));
        }
    }
    assert_eq!(at, BYTES, "peer {name}");
    sender.join().expect("it sends all");
}

#[test]
fn every_byte_comes_through_whatever_is_left_unread_meanwhile() {
    for seed in 1..=3_u64 {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let unix = Endpoint::Unix { path: path("s") };
        let tcp = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 0 };
        let listeners: Vec<_> = [&unix, &tcp]
            .into_iter()
            .flat_map(|endpoint| bind(endpoint, 1, 64, 0o600, &TransportOptions::default()).unwrap().remove(0))
            .collect();
        let address = listeners[1].address().to_owned();
        let node = UnixListener::bind(path("n")).unwrap();
        let endpoint = Arc::new(Endpoint::Unix { path: path("n") });
        let dial = |number| Action::Dial { conn: ConnId::upstream(number), endpoint: Arc::clone(&endpoint) };
        let machine = Echo {
            conns: BTreeMap::new(),
            listed: Vec::new(),
            actions: (0..NODES).map(dial).collect(),
            buffer: vec![0; CLIENT_BYTES_PER_TURN],
            chance: Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            now_us: 0,
            accepted: 0,
            closed: 0,
        };
        let setup = alone_with(machine, mailbox(), listeners);
        let worker = thread::spawn(|| Worker::new(setup).unwrap().run().unwrap());
        let mut peers: Vec<_> = (0..NODES)
            .map(|name| {
                let (stream, _) = node.accept().unwrap();
                thread::spawn(move || talk(stream, name, seed))
            })
            .collect();
        for name in 0..CLIENTS {
            let (path, address) = (path("s"), address.clone());
            peers.push(thread::spawn(move || match name % 2 {
                0 => talk(UnixStream::connect(path).unwrap(), NODES + name, seed),
                _ => talk(TcpStream::connect(address).unwrap(), NODES + name, seed),
            }));
        }
        peers.into_iter().for_each(|peer| peer.join().expect("it got all"));
        worker.join().unwrap();
    }
}
