//! The end of a process: what it has taken from clients is done before, whether they want to hear of it or not.

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use respool_testkit::{Address, Client, PATIENCE, Process, RedisServer, Respool, TempDir, wait_until};
use rustix::process::Signal;

use super::proxy;

const WRITES: usize = 2_000;

/// The node does nothing for as long as the test takes, and is still waited for.
const PATIENT: [&str; 4] = ["--request-timeout", "60s", "--node-silence-timeout", "60s"];

/// A proxy has taken writes without replies, while its node does nothing; then it is told to end.
fn ends_with_writes(proxy: &mut Respool, node: &RedisServer, is_gone: bool) -> io::Result<()> {
    let mut other = proxy.client()?;
    let mut client = proxy.client()?;
    // Its connection is there: what cannot be dialled is not waited for.
    client.ask("DEL key0")?;
    let before = other.figure("proxy", "requests")? as usize;
    node.pause()?;
    let writes: String = (0..WRITES).map(|number| format!("SET key{number} {}\r\n", "x".repeat(100))).collect();
    client.send(format!("CLIENT REPLY OFF\r\n{writes}").as_bytes())?;
    wait_until("all is taken", PATIENCE, || Ok(other.figure("proxy", "requests")? as usize > before + WRITES))?;
    if is_gone {
        drop(client);
    } else {
        // It stays, and is closed once all is done.
        std::thread::spawn(move || client.read_to_close());
    }
    proxy.process().signal(Signal::TERM)
}

#[test]
fn writes_without_replies_are_done_before_the_process_ends() -> io::Result<()> {
    for mode in ["multiplex", "session"] {
        for is_gone in [false, true] {
            let node = RedisServer::start()?;
            let mut proxy =
                proxy(&[node.tcp()], &[&PATIENT[..], &["--drain-timeout", "60s", "--pool-mode", mode]].concat())?;
            ends_with_writes(&mut proxy, &node, is_gone)?;
            // It would have ended by now.
            std::thread::sleep(Duration::from_millis(500));
            assert!(proxy.process().try_wait()?.is_none(), "{mode}: it does not end before its node has them");
            node.resume()?;
            assert!(proxy.process().wait(PATIENCE)?.success());
            assert_eq!(node.client()?.ask("DBSIZE")?, format!(":{WRITES}\r\n"), "{mode}, gone: {is_gone}");
        }
    }
    Ok(())
}

#[test]
fn what_the_drain_timeout_cuts_off_is_in_the_log() -> io::Result<()> {
    let node = RedisServer::start()?;
    let mut proxy = proxy(&[node.tcp()], &[&PATIENT[..], &["--drain-timeout", "300ms"]].concat())?;
    ends_with_writes(&mut proxy, &node, true)?;
    assert!(proxy.process().wait(PATIENCE)?.success());
    let words = format!("{WRITES} requests have not been answered by their nodes");
    assert!(proxy.output().iter().any(|line| line.contains(&words)), "{:?}", proxy.output());
    node.resume()
}

#[test]
fn who_waits_when_the_process_ends_is_closed_without_a_word() -> io::Result<()> {
    let node = RedisServer::start()?;
    for mut server in [proxy(&[node.tcp()], &[])?, proxy(&[], &[])?] {
        let mut waiter = server.client()?;
        waiter.send(b"ECHO before\r\nBLPOP q 0\r\nSET ran yes\r\n")?;
        wait_until("it waits", PATIENCE, || Ok(server.client()?.ask("CLIENT LIST")?.contains("flags=b")))?;
        server.process().signal(Signal::TERM)?;
        assert_eq!(waiter.read_to_close()?, super::bulk("before"));
        assert!(server.process().wait(PATIENCE)?.success());
    }
    assert_eq!(node.client()?.ask("EXISTS ran")?, ":0\r\n");
    Ok(())
}

#[test]
fn an_end_without_a_snapshot_does_not_wait_for_a_late_script() -> io::Result<()> {
    const BUSY: &str = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";
    let respool = env!("CARGO_BIN_EXE_respool");
    for (program, server, engines) in
        [("redis-server", None, "1"), (respool, Some("server"), "1"), (respool, Some("server"), "4")]
    {
        let directory = TempDir::new()?;
        let mut command = Command::new(program);
        command.args(server).args(["--port", "0", "--unixsocket", "s.sock", "--save", ""]);
        // An end that waits does so for longer than this test.
        command.args(["--busy-reply-threshold", "20", "--shutdown-timeout", "120"]);
        command.env("RESPOOL_ENGINE_THREADS", engines).current_dir(directory.path()).stdin(Stdio::null());
        let mut process = Process::spawn("a server", &mut command)?;
        process.wait_for_line("eady to accept connections", PATIENCE)?;
        let connect = || Client::connect(&Address::Unix(directory.path().join("s.sock")));
        let (mut client, mut other) = (connect()?, connect()?);
        client.send_command(&["EVAL", "while true do end", "1", "k"])?;
        wait_until("others are served", PATIENCE, || Ok(other.ask("GET k")? == BUSY))?;
        for request in ["SHUTDOWN", "SHUTDOWN NOW", "SHUTDOWN SAVE FORCE"] {
            assert_eq!(other.ask(request)?, BUSY, "{program}, {engines} engines: {request}");
        }
        other.send(b"SHUTDOWN NOSAVE\r\nPING\r\n")?;
        assert_eq!(other.read_to_close()?, b"", "{program}, {engines} engines");
        assert!(connect().is_err(), "{program}, {engines} engines: its connection has ended before the server");
        assert!(process.wait(PATIENCE)?.success());
    }
    Ok(())
}
