//! Connections of clients: what comes to a node and back, in which order, and what waits there.
//!
//! A connection is a stream: nothing on it overtakes anything else, and nothing is left out. What cannot be delivered while a node cannot be
//! reached comes behind that time, or the connection ends.

use std::collections::VecDeque;

use respool_command::WaitId;
use respool_route::cluster::{Address, slot_of};
use respool_wire::{Args, ArgsBuf, Protocol};

use crate::data::Answer;
use crate::node::{NodeIndex, row_of};
use crate::session::{Session, Waiting, nothing};
use crate::world::{ConnectionId, Delivery, Event, Execution, World};

/// Requests that were sent together, and what of them is answered.
struct Batch {
    tag: u64,
    requests: VecDeque<ArgsBuf>,
    replies: Vec<Vec<u8>>,
    is_owner: bool,
}

pub(crate) struct Connection {
    pub(crate) node: NodeIndex,
    session: Session,
    /// Messages do not overtake each other.
    pub(crate) to_node_us: u64,
    to_client_us: u64,
    pub(crate) is_silent: bool,
    /// For its client.
    has_ended: bool,
    /// Its client has closed it.
    is_left: bool,
    /// For its node.
    is_dead: bool,
    /// What has come and is not executed yet.
    inbox: VecDeque<Batch>,
    waiting: Option<Waiting>,
    /// What could not be delivered.
    held: Vec<Event>,
}

impl Connection {
    fn new(node: NodeIndex, number: usize, protocol: Protocol) -> Self {
        Self {
            node,
            session: Session::new(number as u64 + 1, protocol),
            to_node_us: 0,
            to_client_us: 0,
            is_silent: false,
            has_ended: false,
            is_left: false,
            is_dead: false,
            inbox: VecDeque::new(),
            waiting: None,
            held: Vec::new(),
        }
    }
}

impl World {
    /// A connection to the node at an address that speaks RESP3. Whether there is a node shows with the first request.
    pub fn connect(&mut self, to: &Address) -> ConnectionId {
        self.open(to, Protocol::Resp3)
    }

    /// As [`Self::connect`], in RESP2 until the client says `HELLO`. It may be used once it is [`Delivery::Connected`].
    pub fn dial(&mut self, to: &Address) -> ConnectionId {
        let connection = self.open(to, Protocol::Resp2);
        self.send_event(connection, Event::Dial(connection));
        connection
    }

    fn open(&mut self, to: &Address, protocol: Protocol) -> ConnectionId {
        let node = (0..self.nodes.len()).find(|node| self.address(*node) == *to).expect("the address of a node");
        self.connections.push(Connection::new(node, self.connections.len(), protocol));
        ConnectionId(self.connections.len() - 1)
    }

    /// Sends requests with none of another caller between them.
    pub fn send(&mut self, connection: ConnectionId, tag: u64, requests: Vec<ArgsBuf>) {
        self.send_event(connection, Event::Request(connection, tag, requests));
    }

    /// Ends a connection: what is on its way to the node is not executed any more.
    pub fn close(&mut self, connection: ConnectionId) {
        self.connections[connection.0].has_ended = true;
        self.forget_session(connection);
    }

    /// Ends a connection: what is on its way to the node still comes there, and its replies are lost.
    pub fn hang_up(&mut self, connection: ConnectionId) {
        self.connections[connection.0].is_left = true;
        self.send_event(connection, Event::Gone(connection));
    }

    /// To the node, behind what is under way.
    fn send_event(&mut self, connection: ConnectionId, event: Event) {
        let delay_us = self.delay(self.connections[connection.0].node);
        let link = &mut self.connections[connection.0];
        link.to_node_us = (link.to_node_us + 1).max(self.now_us + delay_us);
        let at_us = link.to_node_us;
        self.push(at_us, event);
    }

    /// Something has come to the end of a link.
    pub(crate) fn arrive(&mut self, event: Event) {
        let connection = match &event {
            Event::Dial(connection) | Event::Request(connection, ..) | Event::Gone(connection) => *connection,
            Event::Deliver(
                Delivery::Connected { connection }
                | Delivery::Reply { connection, .. }
                | Delivery::Refused { connection, .. }
                | Delivery::Ended { connection },
            ) => *connection,
            Event::Deliver(lost @ Delivery::Lost { .. }) => return self.ready.push_back(lost.clone()),
            _ => unreachable!("it is on no link"),
        };
        let link = &mut self.connections[connection.0];
        if link.has_ended || link.is_silent {
            return;
        }
        // What comes meanwhile stays behind what is sent again.
        if self.cut_from_clients.contains(&link.node) || !link.held.is_empty() {
            return link.held.push(event);
        }
        match event {
            Event::Deliver(delivery) => self.deliver(connection, delivery),
            _ if link.is_dead => {}
            Event::Dial(_) if self.down.contains(&link.node) => {
                self.answer(connection, Delivery::Refused { connection, tag: 0 });
            }
            Event::Dial(_) => self.answer(connection, Delivery::Connected { connection }),
            Event::Request(_, tag, requests) => self.on_request(connection, tag, requests),
            _ => {
                link.has_ended = true;
                self.forget_session(connection);
            }
        }
    }

