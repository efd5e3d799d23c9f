// SPDX-License-Identifier: MIT
//! mixed, as scenario_mixed.c: hogs by spawn_blocking, with T threads for that, beside two workers; tiny tasks to the workers. mixed_ui, its first part: the same,
//! and a frame clock of 60 Hz on a thread with a current_thread runtime, as a program with a window has it.
use crate::crew::Crew;
use crate::measure::*;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::time::Instant;

const WORKERS: usize = 2; // as ours has
const CHAINS: i64 = 8;
const HOG_NS: i64 = 2 * MS;
const PERIOD_NS: i64 = MS;

#[derive(Default)]
struct Hogs {
    stop: AtomicBool,
    done: AtomicI64,
    chains: AtomicI64,
}

/// Burns its share of CPU time and spawns its successor.
fn hog(handle: Handle, hogs: Arc<Hogs>) {
    burn(HOG_NS);
    hogs.done.fetch_add(1, Ordering::Relaxed);
    if hogs.stop.load(Ordering::Relaxed) {
        hogs.chains.fetch_sub(1, Ordering::SeqCst);
    } else {
        start_hog(handle, hogs);
    }
}

fn start_hog(handle: Handle, hogs: Arc<Hogs>) {
    let next = handle.clone();
    handle.spawn_blocking(move || hog(next, hogs));
}

fn stop_hogs(hogs: &Hogs) {
    let deadline = now() + PATIENCE_NS;
    hogs.stop.store(true, Ordering::SeqCst);
    while hogs.chains.load(Ordering::SeqCst) > 0 {
        if now() > deadline {
            too_late("hog chains to end");
        }
        sleep(MS);
    }
}

/// Hogs a second while the work is done.
fn hogs_during(hogs: &Hogs, work: impl FnOnce()) -> f64 {
    let (begin, done) = (now(), hogs.done.load(Ordering::Relaxed));
    work();
    (hogs.done.load(Ordering::Relaxed) - done) as f64 * 1e9 / (now() - begin) as f64
}

struct Tiny {
    due_ns: i64,
    posted_ns: i64,
}

fn post_tiny(handle: &Handle, started: &'static [AtomicI64]) -> Vec<Tiny> {
    let first_ns = now() + PERIOD_NS;
    let mut posted = Vec::with_capacity(started.len());
    for (i, mine) in started.iter().enumerate() {
        let due_ns = first_ns + i as i64 * PERIOD_NS;
        sleep_until(due_ns);
        posted.push(Tiny { due_ns, posted_ns: now() });
        handle.spawn(async move {
            mine.store(now(), Ordering::Relaxed);
            tally();
        });
    }
    posted
}

const FRAME_NS: i64 = 16_666_667;
const FRAME_LATE_NS: i64 = 2 * MS;

/// As bench/frames.c counts them: a frame that never came, since the one before it took its place, is late as well.
struct Frames {
    base_ns: i64,
    next: i64,
    on_time: i64,
    late: Vec<i64>,
}

impl Frames {
    async fn keep_until(stop: Arc<AtomicBool>) -> Frames {
        let mut frames = Frames { base_ns: now() + FRAME_NS, next: 0, on_time: 0, late: Vec::new() };
        while !stop.load(Ordering::Relaxed) {
            let due_ns = frames.base_ns + frames.next * FRAME_NS;
            let left = Duration::from_nanos((due_ns - now()).max(0) as u64);
            tokio::time::sleep_until(Instant::now() + left).await;
            let late_ns = now() - due_ns;
            frames.on_time += (late_ns < FRAME_LATE_NS) as i64;
            frames.next += 1 + late_ns.max(0) / FRAME_NS;
            frames.late.push(late_ns);
        }
        frames
    }

    fn put(self, output: &mut Output, end_ns: i64) {
        let due = (end_ns - FRAME_LATE_NS - self.base_ns) / FRAME_NS + 1;
        let expected = due.max(self.next).max(1);
        output.put("frames", expected as f64);
        output.put("frames_on_time", self.on_time as f64 / expected as f64);
        output.put_percentiles("late_", self.late);
    }
}

/// The thread of a program's windows.
struct Clock {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Frames>,
}

impl Clock {
    fn start() -> Clock {
        let stop = Arc::new(AtomicBool::new(false));
        let until = stop.clone();
        let keep = move || Builder::new_current_thread().enable_time().build().unwrap().block_on(Frames::keep_until(until));
        Clock { stop, thread: std::thread::spawn(keep) }
    }

    /// After the frame that comes next.
    fn end(self) -> Frames {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

pub fn mixed(o: &Options) -> Output {
    measure(o, false)
}

pub fn mixed_ui(o: &Options) -> Output {
    measure(o, true)
}

fn measure(o: &Options, ui: bool) -> Output {
    let span_ns = (o.seconds * 1e9) as i64;
    let count = span_ns / PERIOD_NS + 1;
    let started: &'static [AtomicI64] = Vec::leak((0..count).map(|_| AtomicI64::new(0)).collect());
    let crew = Crew::with_blocking(WORKERS, o.threads);
    let (handle, hogs) = (crew.handle(), Arc::new(Hogs::default()));
    for _ in 0..CHAINS {
        hogs.chains.fetch_add(1, Ordering::SeqCst);
        start_hog(handle.clone(), hogs.clone());
    }
    sleep(200 * MS); // warm-up
    sleep_exactly(); // now: the threads of the hogs were started by this one
    let mut alone = hogs_during(&hogs, || sleep(span_ns / 2)) / 2.0;
    let mut posted = Vec::new();
    let target = tally_total() + count as u64;
    let clock = if ui { Some(Clock::start()) } else { None };
    let with_tiny = hogs_during(&hogs, || posted = post_tiny(&handle, started));
    tally_wait(target, MS);
    let frames = clock.map(Clock::end);
    let end_ns = now();
    alone += hogs_during(&hogs, || sleep(span_ns / 2)) / 2.0;
    stop_hogs(&hogs);
    let pairs = || posted.iter().zip(started).map(|(tiny, at)| (tiny, at.load(Ordering::Relaxed)));
    let mut output = Output::rate(count as f64, span_ns);
    output.put_percentiles("", pairs().map(|(tiny, at)| at - tiny.posted_ns).collect());
    output.put_percentiles("e2e_", pairs().map(|(tiny, at)| at - tiny.due_ns).collect());
    output.put("hogs_per_s", with_tiny);
    output.put("hogs_alone_per_s", alone);
    output.put("hogs_ratio", with_tiny / alone);
    if let Some(frames) = frames {
        frames.put(&mut output, end_ns);
    }
    output
}
