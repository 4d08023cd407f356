//! Finds a connection on which nothing comes any more though nothing has closed it: a middlebox has forgotten it, or a cable is out.
//!
//! There is no timer for it. A call whose time is over without its reply knows since when it has waited, and whether anything has come
//! for any call meanwhile, or was taken by a server that takes a large request. What such calls have found one after the other adds up to how long the connection has been silent with a request on it.
//!
//! A connection that is replaced is lost like any other: its requests end with it, and what its socket still holds is not read. It is reset, too:
//! of its requests some are sent again on another, and what the kernel has not sent yet, or not been told that it arrived, must not arrive
//! later, behind requests that were made since.

use super::{Core, State, Wakes};
use crate::Waited;
#[cfg(feature = "cluster")]
use crate::limits::CLUSTER_SILENCE;

/// The connection as it was when a request was queued.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    at_us: u64,
    epoch: u64,
    /// How often there had been a sign of the server.
    heard: u64,
    /// How many requests had been queued for the server, this one among them.
    number: u64,
}

impl Asked {
    /// As it was for the first of so many requests that were queued together, of which this was the last.
    pub(crate) fn of_first(self, count: usize) -> Self {
        Self { number: self.number.saturating_sub(count as u64 - 1), ..self }
    }
}

impl State {
    /// A request is queued now.
    #[inline]
    pub(crate) fn asked(&self) -> Asked {
        Asked { at_us: self.last_used_us, epoch: self.epoch, heard: self.heard(), number: self.counts.requests }
    }

    /// How often there was a sign of the server.
    #[inline]
    fn heard(&self) -> u64 {
        self.counts.reads - self.vain_reads + self.confirmed
    }

    /// The kernel was full of what is written, and has taken more: the server has confirmed some of it. It may take a large request for
    /// longer than it may be silent.
    pub(super) fn note_confirmed(&mut self) {
        self.confirmed += 1;
    }

    /// What a request waits behind whose time is over.
    ///
    /// Requests are answered, or lost, in the order in which they were queued, so the two numbers say how many are in front of it without
    /// a look at any of them: when a server is silent each of those that wait comes here.
    #[cold]
    pub(crate) fn waited(&self, asked: Asked, now_us: u64) -> Waited {
        let over = self.counts.requests - self.upstream.tickets().len() as u64;
        // Without one in front if it was answered itself, and others of its caller behind it were not.
        let in_front = asked.number.saturating_sub(over + 1) as usize;
        let has_heard = (asked.epoch, asked.heard) != (self.epoch, self.heard());
        let first = self.upstream.tickets().iter().next().filter(|_| in_front > 0);
        let first = first.and_then(|id| self.slots.note(*id));
        let first = first.map(|note| Box::new(note.ahead(now_us, self.upstream.arrived_bytes())));
        Waited { in_front, first, unwritten_bytes: self.upstream.queued_bytes(), has_heard }
    }

    /// The time of a call is over, now, that waits for its reply. The connection is lost if it has been silent for too long.
    pub(crate) fn note_unanswered(&mut self, core: &Core, asked: Asked, now_us: u64, wakes: &mut Wakes) {
        let Some(limit) = core.config.silence else { return };
        if !self.is_unheard(asked) {
            return;
        }
        let known = self.silent.filter(|known| self.is_unheard(*known) && known.at_us < asked.at_us);
        let since = known.unwrap_or(asked);
        self.silent = Some(since);
        if u128::from(now_us.saturating_sub(since.at_us)) >= limit.as_micros() {
            self.lose_silent(now_us, wakes);
        }
    }

    /// Whether there was no sign of the server since then, on the connection that there is.
    fn is_unheard(&self, asked: Asked) -> bool {
        self.link.is_some() && (asked.epoch, asked.heard) == (self.epoch, self.heard())
    }

    /// The connection is lost, unless something has come that was not read yet: it was this program that stood still then, and the replies of
    /// all who wait may be there. Whether it is.
    fn lose_silent(&mut self, now_us: u64, wakes: &mut Wakes) -> bool {
        if self.link.as_ref().is_none_or(|link| link.has_unread()) {
            return false;
        }
        self.lose_link(&"the server is silent", now_us, wakes);
        self.open_lobby(wakes);
        true
    }

