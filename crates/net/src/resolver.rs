//! Host names to addresses, on threads of their own so that a slow resolver never stops a worker.
//!
//! A name is asked for once, however many dials wait for it, and one that takes long holds up no other: there are as many
//! threads as names are asked for at once, within a bound. They stay for the next question.

use crate::limits::RESOLVERS_MAX;
use crate::mailbox::{MailSender, Message};
use respool_connection::DialFailure;
use std::collections::{HashMap, VecDeque};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

/// A host name and a port.
pub(crate) type Name = (String, u16);

/// How a name's addresses are found.
pub(crate) type LookUp = Arc<dyn Fn(&Name) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Asks the system's resolver on behalf of one worker; the answers come by mail.
pub(crate) struct Resolver<Mail> {
    mail_sender: MailSender<Mail>,
    look_up: LookUp,
    desk: Arc<Desk>,
}

/// What the threads share.
#[derive(Default)]
struct Desk {
    asked: Mutex<Asked>,
    /// Signals a new name in the queue, or shutdown.
    has_news: Condvar,
}

#[derive(Default)]
struct Asked {
    /// Names whose lookup has not begun.
    queue: VecDeque<Name>,
    /// The dials that wait, by name, both of queued names and of lookups in progress.
    dials: HashMap<Name, Vec<u64>>,
    threads: usize,
    /// Idle threads.
    idle: usize,
    is_over: bool,
}

impl<Mail: Send + 'static> Resolver<Mail> {
    pub(crate) fn new(mail_sender: MailSender<Mail>) -> Self {
        Self::with(mail_sender, Arc::new(|(host, port)| Ok((host.as_str(), *port).to_socket_addrs()?.collect())))
    }

    pub(crate) fn with(mail_sender: MailSender<Mail>, look_up: LookUp) -> Self {
        Self { mail_sender, look_up, desk: Arc::default() }
    }

    /// Asks for the addresses of `host`. `false`: there is no thread to do it.
    pub(crate) fn ask(&self, dial: u64, host: &str, port: u16) -> bool {
        let name = (host.to_owned(), port);
        let mut asked = self.desk.lock();
        if let Some(dials) = asked.dials.get_mut(&name) {
            dials.push(dial);
            return true;
        }
        if asked.queue.len() >= asked.idle && asked.threads < RESOLVERS_MAX {
            match self.spawn() {
                Ok(()) => asked.threads += 1,
                Err(_) if asked.threads == 0 => return false,
                // The threads that exist will look it up.
                Err(_) => {}
            }
        }
        asked.dials.insert(name.clone(), vec![dial]);
        asked.queue.push_back(name);
        self.desk.has_news.notify_one();
        true
    }

    /// A dial was given up: its question is dropped if no other dial waits for the same name.
    pub(crate) fn forget(&self, dial: u64) {
        let mut asked = self.desk.lock();
        let Asked { queue, dials, .. } = &mut *asked;
        dials.values_mut().for_each(|waiting| waiting.retain(|other| *other != dial));
        // A lookup that has begun cannot be stopped, and a later dial may use its answer.
        queue.retain(|name| {
            let is_wanted = dials.get(name).is_some_and(|waiting| !waiting.is_empty());
            if !is_wanted {
                dials.remove(name);
            }
            is_wanted
        });
    }

    fn spawn(&self) -> io::Result<()> {
        let (desk, mail_sender, look_up) =
            (Arc::clone(&self.desk), self.mail_sender.clone(), Arc::clone(&self.look_up));
        let run = move || {
            while let Some(name) = desk.next() {
                let answer = answer(&name, look_up(&name));
                let dials = desk.lock().dials.remove(&name).unwrap_or_default();
                for dial in dials {
                    if !mail_sender.put(Message::Resolved(dial, answer.clone())) {
                        return;
                    }
                }
            }
        };
        thread::Builder::new().name("resolver".to_owned()).stack_size(256 * 1024).spawn(run).map(drop)
    }
}

