//! Nodes that die and return, clients that do not read, and the end of the program.

use std::io;

use respool_testkit::{PATIENCE, RedisServer, proc_stats, request, wait_until};

use super::{Four, assert_error, bulk, proxy, value_of, wait_for_reply};

#[test]
fn a_dead_node_costs_only_its_own_keys_and_returns_by_itself() -> io::Result<()> {
    let mut four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    four.servers[2].kill()?;
    for _ in 0..5 {
        let pipeline: Vec<u8> = four.keys.iter().flat_map(|key| request(&["GET", key])).collect();
        client.send(&pipeline)?;
        for (node, key) in four.keys.iter().enumerate() {
            let reply = client.reply()?;
            match node {
                2 => assert_error(&reply, "the dead node's key"),
                _ => assert_eq!(reply, bulk(&value_of(key))),
            }
        }
    }
    four.servers[2].restart()?;
    wait_for_reply(&mut client, &["SET", &four.keys[2], "back"], b"+OK\r\n")?;
    assert_eq!(client.command(&["GET", &four.keys[2]])?, bulk("back"));
    Ok(())
}

#[test]
fn late_replies_of_a_node_given_up_are_swallowed() -> io::Result<()> {
    let four = Four::start(&["--request-timeout", "2s"])?;
    let mut client = four.proxy.client()?;
    let mut bystander = four.proxy.client()?;
    four.servers[1].pause()?;
    client.send_command(&["GET", &four.keys[1]])?;
    for key in [&four.keys[0], &four.keys[2], &four.keys[3]] {
        assert_eq!(bystander.command(&["GET", key])?, bulk(&value_of(key)));
    }
    let reply = client.reply()?;
    assert_error(&reply, "the stopped node's key");
    assert_eq!(client.command(&["GET", &four.keys[3]])?, bulk(&value_of(&four.keys[3])));
    four.servers[1].resume()?;
    for key in &four.keys {
        wait_for_reply(&mut client, &["GET", key], &bulk(&value_of(key)))?;
        wait_for_reply(&mut bystander, &["GET", key], &bulk(&value_of(key)))?;
    }
    Ok(())
}

#[test]
fn a_node_that_is_not_there_at_the_start_is_found_later() -> io::Result<()> {
    let mut server = RedisServer::start()?;
    server.kill()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut client = proxy.client()?;
    assert_error(&client.command(&["GET", "k"])?, "no node");
    assert_eq!(client.ask("ECHO x")?, "$1\r\nx\r\n");
    server.restart()?;
    wait_for_reply(&mut client, &["SET", "k", "v"], b"+OK\r\n")
}

/// Many large replies to a client that does not read them: others are served, memory stays bounded.
#[test]
fn a_client_that_does_not_read_is_cut_off_alone() -> io::Result<()> {
    let server = RedisServer::start()?;
    let budgets = ["--client-output-soft-bytes", "1mb", "--client-output-hard-bytes", "8mb"];
    let proxy = proxy(&[server.tcp()], &budgets)?;
    let mut good = proxy.client()?;
    let value = "x".repeat(1 << 20);
    good.command(&["SET", "large", &value])?;
    good.ask("SET small v")?;
    let before = proc_stats::resident_bytes(proxy.pid())?;
    let mut greedy = Vec::new();
    for _ in 0..5 {
        let mut client = proxy.client()?;
        // It may be cut off before all is sent.
        let _ = client.send(&request(&["GET", "large"]).repeat(40));
        greedy.push(client);
    }
    for _ in 0..200 {
        assert_eq!(good.ask("GET small")?, "$1\r\nv\r\n");
    }
    assert_eq!(good.command(&["GET", "large"])?.len(), value.len() + 12);
    let grown = proc_stats::resident_bytes(proxy.pid())?.saturating_sub(before);
    assert!(grown < 100 << 20, "{} MB for five clients of 8 MB", grown >> 20);
    drop(greedy);
    wait_until("memory is given back", PATIENCE, || {
        assert_eq!(good.ask("GET small")?, "$1\r\nv\r\n");
        Ok(proc_stats::resident_bytes(proxy.pid())? < before + (32 << 20))
    })
}

#[test]
fn what_an_embedded_server_has_stored_can_be_read() -> io::Result<()> {
    let server = proxy(&[], &["--client-output-soft-bytes", "64kb", "--client-output-hard-bytes", "1mb"])?;
    let mut client = server.client()?;
    let value = "x".repeat(3 << 20);
    client.command(&["SET", "large", &value])?;
    // One reply may be larger than all that may wait, a second one is not made before it is taken.
    client.send(&request(&["GET", "large"]).repeat(5))?;
    for _ in 0..5 {
        assert_eq!(client.reply()?.len(), value.len() + 12);
    }
    assert_eq!(client.command(&["MGET", "large", "large", "none"])?.len(), 2 * (value.len() + 12) + 9);
    // What piles up is bounded as ever.
    let mut greedy = server.client()?;
    greedy.send(&[request(&["MULTI"]), request(&["GET", "large"]).repeat(40), request(&["EXEC"])].concat())?;
    let answered = greedy.read_to_close()?.len();
    assert!(answered < 8 * value.len(), "{answered} bytes");
    assert_eq!(client.ask("PING")?, "+PONG\r\n");
    Ok(())
}

