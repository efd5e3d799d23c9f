// SPDX-License-Identifier: MIT
//! The measuring side of the peer: clock, sleep and the poster's habits as in bench/sync.c, counting as in bench/tally.c, percentiles as in
//! bench/stats.c (those here are exact, there within 1 %), flags and output.
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::Mutex;

pub const PATIENCE_NS: i64 = 60_000_000_000;
pub const US: i64 = 1_000;
pub const MS: i64 = 1_000_000;

pub fn fail(code: i32, text: &str) -> ! {
    eprintln!("tokio: {}", text);
    std::process::exit(code)
}

pub fn wrong(what: &str, expected: u64, seen: u64) {
    if expected != seen {
        fail(4, &format!("wrong count of {}: {} instead of {}", what, seen, expected));
    }
}

pub fn too_late(what: &str) -> ! {
    fail(3, &format!("waited too long for {}", what))
}

fn clock(which: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(which, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

pub fn now() -> i64 {
    clock(libc::CLOCK_MONOTONIC)
}

pub fn cpu_seconds() -> f64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID) as f64 / 1e9
}

/// Spins until this thread has used so much CPU time.
pub fn burn(cpu_ns: i64) {
    let until = clock(libc::CLOCK_THREAD_CPUTIME_ID) + cpu_ns;
    while clock(libc::CLOCK_THREAD_CPUTIME_ID) < until {
        let mut step = 0u32;
        while unsafe { std::ptr::read_volatile(&step) } < 5000 {
            unsafe { std::ptr::write_volatile(&mut step, step + 1) }; // some 10 us between two looks at the clock, a system call
        }
    }
}

pub fn sleep_until(deadline_ns: i64) {
    let until = libc::timespec { tv_sec: deadline_ns / 1_000_000_000, tv_nsec: deadline_ns % 1_000_000_000 };
    while unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut()) } != 0 {}
}

pub fn sleep(delay_ns: i64) {
    sleep_until(now() + delay_ns);
}

/// The least timer slack for this thread. After the runtime's threads were started: theirs is their own business.
pub fn sleep_exactly() {
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// About 3 us of spinning, then sched_yield, until the word is not 0.
pub fn await_word(word: &AtomicI64) -> i64 {
    let begin = now();
    loop {
        let value = word.load(Ordering::Acquire);
        if value != 0 {
            return value;
        }
        match now() - begin {
            waited if waited > PATIENCE_NS => too_late("an answer"),
            waited if waited < 3 * US => std::hint::spin_loop(),
            _ => std::thread::yield_now(),
        }
    }
}

/// A counter that one thread writes.
#[repr(align(64))]
struct Line(AtomicU64);

static LINES: Mutex<Vec<&'static Line>> = Mutex::new(Vec::new());
thread_local! { static MINE: &'static Line = claim_line(); }

fn claim_line() -> &'static Line {
    let line: &'static Line = Box::leak(Box::new(Line(AtomicU64::new(0))));
    LINES.lock().unwrap().push(line);
    line
}

/// The body of a measured task: one increment.
pub fn tally() {
    MINE.with(|line| line.0.store(line.0.load(Ordering::Relaxed) + 1, Ordering::Release));
}

pub fn tally_total() -> u64 {
    LINES.lock().unwrap().iter().map(|line| line.0.load(Ordering::Acquire)).sum()
}

pub fn tally_wait(target: u64, step_ns: i64) {
    let deadline = now() + PATIENCE_NS;
    loop {
        let total = tally_total();
        if total >= target {
            return wrong("tasks that ran", target, total);
        }
        if now() > deadline {
            too_late("tasks to run");
        }
        sleep(step_ns);
    }
}

/// Splitmix64, as in scenario_timer.c: the same delays in every run and in every peer, 1 to 1000 ms.
pub fn next_delay(seed: &mut u64) -> i64 {
    *seed = seed.wrapping_add(0x9e3779b97f4a7c15);
    let mut mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d049bb133111eb);
    MS + ((mixed ^ (mixed >> 31)) % 999_000_000) as i64
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    values[values.len() / 2]
}

#[derive(Clone)]
pub struct Options {
    pub scenario: String,
    pub threads: usize,
    pub producers: usize,
    pub consumers: usize,
    pub n: i64,
    pub seconds: f64,
}

const USAGE: &str = "usage: --scenario NAME [--threads T] [--producers P] [--consumers C] [--n COUNT] [--seconds S]";

fn number<T: std::str::FromStr + PartialOrd>(text: &str, least: T, most: T) -> T {
    match text.parse::<T>() {
        Ok(value) if value >= least && value <= most => value,
        _ => fail(2, &format!("bad value '{}'\n{}", text, USAGE)),
    }
}

pub fn read_options() -> Options {
    let mut options = Options { scenario: String::new(), threads: 0, producers: 1, consumers: 1, n: 0, seconds: 3.0 };
    let mut words = std::env::args().skip(1);
    while let Some(flag) = words.next() {
        let value = words.next().unwrap_or_else(|| fail(2, &format!("{} has no value\n{}", flag, USAGE)));
        match flag.as_str() {
            "--scenario" => options.scenario = value,
            "--threads" => options.threads = number(&value, 1, 256),
            "--producers" => options.producers = number(&value, 1, 256),
            "--consumers" => options.consumers = number(&value, 1, 256),
            "--n" => options.n = number(&value, 1, 10_000_000_000),
            "--seconds" => options.seconds = number(&value, 0.01, 256.0),
            _ => fail(2, &format!("no flag {}\n{}", flag, USAGE)),
        }
    }
    options
}

/// Further fields of the line, each with a comma in front.
#[derive(Default)]
pub struct Output(String);

impl Output {
    pub fn rate(operations: f64, elapsed_ns: i64) -> Output {
        let mut output = Output::default();
        output.put("ops_per_s", operations * 1e9 / elapsed_ns.max(1) as f64);
        output
    }

    pub fn put(&mut self, name: &str, value: f64) {
        let digits = if value.abs() >= 100.0 { 0 } else { 6 };
        self.0 += &format!(",\"{}\":{:.*}", name, digits, value);
    }

    /// What is negative counts as 0 in the percentiles and shows in the minimum.
    pub fn put_percentiles(&mut self, prefix: &str, mut times: Vec<i64>) {
        times.sort_unstable();
        for (name, share) in
            [("p10", 0.1), ("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)]
        {
            let rank = (share * times.len() as f64).ceil() as usize;
            self.put(&format!("{}{}_ns", prefix, name), times[rank.max(1) - 1].max(0) as f64);
        }
        self.put(&format!("{}max_ns", prefix), times[times.len() - 1] as f64);
    }

    pub fn print(&self, o: &Options) {
        println!(
            "{{\"peer\":\"tokio\",\"scenario\":\"{}\",\"threads\":{},\"producers\":{},\"consumers\":{},\"n\":{}{},\"rss_kb\":{}}}",
            o.scenario, o.threads, o.producers, o.consumers, o.n, self.0, peak_memory_kb()
        );
    }
}

fn peak_memory_kb() -> i64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|word| word.parse().ok()).unwrap_or(0)
}
