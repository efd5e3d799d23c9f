// SPDX-License-Identifier: MIT
//! Tiny tasks: post, spawn_local, post_to, ping, ping_hot.
use crate::crew::Crew;
use crate::measure::*;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Barrier};
use tokio::sync::mpsc;

const POLL_NS: i64 = 500 * US; // rare: each look takes a CPU away from a worker for a moment
const IDLE_NS: i64 = 100 * US;
const WARM_UP: i64 = 500;
const PINGS_MAX: i64 = 20_000;

fn share(n: i64, parts: usize, i: usize) -> i64 {
    n / parts as i64 + ((i as i64) < n % parts as i64) as i64
}

/// P threads hand n tasks to the runtime; from the first submit until the last one ran.
fn race(crew: &Crew, producers: usize, n: i64) -> i64 {
    let target = tally_total() + n as u64;
    let start = Arc::new(Barrier::new(producers + 1));
    let threads: Vec<_> = (0..producers)
        .map(|i| {
            let (handle, start, count) = (crew.handle(), start.clone(), share(n, producers, i));
            std::thread::spawn(move || {
                start.wait();
                let begin = now();
                for _ in 0..count {
                    handle.spawn(async { tally() });
                }
                begin
            })
        })
        .collect();
    start.wait();
    tally_wait(target, POLL_NS);
    let end = now();
    end - threads.into_iter().map(|thread| thread.join().unwrap()).min().unwrap()
}

pub fn post(o: &Options) -> Output {
    let crew = Crew::lean(o.threads);
    sleep_exactly();
    race(&crew, o.producers, o.n / 10 + 1);
    Output::rate(o.n as f64, race(&crew, o.producers, o.n))
}

fn spawn_and_wait(crew: &Crew, n: i64) -> i64 {
    let target = tally_total() + n as u64;
    let begin = now();
    crew.handle().spawn(async move {
        for _ in 0..n {
            tokio::spawn(async { tally() });
        }
    });
    tally_wait(target, POLL_NS);
    now() - begin
}

pub fn spawn_local(o: &Options) -> Output {
    let crew = Crew::lean(o.threads);
    sleep_exactly();
    spawn_and_wait(&crew, o.n / 10 + 1);
    Output::rate(o.n as f64, spawn_and_wait(&crew, o.n))
}

/// When the answer to the one question that is under way began to run; 0: not yet.
static STARTED: AtomicI64 = AtomicI64::new(0);

fn answer() {
    STARTED.store(now(), Ordering::Release);
}

/// One question at a time, as bench/ping.c asks.
fn ask(count: i64, idle_ns: i64, submit: impl Fn()) -> Vec<i64> {
    let mut times = Vec::with_capacity(count as usize);
    for _ in 0..count {
        if idle_ns > 0 {
            sleep(idle_ns);
        }
        STARTED.store(0, Ordering::Relaxed);
        let submitted = now();
        submit();
        times.push(await_word(&STARTED) - submitted);
    }
    times
}

fn ping_crew(o: &Options, warm_up: i64, idle_ns: i64) -> Output {
    let crew = Crew::lean(o.threads);
    let handle = crew.handle();
    let submit = || drop(handle.spawn(async { answer() }));
    if idle_ns > 0 {
        sleep_exactly();
    }
    ask(warm_up, idle_ns, submit);
    let begin = now();
    let times = ask(o.n, idle_ns, submit);
    let mut output = Output::rate(o.n as f64, now() - begin);
    output.put_percentiles("", times);
    output
}

pub fn ping(o: &Options) -> Output {
    ping_crew(o, WARM_UP, IDLE_NS)
}

pub fn ping_hot(o: &Options) -> Output {
    ping_crew(o, o.n / 10 + WARM_UP, 0)
}

/// One named worker: a thread with a runtime of its own, whose task runs what comes through a channel.
fn worker_with_channel() -> mpsc::UnboundedSender<fn()> {
    let (to_worker, mut jobs) = mpsc::unbounded_channel::<fn()>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async move {
            while let Some(job) = jobs.recv().await {
                job();
            }
        });
    });
    to_worker
}

pub fn post_to(o: &Options) -> Output {
    let to_worker = worker_with_channel();
    let flood = |n: i64| {
        let (target, begin) = (tally_total() + n as u64, now());
        for _ in 0..n {
            to_worker.send(tally).unwrap();
        }
        tally_wait(target, 50 * US);
        now() - begin
    };
    sleep_exactly();
    flood(o.n / 10 + 1);
    let mut output = Output::rate(o.n as f64, flood(o.n));
    let pings = (o.n / 10 + 1).min(PINGS_MAX);
    let submit = || to_worker.send(answer).unwrap();
    ask(pings / 10 + 1, 0, submit);
    output.put_percentiles("", ask(pings, 0, submit));
    output
}
