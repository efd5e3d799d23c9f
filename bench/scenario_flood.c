/* SPDX-License-Identifier: MIT */
#include "rig.h"
#include "sync.h"
#include <fcntl.h>
#include <unistd.h>

/* flood: each worker has local tasks of about a microsecond that post themselves again. Meanwhile somebody writes into a pipe of which the
 * first worker is told, once a millisecond by the clock, whether the last letter was seen or not; one operation is a letter that was
 * seen. Times count from the moment at which it was due, so that a stall delays all that fall into it; and, beside that, from the
 * moment at which it was written, for its writer needs a CPU too. The budget decides how long it waits.                     */
#define CHAINS 200
#define WORK_ROUNDS 1500u
#define PAUSE_NS HIVE_MS(1)
#define WARM_UP 50

static struct {
	_Atomic bool over;
	_Atomic int64_t seen, failed, ended;
	struct stats times, from_write;
	struct hive_source source;
	int ends[2];
	_Atomic uint64_t ran;
} flood;

static void work(void *arg)
{
	for (unsigned i = 0; i < WORK_ROUNDS; i++)
		__asm__ volatile("" : "+r"(i));
	atomic_fetch_add_explicit(&flood.ran, 1, memory_order_relaxed);
	if (!atomic_load_explicit(&flood.over, memory_order_relaxed) && hive_post_local(work, arg) < 0)
		atomic_store(&flood.failed, 1);
}

static void begin_chains(void *arg)
{
	for (int i = 0; i < CHAINS; i++)
		work(arg);
}

struct letter {
	int64_t due_ns, written_ns;
};

static void on_letter(struct hive_source *source, uint32_t events)
{
	int64_t now = sync_now();
	struct letter letter;
	(void)source, (void)events;
	while (read(flood.ends[0], &letter, sizeof letter) == sizeof letter) {
		if (atomic_load(&flood.seen) >= WARM_UP) {
			stats_add(&flood.times, now - letter.due_ns);
			stats_add(&flood.from_write, now - letter.written_ns);
		}
		atomic_fetch_add(&flood.seen, 1);
	}
}

static void begin_source(void *arg)
{
	(void)arg;
	hive_source_init(&flood.source, HIVE_SOURCE_FD, flood.ends[0], HIVE_EVENT_IN, on_letter, NULL);
	if (hive_source_start(&flood.source) < 0)
		atomic_store(&flood.failed, 1);
}

static void end_source(void *arg)
{
	(void)arg;
	hive_source_stop(&flood.source);
	atomic_store(&flood.ended, 1);
}

static int send_letters(int64_t n)
{
	int64_t begin = sync_now(), limit = begin + n * PAUSE_NS + BENCH_PATIENCE_NS;
	n += WARM_UP;
	for (int64_t i = 0; i < n; i++) {
		struct letter letter = { .due_ns = begin + (i + 1) * PAUSE_NS };
		sync_sleep_until(letter.due_ns);
		letter.written_ns = sync_now();
		while (write(flood.ends[1], &letter, sizeof letter) != sizeof letter) {
			if (errno != EAGAIN || sync_now() > limit)
				return bench_failed("write", -errno);
			sync_sleep(PAUSE_NS); /* the pipe is full: it stays due since then */
		}
	}
	while (atomic_load(&flood.seen) < n) {
		if (sync_now() > limit)
			return bench_timeout("letters", (uint64_t)n, (uint64_t)atomic_load(&flood.seen));
		sync_sleep(HIVE_US(50));
	}
	return BENCH_OK;
}

static int run(struct rig *rig, int64_t n)
{
	int error = hive_post_to(rig->hive, rig->io[0], begin_source, NULL);
	for (int32_t i = 0; i < rig->io_count && !error; i++)
		error = hive_post_to(rig->hive, rig->io[i], begin_chains, NULL);
	if (error)
		return bench_failed("hive_post_to", error);
	int code = send_letters(n);
	atomic_store(&flood.over, true);
	error = hive_post_to(rig->hive, rig->io[0], end_source, NULL);
	if (!error && !code && sync_await(&flood.ended, BENCH_PATIENCE_NS) == 0)
		code = bench_timeout("the end of the source", 1, 0);
	return code                                  ? code
	       : error || atomic_load(&flood.failed) ? bench_failed("a chain or the source", -EIO)
	                                             : BENCH_OK;
}

int bench_flood(const struct bench_params *params, struct record *result)
{
	struct rig rig;
	struct hive_worker_stats worker = { 0 };
	stats_reset(&flood.times), stats_reset(&flood.from_write);
	if (pipe2(flood.ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return bench_failed("pipe", -errno);
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	sync_sleep_exactly();
	int64_t begin = sync_now();
	code = run(&rig, params->n);
	bench_put_rate(result, (double)atomic_load(&flood.ran), sync_now() - begin);
	bench_put_percentiles(result, &flood.times);
	record_metric(result, "from_write_p99_ns", (double)stats_quantile(&flood.from_write, 0.99));
	if (hive_worker_stats_read(rig.hive, rig.io[0], &worker) == 0)
		record_metric(result, "budget", (double)worker.budget);
	bench_put_memory(result);
	code = rig_close(&rig, code);
	close(flood.ends[0]);
	close(flood.ends[1]);
	return code;
}
