//! Standard output for people and pipes: a reader that stops reading is no failure.

use std::io::{self, Write};

/// Prints a text and flushes it. A closed pipe (`respool man | head`) counts as printed.
///
/// # Errors
/// What the system says when writing fails otherwise, such as a full disk.
pub fn print(text: &str) -> io::Result<()> {
    write_to(&mut io::stdout().lock(), text)
}

/// Prints a text to standard error; there is nowhere left to report that this failed.
pub fn complain(text: &str) {
    let _ = write_to(&mut io::stderr().lock(), text);
}

fn write_to(sink: &mut impl Write, text: &str) -> io::Result<()> {
    match sink.write_all(text.as_bytes()).and_then(|()| sink.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Refusing(io::ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_no_failure_and_a_full_disk_is_one() {
        assert!(write_to(&mut Refusing(io::ErrorKind::BrokenPipe), "x").is_ok());
        assert!(write_to(&mut Refusing(io::ErrorKind::StorageFull), "x").is_err());
    }
}
