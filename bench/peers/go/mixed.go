// SPDX-License-Identifier: MIT

package main

import (
	"runtime"
	"sync/atomic"
	"time"
)

// mixed, as scenario_mixed.c: hogs on T goroutines, which is how Go programs limit what computes, and two processors (P) more for the others.
// Without those two a tiny task waits until a hog is preempted, for tens of milliseconds.

const (
	others    = 2
	chains    = 8
	hogLength = 2 * time.Millisecond
	period    = int64(time.Millisecond)
)

type hogs struct {
	todo    chan struct{} // one for each chain: its next hog
	done    int64
	stop    int32
	stopped chan struct{}
}

// work is what one of the T goroutines does.
func (h *hogs) work() {
	runtime.LockOSThread() // the CPU time that burn() looks at is its thread's
	for range h.todo {
		burn(hogLength)
		atomic.AddInt64(&h.done, 1)
		if atomic.LoadInt32(&h.stop) != 0 {
			h.stopped <- struct{}{}
		} else {
			h.todo <- struct{}{}
		}
	}
}

func startHogs() *hogs {
	h := &hogs{todo: make(chan struct{}, chains), stopped: make(chan struct{}, chains)}
	for i := 0; i < chains; i++ {
		h.todo <- struct{}{}
	}
	for i := 0; i < *threads; i++ {
		go h.work()
	}
	return h
}

func (h *hogs) end() {
	atomic.StoreInt32(&h.stop, 1)
	limit := time.After(patience)
	for i := 0; i < chains; i++ {
		select {
		case <-h.stopped:
		case <-limit:
			tooLate("hog chains to end")
		}
	}
}

// during gives the hogs a second while the work is done.
func (h *hogs) during(work func()) float64 {
	begin, done := now(), atomic.LoadInt64(&h.done)
	work()
	return float64(atomic.LoadInt64(&h.done)-done) * 1e9 / float64(now()-begin)
}

type tiny struct {
	due, posted, started int64
}

func postTiny(all []tiny, ran *tally) {
	first := now() + period
	for i := range all {
		mine := &all[i]
		mine.due = first + int64(i)*period
		sleepUntil(mine.due)
		mine.posted = now()
		go func() {
			mine.started = now()
			ran.add()
		}()
	}
}

func mixed(seconds float64) result {
	span := int64(seconds * 1e9)
	tasks := make([]tiny, span/period+1)
	ran := newTally(int64(len(tasks)))
	h := startHogs()
	beTheOutside()
	sleepUntil(now() + int64(200*time.Millisecond))
	half := func() { sleepUntil(now() + span/2) }
	alone := h.during(half) / 2
	withTiny := h.during(func() { postTiny(tasks, ran) })
	ran.wait()
	alone += h.during(half) / 2
	h.end()
	run, endToEnd := make([]int64, len(tasks)), make([]int64, len(tasks))
	for i, one := range tasks {
		run[i], endToEnd[i] = one.started-one.posted, one.started-one.due
	}
	all := rate(int64(len(tasks)), time.Duration(span))
	all.putPercentiles("", run)
	all.putPercentiles("e2e_", endToEnd)
	all["hogs_per_s"], all["hogs_alone_per_s"], all["hogs_ratio"] = withTiny, alone, withTiny/alone
	return all
}
