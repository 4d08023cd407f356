//! Measures the load generator itself: `figures closed PORT CONNECTIONS PIPELINE REQUESTS` prints its processor time for each request,
//! and `figures delay RATE SECONDS` the latencies that an open loop reports of a server that answers after exactly a millisecond.

use respool_bench::arrivals::Spacing;
use respool_bench::keys::Spread;
use respool_bench::plan::{Pace, Plan};
use respool_bench::run::run;
use respool_bench::target::{Session, Target};
use respool_bench::values::Sizes;
use respool_bench::work::{Shape, Test, Work};
use respool_connection::Endpoint;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| args.get(place).and_then(|text| text.parse::<u64>().ok()).expect("see the source");
    match args.first().map(String::as_str) {
        Some("closed") => {
            let plan = Plan {
                connections: number(2) as usize,
                pipeline: number(3) as usize,
                requests: Some(number(4)),
                ..Plan::default()
            };
            show(&plan, number(1) as u16);
        }
        Some("delay") => {
            let port = delaying_server(Duration::from_millis(1));
            let pace = Pace::Open { rate: number(1) as f64, spacing: Spacing::Poisson };
            let duration = Some(Duration::from_secs(number(2)));
            show(&Plan { pace, duration, requests: None, connections: 10, ..Plan::default() }, port);
        }
        _ => eprintln!("see the source"),
    }
}

fn show(plan: &Plan, port: u16) {
    let shape = Shape {
        keys: Some(100_000),
        spread: Spread::Uniform,
        sizes: Sizes::one(3),
        is_verified: false,
        is_tagged: false,
    };
    let work = Arc::new(Work::of_test(Test::named("get").expect("there is one"), &shape));
    let endpoint = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port };
    let target = Arc::new(Target::one("server", endpoint, Session::default().identity()));
    let measured = run(plan, &work, &target, &AtomicBool::new(false), |_| {}).expect("it runs");
    let all = measured.tally.all();
    println!(
        "{} replies, {:.0}/s, {:.3} us of a processor each, p50 {:.4} ms, p99 {:.4} ms, max {:.4} ms, {:?}",
        measured.tally.replies,
        measured.tally.rate(),
        measured.own_processor_s * 1e6 / measured.tally.sent as f64,
        all.percentile_ms(50.0),
        all.percentile_ms(99.0),
        all.max_ms(),
        measured.tally.wrongs,
    );
}

/// A server that answers every read with as many replies as it holds requests, exactly so long after it has come. It never sleeps.
fn delaying_server(delay: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = listener.local_addr().expect("it is bound").port();
    listener.set_nonblocking(true).expect("it can be");
    std::thread::spawn(move || {
        let mut connections = Vec::new();
        let mut due: VecDeque<(Instant, usize, usize)> = VecDeque::new();
        let mut buffer = [0; 65_536];
        loop {
            if let Ok((stream, _)) = listener.accept() {
                stream.set_nodelay(true).expect("it can be");
                stream.set_nonblocking(true).expect("it can be");
                connections.push(stream);
            }
            for (place, stream) in connections.iter_mut().enumerate() {
                match stream.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(read) => {
                        let requests = buffer[..read].iter().filter(|&&byte| byte == b'*').count();
                        due.push_back((Instant::now() + delay, place, requests));
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
            while let Some(&(at, place, requests)) = due.front() {
                if at > Instant::now() {
                    break;
                }
                due.pop_front();
                let _ = connections[place].write_all(&b"$3\r\nxxx\r\n".repeat(requests));
            }
        }
    });
    port
}