    /// A node can be reached again.
    pub(crate) fn resend(&mut self, node: NodeIndex) {
        for number in
            (0..self.connections.len()).filter(|number| self.connections[*number].node == node).collect::<Vec<_>>()
        {
            for event in std::mem::take(&mut self.connections[number].held) {
                self.arrive(event);
            }
        }
    }

    fn deliver(&mut self, connection: ConnectionId, delivery: Delivery) {
        let link = &mut self.connections[connection.0];
        if link.is_left {
            return;
        }
        link.has_ended |= !matches!(delivery, Delivery::Reply { .. } | Delivery::Connected { .. });
        self.ready.push_back(delivery);
    }

    /// To the client, in order with what is under way.
    fn answer(&mut self, connection: ConnectionId, delivery: Delivery) {
        let delay_us = self.delay(self.connections[connection.0].node);
        let link = &mut self.connections[connection.0];
        link.to_client_us = (link.to_client_us + 1).max(self.now_us + delay_us);
        let at_us = link.to_client_us;
        self.push(at_us, Event::Deliver(delivery));
    }

    fn on_request(&mut self, connection: ConnectionId, tag: u64, requests: Vec<ArgsBuf>) {
        let link = &mut self.connections[connection.0];
        if self.down.contains(&link.node) {
            return self.answer(connection, Delivery::Refused { connection, tag });
        }
        link.inbox.push_back(Batch { tag, requests: requests.into(), replies: Vec::new(), is_owner: true });
        self.serve(vec![connection]);
    }

    /// Executes what has come over connections, until they wait for something. Others may be served by that.
    fn serve(&mut self, mut connections: Vec<ConnectionId>) {
        while let Some(connection) = connections.pop() {
            while self.connections[connection.0].waiting.is_none() && self.serve_next(connection, &mut connections) {}
        }
    }

    /// Executes one request. `false`: there is none.
    fn serve_next(&mut self, connection: ConnectionId, served: &mut Vec<ConnectionId>) -> bool {
        let link = &mut self.connections[connection.0];
        let node = link.node;
        let Some(batch) = link.inbox.front_mut() else { return false };
        let Some(request) = batch.requests.pop_front() else {
            let Some(Batch { tag, replies, is_owner, .. }) = link.inbox.pop_front() else { return false };
            self.executions += 1;
            self.answer(connection, Delivery::Reply { connection, tag, replies, is_owner, order: self.executions });
            return true;
        };
        let args = request.as_args();
        let answer = match unblocks(args) {
            Some((client_id, is_error)) => Answer::Reply(self.unblock(node, client_id, is_error, served)),
            None => {
                let mut session = std::mem::take(&mut self.connections[connection.0].session);
                let answer = self.nodes[node].handle(args, &mut session, self.now_us);
                self.connections[connection.0].session = session;
                answer
            }
        };
        let is_owner = self.has_key_of(node, args);
        if let Some(batch) = self.connections[connection.0].inbox.front_mut() {
            batch.is_owner &= is_owner;
        }
        match answer {
            Answer::Reply(reply) => self.put_reply(connection, reply),
            Answer::Waits(wait) => self.begin_wait(connection, wait, args),
        }
        self.settle(connection, served);
        true
    }

    /// Whether what a node does to the first key of a request stays.
    fn has_key_of(&self, node: NodeIndex, args: Args<'_>) -> bool {
        let key = args.get(1).filter(|_| row_of(args).is_some_and(|row| !row.keys.is_none()));
        // The keys of a script stand behind their number.
        let key = if row_of(args).is_some_and(|row| row.runs_scripts) { args.get(3) } else { key };
        key.is_none_or(|key| self.has(node, slot_of(key)))
    }

    fn put_reply(&mut self, connection: ConnectionId, reply: Vec<u8>) {
        if let Some(batch) = self.connections[connection.0].inbox.front_mut() {
            batch.replies.push(reply);
        }
    }

    fn begin_wait(&mut self, connection: ConnectionId, wait: WaitId, args: Args<'_>) {
        let link = &mut self.connections[connection.0];
        let waiting = Waiting::new(wait, args, &link.session);
        let until_us = waiting.until_us(self.now_us);
        link.waiting = Some(waiting);
        if let Some(until_us) = until_us {
            self.push(until_us, Event::WaitOver(connection, wait));
        }
    }

    /// What a request has changed goes to replicas, and to those who wait for it.
    fn settle(&mut self, connection: ConnectionId, served: &mut Vec<ConnectionId>) {
        let node = self.connections[connection.0].node;
        self.take_effects(connection);
        while let Some((wait, reply)) = self.nodes[node].data.poll_ready(self.now_us) {
            let Some(of) = self.find_waiting(node, |waiting, _| waiting.wait == wait) else { continue };
            let Some(waiting) = self.connections[of.0].waiting.take() else { continue };
            self.nodes[node].note_served(&waiting, &reply);
            self.put_reply(of, reply);
            self.take_effects(of);
            served.push(of);
        }
    }

