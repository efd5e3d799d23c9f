// SPDX-License-Identifier: MIT

package main

import (
	"sync/atomic"
	"time"
)

// Tiny tasks: post, spawn_local, ping, ping_hot.

// tally is the body of a measured task, one increment, and tells when all have run. There is no place for each thread in Go.
type tally struct {
	done   int64
	target int64
	all    chan time.Time
}

func newTally(target int64) *tally {
	return &tally{target: target, all: make(chan time.Time, 1)}
}

func (t *tally) add() {
	if atomic.AddInt64(&t.done, 1) == t.target {
		t.all <- time.Now()
	}
}

// wait returns when the last one ran.
func (t *tally) wait() time.Time {
	select {
	case end := <-t.all:
		if done := atomic.LoadInt64(&t.done); done != t.target {
			wrong("tasks that ran", t.target, done)
		}
		return end
	case <-time.After(patience):
		tooLate("tasks to run")
	}
	return time.Time{}
}

func postAll(n int64) time.Duration {
	tally := newTally(n)
	start := make(chan struct{})
	begins := make(chan time.Time, *producers)
	for i := 0; i < *producers; i++ {
		share := n / int64(*producers)
		if int64(i) < n%int64(*producers) {
			share++
		}
		go func() {
			<-start
			begins <- time.Now()
			for ; share > 0; share-- {
				go tally.add()
			}
		}()
	}
	close(start)
	end := tally.wait()
	begin := <-begins
	for i := 1; i < *producers; i++ {
		if other := <-begins; other.Before(begin) {
			begin = other
		}
	}
	return end.Sub(begin)
}

func spawnLocal(n int64) time.Duration {
	tally := newTally(n)
	begin := time.Now()
	go func() {
		for i := int64(0); i < n; i++ {
			go tally.add()
		}
	}()
	return tally.wait().Sub(begin)
}

// ask has one question at a time under way, as bench/ping.c does. The answer is the time at which it began to run.
func ask(count int64, idle time.Duration, question func() int64) []int64 {
	times := make([]int64, count)
	for i := range times {
		if idle > 0 {
			sleepUntil(now() + int64(idle))
		}
		submitted := now()
		times[i] = question() - submitted
	}
	return times
}

var byChannel = make(chan int64, 1)

// askAndWait is how Go programs wait: the goroutine blocks, so that mostly its own thread runs the task.
func askAndWait() int64 {
	go func() { byChannel <- now() }()
	return <-byChannel
}

var started int64

// askAndLook has the habit of the other peers' outside thread, which keeps its thread for 3 us and hopes for another one to answer.
func askAndLook() int64 {
	atomic.StoreInt64(&started, 0)
	go func() { atomic.StoreInt64(&started, now()) }()
	return await(&started)
}

func ping(n, warmUp int64, idle time.Duration) result {
	ask(warmUp, idle, askAndWait)
	begin := time.Now()
	times := ask(n, idle, askAndWait)
	all := rate(n, time.Since(begin))
	all.putPercentiles("", times)
	all.putPercentiles("look_", ask(n, idle, askAndLook))
	return all
}
