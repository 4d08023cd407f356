//! Listening sockets from one process to another, over a unix socket.
//!
//! ```text
//!   successor                                        predecessor
//!      |-- connects --------------------------------->|  its socket file belongs to one user
//!      |-- RESPOOL TAKE-OVER 1 ---------------------->|
//!      |<------------------- OK n, or ERR why --------|
//!      |<------------------- n frames, each a label --|
//!      |                     and one socket           |
//!      |   opens everything; the predecessor          |
//!      |   serves on as if nothing had happened       |
//!      |-- READY ------------------------------------>|
//!      |<------------------- BYE ---------------------|  stops accepting, serves its clients, ends
//! ```
//!
//! A successor that fails before READY has changed nothing: both have the same sockets with the same queues, so no
//! connection is lost whichever of them accepts it. One that does not become ready, for too long or until the next one asks,
//! is told so in the place of BYE, and must not go on with the sockets.

use crate::limits::{HANDOVER_LABEL_BYTES_MAX, HANDOVER_LINE_BYTES_MAX, HANDOVER_SOCKETS_MAX};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const GREETING: &str = "RESPOOL TAKE-OVER 1";
const READY: &str = "READY";
const BYE: &str = "BYE";

/// A label's length and the label, filled up with zeros.
const FRAME_BYTES: usize = 2 + HANDOVER_LABEL_BYTES_MAX;

/// How long either side waits for the other's next word.
const WORD_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the predecessor waits for the successor to be ready: it may have certificates to read and names to resolve.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// The predecessor's side, once a process has connected and has said what for.
#[derive(Debug)]
pub struct Predecessor {
    stream: UnixStream,
}

/// Ends the wait for a successor to be ready.
#[derive(Debug)]
pub struct Overruling {
    stream: UnixStream,
}

/// How the predecessor answers a successor that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// It accepts nothing more.
    Bye,
    /// It goes on, or another successor does, for this reason: the sockets are not this process's.
    Overruled(String),
}

/// The successor's side, when it has the sockets.
#[derive(Debug)]
pub struct Successor {
    stream: UnixStream,
}

impl Predecessor {
    /// Reads what a process that has connected wants. An error means that it was no successor, or not ours.
    pub fn greet(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(WORD_TIMEOUT))?;
        stream.set_write_timeout(Some(WORD_TIMEOUT))?;
        is_of_our_user(&stream)?;
        let mut this = Self { stream };
        match read_line(&mut this.stream)?.as_str() {
            GREETING => Ok(this),
            _ => {
                this.refuse("this is no way to ask for sockets")?;
                Err(io::Error::new(io::ErrorKind::InvalidData, "the peer speaks another protocol"))
            }
        }
    }

    /// Says no, and why.
    pub fn refuse(&mut self, why: &str) -> io::Result<()> {
        self.stream.write_all(format!("ERR {why}\n").as_bytes())
    }

    /// Sends the sockets with their labels and waits until the successor is ready. One that is not in time is told so, and gives up, if this
    /// process goes on: `goes_on` is asked then.
    pub fn send<S: AsFd>(&mut self, sockets: &[(String, S)], goes_on: impl Fn() -> bool) -> io::Result<()> {
        if sockets.len() > HANDOVER_SOCKETS_MAX || sockets.iter().any(|(l, _)| l.len() > HANDOVER_LABEL_BYTES_MAX) {
            self.refuse("there are too many sockets, or their names are too long")?;
            return Err(io::Error::other("the sockets cannot be given away"));
        }
        self.stream.write_all(format!("OK {}\n", sockets.len()).as_bytes())?;
        sockets.iter().try_for_each(|(label, socket)| send_socket(&self.stream, label, socket))?;
        self.hear_ready(READY_TIMEOUT, goes_on)
    }

    fn hear_ready(&mut self, patience: Duration, goes_on: impl Fn() -> bool) -> io::Result<()> {
        self.stream.set_read_timeout(Some(patience))?;
        let word = read_line(&mut self.stream);
        if matches!(&word, Ok(word) if word == READY) {
            return Ok(());
        }
        // The successor has the sockets and may still become ready. A connection that closes without a message means to it that
        // this process has ended, and it would serve beside this one.
        if goes_on() {
            let _ = self.refuse("the successor was not ready in time");
        }
        word.and(Err(io::Error::new(io::ErrorKind::InvalidData, "the successor did not become ready")))
    }

    /// What ends the wait of [`Self::send`].
    ///
    /// # Errors
    /// The system gives no second hand on the connection.
    pub fn overruling(&self) -> io::Result<Overruling> {
        Ok(Overruling { stream: self.stream.try_clone()? })
    }

    /// Says that nothing more is accepted here.
    pub fn say_bye(&mut self) -> io::Result<()> {
        self.stream.write_all(format!("{BYE}\n").as_bytes())
    }
}

