// SPDX-License-Identifier: MIT

package main

import (
	"sort"
	"sync"
	"time"
)

// Fork and join: fib, skynet and skynet_fiber.

const turns = 5

// medianOf is the middle one of so many turns. Slow ones do not get all of them.
func medianOf(work func() time.Duration) time.Duration {
	var times []time.Duration
	var all time.Duration
	for len(times) < turns && all < 2*time.Second {
		took := work()
		times = append(times, took)
		all += took
	}
	sort.Slice(times, func(i, k int) bool { return times[i] < times[k] })
	return times[len(times)/2]
}

// fibonacci spawns one half and calls the other one.
func fibonacci(n int64) int64 {
	if n < 2 {
		return n
	}
	var left int64
	var half sync.WaitGroup
	half.Add(1)
	go func() {
		left = fibonacci(n - 1)
		half.Done()
	}()
	right := fibonacci(n - 2)
	half.Wait()
	return left + right
}

func fibByAdding(n int64) int64 {
	a, b := int64(0), int64(1)
	for ; n > 0; n-- {
		a, b = b, a+b
	}
	return a
}

func fib(n int64) result {
	if n > 50 {
		usage("fib takes too long with n > 50")
	}
	if n > 5 {
		fibonacci(n - 5)
	}
	took := medianOf(func() time.Duration {
		begin := time.Now()
		seen := fibonacci(n)
		elapsed := time.Since(begin)
		if expected := fibByAdding(n); seen != expected {
			wrong("rabbits", expected, seen)
		}
		return elapsed
	})
	calls := 2*fibByAdding(n+1) - 1
	all := rate(calls, took)
	all["ns_each"] = float64(took.Nanoseconds()) / float64(calls)
	return all
}

// grow has a WaitGroup and places for the sums: a little faster than a channel for each node. Of ten children so many are
// spawned, all of them for skynet_fiber; for skynet the tenth is called, as one would write it.
func grow(up *uint64, group *sync.WaitGroup, first, leaves, spawned uint64) {
	if leaves == 1 {
		*up = first
		group.Done()
		return
	}
	var below sync.WaitGroup
	var sums [10]uint64
	below.Add(10)
	for i := uint64(0); i < spawned; i++ {
		go grow(&sums[i], &below, first+i*leaves/10, leaves/10, spawned)
	}
	for i := spawned; i < 10; i++ {
		grow(&sums[i], &below, first+i*leaves/10, leaves/10, spawned)
	}
	below.Wait()
	for _, sum := range sums {
		*up += sum
	}
	group.Done()
}

func skynet(n int64, spawned uint64) (int64, time.Duration) {
	leaves, fibers := int64(1), int64(1)
	for leaves <= n/10 {
		leaves *= 10
		fibers += leaves
	}
	begin := time.Now()
	var sum uint64
	var group sync.WaitGroup
	group.Add(1)
	go grow(&sum, &group, 0, uint64(leaves), spawned)
	group.Wait()
	elapsed := time.Since(begin)
	if expected := uint64(leaves) * uint64(leaves-1) / 2; sum != expected {
		wrong("sum of the leaves", expected, sum)
	}
	return fibers, elapsed
}

func skynetForks(n int64) result {
	const spawned = 9
	skynet(n/10+1, spawned)
	var tasks int64
	took := medianOf(func() time.Duration {
		count, elapsed := skynet(n, spawned)
		tasks = count
		return elapsed
	})
	all := rate(tasks, took)
	all["seconds"] = took.Seconds()
	return all
}
