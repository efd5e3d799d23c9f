// SPDX-License-Identifier: MIT
//! timer and timer_cancel, as scenario_timer.c and scenario_timer_cancel.c.
use crate::crew::Crew;
use crate::measure::*;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{sleep_until, Instant, Sleep};

const ARMED: usize = 10_000;
const FAR: Duration = Duration::from_secs(3600);
const SPAWN_NS: i64 = 4_000; // generous: what a task may take to be spawned and to begin its sleep

/// Done at once; gives the work the context in which timers are polled.
struct WithContext<F>(Option<F>);

impl<T, F: FnOnce(&mut Context<'_>) -> T + Unpin> Future for WithContext<F> {
    type Output = T;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let work = self.0.take().unwrap();
        Poll::Ready(work(context))
    }
}

type Timers = Vec<Pin<Box<Sleep>>>;

/// A timer of Tokio is armed when it is polled first.
fn arm(timers: &mut Timers, context: &mut Context<'_>) {
    for timer in timers {
        if timer.as_mut().poll(context).is_ready() {
            wrong("timers that were not due", 0, 1);
        }
    }
}

/// Arms and cancels them all. How long the arming took.
async fn measure_insert(delays: Arc<Vec<i64>>) -> i64 {
    let start = Instant::now() + Duration::from_secs(1); // nothing is due while the timers are made
    let mut timers: Timers =
        delays.iter().map(|delay| Box::pin(sleep_until(start + Duration::from_nanos(*delay as u64)))).collect();
    let begin = now();
    WithContext(Some(|context: &mut Context<'_>| arm(&mut timers, context))).await;
    now() - begin
}

/// One share of the delays for each thread, in a task of its own. The slowest arming.
fn insert_all(crew: &Crew, shares: &[Arc<Vec<i64>>]) -> i64 {
    let handles: Vec<_> = shares.iter().map(|delays| crew.handle().spawn(measure_insert(delays.clone()))).collect();
    crew.run(async move {
        let mut slowest = 0;
        for handle in handles {
            slowest = slowest.max(handle.await.unwrap());
        }
        slowest
    })
}

/// A task for each timer: where something is to be done when one is due, this is how it is written. All are due after the last
/// one sleeps.
async fn sleep_all(delays: Arc<Vec<i64>>, late: Arc<Vec<AtomicI64>>, first: usize, base_ns: i64) {
    for (i, delay) in delays.iter().enumerate() {
        let (late, due_ns) = (late.clone(), base_ns + delay);
        let now_ns = now(); // before the runtime's clock is read: one that is exact is never early
        let due = Instant::now() + Duration::from_nanos((due_ns - now_ns) as u64);
        tokio::spawn(async move {
            sleep_until(due).await;
            late[first + i].store(now() - due_ns, Ordering::Relaxed);
            tally();
        });
    }
}

pub fn timer(o: &Options) -> Output {
    let crew = Crew::new(o.threads);
    let mut seed = 1;
    let delays: Vec<i64> = (0..o.n).map(|_| next_delay(&mut seed)).collect();
    let size = (delays.len() + o.threads - 1) / o.threads;
    let shares: Vec<_> = delays.chunks(size).map(|part| Arc::new(part.to_vec())).collect();
    insert_all(&crew, &shares); // warm-up
    let insert_ns = insert_all(&crew, &shares);
    let late: Arc<Vec<AtomicI64>> = Arc::new((0..o.n).map(|_| AtomicI64::new(0)).collect());
    let target = tally_total() + o.n as u64;
    let cpu_before = cpu_seconds();
    let base_ns = now() + o.n * SPAWN_NS;
    for (i, share) in shares.iter().enumerate() {
        crew.handle().spawn(sleep_all(share.clone(), late.clone(), i * size, base_ns));
    }
    tally_wait(target, 10 * MS);
    let cpu_s = cpu_seconds() - cpu_before;
    let mut output = Output::rate(o.n as f64, insert_ns);
    let times: Vec<i64> = late.iter().map(|one| one.load(Ordering::Relaxed)).collect();
    output.put("min_ns", *times.iter().min().unwrap() as f64);
    output.put_percentiles("", times);
    output.put("cpu_s", cpu_s);
    output
}

fn far(i: usize) -> Instant {
    Instant::now() + FAR + Duration::from_micros(100 * i as u64)
}

/// Sleep::reset() is the way to use a timer again: it cancels and arms in one.
fn replace_oldest(timers: &mut Timers, operations: i64) {
    let mut oldest = 0;
    for _ in 0..operations {
        timers[oldest].as_mut().reset(far(oldest));
        oldest = if oldest + 1 < ARMED { oldest + 1 } else { 0 };
    }
}

async fn cancel_often(n: i64) -> (i64, u64) {
    let mut timers: Timers = (0..ARMED).map(|i| Box::pin(sleep_until(far(i)))).collect();
    WithContext(Some(|context: &mut Context<'_>| arm(&mut timers, context))).await;
    replace_oldest(&mut timers, n / 10 + ARMED as i64); // warm-up
    let begin = now();
    replace_oldest(&mut timers, n);
    let elapsed = now() - begin;
    (elapsed, timers.iter().filter(|timer| timer.is_elapsed()).count() as u64)
}

pub fn timer_cancel(o: &Options) -> Output {
    let crew = Crew::new(o.threads);
    let (elapsed, fired) = crew.run(cancel_often(o.n));
    wrong("timers that fired", 0, fired);
    Output::rate(o.n as f64, elapsed)
}
