//! How long a call takes and how many there are, beside a raw socket and another client.
//!
//! `respool-client-bench ADDRESS [CALLS] [SECONDS] [WORKERS]`: serial calls in alternating blocks, so that all modes see the same
//! machine; then closed loops of tasks; then serial calls again on the connection that has had the loops. Every value is checked.

mod count;

use bytes::Bytes;
use count::allocations;
use respool_client::{Client, cmd};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

const KEY: &str = "key:000000000000";
const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000000\r\n";
const REPLY: usize = 5 + 64 + 2;
/// Calls of one mode before it is the next one's turn.
const BLOCK: usize = 250;

/// Durations in nanoseconds, and allocations.
#[derive(Default)]
struct Taken {
    name: &'static str,
    times: Vec<u64>,
    allocations: u64,
}

impl Taken {
    fn new(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    fn at(&mut self, part: f64) -> f64 {
        self.times.sort_unstable();
        self.times[((self.times.len() - 1) as f64 * part) as usize] as f64 / 1000.0
    }

    fn show(&mut self, base: f64) -> f64 {
        let (p50, p99, p999) = (self.at(0.5), self.at(0.99), self.at(0.999));
        println!(
            "  {:<26} p50 {p50:7.2} us ({:5.3})  p99 {p99:7.2}  p99.9 {p999:8.2}  allocations per call {:.2}",
            self.name,
            if base > 0.0 { p50 / base } else { 1.0 },
            self.allocations as f64 / self.times.len() as f64
        );
        p50
    }
}

fn block(taken: &mut Taken, mut call: impl FnMut()) {
    let before = allocations();
    for _ in 0..BLOCK {
        let began = Instant::now();
        call();
        taken.times.push(began.elapsed().as_nanos() as u64);
    }
    taken.allocations += allocations() - before;
}

async fn block_of_tasks<F: Future<Output = ()>>(taken: &mut Taken, mut call: impl FnMut() -> F) {
    let before = allocations();
    for _ in 0..BLOCK {
        let began = Instant::now();
        call().await;
        taken.times.push(began.elapsed().as_nanos() as u64);
    }
    taken.allocations += allocations() - before;
}

fn check(value: Option<Bytes>) {
    assert_eq!(value.as_deref(), Some(&[b'v'; 64][..]));
}

fn threads(address: &str, client: &Client, calls: usize) {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 65536];
    let (mut raw, mut get, mut set) =
        (Taken::new("raw socket, GET"), Taken::new("client, GET"), Taken::new("client, SET"));
    for _ in 0..calls / BLOCK {
        block(&mut raw, || {
            socket.write_all(GET).unwrap();
            let mut got = 0;
            while got < REPLY {
                got += socket.read(&mut buffer[got..]).unwrap();
            }
        });
        block(&mut get, || check(client.call(cmd("GET").key(KEY)).wait().unwrap()));
        block(&mut set, || client.call::<()>(cmd("SET").key(KEY).arg([b'v'; 64].as_slice())).wait().unwrap());
    }
    println!("one thread");
    let base = raw.show(0.0);
    get.show(base);
    set.show(base);
}

async fn tasks(address: String, client: Client, calls: usize) {
    let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 65536];
    let mut raw = Taken::new("raw socket, GET");
    let (mut get, mut set) = (Taken::new("client, GET"), Taken::new("client, SET"));
    #[cfg(feature = "redis")]
    let (mut peer, mut peer_get) = (redis_client(&address).await, Taken::new("redis crate, GET"));
    for _ in 0..calls / BLOCK {
        let before = allocations();
        for _ in 0..BLOCK {
            let began = Instant::now();
            socket.write_all(GET).await.unwrap();
            let mut got = 0;
            while got < REPLY {
                got += socket.read(&mut buffer[got..]).await.unwrap();
            }
            raw.times.push(began.elapsed().as_nanos() as u64);
        }
        raw.allocations += allocations() - before;
        block_of_tasks(&mut get, async || check(client.call(cmd("GET").key(KEY)).await.unwrap())).await;
        block_of_tasks(&mut set, async || {
            client.call::<()>(cmd("SET").key(KEY).arg([b'v'; 64].as_slice())).await.unwrap()
        })
        .await;
        #[cfg(feature = "redis")]
        {
            let before = allocations();
            for _ in 0..BLOCK {
                let began = Instant::now();
                let value: Vec<u8> = redis::cmd("GET").arg(KEY).query_async(&mut peer).await.unwrap();
                assert_eq!(value, [b'v'; 64]);
                peer_get.times.push(began.elapsed().as_nanos() as u64);
            }
            peer_get.allocations += allocations() - before;
        }
    }
    println!("one task");
    let base = raw.show(0.0);
    get.show(base);
    set.show(base);
    #[cfg(feature = "redis")]
    peer_get.show(base);
}

