//! A child process that is watched, signalled and always killed by its own id.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use rustix::process::{Pid, Signal, kill_process};

/// Lines of output that are kept, oldest dropped first.
const LINES_MAX: usize = 1_000;
/// How long tests wait for what has to come. A machine that stands still for seconds does not use it up, and only a defect
/// does: nothing gets slower by it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Children that were started and not yet ended.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Kills every child that was started through [`Process`] and still runs, for a program that is about to end without
/// unwinding.
pub fn kill_running() {
    for pid in RUNNING.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // One that has ended already needs nothing.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// A running child. Its output is read all the time (a full pipe would stop it) and the last lines are kept; dropping
/// it kills it and waits for it.
pub struct Process {
    name: String,
    child: Child,
    output: Arc<Output>,
}

#[derive(Default)]
struct Output {
    state: Mutex<OutputState>,
    changed: Condvar,
}

#[derive(Default)]
struct OutputState {
    lines: VecDeque<String>,
    /// Lines ever seen, those dropped included: a reader's place in the stream.
    lines_seen: usize,
    streams_closed: usize,
}

impl Process {
    /// Starts `command` with its output captured and no input.
    pub fn spawn(name: impl Into<String>, command: &mut Command) -> io::Result<Process> {
        let name = name.into();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot start {name}: {error}")))?;
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(Pid::from_child(&child));
        let output = Arc::new(Output::default());
        for stream in [
            child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
            child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        ] {
            let stream = stream.expect("both streams were asked for as pipes");
            let output = Arc::clone(&output);
            thread::spawn(move || output.follow(stream));
        }
        Ok(Process { name, child, output })
    }

    /// Waits until a line that contains `text` was printed, from the start of the output. Fails with the output so far
    /// when the process ends first or `limit` passes.
    pub fn wait_for_line(&self, text: &str, limit: Duration) -> io::Result<String> {
        let deadline = Instant::now() + limit;
        let mut state = self.output.lock();
        let mut checked = 0;
        loop {
            let kept_from = state.lines_seen - state.lines.len();
            let unseen = state.lines.iter().skip(checked.max(kept_from) - kept_from);
            if let Some(line) = unseen.into_iter().find(|line| line.contains(text)) {
                return Ok(line.clone());
            }
            checked = state.lines_seen;
            let left = deadline.saturating_duration_since(Instant::now());
            if state.streams_closed == 2 || left.is_zero() {
                let what = if left.is_zero() { "was not ready in time" } else { "ended before it was ready" };
                let said: Vec<_> = state.lines.iter().map(String::as_str).collect();
                let message = format!("{} {what}; it said:\n{}", self.name, said.join("\n"));
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            state = self.output.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The last lines of standard output and standard error, in the order they were read.
    pub fn output(&self) -> Vec<String> {
        self.output.lock().lines.iter().cloned().collect()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to this process alone.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// How the process ended, or `None` while it runs.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits at most `limit` for the process to end by itself.
    pub fn wait(&mut self, limit: Duration) -> io::Result<ExitStatus> {
        let mut status = None;
        wait_until(&format!("{} has ended", self.name), limit, || {
            status = self.child.try_wait()?;
            Ok(status.is_some())
        })?;
        Ok(status.expect("the wait ended with a status"))
    }

    /// Waits at most `limit` for the process to end by itself and returns the last lines that it said. One that is
    /// still there then is killed, and is an error.
    pub fn finish(&mut self, limit: Duration) -> io::Result<(ExitStatus, Vec<String>)> {
        let deadline = Instant::now() + limit;
        let mut state = self.output.lock();
        while state.streams_closed < 2 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let said: Vec<_> = state.lines.iter().cloned().collect();
                drop(state);
                self.kill()?;
                let message = format!("{} did not end within {limit:?}; it said: {}", self.name, said.join(" / "));
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            state = self.output.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        // Closing the streams is the last thing that most do.
        let status = self.wait(deadline.saturating_duration_since(Instant::now()).max(PATIENCE))?;
        Ok((status, self.output()))
    }

    /// Kills the process and waits until it is gone.
    pub fn kill(&mut self) -> io::Result<()> {
        if self.child.try_wait()?.is_none() {
            self.child.kill()?;
        }
        self.child.wait()?;
        let pid = Pid::from_child(&self.child);
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|&running| running != pid);
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and nothing else ends the child.
        let _ = self.kill();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid())
    }
}

impl Output {
    fn lock(&self) -> std::sync::MutexGuard<'_, OutputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, stream: impl Read) {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            let mut state = self.lock();
            state.lines_seen += 1;
            state.lines.push_back(text);
            if state.lines.len() > LINES_MAX {
                state.lines.pop_front();
            }
            self.changed.notify_all();
        }
        self.lock().streams_closed += 1;
        self.changed.notify_all();
    }
}

/// Asks `is_so` again and again until it says yes; fails with `what` after `limit`.
///
/// For conditions outside this process that are not announced (a socket appears, memory is returned).
pub fn wait_until(what: &str, limit: Duration, mut is_so: impl FnMut() -> io::Result<bool>) -> io::Result<()> {
    let deadline = Instant::now() + limit;
    loop {
        if is_so()? {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("waited {limit:?} in vain until {what}")));
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        Process::spawn("sh", Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn who_ends_has_said_everything() {
        let (status, said) = shell("echo one; echo two >&2; exit 3").finish(Duration::from_secs(20)).unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(said.contains(&"one".into()) && said.contains(&"two".into()), "{said:?}");
    }

    #[test]
    fn who_does_not_end_is_killed() {
        let mut process = shell("echo before; exec sleep 600");
        process.wait_for_line("before", Duration::from_secs(20)).unwrap();
        let error = process.finish(Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("before"), "{error}");
        assert!(process.try_wait().unwrap().is_some());
    }
}