/// The process as a whole holds too much: the client that holds the most is closed, the others stay and are served.
#[test]
fn the_largest_client_goes_when_memory_runs_out() -> io::Result<()> {
    let server = RedisServer::start()?;
    let budgets = ["--process-bytes", "16mb", "--client-output-soft-bytes", "1gb", "--client-output-hard-bytes", "2gb"];
    let proxy = proxy(&[server.tcp()], &budgets)?;
    let mut good = proxy.client()?;
    good.command(&["SET", "large", &"x".repeat(1 << 20)])?;
    good.ask("SET small v")?;
    let mut modest = proxy.client()?;
    modest.send(&request(&["GET", "large"]).repeat(6))?;
    let mut greedy = proxy.client()?;
    greedy.send(&request(&["GET", "large"]).repeat(40))?;
    // While memory is short no client is read, so the answer to this comes once the greedy one has gone.
    wait_until("the greedy one is cut off", PATIENCE, || {
        assert_eq!(good.ask("GET small")?, "$1\r\nv\r\n");
        Ok(good.ask("INFO proxy")?.contains("clients_cut_off_for_memory:1"))
    })?;
    assert!(greedy.replies(40).is_err(), "what it was owed is gone");
    for reply in modest.replies(6)? {
        assert_eq!(reply.len(), (1 << 20) + 12);
    }
    Ok(())
}

#[test]
fn who_says_no_evict_stays_when_memory_runs_out() -> io::Result<()> {
    let server = RedisServer::start()?;
    let budgets = ["--process-bytes", "16mb", "--client-output-soft-bytes", "1gb", "--client-output-hard-bytes", "2gb"];
    let proxy = proxy(&[server.tcp()], &budgets)?;
    let mut good = proxy.client()?;
    good.command(&["SETRANGE", "large", &((1 << 20) - 1).to_string(), "x"])?;
    let mut spared = proxy.client()?;
    assert_eq!(spared.ask("CLIENT NO-EVICT ON")?, "+OK\r\n");
    // As much as the process may hold but for two replies: no other holds more of it.
    spared.send(&request(&["GET", "large"]).repeat(13))?;
    let mut other = proxy.client()?;
    other.send(&request(&["GET", "large"]).repeat(15))?;
    wait_until("the other one is cut off, which holds less", PATIENCE, || {
        Ok(proxy
            .output()
            .iter()
            .any(|line| line.contains("is disconnected: the process holds more than process_bytes")))
    })?;
    assert!(other.replies(15).is_err(), "what it was owed is gone");
    for reply in spared.replies(13)? {
        assert_eq!(reply.len(), (1 << 20) + 12);
    }
    Ok(())
}

/// A client that reads slowly but steadily gets everything.
#[test]
fn a_slow_reader_gets_all_of_a_large_reply() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut client = proxy.client()?;
    let value = "x".repeat(5 << 20);
    client.command(&["SET", "large", &value])?;
    client.send(&request(&["GET", "large"]).repeat(3))?;
    let mut other = proxy.client()?;
    for _ in 0..100 {
        assert_eq!(other.ask("PING")?, "+PONG\r\n");
        assert_eq!(other.ask("STRLEN large")?, ":5242880\r\n");
    }
    for reply in client.replies(3)? {
        assert_eq!(reply.len(), value.len() + 12);
    }
    Ok(())
}

#[test]
fn all_is_given_back_when_clients_are_gone() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &[])?;
    let mut stays = proxy.client()?;
    assert_eq!(stays.ask("SET k v")?, "+OK\r\n");
    let before = proc_stats::open_files(proxy.pid())?;
    for _ in 0..5 {
        let mut clients = Vec::new();
        for _ in 0..50 {
            let mut client = proxy.client()?;
            client.send(b"GET k\r\nGET k\r\nGET")?;
            clients.push(client);
        }
        drop(clients);
    }
    wait_until("descriptors are given back", PATIENCE, || Ok(proc_stats::open_files(proxy.pid())? <= before))
}

#[test]
fn sigterm_answers_what_is_under_way_and_ends() -> io::Result<()> {
    let mut four = Four::start(&[])?;
    let mut client = four.proxy.client()?;
    let pipeline: Vec<u8> = four.keys.iter().cycle().take(400).flat_map(|key| request(&["GET", key])).collect();
    client.send(&pipeline)?;
    assert_eq!(client.reply()?, bulk(&value_of(&four.keys[0])));
    let status = four.proxy.terminate(PATIENCE)?;
    assert!(status.success(), "{status}");
    let rest = client.read_to_close()?;
    let expected: Vec<u8> = four.keys.iter().cycle().take(400).skip(1).flat_map(|key| bulk(&value_of(key))).collect();
    assert!(rest == expected, "{} of {} bytes came", rest.len(), expected.len());
    Ok(())
}

#[test]
fn there_is_room_for_the_files_of_all_clients_before_they_come() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = proxy(&[server.tcp()], &["--max-clients", "3000"])?;
    let room = proc_stats::room_for_files(proxy.pid())?;
    assert!(room >= 3_000, "{room}");
    Ok(())
}
