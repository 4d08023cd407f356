//! A low limit on open files: the process serves as many clients as the log says, refuses the others, and connections to
//! nodes are kept possible.

mod support;

use std::fs;
use std::process::Command;

use respool_testkit::{Address, Client, RedisServer, TempDir, wait_until};
use rustix::process::Signal;
use support::{LIMIT, Running};

const TOLD: &[u8] = b"-ERR max number of clients reached\r\n";

/// `respool serve`, started by a shell that has set limits with these commands.
fn limited(limits: &str, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.env_clear().args(["-c", &format!("{limits}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_respool"), "serve"]);
    command.args(["--listen", "127.0.0.1:0", "--workers", "2"]).args(args);
    command
}

/// The number to which `max_clients` was lowered, by the last such line of the log.
fn lowered(respool: &Running, from: usize) -> usize {
    let start = format!("max_clients is lowered from {from} to ");
    respool.says(&start);
    let lines = respool.process.output();
    let line = lines.iter().rfind(|line| line.contains(&start)).expect("it was said");
    let rest = &line[line.find(&start).expect("it is there") + start.len()..];
    rest.split(',').next().and_then(|number| number.parse().ok()).expect("a number")
}

fn connect(respool: &Running, count: usize) -> Vec<Client> {
    (0..count).map(|_| respool.client(0)).collect()
}

/// The clients that are served. The others have got the error.
fn served(clients: Vec<Client>) -> Vec<Client> {
    let is_served = |client: &mut Client| {
        client.set_timeout(LIMIT).expect("a timeout");
        // The connection of a refused client may be reset after the error.
        let _ = client.send(b"GET x\r\n");
        let reply = client.reply().expect("a reply");
        assert!(reply == b"$-1\r\n" || reply == TOLD, "{}", String::from_utf8_lossy(&reply));
        reply != TOLD
    };
    clients.into_iter().filter_map(|mut client| is_served(&mut client).then_some(client)).collect()
}

#[test]
fn as_many_clients_are_served_as_the_log_says() {
    let node = RedisServer::start().expect("a redis-server");
    let args = ["--node", &node.tcp().to_string(), "--metrics", "127.0.0.1:0"];
    let respool = Running::start(&mut limited("ulimit -n 64", &args));
    let most = lowered(&respool, 10_000);
    assert!((8..40).contains(&most), "{most}");
    let mut all = served(connect(&respool, 100));
    assert_eq!(all.len(), most);
    assert_eq!(all[0].figure("clients", "maxclients").expect("a figure"), most as u64);
    assert_eq!(all[0].figure("proxy", "clients_refused").expect("a figure"), 100 - most as u64);
    all.truncate(1);
    wait_until("the others have left", LIMIT, || Ok(all[0].figure("clients", "connected_clients")? == 1)).expect("so");
    assert_eq!(served(connect(&respool, 100)).len(), most - 1, "what was given back is given out again");
    respool.end();
}

#[test]
fn nodes_take_what_clients_leave_and_no_node_is_blamed() {
    let node = RedisServer::start().expect("a redis-server");
    let respool = Running::start(&mut limited("ulimit -n 64", &["--node", &node.tcp().to_string()]));
    let most = lowered(&respool, 10_000);
    let mut all = served(connect(&respool, most));
    assert_eq!(all.len(), most);
    let mut first = all.pop().expect("there is one");
    for client in &mut all {
        client.send(b"BLPOP nothing 0\r\n").expect("it is sent");
    }
    // Eight connections are kept for nodes. Some of the blocked requests get one each, the others an error.
    wait_until("they wait or were refused", LIMIT, || {
        let waiting = first.figure("clients", "blocked_clients")?;
        let refused = first.figure("proxy", "dials_without_descriptor")?;
        Ok(waiting > 0 && waiting < 8 && refused > 0)
    })
    .expect("so");
    assert_eq!(first.figure("proxy", "nodes_ejected").expect("a figure"), 0);
    assert_eq!(first.ask("SET x 1").expect("a reply"), "+OK\r\n");
    // After most clients have left, their descriptors serve connections to nodes.
    all.truncate(2);
    wait_until("the others have left", LIMIT, || Ok(first.figure("clients", "connected_clients")? == 3)).expect("so");
    wait_until("one more connection is made", LIMIT, || {
        let mut late = respool.client(0);
        late.set_timeout(LIMIT)?;
        Ok(late.ask("BLPOP nothing 0.01")? == "*-1\r\n")
    })
    .expect("so");
    respool.end();
}