impl Overruling {
    /// Tells the successor why it is none, and ends the wait for it.
    pub fn overrule(mut self, why: &str) {
        // If it hears neither it has gone.
        let _ = self.stream.write_all(format!("ERR {why}\n").as_bytes());
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Successor {
    /// Asks the process that listens at `path` for its sockets.
    pub fn ask(path: &std::path::Path) -> io::Result<(Self, Vec<(String, OwnedFd)>)> {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(WORD_TIMEOUT))?;
        stream.set_write_timeout(Some(WORD_TIMEOUT))?;
        stream.write_all(format!("{GREETING}\n").as_bytes())?;
        let answer = read_line(&mut stream).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let limit_s = WORD_TIMEOUT.as_secs();
                io::Error::other(format!("it has not answered for {limit_s} s; it may be busy with another successor"))
            }
            _ => error,
        })?;
        let count = match answer.split_once(' ') {
            Some(("OK", count)) => count.parse().ok().filter(|count| *count <= HANDOVER_SOCKETS_MAX),
            Some(("ERR", why)) => return Err(io::Error::other(format!("it refuses: {why}"))),
            _ => None,
        };
        let count = count.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it speaks another language"))?;
        let sockets = (0..count).map(|_| receive_socket(&stream)).collect::<io::Result<Vec<_>>>()?;
        Ok((Self { stream }, sockets))
    }

    /// Says that the sockets are in good hands, and waits until the predecessor has heard it.
    pub fn say_ready(mut self) -> io::Result<Farewell> {
        // One that was overruled may find the connection closed, and why in what came before.
        let said = self.stream.write_all(format!("{READY}\n").as_bytes());
        let answer = read_line(&mut self.stream);
        match (answer.as_deref(), said) {
            (Ok(BYE), _) => Ok(Farewell::Bye),
            (Ok(answer), _) if answer.starts_with("ERR ") => Ok(Farewell::Overruled(answer[4..].to_owned())),
            (Ok(_), _) => Err(io::Error::new(io::ErrorKind::InvalidData, "it did not say goodbye")),
            (Err(_), Err(error)) => Err(error),
            (Err(_), Ok(())) => Err(answer.expect_err("it is one")),
        }
    }
}

/// The file's mode keeps others out already; this holds even if it was changed.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_of_our_user(stream: &UnixStream) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?.uid;
    match peer == rustix::process::geteuid() || peer.is_root() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user has asked for the sockets")),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_of_our_user(_: &UnixStream) -> io::Result<()> {
    Ok(())
}

/// One line, without its end. Byte by byte, because a socket may come with what follows it.
fn read_line(stream: &mut UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        match byte[0] {
            b'\n' => break,
            byte if line.len() < HANDOVER_LINE_BYTES_MAX => line.push(byte),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "the line does not end")),
        }
    }
    String::from_utf8(line).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "that is no text"))
}

fn send_socket(stream: &UnixStream, label: &str, socket: &impl AsFd) -> io::Result<()> {
    let mut frame = [0; FRAME_BYTES];
    frame[..2].copy_from_slice(&(label.len() as u16).to_be_bytes());
    frame[2..2 + label.len()].copy_from_slice(label.as_bytes());
    let sockets = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&sockets));
    let sent = sendmsg(stream, &[IoSlice::new(&frame)], &mut control, SendFlags::empty())?;
    // The socket went with the first byte.
    (&*stream).write_all(&frame[sent..])
}