#[cfg(feature = "redis")]
async fn redis_client(address: &str) -> redis::aio::MultiplexedConnection {
    let (host, port) = address.rsplit_once(':').unwrap();
    let settings = redis::io::tcp::TcpSettings::default().set_nodelay(true);
    let address = redis::ConnectionAddr::Tcp(host.to_owned(), port.parse().unwrap());
    let info = redis::IntoConnectionInfo::into_connection_info(address).unwrap().set_tcp_settings(settings);
    let client = redis::Client::open(info).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// What the server has counted.
fn counts(watch: &Client) -> (f64, f64, f64) {
    let info: String = watch.call(cmd("INFO")).wait().unwrap();
    let figure = |name: &str| -> f64 {
        let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.unwrap_or("0").parse().unwrap()
    };
    let cpu = figure("used_cpu_user") + figure("used_cpu_sys");
    (figure("total_commands_processed"), figure("total_reads_processed"), cpu)
}

/// User and system time of this process, in microseconds.
fn cpu_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) * 10_000.0
}

fn key_and_value(task: usize, call: usize) -> (String, String) {
    let number = (task * 7919 + call / 2) % 10_000;
    (format!("load:{number:011}"), format!("{number:064}"))
}

/// A closed loop of so many tasks: SET and GET of a value that says whose it is.
fn burst<C, F>(name: &str, runtime: &Runtime, watch: &Client, tasks: usize, seconds: f64, call: C)
where
    C: Fn(usize, usize) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let (before, cpu, began, allocated) = (counts(watch), cpu_us(), Instant::now(), allocations());
    let calls: usize = runtime.block_on(async {
        let tasks: Vec<_> = (0..tasks)
            .map(|task| {
                let run = call.clone();
                tokio::spawn(async move {
                    let mut calls = 0;
                    while Instant::now() < until {
                        run(task, calls).await;
                        calls += 1;
                    }
                    calls
                })
            })
            .collect();
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        sum
    });
    let (took, cpu, allocated) = (began.elapsed().as_secs_f64(), cpu_us() - cpu, allocations() - allocated);
    let after = counts(watch);
    println!(
        "  {name:<12} {tasks:>6} tasks {:9.0} ops/s {:7.1} commands per server read  CPU per op: client {:5.2} us, server {:5.2} us  allocations {:.2}",
        calls as f64 / took,
        (after.0 - before.0) / (after.1 - before.1),
        cpu / calls as f64,
        (after.2 - before.2) * 1e6 / calls as f64,
        allocated as f64 / calls as f64,
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:6379".to_owned());
    let calls: usize = arguments.next().map_or(20_000, |calls| calls.parse().unwrap());
    let seconds: f64 = arguments.next().map_or(2.0, |seconds| seconds.parse().unwrap());
    let workers: usize = arguments.next().map_or(0, |workers| workers.parse().unwrap());
    let watch = Client::open(&address).unwrap();
    watch.call::<()>(cmd("SET").key(KEY).arg([b'v'; 64].as_slice())).wait().unwrap();
    threads(&address, &Client::open(&address).unwrap(), calls);
    let runtime = match workers {
        0 => tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        workers => tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap(),
    };
    let client = Client::open(&address).unwrap();
    let alone = || {
        let alone = tasks(address.clone(), client.clone(), calls);
        runtime.block_on(async { tokio::spawn(alone).await.unwrap() });
    };
    alone();
    println!("closed loops");
    for tasks in [1, 2, 8, 32, 128, 1000, 10_000] {
        let of_client = client.clone();
        let call = move |task: usize, call: usize| {
            let client = of_client.clone();
            async move {
                let (key, value) = key_and_value(task, call);
                if call % 2 == 0 {
                    client.call::<()>(cmd("SET").key(&key).arg(&value)).await.unwrap();
                } else {
                    let found: Option<Bytes> = client.call(cmd("GET").key(&key)).await.unwrap();
                    assert_eq!(found.as_deref(), Some(value.as_bytes()));
                }
            }
        };
        burst("client", &runtime, &watch, tasks, seconds, call);
        #[cfg(feature = "redis")]
        {
            let peer = runtime.block_on(redis_client(&address));
            let call = move |task: usize, call: usize| {
                let mut peer = peer.clone();
                async move {
                    let (key, value) = key_and_value(task, call);
                    if call % 2 == 0 {
                        redis::cmd("SET").arg(&key).arg(&value).query_async::<()>(&mut peer).await.unwrap();
                    } else {
                        let found: Vec<u8> = redis::cmd("GET").arg(&key).query_async(&mut peer).await.unwrap();
                        assert_eq!(found, value.as_bytes());
                    }
                }
            };
            burst("redis crate", &runtime, &watch, tasks, seconds, call);
        }
    }
    println!("again, on the connection that has had the loops");
    alone();
}
