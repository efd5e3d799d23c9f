// SPDX-License-Identifier: MIT
//! Scenarios of `hive bench` for Tokio: same flags, same output, same checks.
//!
//! Comparable: what is done, how often, and on how many threads: the multi-threaded runtime with T workers, besides the threads that post and
//! measure; where that is quicker, one worker is the current_thread runtime in a thread (crew.rs). post_to is a thread with a runtime
//! of its own, whose task runs what comes through an unbounded channel.
//! Not comparable: a task is a future with a result and a handle, and has an allocation of its own; the channel has one
//! receiver, so that several share it behind Tokio's mutex; timers have milliseconds, rounded up, and Sleep::reset() to a
//! later time only notes that time. mixed: hogs by spawn_blocking on a pool that is limited to T threads, its own way for what blocks or
//! computes (its manual sends larger computations to a pool of another crate), and tiny tasks by spawn on two workers. mixed_ui: the frames beside that, without the
//! five loads that ours has as well. steal: nobody can hold a feeder on one worker, so it may be stolen, too. bus: mpsc, blocking_send().
#[path = "tokio/crew.rs"]
mod crew;
#[path = "tokio/fibers.rs"]
mod fibers;
#[path = "tokio/loads.rs"]
mod loads;
#[path = "tokio/measure.rs"]
mod measure;
#[path = "tokio/mixed.rs"]
mod mixed;
#[path = "tokio/tasks.rs"]
mod tasks;
#[path = "tokio/timers.rs"]
mod timers;

use measure::{fail, read_options, Options, Output};

struct Scenario {
    name: &'static str,
    threads: usize, // 0: as many as there are CPUs
    n: i64,
    run: fn(&Options) -> Output,
}

const SCENARIOS: [Scenario; 15] = [
    Scenario { name: "post", threads: 2, n: 2_000_000, run: tasks::post },
    Scenario { name: "spawn_local", threads: 2, n: 2_000_000, run: tasks::spawn_local },
    Scenario { name: "post_to", threads: 1, n: 2_000_000, run: tasks::post_to },
    Scenario { name: "ping", threads: 1, n: 5_000, run: tasks::ping },
    Scenario { name: "ping_hot", threads: 1, n: 200_000, run: tasks::ping_hot },
    Scenario { name: "timer", threads: 1, n: 100_000, run: timers::timer },
    Scenario { name: "timer_cancel", threads: 1, n: 5_000_000, run: timers::timer_cancel },
    Scenario { name: "skynet", threads: 1, n: 1_000_000, run: fibers::skynet },
    Scenario { name: "yield", threads: 1, n: 10_000_000, run: fibers::yields },
    Scenario { name: "chan", threads: 1, n: 10_000_000, run: fibers::chan },
    Scenario { name: "mixed", threads: 0, n: 0, run: mixed::mixed },
    Scenario { name: "mixed_ui", threads: 0, n: 0, run: mixed::mixed_ui },
    Scenario { name: "delay", threads: 1, n: 100, run: loads::delay },
    Scenario { name: "steal", threads: 2, n: 400_000, run: loads::steal },
    Scenario { name: "bus", threads: 1, n: 5_000_000, run: fibers::bus },
];

fn main() {
    let mut options = read_options();
    let scenario = match SCENARIOS.iter().find(|one| one.name == options.scenario) {
        Some(scenario) => scenario,
        None => fail(10, &format!("no scenario '{}'", options.scenario)),
    };
    if options.threads == 0 {
        let cpus = std::thread::available_parallelism().map_or(1, |count| count.get());
        options.threads = if scenario.threads == 0 { cpus } else { scenario.threads };
    }
    if options.n == 0 {
        options.n = scenario.n;
    }
    (scenario.run)(&options).print(&options);
    std::process::exit(0); // no need to take the runtime apart
}
