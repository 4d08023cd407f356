//! What the kernel knows of a TCP connection, asked over netlink.
//!
//! `getsockopt(TCP_INFO)` tells the same and has no safe wrapper that is kept well: rustix, socket2 and nix do not have it,
//! and nix's macro for options of one's own is unsafe code in the crate that uses it. This crate reads what the network
//! sends, so it keeps `forbid(unsafe_code)`. Once one of them has the option, it takes the place of this file.
//!
//! One question names one connection by its addresses, and the answer is there when the question has been sent. See
//! sock_diag(7) and `linux/inet_diag.h`, `linux/tcp.h`.

use crate::limits::DIAG_ANSWERS_MAX;
use crate::peer_liveness::{Asks, Signs};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
/// The length of `inet_diag_msg`, behind the header.
const ANSWER_BYTES: usize = 72;
/// Far more than an answer has; what is longer is cut, and read as far as it goes.
const BUFFER_BYTES: usize = 2048;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const INET_DIAG_INFO: u16 = 2;

/// A socket to ask by.
#[derive(Debug)]
pub(super) struct Diag {
    socket: OwnedFd,
    sequence: u32,
    buffer: Box<[u8; BUFFER_BYTES]>,
}

impl Diag {
    pub(super) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG))?;
        Ok(Self { socket, sequence: 0, buffer: Box::new([0; BUFFER_BYTES]) })
    }

    /// How often it was asked.
    #[cfg(test)]
    pub(super) fn asked(&self) -> u32 {
        self.sequence
    }

    /// What is known of the connection between two addresses.
    pub(super) fn ask(&mut self, local: SocketAddr, peer: SocketAddr) -> io::Result<Signs> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.socket, &request(self.sequence, local, peer), SendFlags::empty())?;
        // An answer to an earlier question that was given up may come first.
        for _ in 0..DIAG_ANSWERS_MAX {
            let (length, _) = recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            let answer = self.buffer.get(..length).unwrap_or_default();
            if read_u32(answer, 8) == Some(self.sequence) {
                return read_answer(answer);
            }
        }
        Err(Errno::NOMSG.into())
    }
}

