//! A connection between the worker and a peer: what its kernel holds in both directions, and what the loop knows of it.

/// Bytes in order, of which the first ones are taken.
#[derive(Default)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    start: usize,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn first(&self, most: usize) -> &[u8] {
        &self.bytes[self.start..self.start + most.min(self.len())]
    }

    pub(super) fn drop_first(&mut self, bytes: usize) {
        self.start += bytes.min(self.len());
        if self.start * 2 >= self.bytes.len() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Dialling,
    Open,
}

/// One connection. The kernel tells of readiness once, when it changes; the rest the loop has to remember.
pub(super) struct Socket {
    pub(super) stage: Stage,
    /// Bytes that the kernel holds in one direction.
    room: usize,
    to_worker: Queue,
    from_worker: Queue,
    /// The peer sends nothing more.
    pub(super) has_ended: bool,
    /// What the next wait tells.
    read_edge: bool,
    write_edge: bool,
    /// A write was cut short.
    wants_room: bool,
    /// What the loop remembers.
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
    pub(super) is_listed: bool,
    pub(super) is_ending: bool,
    pub(super) has_told_end: bool,
}

impl Socket {
    pub(super) fn new(stage: Stage, room: usize) -> Self {
        Self {
            stage,
            room,
            to_worker: Queue::default(),
            from_worker: Queue::default(),
            has_ended: false,
            read_edge: false,
            write_edge: false,
            wants_room: false,
            is_readable: false,
            is_writable: stage == Stage::Open,
            is_listed: false,
            is_ending: false,
            has_told_end: false,
        }
    }

    /// The peer sends as much as there is room for. Returns how much that is.
    pub(super) fn send(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room - self.to_worker.len());
        self.to_worker.put(&bytes[..taken]);
        self.read_edge |= taken > 0;
        taken
    }

    /// The peer sends nothing more.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        self.read_edge = true;
    }

    /// The peer takes at most so many bytes.
    pub(super) fn receive(&mut self, most: usize) -> Vec<u8> {
        let bytes = self.from_worker.first(most).to_vec();
        self.from_worker.drop_first(bytes.len());
        if self.wants_room && self.from_worker.len() * 2 <= self.room {
            self.wants_room = false;
            self.write_edge = true;
        }
        bytes
    }

    /// The worker's loop writes. Returns how much the kernel takes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room - self.from_worker.len());
        self.from_worker.put(&bytes[..taken]);
        self.is_writable = taken == bytes.len();
        self.wants_room |= !self.is_writable;
        taken
    }

    /// The worker's loop reads into `buffer`; `None`: there is nothing.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let bytes = self.to_worker.first(buffer.len());
        let taken = bytes.len();
        buffer[..taken].copy_from_slice(bytes);
        self.to_worker.drop_first(taken);
        (taken > 0 || self.has_ended).then_some(taken)
    }

    /// What a wait tells, once: whether there is something to read, and room to write.
    pub(super) fn take_edges(&mut self) -> (bool, bool) {
        (std::mem::take(&mut self.read_edge), std::mem::take(&mut self.write_edge))
    }

    /// Bytes that the worker has not read.
    pub(super) fn unread(&self) -> usize {
        self.to_worker.len()
    }

    /// Bytes that the peer has not taken.
    pub(super) fn untaken(&self) -> usize {
        self.from_worker.len()
    }
}
