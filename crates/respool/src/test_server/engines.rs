//! How a test reaches the engines of its server: by visits to the threads that they belong to.

use std::sync::mpsc::{Receiver, channel};

use respool_command::{Execute, Millis, SessionView};
use respool_net::MailSender;
use respool_proxy::{Mail, Visit};
use respool_wire::{ArgsBuf, Encoder, Protocol, Value};

use crate::builder::Server;

/// An engine that is being visited.
pub(super) struct Engine<'a> {
    engine: &'a mut dyn Execute,
    pub(super) now: Millis,
}

impl Engine<'_> {
    /// Has it execute a request, in the database of this number.
    pub(super) fn run<A: AsRef<[u8]>>(&mut self, database: u32, request: impl IntoIterator<Item = A>) -> Value {
        let mut args = ArgsBuf::new();
        request.into_iter().for_each(|arg| _ = args.push(arg.as_ref()));
        let args = args.as_args();
        let row = match respool_command::resolve(args) {
            Ok(row) if row.accepts(args.len()) => row,
            Ok(row) => return Value::Error(format!("ERR wrong number of arguments for {}", row.name).into_bytes()),
            Err(unknown) => {
                let mut words = Vec::new();
                unknown.write_text(args, &mut words);
                return Value::Error(words);
            }
        };
        if row.runs_scripts {
            return Value::Error(b"ERR scripts are run over a connection".to_vec());
        }
        // As in a transaction, nothing waits.
        let mut session = SessionView { database, now: self.now, is_in_transaction: true, ..SessionView::default() };
        let mut reply = Vec::new();
        let _: respool_command::Outcome =
            self.engine.execute(row, args, &mut session, &mut Encoder::new(&mut reply, Protocol::Resp3));
        Value::parse(&reply).unwrap_or_else(|_| Value::Error(b"ERR the engine has no reply to that".to_vec()))
    }

    /// The same for a request that only looks: as a client with CLIENT NO-TOUCH it leaves alone when a key was used.
    pub(super) fn look<A: AsRef<[u8]>>(&mut self, database: u32, request: impl IntoIterator<Item = A>) -> Value {
        let was_spared = self.engine.spare_uses(true);
        let reply = self.run(database, request);
        self.engine.spare_uses(was_spared);
        reply
    }
}

/// What all have sent, in their order. One that has ended sends nothing.
pub(super) fn wait_for<T>(all: impl Iterator<Item = Receiver<T>>) -> Vec<T> {
    // All are asked before the first is waited for.
    let all: Vec<_> = all.collect();
    all.iter().filter_map(|one| one.recv().ok()).collect()
}

/// The workers that have engines, and those that have clients in front of them: the same where one engine is the server.
fn owners(server: &Server) -> impl Iterator<Item = &MailSender<Mail>> {
    server.instances.iter().flat_map(|instance| match instance.engines.is_empty() {
        true => &instance.workers,
        false => &instance.engines,
    })
}

/// Visits each engine of a server with a copy of `look`. What was seen, in the order of the engines.
pub(super) fn visit<T: Send + 'static>(
    server: &Server,
    look: impl Fn(&mut Engine<'_>) -> T + Clone + Send + 'static,
) -> Vec<T> {
    wait_for(owners(server).map(|owner| {
        let (look, (tell, told)) = (look.clone(), channel());
        owner.post(
            Visit::new(move |visited| {
                let now = visited.now;
                if let Some(engine) = visited.engine {
                    // The asking thread may have been told to stop meanwhile.
                    let _ = tell.send(look(&mut Engine { engine, now }));
                }
            })
            .into(),
        );
        told
    }))
}

/// The same with what each engine gets for itself, as far as there is something for it.
pub(super) fn visit_each<T: Send + 'static>(server: &Server, gifts: Vec<T>, give: fn(&mut Engine<'_>, T)) {
    wait_for(owners(server).zip(gifts).map(|(owner, gift)| {
        let (tell, told) = channel();
        owner.post(
            Visit::new(move |visited| {
                let now = visited.now;
                if let Some(engine) = visited.engine {
                    give(&mut Engine { engine, now }, gift);
                }
                let _ = tell.send(());
            })
            .into(),
        );
        told
    }));
}

/// How many databases a server has.
pub(super) fn databases_of(server: &Server) -> u32 {
    server.settings().instances.first().map_or(0, |instance| instance.engine.databases)
}
