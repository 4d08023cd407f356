//! Callers of a cluster to which something is done at a third of their time, by the xtask: the primary of the first slots is killed, or
//! those slots move. Each caller has keys of one shard: it counts one up, reads another, and pauses.

use super::lost::{Counter, count, report_of};
use crate::crowd::{crowd, sleep};
use crate::measure::Report;
use crate::options::Options;
use crate::peers::Peer;
use respool_route::cluster::slot_of;
use std::ops::Range;
use std::time::{Duration, Instant, SystemTime};

/// The slots of the callers' keys: those that something is done to, and some of each other shard.
const SLOTS: [Range<u16>; 3] = [0..1_000, 5_500..10_900, 11_000..16_384];

/// Time is counted in pieces of so long.
const PIECE: Duration = Duration::from_millis(100);

/// What one caller has done.
struct Done {
    counter: Counter,
    wrong: usize,
    /// Calls with a reply, in each piece of the time.
    pieces: Vec<usize>,
}

/// A hash tag of this caller alone, of a slot among these.
fn hash_tag(caller: usize, slots: &Range<u16>) -> String {
    let tags = (0..).map(|turn| format!("{{{caller}:{turn}}}"));
    tags.into_iter().find(|tag| slots.contains(&slot_of(tag.as_bytes()))).expect("there are tags of all slots")
}

pub(super) async fn cluster<P: Peer>(peer: P, options: &Options) -> Report {
    let ask = |caller: usize| {
        let (mut peer, options) = (peer.clone(), options.clone());
        async move {
            let tag = hash_tag(caller, &SLOTS[caller % SLOTS.len()]);
            let (counted, value) = (format!("{tag}n"), format!("{tag}v"));
            peer.set(&value, value.as_bytes()).await.expect("the key is set");
            let begin = SystemTime::UNIX_EPOCH + Duration::from_millis(options.begin_ms);
            let left = begin.duration_since(SystemTime::now()).expect("the keys are set before the load begins");
            sleep::<P>(left).await;
            let began = Instant::now();
            let pieces = vec![0; (options.time.as_millis() / PIECE.as_millis()) as usize];
            let mut done = Done { counter: Counter::default(), wrong: 0, pieces };
            while began.elapsed() < options.time {
                let reply = peer.incr(&counted).await;
                done.counter.note(reply);
                let is_right = peer.get_is(&value, value.as_bytes()).await;
                done.wrong += usize::from(is_right == Ok(false));
                let piece = began.elapsed().as_millis() / PIECE.as_millis();
                if let Some(piece) = done.pieces.get_mut(piece as usize) {
                    *piece += usize::from(reply.is_ok()) + usize::from(is_right.is_ok());
                }
                if reply.is_err() || is_right.is_err() {
                    done.counter.note_read(is_right.err());
                }
                // Without a pause the nodes, the load and what moves the slots take the processor from each other.
                if !options.pause.is_zero() {
                    sleep::<P>(options.pause).await;
                }
            }
            count(&mut peer, &counted, &mut done.counter).await;
            done
        }
    };
    let (_, all) = crowd::<P, _, _>(options.tasks, ask).await;
    report(all)
}

fn report(all: Vec<Done>) -> Report {
    let pieces = all[0].pieces.len();
    let third = pieces / 3;
    let sum = |of: &dyn Fn(usize) -> bool, pieces: Range<usize>| {
        let callers = all.iter().enumerate().filter(|(caller, _)| of(caller % SLOTS.len()));
        callers.map(|(_, done)| done.pieces[pieces.clone()].iter().sum::<usize>()).sum::<usize>() as f64
    };
    // The first tenth warms up.
    let before = pieces / 10..third;
    let during = third..2 * third;
    let rate = |ops: f64, pieces: &Range<usize>| ops / (pieces.len() as f64 * PIECE.as_secs_f64());
    let others = |shard: usize| shard > 0;
    let others_before = rate(sum(&others, before.clone()), &before);
    let others_during = rate(sum(&others, during.clone()), &during);
    let worst = (third..pieces - 4).map(|piece| rate(sum(&others, piece..piece + 5), &(0..5))).fold(f64::MAX, f64::min);
    let (mut gap, mut longest) = (0, 0);
    for piece in third..pieces {
        gap = if sum(&|shard| shard == 0, piece..piece + 1) > 0.0 { 0 } else { gap + 1 };
        longest = longest.max(gap);
    }
    let mut report = Report::default();
    report.add("ops_s", rate(sum(&|_| true, before.clone()), &before));
    report.add("others_before", others_before);
    report.add("others_during", others_during);
    report.add("others_to_before", others_during / others_before);
    report.add("others_worst", worst / others_before);
    report.add("gap_ms", f64::from(longest) * PIECE.as_secs_f64() * 1e3);
    let wrong_values = all.iter().map(|done| done.wrong).sum::<usize>() as i64;
    let lost: i64 = all.iter().step_by(SLOTS.len()).map(|done| done.counter.wrong).sum();
    let mut counters: Vec<Counter> = all.into_iter().map(|done| done.counter).collect();
    // Of a primary that is killed, what was not copied is lost: its counters go back. At other shards a reply is wrong that does not count on.
    counters.iter_mut().step_by(SLOTS.len()).for_each(|counter| counter.wrong = 0);
    counters[0].wrong += wrong_values;
    report.add("lost", lost as f64);
    report_of(counters, &mut report);
    report
}