    /// The connection is lost, if there was no sign of the server since then, for as long as nodes of a cluster are waited for. Whether it is. If
    /// there was one, it is looked from now on whether there is another.
    #[cfg(feature = "cluster")]
    pub(crate) fn lose_unheard(&mut self, asked: &mut Asked, now_us: u64, wakes: &mut Wakes) -> bool {
        if self.is_unheard(*asked) {
            // The time of a call begins before it has a connection.
            let waited_us = now_us.saturating_sub(asked.at_us);
            return u128::from(waited_us) >= CLUSTER_SILENCE.as_micros() && self.lose_silent(now_us, wakes);
        }
        if asked.epoch == self.epoch {
            (asked.at_us, asked.heard) = (now_us, self.heard());
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ended, Face, Leader, Wait, Wakes};
    use super::*;
    use crate::run::Progress;
    use crate::{Config, cmd};
    use respool_testkit::{Act, Address, FakeBackend, Gate, wait_until};
    use std::sync::Arc;
    use std::time::Duration;

    const MS: u64 = 1_000;

    fn connected(server: &FakeBackend) -> Arc<Core> {
        let Address::Tcp(address) = server.address() else { panic!("no TCP") };
        let config = Config::from_url(&address.to_string()).unwrap().silence(Some(Duration::from_millis(400)));
        let core = Core::new_with(config, std::time::Instant::now(), None);
        Progress::new(None).wait(&core, &[cmd("PING")]).unwrap();
        core
    }

    /// Calls of 100 ms each, one behind the other, of which none is answered. Between each two something happens. Says whether the
    /// connection is there still.
    fn outlives_calls(calls: u64, between: impl Fn(&Arc<Core>)) -> bool {
        let server = FakeBackend::start(|_| Act::Usual).unwrap();
        let core = connected(&server);
        let epoch = core.lock().epoch;
        for call in 1..=calls {
            let mut wakes = Wakes::default();
            let mut state = core.lock();
            state.last_used_us = call * 100 * MS;
            let asked = state.asked();
            drop(state);
            between(&core);
            core.lock().note_unanswered(&core, asked, (call + 1) * 100 * MS, &mut wakes);
            wakes.run_on(&core);
        }
        let state = core.lock();
        state.epoch == epoch && state.link.is_some()
    }

    fn read(core: &Arc<Core>, bytes: &[u8]) {
        let half = core.lock().read_half.take().unwrap();
        drop(half.read_by(core, Leader::None, |_, buffer| {
            buffer[..bytes.len()].copy_from_slice(bytes);
            if bytes.is_empty() { Err(std::io::ErrorKind::WouldBlock.into()) } else { Ok(bytes.len()) }
        }));
    }

    #[test]
    fn calls_that_find_nothing_add_up() {
        assert!(outlives_calls(3, |_| {}));
        assert!(!outlives_calls(4, |_| {}));
        // A read that finds nothing is no sign of the server.
        assert!(!outlives_calls(4, |core| read(core, b"")));
    }

    #[test]
    #[cfg(feature = "cluster")]
    fn a_connection_that_is_heard_is_not_ended_for_a_call() {
        let server = FakeBackend::start(|_| Act::Usual).unwrap();
        let core = connected(&server);
        let mut asked = core.lock().asked();
        let (began_us, silence_us) = (asked.at_us, CLUSTER_SILENCE.as_micros() as u64);
        let mut is_lost = |after_us| core.lock().lose_unheard(&mut asked, began_us + after_us, &mut Wakes::default());
        assert!(!is_lost(silence_us - 1), "its time was spent on the way to the connection");
        read(&core, b">1\r\n+pong\r\n");
        assert!(!is_lost(silence_us), "something has come");
        assert!(!is_lost(2 * silence_us - 1), "it is not silent for long");
        assert!(is_lost(2 * silence_us) && core.lock().link.is_none(), "nothing has come since it was looked");
        assert!(!is_lost(3 * silence_us), "there is none");
        Progress::new(None).wait(&core, &[cmd("PING")]).unwrap();
        assert!(!is_lost(4 * silence_us) && core.lock().link.is_some(), "it is another");
    }

    #[test]
    fn a_reply_that_was_not_read_yet_is_a_sign_of_its_server() {
        let server = FakeBackend::start(|_| Act::Usual).unwrap();
        let core = connected(&server);
        let mut wakes = Wakes::default();
        // Nothing reads: a program that was stopped, or whose runtime stands still, looks at the clock first.
        let (id, asked) = {
            let mut state = core.lock();
            let mut place = None;
            let _ = state.submit(
                &core,
                [cmd("PING")].iter(),
                (0, u64::MAX),
                |id| place = Some(id),
                Face::Thread,
                &mut wakes,
            );
            (place.unwrap(), state.asked())
        };
        drop(core.write(core.lock()));
        let link = core.link().unwrap();
        wait_until("the reply is there", Duration::from_secs(60), || Ok(link.has_unread())).unwrap();
        core.lock().note_unanswered(&core, asked, asked.at_us + 3_600_000 * MS, &mut wakes);
        #[cfg(feature = "cluster")]
        assert!(!core.lock().lose_unheard(&mut { asked }, asked.at_us + 3_600_000 * MS, &mut wakes));
        let half = core.lock().read_half.take().expect("the connection is there");
        drop(half.read(&core, Wait::Not, Leader::None));
        assert!(matches!(core.lock().slots.take_ended(id), Some(Ended::Reply(_))));
    }

    #[test]
    fn requests_in_front_are_told_by_their_numbers() {
        let server = FakeBackend::start(|request| if request.command() == "GET" { Act::Skip } else { Act::Usual });
        let server = server.unwrap();
        let core = connected(&server);
        let mut in_front = 0;
        // Of several, it is the first that waits behind others. What was given up stays in front.
        for count in [1, 3, 1, 2] {
            let mut progress = Progress::new(Some(Duration::from_millis(20)));
            let error = progress.wait(&core, &vec![cmd("GET").key("k"); count]).unwrap_err();
            assert_eq!(error.waited().unwrap().in_front, in_front);
            in_front += count;
        }
        // One that was answered, or lost, waits behind none.
        let asked = core.lock().asked();
        core.lock().lose_link(&"a test", 0, &mut Wakes::default());
        assert_eq!(core.lock().waited(asked, 0).in_front, 0);
    }

    #[test]
    fn a_server_that_sends_or_takes_something_is_not_silent() {
        assert!(outlives_calls(40, |core| read(core, b">1\r\n+pong\r\n")));
        assert!(outlives_calls(40, |core| core.lock().note_confirmed()));
    }

    #[test]
    fn what_a_server_takes_of_a_large_request_is_a_sign_of_it() {
        let gate = Gate::new();
        let passes = gate.clone();
        let server = FakeBackend::start(move |request| match &*request.command() {
            "GET" => {
                passes.pass();
                Act::Usual
            }
            "SET" => Act::Bytes(b"+OK\r\n".to_vec()),
            _ => Act::Usual,
        })
        .unwrap();
        let core = connected(&server);
        std::thread::scope(|scope| {
            // While this is not answered the server reads nothing, and the kernel holds less than what comes behind it.
            scope.spawn(|| Progress::new(None).wait(&core, &[cmd("GET").key("k")]).unwrap());
            let value = bytes::Bytes::from(vec![b'v'; 32 << 20]);
            scope.spawn(|| Progress::new(None).wait(&core, &[cmd("SET").key("k").arg(value)]).unwrap());
            let is_stuck = || Ok(core.lock().counts.requests == 3 && core.lock().write_half.is_none());
            let stuck = wait_until("the kernel takes no more", Duration::from_secs(60), is_stuck);
            gate.open();
            stuck.unwrap();
        });
        assert!(core.lock().confirmed > 0);
        assert_eq!(core.counts().connections, 1);
    }
}
