//! Passwords that have been read or sent are nowhere in the memory of the process any more.

#![cfg(target_os = "linux")]

mod support;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use memchr::memmem;
use respool_testkit::{RedisServer, TempDir, wait_until};
use support::{LIMIT, Running, respool};

/// How often some bytes are in the memory of a process; `None` if we may not look.
fn copies(process_id: u32, bytes: &[u8]) -> Option<usize> {
    let maps = std::fs::read_to_string(format!("/proc/{process_id}/maps")).ok()?;
    let mut memory = File::open(format!("/proc/{process_id}/mem")).ok()?;
    let mut count = 0;
    for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with("rw"))) {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        let mut all = vec![0; usize::try_from(end - start).ok()?];
        memory.seek(SeekFrom::Start(start)).ok()?;
        // What cannot be read, as what the kernel shares with all processes, is no heap.
        if memory.read_exact(&mut all).is_ok() {
            count += memmem::find_iter(&all, bytes).count();
        }
    }
    Some(count)
}

#[test]
fn what_clients_say_in_confidence_is_overwritten() {
    let server = RedisServer::start().expect("redis-server");
    let directory = TempDir::new().expect("a directory");
    let file = directory.join("r.toml");
    // The hash of canary-4711-password; what has it in clear is not in here.
    let hash = "a910e03ea3d5311a1a68613ab56f18598fad3d449e211e025102db55dd111d27";
    let text = format!(
        "listen = \"127.0.0.1:0\"\nworkers = 1\nnodes = \"{}\"\nadmin_commands = \"allow\"\n[users.ann]\nrules = \"on #{hash} ~* &* +@all\"\n",
        server.tcp()
    );
    std::fs::write(&file, text).expect("a file");
    let proxy = Running::start(respool(&["serve", "--config"]).arg(&file));
    let secret = ["canary", "4711", "password"].join("-");
    let at = secret.len() / 2;
    let array = format!("*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n${}\r\n{secret}\r\n", secret.len());
    let split = array.len() - at;
    let scripts: Vec<(Vec<Vec<u8>>, &str)> = vec![
        (vec![array.clone().into_bytes()], "+OK\r\n"),
        (vec![format!("AUTH ann {secret}\r\n").into_bytes()], "+OK\r\n"),
        (vec![format!("AUTH ann \"{secret}\"\r\n").into_bytes()], "+OK\r\n"),
        (vec![array.as_bytes()[..split].to_vec(), array.as_bytes()[split..].to_vec()], "+OK\r\n"),
        (array.as_bytes()[..].chunks(7).map(<[u8]>::to_vec).collect(), "+OK\r\n"),
        (vec![format!("HELLO 3 AUTH ann {secret}\r\n").into_bytes()], "%7"),
        (vec![format!("AUTH missing {secret}\r\n").into_bytes()], "-WRONGPASS"),
        (vec![format!("AUTH a b {secret}\r\n").into_bytes()], "-ERR syntax"),
        (vec![format!("ACL SETUSER bob on >{secret} ~* +@all\r\n").into_bytes()], "+OK\r\n"),
        (vec![format!("CONFIG SET requirepass {secret}\r\n").into_bytes()], "+OK\r\n"),
    ];
    let Some(_) = copies(proxy.process.pid(), b"none") else {
        eprintln!("skipped: we may not look into other processes");
        return;
    };
    for (pieces, expected) in &scripts {
        let mut client = proxy.client(0);
        if *expected == "+OK\r\n" && !pieces[0].starts_with(b"AUTH") && !pieces[0].starts_with(b"*3") {
            assert_eq!(client.ask(&format!("AUTH ann {secret}")).expect("a reply"), "+OK\r\n");
        }
        for piece in pieces {
            client.send(piece).expect("it is taken");
            // So that the next piece comes alone: another client was answered since.
            let mut other = proxy.client(0);
            other.ask("PING").expect("a reply");
        }
        let reply = client.reply().expect("a reply");
        assert!(reply.starts_with(expected.as_bytes()), "{}", String::from_utf8_lossy(&reply));
        wait_until("nothing of it is left", LIMIT, || Ok(copies(proxy.process.pid(), secret.as_bytes()) == Some(0)))
            .unwrap_or_else(|_| panic!("it is left behind {}", String::from_utf8_lossy(&pieces.concat())));
    }
    // In a transaction it is kept until that is over, however it ends.
    for end in ["EXEC", "DISCARD"] {
        let mut client = proxy.client(0);
        assert_eq!(client.ask(&format!("AUTH ann {secret}")).expect("a reply"), "+OK\r\n");
        assert_eq!(client.ask("MULTI").expect("a reply"), "+OK\r\n");
        assert_eq!(client.ask(&format!("ACL SETUSER eve >{secret}")).expect("a reply"), "+QUEUED\r\n");
        client.ask(end).expect("a reply");
        wait_until(end, LIMIT, || Ok(copies(proxy.process.pid(), secret.as_bytes()) == Some(0)))
            .expect("nothing is left");
    }
    // So it is if a client leaves before a request was whole.
    let mut client = proxy.client(0);
    client.send(&array.as_bytes()[..array.len() - 1]).expect("it is taken");
    proxy.client(0).ask("AUTH ann x").expect("a reply");
    drop(client);
    wait_until("nothing of it is left", LIMIT, || {
        proxy.client(0).ask("AUTH ann x")?;
        Ok(copies(proxy.process.pid(), secret.as_bytes()) == Some(0))
    })
    .expect("nothing is left");
    proxy.end();
}

#[test]
fn what_nodes_are_told_in_our_name_is_overwritten() {
    let secret = ["canary", "4712", "password"].join("-");
    let server = RedisServer::start_with(&["--requirepass", &secret]).expect("redis-server");
    let directory = TempDir::new().expect("a directory");
    let file = directory.join("password");
    std::fs::write(&file, &secret).expect("a file");
    let mut command = respool(&["serve", "--listen", "127.0.0.1:0", "--workers", "1", "--node"]);
    command.arg(server.tcp().to_string()).arg("--node-password-file").arg(&file);
    let proxy = Running::start(&mut command);
    // It is kept for later dials, but nowhere as it is sent.
    let sent = format!("\r\n{secret}\r\n");
    if copies(proxy.process.pid(), secret.as_bytes()).is_none() {
        eprintln!("skipped: we may not look into other processes");
        return;
    }
    let (mut client, mut subscriber) = (proxy.client(0), proxy.client(0));
    assert_eq!(client.ask("SET k v").expect("a reply"), "+OK\r\n");
    assert_eq!(subscriber.ask("SUBSCRIBE news").expect("a reply"), "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    assert_eq!(client.ask("WATCH k").expect("a reply"), "+OK\r\n");
    assert_ne!(copies(proxy.process.pid(), secret.as_bytes()), Some(0), "the search finds it");
    wait_until("nothing of it is left", LIMIT, || Ok(copies(proxy.process.pid(), sent.as_bytes()) == Some(0)))
        .expect("nothing is left");
    proxy.end();
}