impl<Mail> Drop for Resolver<Mail> {
    fn drop(&mut self) {
        self.desk.lock().is_over = true;
        self.desk.has_news.notify_all();
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next name to look up. `None`: shutdown.
    fn next(&self) -> Option<Name> {
        let mut asked = self.lock();
        loop {
            if asked.is_over {
                return None;
            }
            if let Some(name) = asked.queue.pop_front() {
                return Some(name);
            }
            asked.idle += 1;
            asked = self.has_news.wait(asked).unwrap_or_else(PoisonError::into_inner);
            asked.idle -= 1;
        }
    }
}

fn answer((host, _): &Name, found: io::Result<Vec<SocketAddr>>) -> Result<Vec<SocketAddr>, DialFailure> {
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(DialFailure::Unresolvable(format!("'{host}' has no address"))),
        Err(error) => Err(DialFailure::Unresolvable(format!("'{host}': {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::{Inbox, mailbox};
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    /// The dial that is answered next.
    fn answered(inbox: &Inbox<()>) -> Option<u64> {
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            match inbox.take() {
                Some(Message::Resolved(dial, answer)) => {
                    assert_eq!(answer, Ok(vec![SocketAddr::from(([10, 0, 0, 1], 7))]));
                    return Some(dial);
                }
                _ => thread::yield_now(),
            }
        }
        None
    }

    #[test]
    fn a_name_that_takes_long_holds_up_no_other() {
        let (mail_sender, inbox) = mailbox();
        let (release, held) = channel::<()>();
        let (tell, begun) = channel();
        let (held, tell) = (Mutex::new(held), Mutex::new(tell));
        let look_up = move |(host, port): &Name| {
            tell.lock().unwrap().send(host.clone()).unwrap();
            if host == "slow" {
                held.lock().unwrap().recv().unwrap();
            }
            Ok(vec![SocketAddr::from(([10, 0, 0, 1], *port))])
        };
        let resolver = Resolver::with(mail_sender, Arc::new(look_up));
        assert!(resolver.ask(1, "slow", 7));
        assert_eq!(begun.recv().unwrap(), "slow");
        // Dials of it are given up and begun anew.
        for dial in 2..10 {
            resolver.forget(dial - 1);
            assert!(resolver.ask(dial, "slow", 7));
        }
        assert!(resolver.ask(10, "quick", 7));
        assert_eq!(answered(&inbox), Some(10), "another name is looked for meanwhile");
        assert_eq!(begun.recv().unwrap(), "quick");
        release.send(()).unwrap();
        assert_eq!(answered(&inbox), Some(9), "the last that waits is answered, and it alone");
        assert!(resolver.ask(11, "quick", 7));
        assert_eq!(answered(&inbox), Some(11));
        assert_eq!(begun.try_iter().collect::<Vec<_>>(), ["quick"], "a name was looked for once");
    }

    #[test]
    fn what_nothing_waits_for_any_more_is_not_looked_for() {
        let (mail_sender, inbox) = mailbox();
        let (release, held) = channel::<()>();
        let held = Mutex::new(held);
        let look_up = move |(host, port): &Name| match host.strip_prefix("slow") {
            None => panic!("nothing waits for it"),
            Some(_) => {
                held.lock().unwrap().recv().unwrap();
                Ok(vec![SocketAddr::from(([10, 0, 0, 1], *port))])
            }
        };
        let resolver = Resolver::with(mail_sender, Arc::new(look_up));
        let all = 0..RESOLVERS_MAX as u64;
        all.clone().for_each(|dial| assert!(resolver.ask(dial, &format!("slow{dial}"), 7)));
        assert!(resolver.ask(100, "other", 7));
        while resolver.desk.lock().queue.len() > 1 {
            thread::yield_now();
        }
        resolver.forget(100);
        assert!(
            resolver.desk.lock().queue.is_empty() && !resolver.desk.lock().dials.contains_key(&("other".to_owned(), 7))
        );
        all.clone().for_each(|_| release.send(()).unwrap());
        let mut dials: Vec<u64> = all.clone().filter_map(|_| answered(&inbox)).collect();
        dials.sort_unstable();
        assert_eq!(dials, all.collect::<Vec<_>>());
    }
}
