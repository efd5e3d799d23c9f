// SPDX-License-Identifier: MIT

// Scenarios of `hive bench` for Go: same flags, same output, same checks.
//
// Comparable: what is done, how often, and that the program has T threads that run it (GOMAXPROCS=T; where others post, see processors).
// Not comparable: a goroutine's stack begins with 2 KiB and is copied when it grows, ours is 64 KiB of addresses of which
// touched pages are paid; Go may have further threads (garbage collection, monitor); the garbage collector is part of what they
// cost; goroutines cannot be joined, so the fastest of the usual ways to wait is taken. There is no outside: who posts is a goroutine too,
// and no named worker, so there is no post_to. Timers are those of AfterFunc(), which runs each in a goroutine of its own.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

var (
	scenario  = flag.String("scenario", "", "what to measure")
	threads   = flag.Int("threads", 0, "GOMAXPROCS; 0: the scenario's default")
	producers = flag.Int("producers", 1, "goroutines that send or post")
	consumers = flag.Int("consumers", 1, "chan: goroutines that receive")
	count     = flag.Int64("n", 0, "operations; 0: the scenario's default")
	seconds   = flag.Float64("seconds", 3, "mixed: how long")
)

// one is set by the linker: everything on one thread, where nothing crosses from CPU to CPU.
var one string

// processors is T. Where producers are threads with us, for which Go has goroutines, P more, but no more than there are CPUs, as many as Go
// itself would take; for mixed see there.
func processors() int {
	if one != "" {
		return 1
	}
	switch *scenario {
	case "mixed":
		return *threads + others
	case "bus", "post", "ping", "ping_hot":
		if *threads+*producers < runtime.NumCPU() {
			return *threads + *producers
		}
		return runtime.NumCPU()
	}
	return *threads
}

func usage(text string) {
	fmt.Fprintf(os.Stderr, "go: %s\n", text)
	flag.Usage()
	os.Exit(2)
}

type entry struct {
	threads int // 0: as many as there are CPUs
	n       int64
	run     func(n int64) result
}

// warm does a tenth first.
func warm(work func(n int64) time.Duration) func(n int64) result {
	return func(n int64) result {
		work(n/10 + 1)
		return rate(n, work(n))
	}
}

var scenarios = map[string]entry{
	"post":         {2, 2000000, warm(postAll)},
	"spawn_local":  {2, 2000000, warm(spawnLocal)},
	"ping":         {1, 5000, func(n int64) result { return ping(n, 500, 100*time.Microsecond) }},
	"ping_hot":     {1, 200000, func(n int64) result { return ping(n, n/10+500, 0) }},
	"timer":        {1, 100000, timerAll},
	"timer_cancel": {1, 5000000, timerCancel},
	"fib":          {1, 32, fib},
	"skynet":       {1, 1000000, skynetForks},
	"mixed":        {0, 0, func(int64) result { return mixed(*seconds) }},
	"yield": {1, 10000000, func(n int64) result {
		yieldAll(n/10 + 1)
		return rate(yieldAll(n))
	}},
	"chan": {1, 10000000, warm(chanAll)},
	"bus":  {1, 5000000, warm(busAll)},
	"skynet_fiber": {1, 1000000, func(n int64) result {
		skynet(n/10+1, 10)
		return rate(skynet(n, 10))
	}},
	"spawn_join": {1, 2000000, func(n int64) result {
		spawnJoin(n/10 + 1)
		elapsed := spawnJoin(n)
		all := rate(n, elapsed)
		all["ns_each"] = float64(elapsed.Nanoseconds()) / float64(n)
		return all
	}},
	"fibers_asleep": {1, 1000000, asleep},
}

func main() {
	flag.Parse()
	found, known := scenarios[*scenario]
	if flag.NArg() > 0 || *threads < 0 || *producers < 1 || *consumers < 1 || *count < 0 || *seconds < 0.01 {
		usage("bad flags")
	}
	if !known {
		fmt.Fprintf(os.Stderr, "go: no scenario '%s'\n", *scenario)
		os.Exit(10)
	}
	if *threads == 0 {
		*threads = found.threads
	}
	if *threads == 0 {
		*threads = runtime.NumCPU()
	}
	if *count == 0 {
		*count = found.n
	}
	runtime.GOMAXPROCS(processors())
	all := found.run(*count)
	all["peer"], all["scenario"], all["threads"], all["n"] = "go", *scenario, *threads, *count
	all["producers"], all["consumers"], all["rss_kb"] = *producers, *consumers, memory("VmHWM")
	text, _ := json.Marshal(all)
	fmt.Println(string(text))
}
