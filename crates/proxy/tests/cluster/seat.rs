//! A worker and its loop: what has come to it, what it wants done, and how it reads and writes piece by piece.

use crate::NoEngine;
use crate::support::settle;
use respool_connection::{
    Action, ConnId, DialFailure, Endpoint, Machine, Now, Peer, Service, ServiceAction, Wait, WorkerId,
};
use respool_proxy::{Config, Mail, Shared, Worker, WorkerSetup};
use respool_sim::ConnectionId;
use respool_testkit::Rng;
use respool_wire::{ArgsBuf, RequestDecoder, RequestLimits, Step};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How soon a loop that has something left to do takes another turn.
const AGAIN_US: u64 = 30;

/// What a worker wants of the world around it.
pub(super) enum Order {
    Dial {
        lane: u32,
        endpoint: Arc<Endpoint>,
    },
    /// `false`: what was sent before still comes to the node.
    Close {
        connection: ConnectionId,
        at_once: bool,
    },
    Send {
        connection: ConnectionId,
        request: ArgsBuf,
    },
    /// Bytes for a client.
    Tell {
        client: u32,
        bytes: Vec<u8>,
    },
    Post {
        worker: usize,
        mail: Mail,
    },
}

/// What has come to a worker.
pub(super) enum Event {
    Connected {
        lane: u32,
    },
    Refused {
        lane: u32,
    },
    /// A client is gone, and with it what it was to be told.
    Gone {
        client: u32,
    },
    Mail(Mail),
}

/// A connection to a node.
#[derive(Default)]
struct Lane {
    connection: Option<ConnectionId>,
    decoder: RequestDecoder,
    /// What the worker has written and is no whole request.
    written: Vec<u8>,
    /// What the node has written and the worker has not read.
    inbox: Vec<u8>,
    has_ended: bool,
    is_short: bool,
}

pub(super) struct Seat {
    pub(super) worker: Worker<NoEngine>,
    rng: Rng,
    lanes: BTreeMap<u32, Lane>,
    /// What clients have sent and the worker has not read.
    clients: BTreeMap<u32, Vec<u8>>,
    events: VecDeque<Event>,
    orders: Vec<Order>,
    /// When it is to take another turn although nothing comes.
    again_us: Option<u64>,
    has_news: bool,
    /// The settings that hold here: their number.
    pub(super) epoch: usize,
    pub(super) turns: u64,
}

impl Seat {
    pub(super) fn new(number: usize, config: Config, shared: &Arc<Shared>, seed: u64) -> Self {
        let setup = WorkerSetup {
            config: Arc::new(config),
            shared: Arc::clone(shared),
            number: WorkerId::new(number),
            engine: None,
            entropy: seed,
        };
        Self {
            worker: Worker::new(setup),
            rng: Rng::part(seed, 100 + number as u64),
            lanes: BTreeMap::new(),
            clients: BTreeMap::new(),
            events: VecDeque::new(),
            orders: Vec::new(),
            again_us: None,
            has_news: true,
            epoch: 0,
            turns: 0,
        }
    }

    /// A client connects.
    pub(super) fn accept(&mut self, now_us: u64) -> u32 {
        self.begin(now_us);
        let conn = self.worker.handle_accept(Peer::default()).expect("there is room");
        self.clients.insert(conn.index() as u32, Vec::new());
        self.has_news = true;
        conn.index() as u32
    }

    pub(super) fn hear_client(&mut self, client: u32, bytes: &[u8]) {
        self.clients.get_mut(&client).expect("it is there").extend_from_slice(bytes);
        self.has_news = true;
    }

    pub(super) fn push(&mut self, event: Event) {
        self.events.push_back(event);
        self.has_news = true;
    }

    /// The world has dialled. `false`: the lane is not wanted any more.
    pub(super) fn note_dialled(&mut self, lane: u32, connection: ConnectionId) {
        self.lanes.get_mut(&lane).expect("it was ordered").connection = Some(connection);
    }

