// SPDX-License-Identifier: MIT
//! The runtime under test, with T threads besides the one that measures.
use crate::measure::{too_late, PATIENCE_NS};
use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

pub struct Crew {
    handle: Handle,
    _runtime: Option<Runtime>, // None: it belongs to the thread that drives it
}

impl Crew {
    /// The multi-threaded runtime.
    pub fn new(threads: usize) -> Crew {
        Crew::of(Builder::new_multi_thread().worker_threads(threads).enable_time().build().unwrap())
    }

    /// As `new`, and so many threads for what blocks or computes.
    pub fn with_blocking(threads: usize, blocking: usize) -> Crew {
        Crew::of(Builder::new_multi_thread().worker_threads(threads).max_blocking_threads(blocking).build().unwrap())
    }

    /// For one thread the current_thread runtime, driven by a thread of its own: quicker at tasks that wait for nobody, and slower at skynet and
    /// at a channel that several share.
    pub fn lean(threads: usize) -> Crew {
        if threads > 1 {
            return Crew::new(threads);
        }
        let runtime = Builder::new_current_thread().build().unwrap();
        let handle = runtime.handle().clone();
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        Crew { handle, _runtime: None }
    }

    fn of(runtime: Runtime) -> Crew {
        Crew { handle: runtime.handle().clone(), _runtime: Some(runtime) }
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs it as a task on a worker, not on the calling thread as block_on() would, and waits for its result.
    pub fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let (done, result) = std::sync::mpsc::channel();
        self.handle.spawn(async move {
            let value = work.await;
            done.send(value).ok();
        });
        match result.recv_timeout(Duration::from_nanos(PATIENCE_NS as u64)) {
            Ok(value) => value,
            Err(_) => too_late("a task"),
        }
    }
}
