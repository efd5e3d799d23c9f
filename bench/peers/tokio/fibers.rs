// SPDX-License-Identifier: MIT
//! Tasks that wait for each other: skynet, yield, chan; and bus, whose producers are threads.
use crate::crew::Crew;
use crate::measure::*;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{mpsc, Mutex};
use tokio::task::{yield_now, JoinHandle};

const BRANCHES: u64 = 10;
const TURNS: usize = 5;

/// Nine children are spawned, the tenth is awaited right here, as one would write it.
fn grow(first: u64, leaves: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if leaves == 1 {
            return first;
        }
        let each = leaves / BRANCHES;
        let children: [JoinHandle<u64>; 9] = std::array::from_fn(|i| tokio::spawn(grow(first + i as u64 * each, each)));
        let mut sum = grow(first + 9 * each, each).await;
        for child in children {
            sum += child.await.unwrap();
        }
        sum
    })
}

fn power_of_ten_within(n: i64) -> u64 {
    let mut power = 1;
    while power <= n / BRANCHES as i64 {
        power *= BRANCHES as i64;
    }
    power as u64
}

fn tasks_of(leaves: u64) -> u64 {
    if leaves == 1 {
        1
    } else {
        leaves + tasks_of(leaves / BRANCHES)
    }
}

fn grow_and_check(crew: &Crew, leaves: u64) -> f64 {
    let begin = now();
    let sum = crew.run(grow(0, leaves));
    let seconds = (now() - begin) as f64 / 1e9;
    wrong("the leaves' sum", leaves * (leaves - 1) / 2, sum);
    seconds
}

/// The median of five turns; slow ones do not get all of them.
pub fn skynet(o: &Options) -> Output {
    let crew = Crew::new(o.threads);
    let leaves = power_of_ten_within(o.n);
    grow_and_check(&crew, power_of_ten_within(o.n / 10 + 1));
    let mut turns = Vec::new();
    while turns.len() < TURNS && turns.iter().sum::<f64>() < 2.0 {
        turns.push(grow_and_check(&crew, leaves));
    }
    let seconds = median(turns);
    let mut output = Output::rate(tasks_of(leaves) as f64, (seconds * 1e9) as i64);
    output.put("seconds", seconds);
    output
}

async fn join_all<T>(handles: Vec<JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::with_capacity(handles.len());
    for handle in handles {
        results.push(handle.await.unwrap());
    }
    results
}

async fn yield_often(count: i64) -> i64 {
    let mut done = 0;
    while done < count {
        yield_now().await;
        done += 1;
    }
    done
}

/// Two tasks for each thread. How many yields, and how long they took.
fn yield_all(crew: &Crew, threads: usize, n: i64) -> (i64, i64) {
    let tasks = 2 * threads as i64;
    let each = (n + tasks - 1) / tasks;
    let begin = now();
    let done = crew.run(async move { join_all((0..tasks).map(|_| tokio::spawn(yield_often(each))).collect()).await });
    let elapsed = now() - begin;
    wrong("yields", (each * tasks) as u64, done.iter().sum::<i64>() as u64);
    (each * tasks, elapsed)
}

pub fn yields(o: &Options) -> Output {
    let crew = Crew::lean(o.threads);
    yield_all(&crew, o.threads, o.n / 10 + 1);
    let (count, elapsed) = yield_all(&crew, o.threads, o.n);
    Output::rate(count as f64, elapsed)
}

/// How many there were, and the sum of what `number` makes of them.
async fn receive_alone<T>(mut channel: mpsc::Receiver<T>, number: fn(T) -> u64) -> (u64, u64) {
    let (mut count, mut sum) = (0, 0);
    while let Some(value) = channel.recv().await {
        count += 1;
        sum += number(value);
    }
    (count, sum)
}

async fn receive_in_turns<T>(channel: Arc<Mutex<mpsc::Receiver<T>>>, number: fn(T) -> u64) -> (u64, u64) {
    let (mut count, mut sum) = (0, 0);
    loop {
        let value = channel.lock().await.recv().await;
        match value {
            Some(value) => {
                count += 1;
                sum += number(value);
            }
            None => return (count, sum),
        }
    }
}

async fn trade(producers: usize, consumers: usize, n: u64) -> (u64, u64) {
    let (sender, receiver) = mpsc::channel::<u64>(1024);
    let mut receivers = Vec::new();
    if consumers == 1 {
        receivers.push(tokio::spawn(receive_alone(receiver, |value| value)));
    } else {
        let shared = Arc::new(Mutex::new(receiver));
        receivers.extend((0..consumers).map(|_| tokio::spawn(receive_in_turns(shared.clone(), |value| value))));
    }
    let mut next = 1;
    for i in 0..producers as u64 {
        let (sender, first) = (sender.clone(), next);
        next += n / producers as u64 + (i < n % producers as u64) as u64;
        let end = next;
        tokio::spawn(async move {
            for value in first..end {
                sender.send(value).await.unwrap();
            }
        });
    }
    drop(sender); // the channel is closed when the last of its clones has ended
    let all = join_all(receivers).await;
    (all.iter().map(|seen| seen.0).sum(), all.iter().map(|seen| seen.1).sum())
}

fn trade_and_check(crew: &Crew, o: &Options, n: i64) -> i64 {
    let begin = now();
    let (count, sum) = crew.run(trade(o.producers, o.consumers, n as u64));
    let elapsed = now() - begin;
    wrong("values", n as u64, count);
    wrong("the values' sum", n as u64 * (n as u64 + 1) / 2, sum);
    elapsed
}

pub fn chan(o: &Options) -> Output {
    let crew = Crew::new(o.threads);
    trade_and_check(&crew, o, o.n / 10 + 1);
    Output::rate(o.n as f64, trade_and_check(&crew, o, o.n))
}

/// 64 bytes, as there.
type Message = [u64; 8];

async fn handle_all(workers: usize, receiver: mpsc::Receiver<Message>) -> (u64, u64) {
    let number = |message: Message| message[0];
    if workers == 1 {
        return receive_alone(receiver, number).await;
    }
    let shared = Arc::new(Mutex::new(receiver));
    let all = join_all((0..workers).map(|_| tokio::spawn(receive_in_turns(shared.clone(), number))).collect()).await;
    (all.iter().map(|seen| seen.0).sum(), all.iter().map(|seen| seen.1).sum())
}

/// P threads, which wait where there is no room; from the first submit until the last was handled.
fn submit_and_check(crew: &Crew, o: &Options, n: u64) -> i64 {
    let (sender, receiver) = mpsc::channel::<Message>(1024);
    let begin = now();
    let threads: Vec<_> = (0..o.producers as u64)
        .map(|i| {
            let (sender, step) = (sender.clone(), o.producers);
            std::thread::spawn(move || {
                for number in (i + 1..=n).step_by(step) {
                    sender.blocking_send([number, 0, 0, 0, 0, 0, 0, 0]).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let (count, sum) = crew.run(handle_all(o.threads, receiver));
    let elapsed = now() - begin;
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    wrong("messages", n, count);
    wrong("sum of the messages", n * (n + 1) / 2, sum);
    elapsed
}

pub fn bus(o: &Options) -> Output {
    let crew = Crew::lean(o.threads);
    submit_and_check(&crew, o, o.n as u64 / 10 + 1);
    Output::rate(o.n as f64, submit_and_check(&crew, o, o.n as u64))
}