fn request(sequence: u32, local: SocketAddr, peer: SocketAddr) -> [u8; REQUEST_BYTES] {
    let mut request = [0; REQUEST_BYTES];
    let mut put = |at: usize, bytes: &[u8]| request[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &(REQUEST_BYTES as u32).to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &NLM_F_REQUEST.to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    put(16, &[if local.is_ipv4() { AF_INET } else { AF_INET6 }, IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0]);
    // In whatever state it is.
    put(20, &u32::MAX.to_ne_bytes());
    put(24, &local.port().to_be_bytes());
    put(26, &peer.port().to_be_bytes());
    for (at, address) in [(28, local.ip()), (44, peer.ip())] {
        match address {
            IpAddr::V4(ip) => put(at, &ip.octets()),
            IpAddr::V6(ip) => put(at, &ip.octets()),
        }
    }
    if let SocketAddr::V6(peer) = peer {
        put(60, &peer.scope_id().to_ne_bytes());
    }
    // No cookie: the addresses say enough.
    put(64, &[0xff; 8]);
    request
}

fn read_answer(answer: &[u8]) -> io::Result<Signs> {
    let malformed = || io::Error::from(Errno::BADMSG);
    match read_u16(answer, 4) {
        Some(SOCK_DIAG_BY_FAMILY) => {}
        Some(NLMSG_ERROR) => {
            let errno = read_u32(answer, HEADER_BYTES).ok_or_else(malformed)? as i32;
            return Err(io::Error::from_raw_os_error(errno.wrapping_neg()));
        }
        _ => return Err(malformed()),
    }
    let unacknowledged = read_u32(answer, HEADER_BYTES + 60).ok_or_else(malformed)?;
    let mut attributes = answer.get(HEADER_BYTES + ANSWER_BYTES..).ok_or_else(malformed)?;
    while let (Some(length), Some(kind)) = (read_u16(attributes, 0), read_u16(attributes, 2)) {
        let length = usize::from(length);
        if kind == INET_DIAG_INFO {
            let info = attributes.get(4..length).ok_or_else(malformed)?;
            return read_info(info, unacknowledged).ok_or_else(malformed);
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..).unwrap_or_default();
    }
    Err(malformed())
}

/// Reads `struct tcp_info`.
fn read_info(info: &[u8], unacknowledged: u32) -> Option<Signs> {
    // Timeouts without any progress; probes of a closed window, and keepalives, without an answer.
    let (retransmits, probes) = (*info.get(2)?, *info.get(3)?);
    let segments_out = read_u32(info, 24)?;
    // Of data alone; a repetition is data.
    let since_sent_ms = read_u32(info, 44)?;
    let since_heard_ms = read_u32(info, 56)?;
    let segment_bytes = read_u32(info, 16)?;
    // The peer's window, if the kernel is new enough (5.4) to tell it.
    let window = read_u32(info, 228);
    let has_room = window.is_some_and(|window| window >= unacknowledged.min(segment_bytes));
    let has_sent = segments_out > 0 && since_sent_ms < since_heard_ms;
    let cannot_send = segments_out == 0 && unacknowledged > 0 && has_room;
    let asks = match probes {
        _ if has_sent && retransmits > 0 || cannot_send => Asks::Again,
        _ if has_sent => Asks::Once,
        0 => Asks::Nothing,
        1 => Asks::Room,
        _ => Asks::Again,
    };
    Some(Signs { is_all_there: unacknowledged == 0, asks, since_heard_us: u64::from(since_heard_ms) * 1000 })
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// Both ends of a connection within this machine, if it has such addresses.
    fn pair(host: &str) -> Option<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind((host, 0)).ok()?;
        let ours = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        Some((ours, listener.accept().expect("it was dialled").0))
    }

    fn ask(diag: &mut Diag, stream: &TcpStream) -> io::Result<Signs> {
        diag.ask(stream.local_addr().expect("an address"), stream.peer_addr().expect("an address"))
    }

    #[test]
    fn what_was_written_is_there_unless_the_window_is_full() {
        let Ok(mut diag) = Diag::open() else { return };
        for host in ["127.0.0.1", "::1"] {
            let Some((mut ours, mut theirs)) = pair(host) else { continue };
            let Ok(signs) = ask(&mut diag, &ours) else { return };
            assert!(signs.is_all_there && signs.asks == Asks::Nothing, "{signs:?}");
            ours.set_nonblocking(true).expect("a socket");
            let mut sent = 0;
            while let Ok(bytes) = ours.write(&[b'x'; 65536]) {
                sent += bytes;
            }
            assert!(!ask(&mut diag, &ours).expect("an answer").is_all_there);
            let mut left = vec![0; sent];
            theirs.read_exact(&mut left).expect("they come");
            // The last byte may be read before our kernel has heard so.
            while !ask(&mut diag, &ours).expect("an answer").is_all_there {}
        }
    }

    #[test]
    fn a_connection_that_is_none_is_told_from_one_that_is() {
        let Ok(mut diag) = Diag::open() else { return };
        let Some((ours, _theirs)) = pair("127.0.0.1") else { return };
        if ask(&mut diag, &ours).is_err() {
            return;
        }
        let local = ours.local_addr().expect("an address");
        assert!(diag.ask(local, local).is_err());
        assert!(ask(&mut diag, &ours).is_ok());
    }

    #[test]
    fn answers_that_are_cut_or_long_are_read_without_harm() {
        let mut answer = vec![0; HEADER_BYTES + ANSWER_BYTES];
        answer[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        // An attribute that says it is longer than it is, and one without any length.
        for tail in [&[0xff, 0xff, 2, 0, 1][..], &[0, 0, 9, 0, 0, 0, 2, 0], &[]] {
            assert!(read_answer(&[&answer, tail].concat()).is_err());
        }
        for end in 0..answer.len() {
            assert!(read_answer(&answer[..end]).is_err());
        }
    }
}
