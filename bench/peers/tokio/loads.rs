// SPDX-License-Identifier: MIT
//! delay and steal, as scenario_delay.c and scenario_steal.c.
use crate::crew::Crew;
use crate::measure::*;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::time::Duration;
use tokio::task::yield_now;

const KINDS: [(i64, &str); 3] = [(MS, "1ms"), (5 * MS, "5ms"), (16 * MS, "16ms")];
const DELAY_WARM_UP: i64 = 10;

/// A task that sleeps, asked for from outside: from the call until its next line runs, less the delay.
fn sleep_once(crew: &Crew, delay_ns: i64) -> i64 {
    let (done, ran) = mpsc::channel();
    let due_ns = now() + delay_ns;
    let begin = tokio::time::Instant::now(); // when it was asked for, not when its task is polled first
    crew.handle().spawn(async move {
        tokio::time::sleep_until(begin + Duration::from_nanos(delay_ns as u64)).await;
        done.send(now()).ok();
    });
    match ran.recv_timeout(Duration::from_nanos(PATIENCE_NS as u64)) {
        Ok(ran_ns) => ran_ns - due_ns,
        Err(_) => too_late("a delayed task"),
    }
}

fn deviation(times: &[i64]) -> f64 {
    let mean = times.iter().sum::<i64>() as f64 / times.len() as f64;
    (times.iter().map(|time| (*time as f64 - mean).powi(2)).sum::<f64>() / times.len() as f64).sqrt()
}

fn put_kind(output: &mut Output, word: &str, mut times: Vec<i64>) {
    output.put(&format!("stdev_{}_ns", word), deviation(&times));
    times.sort_unstable();
    for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        let rank = (share * times.len() as f64).ceil() as usize;
        output.put(&format!("{}_{}_ns", name, word), times[rank.max(1) - 1].max(0) as f64);
    }
    output.put(&format!("min_{}_ns", word), times[0] as f64);
}

/// One at a time on an otherwise idle runtime. Early is as wrong here as with ours.
pub fn delay(o: &Options) -> Output {
    let crew = Crew::new(o.threads);
    let mut late: Vec<Vec<i64>> = vec![Vec::new(); KINDS.len()];
    sleep_exactly();
    for round in -DELAY_WARM_UP..o.n {
        for (times, (delay_ns, _)) in late.iter_mut().zip(KINDS) {
            let late_ns = sleep_once(&crew, delay_ns);
            sleep(delay_ns); // as long again: ours measures a plain sleep meanwhile
            if round >= 0 {
                times.push(late_ns);
            }
        }
    }
    let all: Vec<i64> = late.concat();
    let least = *all.iter().min().unwrap();
    let mut output = Output::default();
    output.put("min_ns", least as f64);
    output.put("stdev_ns", deviation(&all));
    output.put_percentiles("", all);
    for (times, (_, word)) in late.into_iter().zip(KINDS) {
        put_kind(&mut output, word, times);
    }
    wrong("nanoseconds early", 0, (-least.min(0)) as u64);
    output
}

const QUEUED_MOST: i64 = 128;
const QUEUED_LEAST: i64 = 64;
const WORK_ROUNDS: u64 = 3000; // about 1 us, as there

thread_local! { static WORKER: usize = NEXT_WORKER.fetch_add(1, Ordering::Relaxed); }
static NEXT_WORKER: AtomicUsize = AtomicUsize::new(0);

fn worker() -> usize {
    WORKER.with(|worker| *worker)
}

fn work() {
    let mut round = 0u64;
    while round < WORK_ROUNDS {
        unsafe { std::arch::asm!("/* {0} */", inout(reg) round, options(nomem, nostack)) }; // it must count, not compute
        round += 1;
    }
}

#[repr(align(64))]
#[derive(Default)]
struct Home {
    done: AtomicI64,
    moved: AtomicI64, // of those, run by another worker than the one that spawned them
}

/// Keeps the queue of the worker that it is on filled, but not so full that it spills.
async fn feed(home: Arc<Home>, total: i64) {
    let mut fed = 0;
    while fed < total {
        let mut queued = fed - home.done.load(Ordering::Relaxed);
        if queued < QUEUED_LEAST {
            while queued < QUEUED_MOST && fed < total {
                let (home, here) = (home.clone(), worker());
                tokio::spawn(async move {
                    work();
                    home.moved.fetch_add((worker() != here) as i64, Ordering::Relaxed);
                    home.done.fetch_add(1, Ordering::Relaxed);
                    tally();
                });
                queued += 1;
                fed += 1;
            }
        }
        yield_now().await;
    }
}

/// How long it took, and how many were moved.
fn overload(crew: &Crew, feeders: i64, n: i64) -> (i64, i64) {
    let homes: Vec<Arc<Home>> = (0..feeders).map(|_| Arc::default()).collect();
    let (target, begin) = (tally_total() + n as u64, now());
    for (i, home) in homes.iter().enumerate() {
        crew.handle().spawn(feed(home.clone(), n / feeders + ((i as i64) < n % feeders) as i64));
    }
    tally_wait(target, 100 * US);
    (now() - begin, homes.iter().map(|home| home.moved.load(Ordering::Relaxed)).sum())
}

/// A feeder for each half of the workers: Tokio has no way to hold it on one of them, so it may be stolen as well.
pub fn steal(o: &Options) -> Output {
    let crew = Crew::new(o.threads);
    let feeders = (o.threads as i64 / 2).max(1);
    sleep_exactly();
    overload(&crew, feeders, o.n / 10 + 1);
    let (elapsed, moved) = overload(&crew, feeders, o.n);
    let mut output = Output::rate(o.n as f64, elapsed);
    output.put("stolen_share", moved as f64 / o.n as f64);
    output
}
