// SPDX-License-Identifier: MIT

// The scenarios of `hive bench` that are about fibers, and `bus`, for goroutines: same flags, same output, same checks.
//
// Comparable: what is done, how often, and that the program has T threads that run it (GOMAXPROCS=T; bus: see processors).
// Not comparable: a goroutine's stack begins with 2 KiB and is copied when it grows, ours is 64 KiB of addresses of which
// touched pages are paid; Go may have further threads (garbage collection, monitor); the garbage collector is part of what they
// cost; goroutines cannot be joined, so the fastest of the usual ways to wait is taken.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	scenario  = flag.String("scenario", "", "what to measure")
	threads   = flag.Int("threads", 1, "GOMAXPROCS")
	producers = flag.Int("producers", 1, "chan: goroutines that send")
	consumers = flag.Int("consumers", 1, "chan: goroutines that receive")
	count     = flag.Int64("n", 0, "operations; 0: the scenario's default")
)

type result map[string]interface{}

func wrong(what string, expected, seen interface{}) {
	fmt.Fprintf(os.Stderr, "go: wrong count of %s: %v instead of %v\n", what, seen, expected)
	os.Exit(4)
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
	return result{"ops_per_s": float64(operations) / elapsed.Seconds()}
}

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

// grow has a WaitGroup and places for the sums: a little faster than a channel for each node.
func grow(up *uint64, group *sync.WaitGroup, first, leaves uint64) {
	if leaves == 1 {
		*up = first
		group.Done()
		return
	}
	var below sync.WaitGroup
	var sums [10]uint64
	below.Add(10)
	for i := uint64(0); i < 10; i++ {
		go grow(&sums[i], &below, first+i*leaves/10, leaves/10)
	}
	below.Wait()
	for _, sum := range sums {
		*up += sum
	}
	group.Done()
}

func skynet(n int64) (int64, time.Duration) {
	leaves, fibers := int64(1), int64(1)
	for leaves <= n/10 {
		leaves *= 10
		fibers += leaves
	}
	begin := time.Now()
	var sum uint64
	var group sync.WaitGroup
	group.Add(1)
	go grow(&sum, &group, 0, uint64(leaves))
	group.Wait()
	elapsed := time.Since(begin)
	if expected := uint64(leaves) * uint64(leaves-1) / 2; sum != expected {
		wrong("sum of the leaves", expected, sum)
	}
	return fibers, elapsed
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

func or(n, otherwise int64) int64 {
	if n != 0 {
		return n
	}
	return otherwise
}

// one is set by the linker: everything on one thread, where nothing crosses from CPU to CPU.
var one string

// processors is T; for a bus, whose producers are threads as well, P more, as many as Go itself would take.
func processors() int {
	count := *threads
	if one != "" {
		return 1
	}
	if *scenario == "bus" {
		count += *producers
	}
	if *scenario == "bus" && count > runtime.NumCPU() {
		count = runtime.NumCPU()
	}
	return count
}

func main() {
	flag.Parse()
	runtime.GOMAXPROCS(processors())
	var all result
	n := *count
	switch *scenario {
	case "yield":
		n = or(n, 10000000)
		yieldAll(n/10 + 1)
		all = rate(yieldAll(n))
	case "chan":
		n = or(n, 10000000)
		chanAll(n/10 + 1)
		all = rate(n, chanAll(n))
	case "bus":
		n = or(n, 5000000)
		busAll(n/10 + 1)
		all = rate(n, busAll(n))
	case "skynet_fiber":
		n = or(n, 1000000)
		skynet(n/10 + 1)
		all = rate(skynet(n))
	case "spawn_join":
		n = or(n, 2000000)
		spawnJoin(n/10 + 1)
		elapsed := spawnJoin(n)
		all = rate(n, elapsed)
		all["ns_each"] = float64(elapsed.Nanoseconds()) / float64(n)
	case "fibers_asleep":
		n = or(n, 1000000)
		all = asleep(n)
	default:
		fmt.Fprintf(os.Stderr, "go: no scenario '%s'\n", *scenario)
		os.Exit(10)
	}
	all["peer"], all["scenario"], all["threads"], all["n"] = "go", *scenario, *threads, n
	all["producers"], all["consumers"], all["rss_kb"] = *producers, *consumers, memory("VmHWM")
	text, _ := json.Marshal(all)
	fmt.Println(string(text))
}