    fn take_effects(&mut self, connection: ConnectionId) {
        let (node, at_us) = (self.connections[connection.0].node, self.now_us);
        let effects = std::mem::take(&mut self.nodes[node].effects);
        self.replicate(node, effects);
        let handled = self.nodes[node].journal.as_mut().map(std::mem::take).unwrap_or_default();
        for handled in handled {
            let is_owner = self.has_key_of(node, handled.args.as_args());
            let crate::node::Handled { database, args, reply, is_refused } = handled;
            let execution = Execution { node, connection, at_us, database, args, reply, is_refused, is_owner };
            self.journal.get_or_insert_default().push(execution);
        }
    }

    fn find_waiting(&self, node: NodeIndex, is_it: impl Fn(&Waiting, &Session) -> bool) -> Option<ConnectionId> {
        let found = self.connections.iter().position(|link| {
            link.node == node && link.waiting.as_ref().is_some_and(|waiting| is_it(waiting, &link.session))
        });
        found.map(ConnectionId)
    }

    /// `CLIENT UNBLOCK`.
    fn unblock(&mut self, node: NodeIndex, client_id: u64, is_error: bool, served: &mut Vec<ConnectionId>) -> Vec<u8> {
        let Some(found) = self.find_waiting(node, |_, session| session.client_id == client_id) else {
            return b":0\r\n".to_vec();
        };
        let unblocked = || b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n".to_vec();
        let reply = if is_error { unblocked() } else { nothing(self.connections[found.0].session.protocol) };
        self.end_wait(found, reply);
        served.push(found);
        b":1\r\n".to_vec()
    }

    fn end_wait(&mut self, connection: ConnectionId, reply: Vec<u8>) {
        let link = &mut self.connections[connection.0];
        if let Some(waiting) = link.waiting.take() {
            self.nodes[link.node].data.cancel(waiting.wait);
            self.put_reply(connection, reply);
        }
    }

    pub(crate) fn on_wait_over(&mut self, connection: ConnectionId, wait: WaitId) {
        let link = &self.connections[connection.0];
        if link.waiting.as_ref().is_some_and(|waiting| waiting.wait == wait) {
            let reply = nothing(link.session.protocol);
            self.end_wait(connection, reply);
            self.serve(vec![connection]);
        }
    }

    /// Requests that wait at a node for a key are answered if there is a reply for that key.
    pub(crate) fn let_go(&mut self, node: NodeIndex, reply_of: impl Fn(&[u8]) -> Option<Vec<u8>>) {
        let mut served = Vec::new();
        for number in 0..self.connections.len() {
            let link = &self.connections[number];
            let Some(waiting) = link.waiting.as_ref().filter(|_| link.node == node) else { continue };
            if let Some(reply) = waiting.args.as_args().get(1).and_then(&reply_of) {
                self.end_wait(ConnectionId(number), reply);
                served.push(ConnectionId(number));
            }
        }
        self.serve(served);
    }

    /// All connections of a node end.
    pub(crate) fn end_connections(&mut self, node: NodeIndex) {
        for number in 0..self.connections.len() {
            let link = &self.connections[number];
            if link.node == node && !link.has_ended && !link.is_dead {
                let connection = ConnectionId(number);
                self.forget_session(connection);
                let are_replies_lost = self.rng.once_in(2);
                self.events.retain(|_, event| match event {
                    Event::Request(of, ..) => *of != connection,
                    Event::Deliver(Delivery::Reply { connection: of, .. }) => *of != connection || !are_replies_lost,
                    _ => true,
                });
                self.answer(connection, Delivery::Ended { connection });
            }
        }
    }

    /// The node forgets a connection, with what has come over it and was not executed.
    fn forget_session(&mut self, connection: ConnectionId) {
        let link = &mut self.connections[connection.0];
        (link.is_dead, link.held) = (true, Vec::new());
        link.inbox.clear();
        if let Some(waiting) = link.waiting.take() {
            self.nodes[link.node].data.cancel(waiting.wait);
        }
        let mut session = std::mem::take(&mut link.session);
        self.nodes[link.node].unwatch(&mut session);
    }
}

/// `CLIENT UNBLOCK`: which client, and whether with an error.
fn unblocks(args: Args<'_>) -> Option<(u64, bool)> {
    let is_it = args.name().eq_ignore_ascii_case(b"CLIENT") && args.get(1)?.eq_ignore_ascii_case(b"UNBLOCK");
    let client_id = std::str::from_utf8(args.get(2)?).ok()?.parse().ok()?;
    is_it.then_some((client_id, args.get(3).is_some_and(|reason| reason.eq_ignore_ascii_case(b"ERROR"))))
}
