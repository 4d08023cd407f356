//! Waiting for what a poll knows of, and what it says of each thing that is ready.
//!
//! On Linux the kernel is asked directly. [`mio`]'s wait is a function of the C library at which a thread may be cancelled, and
//! to say so before and after each wait takes longer than all else that a wait does outside of the kernel.

use mio::Token;
pub(crate) use system::Events;

// The numbers are those of epoll.
const READABLE: u32 = 0x1 | URGENT;
const URGENT: u32 = 0x2;
const WRITABLE: u32 = 0x4;
const ERROR: u32 = 0x8;
const CLOSED: u32 = 0x10;
const READ_CLOSED: u32 = 0x2000;

/// Something is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    token: Token,
    said: u32,
}

impl Event {
    #[inline]
    pub(crate) fn token(self) -> Token {
        self.token
    }

    #[inline]
    pub(crate) fn is_readable(self) -> bool {
        self.said & READABLE != 0
    }

    /// Whether there is an urgent byte among what can be read. A read ends at it.
    #[inline]
    pub(crate) fn is_urgent(self) -> bool {
        self.said & URGENT != 0
    }

    #[inline]
    pub(crate) fn is_writable(self) -> bool {
        self.said & WRITABLE != 0
    }

    /// Whether the peer has closed its side, or the connection is lost.
    #[inline]
    pub(crate) fn has_left(self) -> bool {
        self.said & (READ_CLOSED | CLOSED | ERROR) != 0
    }

