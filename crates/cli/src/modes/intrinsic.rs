//! The delays of this machine itself: a loop that does nothing but look at the clock, and how long it was kept from it.

use std::time::{Duration, Instant};

use crate::console::Console;
use crate::session::Failure;

/// Rounds of computing between two looks at the clock.
const ROUNDS: u64 = 500;

/// Computes for so long.
pub(crate) fn run(console: &mut Console<'_>, duration: Duration) -> Result<bool, Failure> {
    let started = Instant::now();
    let (mut runs, mut worst) = (0_u64, Duration::ZERO);
    let mut total = Duration::ZERO;
    while total < duration && !console.session.is_stopped() {
        let begun = Instant::now();
        compute();
        let took = begun.elapsed();
        runs += 1;
        if took > worst {
            worst = took;
            writeln!(console.out, "Max latency so far: {} microseconds.", worst.as_micros())?;
            console.out.flush()?;
        }
        total = started.elapsed();
    }
    let average = total.as_secs_f64() * 1e6 / runs.max(1) as f64;
    writeln!(
        console.out,
        "\n{runs} total runs (avg latency: {average:.4} microseconds / {:.2} nanoseconds per run).",
        average * 1e3
    )?;
    let times = worst.as_secs_f64() * 1e6 / average.max(f64::MIN_POSITIVE);
    writeln!(console.out, "Worst run took {times:.0}x longer than the average latency.")?;
    console.out.flush()?;
    Ok(true)
}

fn compute() {
    let mut state = std::hint::black_box(1_u64);
    for round in 0..ROUNDS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
    }
    std::hint::black_box(state);
}
