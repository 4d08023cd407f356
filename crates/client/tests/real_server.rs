//! Against a redis-server: threads, tasks and both on one connection, cancelled calls, restarts.

use respool_client::{Client, cmd};
use respool_testkit::RedisServer;

fn url(server: &RedisServer) -> String {
    format!("redis://127.0.0.1:{}", server.port())
}

fn client(server: &RedisServer) -> Client {
    Client::open(&url(server)).unwrap()
}

/// A value that says which request it answers, of a size that goes with it.
fn value(key: usize) -> String {
    let size = [10, 60, 300, 5_000][key % 4];
    format!("{key}:{}", "v".repeat(size))
}

/// Every key's value is read and must be its own.
fn check_thread(client: &Client, first: usize, rounds: usize) {
    for round in 0..rounds {
        let key = (first * 31 + round) % 64;
        let name = format!("key:{key}");
        client.call::<()>(cmd("SET").key(&name).arg(value(key))).wait().unwrap();
        let found: String = client.call(cmd("GET").key(&name)).wait().unwrap();
        assert_eq!(found, value(key));
    }
}

async fn check_task(client: Client, first: usize, rounds: usize) {
    for round in 0..rounds {
        let key = (first * 31 + round) % 64;
        let name = format!("key:{key}");
        client.call::<()>(cmd("SET").key(&name).arg(value(key))).await.unwrap();
        let found: String = client.call(cmd("GET").key(&name)).await.unwrap();
        assert_eq!(found, value(key));
    }
}

fn runtime(threads: usize) -> tokio::runtime::Runtime {
    match threads {
        0 => tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        threads => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap(),
    }
}

/// Nothing waits and no place is taken.
#[track_caller]
fn check_idle(client: &Client) {
    let stats = client.stats();
    assert_eq!((stats.in_flight, stats.callers), (0, 0), "{stats:?}");
}

#[test]
fn a_lone_thread_writes_and_reads_by_itself() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    check_thread(&client, 0, 50);
    let stats = client.stats();
    assert_eq!((stats.requests, stats.writes, stats.connections), (100, 100, 1));
    assert!(stats.reads <= 110, "{stats:?}");
    check_idle(&client);
}

#[test]
fn threads_share_one_connection() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let client = &client;
            scope.spawn(move || check_thread(client, thread, 50));
        }
    });
    assert_eq!(client.stats().connections, 1);
    check_idle(&client);
}

#[test]
fn tasks_share_one_connection_and_its_writes() {
    for threads in [0, 2] {
        let server = RedisServer::start().unwrap();
        let client = client(&server);
        runtime(threads).block_on(async {
            let tasks: Vec<_> = (0..100).map(|task| tokio::spawn(check_task(client.clone(), task, 20))).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        let stats = client.stats();
        assert_eq!((stats.requests, stats.connections), (4_000, 1));
        assert!(stats.writes < 2_000, "{stats:?}");
        check_idle(&client);
    }
}

#[test]
fn threads_and_tasks_share_one_connection() {
    for threads in [0, 2] {
        let server = RedisServer::start().unwrap();
        let client = client(&server);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let client = &client;
                scope.spawn(move || check_thread(client, thread, 50));
            }
            runtime(threads).block_on(async {
                let tasks: Vec<_> = (0..20).map(|task| tokio::spawn(check_task(client.clone(), task, 20))).collect();
                for task in tasks {
                    task.await.unwrap();
                }
            });
        });
        assert_eq!(client.stats().connections, 1);
        check_idle(&client);
    }
}
