//! Host names to addresses, on a thread of its own so that a slow resolver never stops a worker.

use crate::limits::RESOLUTIONS_MAX;
use crate::mailbox::{Letter, Postbox};
use respool_connection::DialFailure;
use std::net::ToSocketAddrs;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

struct Question {
    dial: u64,
    host: String,
    port: u16,
}

/// Asks the system's resolver on behalf of one worker; the answers come by mail.
#[derive(Debug)]
pub(crate) struct Resolver {
    questions: SyncSender<Question>,
}

impl Resolver {
    pub(crate) fn spawn<Mail: Send + 'static>(postbox: Postbox<Mail>) -> std::io::Result<Self> {
        let (questions, asked) = sync_channel::<Question>(RESOLUTIONS_MAX);
        thread::Builder::new().name("resolver".to_owned()).stack_size(256 * 1024).spawn(move || {
            while let Ok(Question { dial, host, port }) = asked.recv() {
                let answer = (host.as_str(), port).to_socket_addrs().map(|found| found.collect::<Vec<_>>());
                let answer = match answer {
                    Ok(found) if !found.is_empty() => Ok(found),
                    Ok(_) => Err(DialFailure::Unresolvable(format!("'{host}' has no address"))),
                    Err(error) => Err(DialFailure::Unresolvable(format!("'{host}': {error}"))),
                };
                if !postbox.put(Letter::Resolved(dial, answer)) {
                    return;
                }
            }
        })?;
        Ok(Self { questions })
    }

    /// Asks for the addresses of `host`. `false`: too many questions wait.
    pub(crate) fn ask(&self, dial: u64, host: &str, port: u16) -> bool {
        self.questions.try_send(Question { dial, host: host.to_owned(), port }).is_ok()
    }
}
