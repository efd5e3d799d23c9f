// SPDX-License-Identifier: MIT

package main

import (
	"sync"
	"time"
)

// timer and timer_cancel, as scenario_timer.c and scenario_timer_cancel.c.

const (
	armed = 10000
	far   = time.Hour
)

type timed struct {
	timer     *time.Timer
	delay     time.Duration
	due, late int64
}

func (t *timed) fire(all *tally) {
	t.late = now() - t.due
	all.add()
}

// measureInsert arms and cancels them all, timers that are there and stopped, with the call for that. A second later than asked for: they
// fire on any thread, and none may before it is cancelled.
func measureInsert(timers []timed) time.Duration {
	begin := time.Now()
	for i := range timers {
		timers[i].timer.Reset(time.Second + timers[i].delay)
	}
	elapsed := time.Since(begin)
	for i := range timers {
		if !timers[i].timer.Stop() {
			wrong("timers that were armed when cancelled", 1, 0)
		}
	}
	return elapsed
}

// armAll has everything due after the last one is armed.
func armAll(timers []timed, insert time.Duration) {
	base := now() + 2*int64(insert) + int64(len(timers))*50
	for i := range timers {
		timers[i].due = base + int64(timers[i].delay)
		timers[i].timer.Reset(time.Duration(timers[i].due - now()))
	}
}

// onShares runs the work on a part of the timers in each of T goroutines. The longest time of all.
func onShares(timers []timed, work func([]timed) time.Duration) time.Duration {
	var group sync.WaitGroup
	times := make([]time.Duration, *threads)
	for i := range times {
		first, end := len(timers)*i / *threads, len(timers)*(i+1) / *threads
		group.Add(1)
		go func(i int) {
			times[i] = work(timers[first:end])
			group.Done()
		}(i)
	}
	group.Wait()
	longest := times[0]
	for _, took := range times {
		if took > longest {
			longest = took
		}
	}
	return longest
}

func timerAll(n int64) result {
	seed := uint64(1)
	timers := make([]timed, n)
	fired := newTally(n)
	for i := range timers {
		mine := &timers[i]
		mine.delay = nextDelay(&seed)
		mine.timer = time.AfterFunc(far, func() { mine.fire(fired) })
		mine.timer.Stop()
	}
	onShares(timers, measureInsert)
	insert := onShares(timers, measureInsert)
	cpu := cpuSeconds()
	onShares(timers, func(share []timed) time.Duration {
		armAll(share, insert)
		return 0
	})
	fired.wait()
	all := rate(n, insert)
	all["cpu_s"] = cpuSeconds() - cpu
	times := make([]int64, n)
	earliest := timers[0].late
	for i := range timers {
		times[i] = timers[i].late
		if times[i] < earliest {
			earliest = times[i]
		}
	}
	all["min_ns"] = earliest
	all.putPercentiles("", times)
	return all
}

func arm(timer *time.Timer, i int64) bool {
	return timer.Reset(far + time.Duration(i)*100*time.Microsecond)
}

func replaceOldest(timers []*time.Timer, operations int64) (notArmed int64) {
	oldest := int64(0)
	for i := int64(0); i < operations; i++ {
		if !timers[oldest].Stop() {
			notArmed++
		}
		arm(timers[oldest], oldest)
		if oldest++; oldest == armed {
			oldest = 0
		}
	}
	return notArmed
}

func timerCancel(n int64) result {
	timers := make([]*time.Timer, armed)
	for i := range timers {
		timers[i] = time.AfterFunc(far, func() { wrong("timers that fired", 0, 1) })
		arm(timers[i], int64(i))
	}
	notArmed := replaceOldest(timers, n/10+armed)
	begin := time.Now()
	notArmed += replaceOldest(timers, n)
	elapsed := time.Since(begin)
	if notArmed != 0 {
		wrong("timers that were not armed when cancelled", 0, notArmed)
	}
	return rate(n, elapsed)
}