    pub(super) fn hear_node(&mut self, lane: u32, bytes: &[u8]) {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.inbox.extend_from_slice(bytes);
            self.has_news = true;
        }
    }

    pub(super) fn end_lane(&mut self, lane: u32) {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.has_ended = true;
            self.has_news = true;
        }
    }

    /// When it takes its next turn, if nothing comes before.
    pub(super) fn next_us(&self, now_us: u64) -> u64 {
        if self.has_news {
            return now_us;
        }
        let waits_until = match self.worker.wait() {
            Wait::Anything => u64::MAX,
            Wait::Nodes { until_us } | Wait::Yielding { until_us } => until_us,
        };
        let woken_us = self.worker.next_wakeup_us().unwrap_or(u64::MAX);
        waits_until.min(woken_us).min(self.again_us.unwrap_or(u64::MAX))
    }

    fn begin(&mut self, now_us: u64) {
        self.worker.begin_turn(Now::of_clocks(now_us, now_us + 1_700_000_000_000_000));
    }

    /// One turn of the worker's event loop. Returns the worker's actions.
    pub(super) fn turn(&mut self, now_us: u64) -> Vec<Order> {
        self.turns += 1;
        (self.has_news, self.again_us) = (false, None);
        if matches!(self.worker.wait(), Wait::Yielding { .. }) {
            // Others have run, or there are none.
            self.worker.flush_held();
        }
        self.begin(now_us);
        for event in std::mem::take(&mut self.events) {
            self.happen(event);
        }
        for lane in self.lanes.keys().copied().collect::<Vec<_>>() {
            self.read_lane(lane, now_us);
        }
        for client in self.clients.keys().copied().collect::<Vec<_>>() {
            self.read_client(client, now_us);
        }
        self.worker.end_turn();
        settle(self, |this| &mut this.worker, Self::act, |this, conn| this.write(conn, now_us));
        std::mem::take(&mut self.orders)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Connected { lane } if self.lanes.contains_key(&lane) => {
                self.worker.handle_connected(ConnId::upstream(lane));
            }
            Event::Refused { lane } if self.lanes.remove(&lane).is_some() => {
                let failure = DialFailure::Refused("connection refused".to_owned());
                self.worker.handle_dial_failed(ConnId::upstream(lane), failure);
            }
            // It was given up meanwhile.
            Event::Connected { .. } | Event::Refused { .. } => {}
            Event::Gone { client } => {
                self.clients.remove(&client);
                self.worker.handle_broken(ConnId::client(client), "connection reset by peer");
            }
            Event::Mail(mail) => self.worker.handle_mail(mail),
        }
    }

    fn read_lane(&mut self, number: u32, now_us: u64) {
        let Some(lane) = self.lanes.get_mut(&number) else { return };
        if std::mem::take(&mut lane.is_short) {
            self.worker.handle_writable(ConnId::upstream(number));
        }
        let Some(lane) = self.lanes.get_mut(&number) else { return };
        let mut inbox = std::mem::take(&mut lane.inbox);
        self.feed(ConnId::upstream(number), &mut inbox, now_us);
        let Some(lane) = self.lanes.get_mut(&number) else { return };
        lane.inbox = inbox;
        if !lane.has_ended {
            return;
        }
        let conn = ConnId::upstream(number);
        if self.rng.once_in(2) {
            // What has come and was not read is lost, as when the other side resets the connection.
            self.lanes.remove(&number);
            self.worker.handle_broken(conn, "connection reset by peer");
        } else if lane.inbox.is_empty() {
            self.lanes.remove(&number);
            self.worker.handle_ended(conn);
        } else {
            self.again_us = Some(now_us + AGAIN_US);
        }
    }

    fn read_client(&mut self, number: u32, now_us: u64) {
        let mut inbox = self.clients.get_mut(&number).map(std::mem::take).unwrap_or_default();
        self.feed(ConnId::client(number), &mut inbox, now_us);
        if let Some(client) = self.clients.get_mut(&number) {
            *client = inbox;
        }
    }

    /// The worker reads what has come, or some of it. What it does not want it is given when it says so.
    fn feed(&mut self, conn: ConnId, inbox: &mut Vec<u8>, now_us: u64) {
        let mut share = if self.rng.once_in(3) { self.rng.below(inbox.len() + 1) } else { inbox.len() };
        while share > 0 {
            let Some(buffer) = self.worker.read_buffer(conn) else { return };
            let taken = share.min(buffer.len());
            buffer[..taken].copy_from_slice(&inbox[..taken]);
            inbox.drain(..taken);
            share -= taken;
            self.worker.handle_read(conn, taken);
        }
        if !inbox.is_empty() {
            self.again_us = Some(now_us + AGAIN_US);
        }
    }

    fn act(&mut self, action: Action<ServiceAction<Mail>>) {
        match action {
            Action::Dial { conn, endpoint } => {
                let lane = conn.index() as u32;
                assert!(self.lanes.insert(lane, Lane::default()).is_none(), "a place is given once");
                self.orders.push(Order::Dial { lane, endpoint });
            }
            Action::Close { conn } if conn.is_upstream() => {
                let number = conn.index() as u32;
                let Some(lane) = self.lanes.remove(&number) else { return };
                match lane.connection {
                    Some(connection) => {
                        let at_once = self.rng.once_in(2);
                        self.orders.push(Order::Close { connection, at_once });
                    }
                    None => self.orders.retain(|order| !matches!(order, Order::Dial { lane, .. } if *lane == number)),
                }
            }
            Action::Resume { .. } => self.has_news = true,
            Action::Service(ServiceAction::Post { worker, mail }) => {
                self.orders.push(Order::Post { worker: worker.get(), mail });
            }
            other => panic!("{other:?} was not to be expected"),
        }
    }

    fn write(&mut self, conn: ConnId, now_us: u64) {
        let bytes = self.worker.output(conn).to_vec();
        let index = conn.index() as u32;
        if !conn.is_upstream() {
            self.worker.handle_written(conn, bytes.len());
            self.orders.push(Order::Tell { client: index, bytes });
            return;
        }
        let taken = if self.rng.once_in(6) { self.rng.below(bytes.len() + 1) } else { bytes.len() };
        let Some(lane) = self.lanes.get_mut(&index) else { return };
        lane.written.extend_from_slice(&bytes[..taken]);
        lane.is_short |= taken < bytes.len();
        if lane.is_short {
            self.again_us = Some(now_us + AGAIN_US);
        }
        let connection = lane.connection.expect("what is written to is open");
        let mut used = 0;
        let limits = RequestLimits::default();
        while let Ok(Step::Request(request)) = lane.decoder.decode(&lane.written[used..], &limits) {
            used += request.consumed;
            let request = request.args.iter().collect();
            self.orders.push(Order::Send { connection, request });
        }
        lane.written.drain(..used);
        self.worker.handle_written(conn, taken);
    }
}
