//! How a program that keeps sessions in Redis is tested without Redis: with a server in the test's own process, whose clock the
//! test moves, and which fails when the test says so.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use respool::test_server::{Data, Fault, Stored, TestServer};

/// What is tested. It speaks to Redis by any client; here by its lines, to show what the server sees.
struct Sessions {
    connection: BufReader<TcpStream>,
}

impl Sessions {
    fn connect(address: &str) -> Result<Self, Box<dyn Error>> {
        Ok(Self { connection: BufReader::new(TcpStream::connect(address)?) })
    }

    fn log_in(&mut self, user: &str) -> Result<(), Box<dyn Error>> {
        match self.ask(&format!("SET session:{user} here EX 1800"))?.as_str() {
            "+OK" => Ok(()),
            error => Err(error.into()),
        }
    }

    fn is_logged_in(&mut self, user: &str) -> Result<bool, Box<dyn Error>> {
        Ok(self.ask(&format!("EXISTS session:{user}"))? == ":1")
    }

    fn next_job(&mut self) -> Result<Option<String>, Box<dyn Error>> {
        if self.ask("BLPOP jobs 30")? == "*-1" {
            return Ok(None);
        }
        // A pair of bulk strings: the key and the element.
        let lines = [self.line()?, self.line()?, self.line()?, self.line()?];
        Ok(lines.last().cloned())
    }

    fn ask(&mut self, request: &str) -> Result<String, Box<dyn Error>> {
        self.connection.get_mut().write_all(format!("{request}\r\n").as_bytes())?;
        self.line()
    }

    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        match self.connection.read_line(&mut line)? {
            0 => Err("the connection was closed".into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let within = Duration::from_secs(10);
    let server = TestServer::builder().frozen().start()?;
    let mut sessions = Sessions::connect(&server.address())?;

    // A session lasts half an hour, which takes no time.
    sessions.log_in("ann")?;
    assert_eq!(server.database(0).get("session:ann"), Some(Stored::String(b"here".to_vec())));
    server.clock().advance(Duration::from_secs(1799));
    assert!(sessions.is_logged_in("ann")?, "{}", server.dump());
    server.clock().advance(Duration::from_secs(1));
    assert!(!sessions.is_logged_in("ann")?, "{}", server.dump());

    // A worker waits for a job. The test knows when it has begun to, and needs no sleep.
    let mut worker = Sessions::connect(&server.address())?;
    let job = thread::spawn(move || worker.next_job().map_err(|error| error.to_string()));
    assert!(server.wait_for_blocked(1, within));
    server.clock().advance(Duration::from_secs(30));
    assert_eq!(job.join().expect("it does not panic")?, None, "its time is over");

    // What becomes of the program when the server is out of memory, and when it restarts.
    let full =
        server.inject(Fault::error("OOM command not allowed when used memory > 'maxmemory'.").on("SET").times(1));
    assert!(sessions.log_in("bob").is_err());
    assert_eq!(full.met(), 1);
    sessions.log_in("bob")?;
    server.restart(Data::Kept)?;
    assert!(sessions.is_logged_in("bob").is_err(), "this connection was closed");
    assert!(Sessions::connect(&server.address())?.is_logged_in("bob")?);
    println!("{} requests, the last was {}", server.commands_seen(), server.last_commands(1)[0]);
    Ok(())
}