#[test]
fn a_start_with_too_few_files_says_how_many_it_takes() {
    let args = ["--nodes", "127.0.0.1:1,127.0.0.1:2"];
    let refused = limited("ulimit -n 24", &args).output().expect("it runs");
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && words.contains("may have 24 files open and needs at least "), "{words}");
    let needed = words.split("at least ").nth(1).and_then(|rest| rest.split(':').next()).expect("a number");
    // Neither process inherits files of this test: the limit suffices for exactly one client.
    let respool = Running::start(&mut limited(&format!("ulimit -n {needed}"), &args));
    assert_eq!(lowered(&respool, 10_000), 1);
    let mut clients = connect(&respool, 2);
    let replies: Vec<_> = clients.iter_mut().map(|client| client.ask("PING").expect("a reply")).collect();
    assert_eq!(replies.iter().filter(|reply| *reply == "+PONG\r\n").count(), 1, "{replies:?}");
    respool.end();
}

#[test]
fn a_shells_limit_is_raised_as_far_as_the_system_allows() {
    let respool = Running::start(&mut limited("ulimit -Hn 512; ulimit -Sn 20", &["--max-clients", "300"]));
    assert_eq!(respool.client(0).figure("clients", "maxclients").expect("a figure"), 300);
    respool.end();
}

#[test]
fn a_reload_shares_the_files_out_anew() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.join("r.toml");
    let write = |clients: usize, nodes: &str| {
        fs::write(&file, format!("max_clients = {clients}\nnodes = \"{nodes}\"\n")).expect("a file");
    };
    write(4, "127.0.0.1:1");
    let respool = Running::start(limited("ulimit -n 80", &["--config"]).arg(&file));
    let mut client = respool.client(0);
    assert_eq!(client.figure("clients", "maxclients").expect("a figure"), 4);
    let mut reload =
        |clients: usize, nodes: &str| {
            write(clients, nodes);
            respool.process.signal(Signal::HUP).expect("it is there");
            let most = lowered(&respool, clients);
            wait_until("the worker has taken it over", LIMIT, || {
                Ok(client.figure("clients", "maxclients")? == most as u64)
            })
            .expect("so");
            most
        };
    let with_one = reload(500, "127.0.0.1:1");
    let with_two = reload(600, "127.0.0.1:1,127.0.0.1:2");
    assert_eq!(with_one - with_two, 8, "four connections of each worker");
    respool.end();
}

#[test]
fn a_successor_counts_the_listeners_that_it_is_given() {
    let directory = TempDir::new().expect("a directory");
    let [door, control] = ["door", "takeover"].map(|name| directory.join(name).display().to_string());
    // A successor would wait for nodes otherwise.
    let nodes = ["--node", "127.0.0.1:1", "--ready-nodes", "0"];
    let args = [&["--listen", &door, "--takeover-socket", &control, "--drain-timeout", "100ms"], &nodes[..]].concat();
    let mut before = Running::start(&mut limited("ulimit -n 64", &args));
    let most = lowered(&before, 10_000);
    let args = [&args[..], &["--take-over", &control]].concat();
    let after = Running::start(&mut limited("ulimit -n 64", &args));
    before.await_end();
    let most_after = lowered(&after, 10_000);
    assert!(most.abs_diff(most_after) <= 2, "{most} and then {most_after}");
    let connect = |_| Client::connect(&Address::Unix(door.clone().into())).expect("it accepts");
    let mut clients: Vec<Client> = (0..60).map(connect).collect();
    let is_served = |client: &mut Client| {
        let _ = client.send(b"ECHO x\r\n");
        client.reply().expect("a reply") != TOLD
    };
    assert_eq!(clients.iter_mut().filter_map(|client| is_served(client).then_some(())).count(), most_after);
    after.end();
}
