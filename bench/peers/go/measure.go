// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// The measuring side: clock and sleep as in bench/sync.c, percentiles as in bench/stats.c (those here are exact, there within 1 %).

const patience = 60 * time.Second

type result map[string]interface{}

func wrong(what string, expected, seen interface{}) {
	fmt.Fprintf(os.Stderr, "go: wrong count of %s: %v instead of %v\n", what, seen, expected)
	os.Exit(4)
}

func tooLate(what string) {
	fmt.Fprintf(os.Stderr, "go: waited too long for %s\n", what)
	os.Exit(3)
}

// memory is a line of /proc/self/status, in KiB.
func memory(key string) int64 {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, key+":") {
			value, _ := strconv.ParseInt(strings.Fields(line)[1], 10, 64)
			return value
		}
	}
	return 0
}

func rate(operations int64, elapsed time.Duration) result {
	return result{"ops_per_s": float64(operations) / math.Max(elapsed.Seconds(), 1e-9)}
}

var birth = time.Now()

// now is a monotonic time in nanoseconds; only differences mean something.
func now() int64 {
	return int64(time.Since(birth))
}

// beTheOutside makes the calling goroutine what an outside thread is elsewhere: a thread of its own, with the least timer slack.
func beTheOutside() {
	const setTimerSlack = 29
	runtime.LockOSThread()
	syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
}

// sleepUntil has the thread sleep in the kernel: time.Sleep may take a millisecond when nothing else runs.
func sleepUntil(due int64) {
	for left := due - now(); left > 0; left = due - now() {
		wait := syscall.NsecToTimespec(left)
		syscall.Nanosleep(&wait, nil)
	}
}

// await is the poster's habit: about 3 us of looking, then it lets others run.
func await(word *int64) int64 {
	begin := now()
	for {
		if value := atomic.LoadInt64(word); value != 0 {
			return value
		}
		waited := now() - begin
		if waited > int64(patience) {
			tooLate("an answer")
		}
		if waited > 3000 {
			runtime.Gosched()
		}
	}
}

func clock(which uintptr) int64 {
	var used syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, which, uintptr(unsafe.Pointer(&used)), 0)
	return used.Nano()
}

func cpuSeconds() float64 {
	const processClock = 2
	return float64(clock(processClock)) / 1e9
}

var sink uint32

// burn spins until its thread has used so much CPU time; the goroutine must stay on it.
func burn(cpu time.Duration) {
	const threadClock = 3
	for until := clock(threadClock) + int64(cpu); clock(threadClock) < until; {
		for i := 0; i < 5000; i++ {
			atomic.StoreUint32(&sink, uint32(i))
		}
	}
}

// putPercentiles: what is negative counts as 0 in them and shows in the minimum.
func (all result) putPercentiles(prefix string, times []int64) {
	sort.Slice(times, func(i, k int) bool { return times[i] < times[k] })
	for name, share := range map[string]float64{"p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999} {
		rank := int(math.Ceil(share * float64(len(times))))
		value := times[rank-1]
		if value < 0 {
			value = 0
		}
		all[prefix+name+"_ns"] = value
	}
	all[prefix+"max_ns"] = times[len(times)-1]
}

// nextDelay is splitmix64, as in scenario_timer.c: the same delays in every run and in every peer, 1 to 1000 ms.
func nextDelay(seed *uint64) time.Duration {
	*seed += 0x9e3779b97f4a7c15
	mixed := (*seed ^ (*seed >> 30)) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb
	return time.Millisecond + time.Duration((mixed^(mixed>>31))%999000000)
}
