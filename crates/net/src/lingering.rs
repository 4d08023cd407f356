//! Connections that we have ended and whose peers have not closed yet: what they still send is thrown away.

use crate::limits::{LINGER_READS_MAX, LINGERING_MAX};
use crate::transport::Socket;
use std::collections::VecDeque;
use std::io;

/// All of them, of one worker.
#[derive(Debug, Default)]
pub(crate) struct Lingering {
    places: Vec<Option<Socket>>,
    free: Vec<usize>,
    /// When each is dropped, in order: all linger equally long.
    due: VecDeque<(u64, usize)>,
    count: usize,
}

impl Lingering {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Keeps a connection until its peer closes it or its time is over. `None`: there are too many, it is dropped.
    pub(crate) fn keep(&mut self, socket: Socket, due_us: u64) -> Option<(usize, &mut Socket)> {
        // A place is free again only when its time is over, so that no other connection's time ends with it.
        if self.due.len() >= LINGERING_MAX {
            return None;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.due.push_back((due_us, place));
        self.count += 1;
        Some((place, self.places[place].insert(socket)))
    }

    /// Something came: bytes, which nobody wants, or the end.
    pub(crate) fn hear(&mut self, place: usize) {
        let Some(Some(socket)) = self.places.get_mut(place) else { return };
        let mut nowhere = [0; 4096];
        for _ in 0..LINGER_READS_MAX {
            match socket.read(&mut nowhere) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => return self.drop_at(place),
            }
        }
        // A peer that does not stop sending is not listening.
        self.drop_at(place);
    }

    pub(crate) fn drop_at(&mut self, place: usize) {
        if self.places.get_mut(place).and_then(Option::take).is_some() {
            self.count -= 1;
        }
    }

    pub(crate) fn next_due_us(&self) -> Option<u64> {
        self.due.front().map(|(due_us, _)| *due_us)
    }

    /// Drops those whose time is over.
    pub(crate) fn expire(&mut self, now_us: u64) {
        while let Some(&(due_us, place)) = self.due.front()
            && due_us <= now_us
        {
            self.due.pop_front();
            self.drop_at(place);
            self.free.push(place);
        }
    }
}