    /// Whether nothing that is written reaches the peer any more.
    pub(crate) fn is_gone(self) -> bool {
        self.said & (CLOSED | ERROR) != 0
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use super::Event;
    use mio::{Poll, Token};
    use rustix::buffer::spare_capacity;
    use rustix::event::epoll;
    use rustix::time::Timespec;
    use std::io;

    /// What was ready at the end of the last wait.
    pub(crate) struct Events(Vec<epoll::Event>);

    impl Events {
        /// Takes at most so many events at once; the others come with the next wait.
        pub(crate) fn with_capacity(count: usize) -> Self {
            Self(Vec::with_capacity(count.max(1)))
        }

        /// Waits until something is ready; at most for `timeout_us`, rounded up to whole milliseconds, if it is given.
        #[inline]
        pub(crate) fn wait(&mut self, poll: &mut Poll, timeout_us: Option<u64>) -> io::Result<()> {
            self.0.clear();
            let timeout = timeout_us.map(|timeout_us| match timeout_us {
                0 => Timespec { tv_sec: 0, tv_nsec: 0 },
                _ => whole_milliseconds(timeout_us),
            });
            epoll::wait(poll.registry(), spare_capacity(&mut self.0), timeout.as_ref())?;
            Ok(())
        }

        #[inline]
        pub(crate) fn iter(&self) -> impl Iterator<Item = Event> {
            self.0
                .iter()
                .map(|&epoll::Event { flags, data }| Event { token: Token(data.u64() as usize), said: flags.bits() })
        }
    }

    /// At most what `epoll_wait` takes, 24 days.
    fn whole_milliseconds(timeout_us: u64) -> Timespec {
        let timeout_ms = timeout_us.div_ceil(1000).min(i32::MAX as u64) as u32;
        Timespec { tv_sec: i64::from(timeout_ms / 1000), tv_nsec: (timeout_ms % 1000 * 1_000_000).into() }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use super::{CLOSED, ERROR, Event, READ_CLOSED, READABLE, WRITABLE};
    use mio::Poll;
    use std::io;
    use std::time::Duration;

    /// What was ready at the end of the last wait.
    pub(crate) struct Events(mio::Events);

    impl Events {
        /// Takes at most so many events at once; the others come with the next wait.
        pub(crate) fn with_capacity(count: usize) -> Self {
            Self(mio::Events::with_capacity(count))
        }

        /// Waits until something is ready; at most for `timeout_us` if it is given.
        pub(crate) fn wait(&mut self, poll: &mut Poll, timeout_us: Option<u64>) -> io::Result<()> {
            poll.poll(&mut self.0, timeout_us.map(Duration::from_micros))
        }

        pub(crate) fn iter(&self) -> impl Iterator<Item = Event> {
            self.0.iter().map(|event| {
                let said = [
                    (event.is_readable(), READABLE & !URGENT),
                    (event.is_writable(), WRITABLE),
                    (event.is_error(), ERROR),
                    (event.is_read_closed(), READ_CLOSED),
                    (event.is_write_closed(), CLOSED),
                ];
                let said = said.iter().filter(|(is_so, _)| *is_so).fold(0, |said, (_, flag)| said | flag);
                Event { token: event.token(), said }
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::unix::SourceFd;
    use mio::{Interest, Poll};
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    /// What both polls say of the same socket: readable, writable, left, gone.
    type Said = Vec<(usize, [bool; 4])>;

    struct Pair {
        ours: (Poll, Events),
        theirs: (Poll, mio::Events),
        near: TcpStream,
        far: Option<TcpStream>,
    }

    impl Pair {
        fn connect() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (near, _) = listener.accept().unwrap();
            let polls = (Poll::new().unwrap(), Poll::new().unwrap());
            for poll in [&polls.0, &polls.1] {
                let interest = Interest::READABLE | Interest::WRITABLE;
                poll.registry().register(&mut SourceFd(&near.as_raw_fd()), Token(7), interest).unwrap();
            }
            let (ours, theirs) = (Events::with_capacity(8), mio::Events::with_capacity(8));
            Self { ours: (polls.0, ours), theirs: (polls.1, theirs), near, far: Some(far) }
        }

        fn look(&mut self) -> (Said, Said) {
            let (poll, events) = &mut self.theirs;
            poll.poll(events, Some(std::time::Duration::from_secs(60))).unwrap();
            let of_mio = |event: &mio::event::Event| {
                let has_left = event.is_read_closed() || event.is_error();
                let is_gone = event.is_error() || event.is_write_closed();
                (event.token().0, [event.is_readable(), event.is_writable(), has_left, is_gone])
            };
            let theirs = events.iter().map(of_mio).collect();
            let (poll, events) = &mut self.ours;
            events.wait(poll, Some(60_000_000)).unwrap();
            let of_us = |event: Event| {
                (event.token().0, [event.is_readable(), event.is_writable(), event.has_left(), event.is_gone()])
            };
            (events.iter().map(of_us).collect(), theirs)
        }
    }

    #[test]
    fn a_poll_that_is_asked_directly_says_the_same() {
        let mut pair = Pair::connect();
        let (ours, theirs) = pair.look();
        assert_eq!((ours, &theirs), (vec![(7, [false, true, false, false])], &theirs), "a fresh connection");
        pair.far.as_mut().unwrap().write_all(b"x").unwrap();
        let (ours, theirs) = pair.look();
        assert_eq!((ours, &theirs), (vec![(7, [true, true, false, false])], &theirs), "bytes have come");
        pair.far.as_mut().unwrap().shutdown(Shutdown::Write).unwrap();
        let (ours, theirs) = pair.look();
        assert_eq!((ours, &theirs), (vec![(7, [true, true, true, false])], &theirs), "the peer has closed its side");
        // It holds bytes that it has not read, so that its end is a reset.
        let mut reset = Pair::connect();
        reset.look();
        reset.near.write_all(b"x").unwrap();
        assert_eq!(reset.far.take().unwrap().peek(&mut [0]).unwrap(), 1);
        let (ours, theirs) = reset.look();
        assert_eq!(ours, theirs, "the peer has reset the connection");
        assert_eq!(ours, [(7, [true, true, true, true])]);
    }

    #[test]
    fn a_wait_takes_as_long_as_was_said_and_ends_without_events() {
        let mut poll = Poll::new().unwrap();
        let mut events = Events::with_capacity(8);
        for timeout_us in [0, 1, 999, 1000, 1001, 20_000] {
            let begin = std::time::Instant::now();
            events.wait(&mut poll, Some(timeout_us)).unwrap();
            assert!(begin.elapsed().as_micros() as u64 >= timeout_us, "{timeout_us}");
            assert_eq!(events.iter().count(), 0);
        }
    }
}
