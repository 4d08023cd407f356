//! How an experiment goes.

use std::time::Duration;

use super::message::{CLASSES, HEAD_BYTES};

/// How an experiment goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whether this process subscribes.
    pub subscribes: bool,
    /// Whether it publishes.
    pub publishes: bool,
    /// Channels: the numbers below this.
    pub channels: u64,
    /// Messages a second that this process publishes in all; 0: as many as go.
    pub rate: f64,
    /// Messages that are written together, at most.
    pub batch: usize,
    /// How long a message waits for others of its batch, at most.
    pub flush: Duration,
    /// Processes that publish: so many end markers are waited for. 0: until the end is asked for.
    pub publishers: u64,
    /// Processes that subscribe: publishing begins when all have. 0: at once.
    pub processes: u64,
    /// The counter of processes is set back first.
    pub resets: bool,
    /// Connections that subscribe, and that publish.
    pub subscribing: usize,
    /// See there.
    pub publishing: usize,
    /// Channels in one SUBSCRIBE.
    pub chunk: usize,
    /// Bytes of a payload.
    pub payload: usize,
    /// Messages that this process publishes; `None`: until the time is up or the end is asked for.
    pub messages: Option<u64>,
    /// How long it publishes.
    pub duration: Option<Duration>,
    /// SPUBLISH and SSUBSCRIBE.
    pub is_sharded: bool,
    /// PSUBSCRIBE of two patterns for each class instead of all channels.
    pub has_patterns: bool,
    /// The number by which this process' messages are known.
    pub process: u32,
    /// What all chance follows from.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            subscribes: true,
            publishes: true,
            channels: 1000,
            rate: 1000.0,
            batch: 1,
            flush: Duration::from_millis(50),
            publishers: 1,
            processes: 0,
            resets: false,
            subscribing: 16,
            publishing: 4,
            chunk: 1000,
            payload: 64,
            messages: None,
            duration: None,
            is_sharded: false,
            has_patterns: false,
            process: 1,
            seed: 1,
        }
    }
}

impl Plan {
    /// What makes no sense together, if anything does.
    ///
    /// # Errors
    /// In words.
    pub fn check(&self) -> Result<(), String> {
        if self.is_sharded && self.has_patterns {
            return Err("there are no patterns of sharded channels".to_owned());
        }
        if self.subscribing > CLASSES as usize {
            return Err(format!("a process subscribes on {CLASSES} connections at most"));
        }
        if self.payload < HEAD_BYTES {
            return Err(format!("a message has {HEAD_BYTES} bytes at least"));
        }
        Ok(())
    }

    /// The classes that subscribing connection `number` has, of those that have channels.
    pub fn classes_of(&self, number: usize) -> impl Iterator<Item = u64> + use<> {
        let (count, classes) = (self.subscribing.max(1) as u64, CLASSES.min(self.channels));
        (0..classes).filter(move |class| class % count == number as u64)
    }

    /// What subscribing connection `number` subscribes: channels, or patterns.
    pub fn subjects_of(&self, number: usize) -> Box<dyn Iterator<Item = String> + Send> {
        let (channels, has_patterns) = (self.channels, self.has_patterns);
        if has_patterns {
            return Box::new(self.classes_of(number).flat_map(|class| {
                // A number below ten has no second digit: both spellings of its class are needed.
                let short = (class < 10).then(|| class.to_string());
                let long = if class < 10 { format!("*0{class}") } else { format!("*{class}") };
                short.into_iter().chain([long])
            }));
        }
        let of_class = move |class: u64| (class..channels).step_by(CLASSES as usize);
        Box::new(self.classes_of(number).flat_map(of_class).map(|channel| channel.to_string()))
    }

    pub(super) fn subscribe(&self) -> &'static [u8] {
        match (self.is_sharded, self.has_patterns) {
            (true, _) => b"SSUBSCRIBE",
            (_, true) => b"PSUBSCRIBE",
            _ => b"SUBSCRIBE",
        }
    }

    pub(super) fn publish(&self) -> &'static [u8] {
        if self.is_sharded { b"SPUBLISH" } else { b"PUBLISH" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_is_subscribed_once_and_with_its_class() {
        let plan = Plan { channels: 1234, subscribing: 7, ..Plan::default() };
        let mut seen = vec![0; 1234];
        for number in 0..7 {
            for subject in plan.subjects_of(number) {
                let channel: u64 = subject.parse().unwrap();
                seen[channel as usize] += 1;
                assert!(plan.classes_of(number).any(|class| class == channel % CLASSES));
            }
        }
        assert!(seen.iter().all(|&count| count == 1));
    }

    #[test]
    fn patterns_name_the_same_channels_once() {
        let plan = Plan { channels: 345, subscribing: 3, has_patterns: true, ..Plan::default() };
        for channel in 0..345u64 {
            let text = channel.to_string();
            let matches = |pattern: &String| match pattern.strip_prefix('*') {
                Some(end) => text.ends_with(end),
                None => *pattern == text,
            };
            let found: Vec<usize> =
                (0..3).flat_map(|number| plan.subjects_of(number).filter(matches).map(move |_| number)).collect();
            assert_eq!(found, [(channel % CLASSES % 3) as usize], "{channel}");
        }
    }
}
