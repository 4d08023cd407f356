//! What a process has used so far, as Linux tells it under `/proc`.

use std::time::Duration;
use std::{fs, io};

/// Processor time of all threads of the process that still live, to the nanosecond.
pub fn processor_time(pid: u32) -> io::Result<Duration> {
    let mut nanoseconds = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between listing and reading; the ones that matter here do not.
        let Ok(text) = fs::read_to_string(entry?.path().join("schedstat")) else { continue };
        nanoseconds += first_number(&text)?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Processor time that the host of this machine gave to others while something here was ready to run, of all processors. The
/// kernel tells it in hundredths of a second.
pub fn stolen_time() -> io::Result<Duration> {
    let text = fs::read_to_string("/proc/stat")?;
    // After the word "cpu": user, nice, system, idle, iowait, irq, softirq, steal.
    let column = text.lines().next().and_then(|line| line.split_whitespace().nth(8)).unwrap_or_default();
    first_number(column).map(|hundredths| Duration::from_millis(10 * hundredths))
}

/// How long a thread of the process was ready to run and had no processor, to the nanosecond.
pub fn processor_wait(pid: u32, thread: u32) -> io::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat"))?;
    // Behind the time that it has run.
    first_number(text.split_once(' ').map_or("", |(_, rest)| rest)).map(Duration::from_nanos)
}

/// Memory that is resident now, in bytes.
pub fn resident_bytes(pid: u32) -> io::Result<u64> {
    status_number(pid, "VmRSS:").map(|kilobytes| kilobytes * 1024)
}

/// The most memory that was resident at once since the start or [`reset_peak`], in bytes.
pub fn peak_resident_bytes(pid: u32) -> io::Result<u64> {
    status_number(pid, "VmHWM:").map(|kilobytes| kilobytes * 1024)
}

/// Starts the measurement of [`peak_resident_bytes`] anew. Needs the same user as the process, or root.
pub fn reset_peak(pid: u32) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

/// File descriptors that are open.
pub fn open_files(pid: u32) -> io::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// File descriptors that the kernel has made room for.
pub fn room_for_files(pid: u32) -> io::Result<u64> {
    status_number(pid, "FDSize:")
}

/// The ids of the process's threads.
pub fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let names = fs::read_dir(format!("/proc/{pid}/task"))?;
    names.map(|entry| Ok(entry?.file_name().to_string_lossy().parse().expect("thread ids are numbers"))).collect()
}

fn status_number(pid: u32, field: &str) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    first_number(line.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no {field} line")))?)
}

fn first_number(text: &str) -> io::Result<u64> {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("not a number: {text:?}")))
}
