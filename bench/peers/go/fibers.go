// SPDX-License-Identifier: MIT

package main

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// The scenarios with fibers: yield, chan, spawn_join, fibers_asleep; and bus.

type yielder struct {
	done int64
	_    [120]byte
}

func yieldAll(n int64) (int64, time.Duration) {
	fibers := int64(2 * *threads)
	each := (n + fibers - 1) / fibers
	yielders := make([]yielder, fibers)
	var all sync.WaitGroup
	begin := time.Now()
	for i := range yielders {
		all.Add(1)
		go func(mine *yielder) {
			for ; mine.done < each; mine.done++ {
				runtime.Gosched()
			}
			all.Done()
		}(&yielders[i])
	}
	all.Wait()
	elapsed := time.Since(begin)
	for i := range yielders {
		if yielders[i].done != each {
			wrong("yields", each, yielders[i].done)
		}
	}
	return each * fibers, elapsed
}

func chanAll(n int64) time.Duration {
	channel := make(chan uint64, 1024)
	var senders, receivers sync.WaitGroup
	var sum, received uint64
	begin := time.Now()
	for i := 0; i < *consumers; i++ {
		receivers.Add(1)
		go func() {
			var mine, number uint64
			for value := range channel {
				mine += value
				number++
			}
			atomic.AddUint64(&sum, mine)
			atomic.AddUint64(&received, number)
			receivers.Done()
		}()
	}
	next := uint64(1)
	for i := 0; i < *producers; i++ {
		share := uint64(n) / uint64(*producers)
		if uint64(i) < uint64(n)%uint64(*producers) {
			share++
		}
		senders.Add(1)
		go func(first, end uint64) {
			for value := first; value < end; value++ {
				channel <- value
			}
			senders.Done()
		}(next, next+share)
		next += share
	}
	senders.Wait()
	close(channel)
	receivers.Wait()
	elapsed := time.Since(begin)
	if expected := uint64(n) * uint64(n+1) / 2; received != uint64(n) || sum != expected {
		wrong("values", expected, sum)
	}
	return elapsed
}

// message is what goes over a bus.
type message struct {
	number uint64
	rest   [7]uint64
}

// busAll hands n messages of 64 bytes from P goroutines to as many as there are threads, through a channel of 1024.
func busAll(n int64) time.Duration {
	channel := make(chan message, 1024)
	var senders, receivers sync.WaitGroup
	var sum uint64
	begin := time.Now()
	for i := 0; i < *threads; i++ {
		receivers.Add(1)
		go func() {
			var mine uint64
			for m := range channel {
				mine += m.number
			}
			atomic.AddUint64(&sum, mine)
			receivers.Done()
		}()
	}
	for i := 0; i < *producers; i++ {
		senders.Add(1)
		go func(first int64) {
			for k := first; k <= n; k += int64(*producers) {
				channel <- message{number: uint64(k)}
			}
			senders.Done()
		}(int64(i) + 1)
	}
	senders.Wait()
	close(channel)
	receivers.Wait()
	elapsed := time.Since(begin)
	if expected := uint64(n) * uint64(n+1) / 2; sum != expected {
		wrong("messages", expected, sum)
	}
	return elapsed
}

func spawnJoin(n int64) time.Duration {
	done := make(chan struct{})
	var born int64
	begin := time.Now()
	for i := int64(0); i < n; i++ {
		go func() {
			born++
			done <- struct{}{}
		}()
		<-done
	}
	elapsed := time.Since(begin)
	if born != n {
		wrong("children that ran", n, born)
	}
	return elapsed
}

type night struct {
	created, woken time.Duration
	kilobytes      int64
	inTime         bool
}

func sleepAll(n int64, length time.Duration) night {
	var asleep, awake, early int64
	var last time.Time
	lastAsleep, allAwake := make(chan time.Time, 1), make(chan struct{})
	begin := time.Now()
	moment := begin.Add(length)
	for i := int64(0); i < n; i++ {
		go func() {
			if atomic.AddInt64(&asleep, 1) == n {
				lastAsleep <- time.Now()
			}
			time.Sleep(time.Until(moment))
			now := time.Now()
			if now.Before(moment) {
				atomic.AddInt64(&early, 1)
			}
			if atomic.AddInt64(&awake, 1) == n {
				last = now
				close(allAwake)
			}
		}()
	}
	slept := <-lastAsleep
	time.Sleep(time.Millisecond)
	kilobytes := memory("VmRSS")
	<-allAwake
	if early != 0 {
		wrong("fibers that woke early", 0, early)
	}
	return night{slept.Sub(begin), last.Sub(moment), kilobytes, slept.Before(moment)}
}

func asleep(n int64) result {
	before := memory("VmRSS")
	first := sleepAll(n/10+1, 50*time.Millisecond+time.Duration(n*200))
	length := 50*time.Millisecond + 2*time.Duration(float64(first.created)*float64(n)/float64(n/10+1))
	for try := 0; try < 6; try++ {
		seen := sleepAll(n, length)
		if seen.inTime {
			all := rate(n, seen.created)
			all["create_s"] = seen.created.Seconds()
			all["wake_all_s"] = seen.woken.Seconds()
			all["bytes_each"] = float64(seen.kilobytes-before) * 1024 / float64(n)
			return all
		}
		length *= 2
	}
	os.Exit(3)
	return nil
}
