//! A program that is a proxy over two engines of its own, for as long as it takes to ask it something.

use std::io::{Read, Write};
use std::net::TcpStream;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let respool = respool::Builder::new().listen("127.0.0.1:0").node("embedded:").node("embedded:").start()?;
    let mut client = TcpStream::connect(respool.addresses()[0].to_string())?;
    client.write_all(b"SET greeting hello\r\nGET greeting\r\n")?;
    let mut replies = [0; 16];
    client.read_exact(&mut replies)?;
    assert_eq!(&replies, b"+OK\r\n$5\r\nhello\r\n");
    print!("{}", respool.metrics().lines().filter(|line| line.contains("requests_total")).collect::<String>());
    Ok(respool.shut_down()?)
}