fn receive_socket(stream: &UnixStream) -> io::Result<(String, OwnedFd)> {
    let mut frame = [0; FRAME_BYTES];
    let (mut filled, mut socket) = (0, None);
    while filled < FRAME_BYTES {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut rest = [IoSliceMut::new(&mut frame[filled..])];
        let received = recvmsg(stream, &mut rest, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(sockets) = message {
                socket = sockets.last().or(socket);
            }
        }
        if received.bytes == 0 || received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += received.bytes;
    }
    let length = usize::from(u16::from_be_bytes([frame[0], frame[1]]));
    let label = frame.get(2..2 + length).and_then(|label| std::str::from_utf8(label).ok());
    let fault =
        || io::Error::new(io::ErrorKind::InvalidData, "a socket came without a name, or a name without a socket");
    Ok((label.ok_or_else(fault)?.to_owned(), socket.ok_or_else(fault)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reacts, alone};
    use crate::{TransportOptions, Worker, adopt, bind, mailbox};
    use respool_connection::{Action, ConnId, Endpoint, Peer, ServiceAction};
    use std::net::TcpStream;
    use std::os::unix::net::UnixListener;
    use std::thread;

    #[test]
    fn sockets_go_over_with_their_queues_and_unix_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let door = folder.path().join("door").to_str().unwrap().to_owned();
        let endpoints =
            [Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 0 }, Endpoint::Unix { path: door.clone() }];
        let options = TransportOptions::default();
        let open = |endpoint| bind(endpoint, 2, 16, 0o600, &options).unwrap().into_iter().flatten();
        let old: Vec<_> = endpoints.iter().map(|endpoint| open(endpoint).collect::<Vec<_>>()).collect();
        let address = old[0][0].address().to_owned();
        // They connect before they are accepted.
        let waiting: Vec<_> = (0..8).map(|_| TcpStream::connect(&address).unwrap()).collect();
        let _by_file = UnixStream::connect(&door).unwrap();

        let path = folder.path().join("s");
        let control = UnixListener::bind(&path).unwrap();
        let (bye, said_bye) = std::sync::mpsc::channel();
        let giver = thread::spawn(move || {
            let mut predecessor = Predecessor::greet(control.accept().unwrap().0).unwrap();
            let named = |(number, listeners): (usize, &Vec<crate::Listener>)| {
                listeners.iter().map(|l| (number.to_string(), l.handle().unwrap())).collect::<Vec<_>>()
            };
            let handles: Vec<_> = old.iter().enumerate().flat_map(named).collect();
            predecessor.send(&handles, || true).unwrap();
            handles.iter().for_each(|(_, handle)| handle.give_away());
            drop((handles, old));
            predecessor.say_bye().unwrap();
            bye.send(()).unwrap();
        });
        let (successor, sockets) = Successor::ask(&path).unwrap();
        assert_eq!(sockets.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(), ["0", "0", "1"]);
        let mut of_tcp = Vec::new();
        let mut of_unix = Vec::new();
        for (label, socket) in sockets {
            if label == "0" { of_tcp.push(socket) } else { of_unix.push(socket) }
        }
        // Fewer workers than queues, and more of them: every queue is looked at, every worker has one.
        let mut new: Vec<_> = adopt(&endpoints[0], of_tcp, 1, 16, 0o600, &options).unwrap();
        assert_eq!((new.len(), new[0].len()), (1, 2));
        new.extend(adopt(&endpoints[1], of_unix, 3, 16, 0o640, &options).unwrap());
        new.iter().flatten().for_each(|listener| listener.handle().unwrap().keep());
        assert_eq!(successor.say_ready().unwrap(), Farewell::Bye);
        said_bye.recv().unwrap();
        giver.join().unwrap();

        let mut accepted = 0;
        while accepted < waiting.len() + 1 {
            accepted += new.iter().flatten().filter(|listener| listener.accept().is_ok()).count();
            thread::yield_now();
        }
        assert!(std::fs::exists(&door).unwrap());
        drop(new);
        assert!(!std::fs::exists(&door).unwrap(), "the last who listens tidies up");
    }

    #[test]
    fn a_successor_that_is_overruled_hears_it_in_the_place_of_bye() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let control = UnixListener::bind(&path).unwrap();
        let (gets_sockets, has_sockets) = std::sync::mpsc::channel();
        let giver = thread::spawn(move || {
            let mut predecessor = Predecessor::greet(control.accept().unwrap().0).unwrap();
            let overruling = predecessor.overruling().unwrap();
            let overruler = thread::spawn(move || {
                has_sockets.recv().unwrap();
                overruling.overrule("another one has come");
            });
            assert!(predecessor.send::<OwnedFd>(&[], || true).is_err(), "the wait ends");
            overruler.join().unwrap();
        });
        let (successor, _) = Successor::ask(&path).unwrap();
        gets_sockets.send(()).unwrap();
        giver.join().unwrap();
        assert_eq!(successor.say_ready().unwrap(), Farewell::Overruled("another one has come".to_owned()));
    }

    #[test]
    fn a_successor_that_is_ready_too_late_does_not_go_on() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut predecessor = Predecessor { stream: ours };
        assert!(predecessor.hear_ready(Duration::from_millis(1), || true).is_err(), "nothing was said");
        // The successor is told, whenever it becomes ready.
        drop(predecessor);
        let late = Successor { stream: theirs }.say_ready();
        assert!(matches!(&late, Ok(Farewell::Overruled(_))), "{late:?}");
    }

    #[test]
    fn a_late_successor_of_a_process_that_has_ended_goes_on() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut predecessor = Predecessor { stream: ours };
        assert!(predecessor.hear_ready(Duration::from_millis(1), || false).is_err(), "nothing was said");
        drop(predecessor);
        let late = Successor { stream: theirs }.say_ready();
        assert!(!matches!(&late, Ok(Farewell::Overruled(_))), "{late:?}");
    }

    #[test]
    fn a_refusal_says_why_and_noise_gets_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let control = UnixListener::bind(&path).unwrap();
        let giver = thread::spawn(move || {
            Predecessor::greet(control.accept().unwrap().0).unwrap().refuse("not now").unwrap();
            assert!(Predecessor::greet(control.accept().unwrap().0).is_err());
            assert!(Predecessor::greet(control.accept().unwrap().0).is_err());
        });
        assert!(Successor::ask(&path).unwrap_err().to_string().contains("not now"));
        UnixStream::connect(&path).unwrap().write_all(b"PING\r\n").unwrap();
        UnixStream::connect(&path).unwrap().write_all(&[b'x'; 4096]).unwrap();
        giver.join().unwrap();
    }

    /// A machine that receives the notice of a takeover by mail and counts the clients accepted afterwards.
    struct Retiring {
        accepted: Option<std::sync::mpsc::Sender<usize>>,
        count: usize,
        has_heard: bool,
        actions: Vec<Action<ServiceAction<()>>>,
    }

    impl Reacts for Retiring {
        fn actions(&mut self) -> &mut Vec<Action<ServiceAction<()>>> {
            &mut self.actions
        }

        fn is_accepting(&self) -> bool {
            !self.has_heard
        }

        fn handle_accept(&mut self, _: Peer) -> Result<ConnId, Vec<u8>> {
            self.count += 1;
            Ok(ConnId::client(self.count as u32 - 1))
        }

        fn handle_mail(&mut self) {
            self.has_heard = true;
            self.actions.extend([Action::Service(ServiceAction::Exit), Action::Service(ServiceAction::StopAccepting)]);
        }

        fn end_turn(&mut self) {
            if let Some(accepted) = self.accepted.take() {
                accepted.send(self.count).unwrap();
            }
        }
    }

    #[test]
    fn who_connects_after_a_handover_is_the_successors() {
        let any = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 0 };
        let mut shares = bind(&any, 1, 16, 0o600, &TransportOptions::default()).unwrap();
        let listeners = shares.remove(0);
        let address: std::net::SocketAddr = listeners[0].address().parse().unwrap();
        let (told, accepted) = std::sync::mpsc::channel();
        let (mail_sender, inbox) = mailbox();
        let machine = Retiring { accepted: Some(told), count: 0, has_heard: false, actions: Vec::new() };
        // The mail and the new connection are ready in the same turn.
        assert!(mail_sender.post(()));
        let _late = TcpStream::connect(address).unwrap();
        let setup = alone(machine, (mail_sender, inbox), listeners);
        Worker::new(setup).unwrap().run().unwrap();
        assert_eq!(accepted.recv().unwrap(), 0);
    }
}
