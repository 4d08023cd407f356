//! A few questions on a connection of their own: which nodes a cluster has, how a server is configured.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use respool_connection::{
    Action, BufferPool, ConnId, DialFailure, Endpoint, Event, FlushPolicy, Identity, Machine, Now, Peer, Service,
    ServiceAction, Shake, Upstream,
};
use respool_net::tls::TlsClients;
use respool_wire::{ReplyLimits, Value};

use crate::dial_failure::words_of;
use crate::limits::PATIENCE;
use crate::run::drive;
use crate::template::request;

/// Asks `questions` on a connection of their own and gives the replies.
///
/// # Errors
/// The server cannot be reached, refuses the connection or does not answer.
pub(crate) fn ask(
    endpoint: &Arc<Endpoint>,
    identity: &Identity,
    tls: &Arc<TlsClients>,
    questions: &[&[&[u8]]],
) -> Result<Vec<Value>, String> {
    let (report, answers) = channel();
    let mut upstream = Upstream::new(identity.clone(), FlushPolicy::EachTurn);
    let mut pool = BufferPool::new();
    for words in questions {
        upstream.send(Some(()), 0, &mut pool, |out| out.extend_from_slice(&request(words)));
    }
    let asker = Asker {
        endpoint: Some(Arc::clone(endpoint)),
        upstream,
        pool,
        buffer: vec![0; 64 << 10],
        wanted: questions.len(),
        replies: Vec::new(),
        actions: Vec::new(),
        is_listed: false,
        now: Now::default(),
        until_us: None,
        report: Some(report),
    };
    drive(asker, Arc::clone(tls)).map_err(|error| error.to_string())?;
    answers.recv().map_err(|_| "the questions were not answered".to_owned())?
}

struct Asker {
    /// Where to dial, until it is.
    endpoint: Option<Arc<Endpoint>>,
    upstream: Upstream<Option<()>>,
    pool: BufferPool,
    buffer: Vec<u8>,
    wanted: usize,
    replies: Vec<Value>,
    actions: Vec<Action<ServiceAction<()>>>,
    is_listed: bool,
    now: Now,
    until_us: Option<u64>,
    report: Option<Sender<Result<Vec<Value>, String>>>,
}

const CONN: ConnId = ConnId::upstream(0);

impl Asker {
    fn end(&mut self, ended: Result<Vec<Value>, String>) {
        if let Some(report) = self.report.take() {
            let _ = report.send(ended);
            self.actions.push(Action::Service(ServiceAction::Exit));
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let limits = ReplyLimits::default();
        let mut input = &self.buffer[..bytes];
        if !self.upstream.is_ready() {
            self.is_listed = true;
            let shake = self.upstream.shake(input, &limits, self.now.mono_us, &mut self.pool);
            return shake.map(|_: Shake| ()).map_err(|fault| fault.to_string());
        }
        while let Some(event) =
            self.upstream.next_event(&mut input, &limits, self.now.mono_us).map_err(|fault| fault.to_string())?
        {
            if let Event::Reply { bytes, .. } = event {
                self.replies.push(Value::parse(bytes).map_err(|error| error.to_string())?);
            }
        }
        Ok(())
    }
}

impl Machine for Asker {
    type ServiceAction = ServiceAction<()>;

    fn begin_turn(&mut self, now: Now) {
        self.now = now;
        let until_us = *self.until_us.get_or_insert(now.mono_us + PATIENCE.as_micros() as u64);
        if let Some(endpoint) = self.endpoint.take() {
            self.upstream.begin_dial();
            self.actions.push(Action::Dial { conn: CONN, endpoint });
        }
        if now.mono_us >= until_us {
            self.end(Err(format!("no answer within {PATIENCE:?}")));
        }
    }

    fn read_buffer(&mut self, _: ConnId) -> Option<&mut [u8]> {
        Some(&mut self.buffer)
    }

    fn handle_read(&mut self, _: ConnId, bytes: usize) {
        if let Err(why) = self.take(bytes) {
            self.end(Err(why));
        } else if self.replies.len() == self.wanted {
            let replies = std::mem::take(&mut self.replies);
            self.end(Ok(replies));
        }
    }

    fn handle_ended(&mut self, _: ConnId) {
        self.end(Err("the server closed the connection".to_owned()));
    }

    fn handle_broken(&mut self, _: ConnId, error: &str) {
        self.end(Err(error.to_owned()));
    }

    fn handle_connected(&mut self, _: ConnId) {
        self.upstream.handle_connected(self.now.mono_us, &mut self.pool);
        self.is_listed = true;
    }

    fn handle_dial_failed(&mut self, _: ConnId, failure: DialFailure) {
        self.end(Err(words_of(failure)));
    }

    fn end_turn(&mut self) {}

    fn poll_action(&mut self) -> Option<Action<ServiceAction<()>>> {
        self.actions.pop()
    }

    fn poll_output(&mut self) -> Option<ConnId> {
        (std::mem::take(&mut self.is_listed) && self.upstream.wants_write(self.now.mono_us)).then_some(CONN)
    }

    fn output(&self, _: ConnId) -> &[u8] {
        self.upstream.output()
    }

    fn handle_written(&mut self, _: ConnId, bytes: usize) {
        self.upstream.handle_written(bytes, self.now.mono_us, &mut self.pool);
    }

    fn handle_writable(&mut self, _: ConnId) {
        self.is_listed = true;
    }

    fn next_wakeup_us(&self) -> Option<u64> {
        self.until_us.or(Some(self.now.mono_us))
    }
}

impl Service for Asker {
    type Mail = ();

    fn handle_accept(&mut self, _: Peer) -> Result<ConnId, Vec<u8>> {
        Err(Vec::new())
    }

    fn handle_mail(&mut self, (): ()) {}
}
