//! Observers that make calls themselves.

use crate::peer::{Peer, config, on_both_faces};
use respool_client::{Client, Event, Observer, cmd};
use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// Makes a call when it is told of an attempt that has failed, and says what came of it.
#[derive(Default)]
struct Asks {
    client: OnceLock<Client>,
    tells: Mutex<Option<Sender<Result<String, String>>>>,
}

impl Observer for Asks {
    fn event(&self, event: &Event<'_>) {
        let (Event::NotConnected { .. }, Some(client)) = (event, self.client.get()) else { return };
        let Some(tells) = self.tells.lock().unwrap().take() else { return };
        let call = client.call::<String>(cmd("GET").arg("observer")).deadline(Duration::from_secs(20)).wait();
        tells.send(call.map_err(|error| error.to_string())).unwrap();
    }
}

#[test]
fn a_call_of_an_observer_waits_for_the_next_attempt() {
    on_both_faces(|get| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            // Two attempts fail.
            (0..2).for_each(|_| drop(listener.accept().unwrap()));
            let mut peer = Peer { socket: listener.accept().unwrap().0, input: Vec::new() };
            peer.shake_hands();
            while let Some(request) = peer.request() {
                peer.echo(&request);
            }
        });
        let (tells, told) = channel();
        let asks = Arc::new(Asks { client: OnceLock::new(), tells: Mutex::new(Some(tells)) });
        let observer: Arc<dyn Observer> = asks.clone();
        let client = Client::with_config(config(&address).observer(observer).deadline(Some(Duration::from_secs(60))));
        asks.client.set(client.clone()).unwrap();
        assert_eq!(get(&client, "k").unwrap(), "k");
        assert_eq!(told.recv_timeout(Duration::from_secs(60)).unwrap().as_deref(), Ok("observer"));
    });
}
