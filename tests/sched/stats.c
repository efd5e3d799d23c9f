/* SPDX-License-Identifier: MIT */
/* Counters: exact where they say so, readable at any time from any thread, written in a form that programs can read. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "support/cores.h"
#include "support/json.h"
#include "support/real.h"
#include "support/ticks.h"

static void nothing(void *arg)
{
	(void)arg;
}

/* each worker counts its own wake-ups; together they are the hive's. */
TEST(each_worker_counts_its_wake_ups)
{
	struct fake f = { 0 };
	struct hive_worker_stats s;
	struct hive_stats all;

	fake_create(&f, (struct hive_options){ .io_workers = 3, .compute_workers = 1 });
	fake_start(&f);
	fake_settle(&f);
	for (int i = 0; i < 3; i++)
		for (int j = 0; j <= i; j++) {
			CHECK_OK(hive_post_to(f.hive, f.workers[i].id, nothing, NULL));
			fake_settle(&f);
		}
	CHECK_OK(hive_post_compute(f.hive, nothing, NULL));
	fake_settle(&f);
	for (int i = 0; i < 4; i++) {
		CHECK_OK(hive_worker_stats_read(f.hive, f.workers[i].id, &s));
		CHECK_EQ(s.woken, i < 3 ? i + 1 : 1);
		CHECK_EQ(s.ran, i < 3 ? i + 1 : 1);
		CHECK(s.sleeps >= s.woken);
	}
	CHECK_OK(hive_stats_read(f.hive, &all));
	CHECK_EQ(all.wakes, 1 + 2 + 3 + 1);
	fake_destroy(&f);
}

/* what waits where, at this moment. */
TEST(stats_tell_what_waits_where)
{
	struct lone l = { 0 };
	struct hive_stats s;
	struct hive_worker_stats w;
	struct hive_source source;
	uint64_t post;

	lone_open(&l, 2, (struct hive_worker_options){ .name = "a name" });
	CHECK_OK(hive_post(l.f.hive, nothing, NULL));
	CHECK_OK(hive_post_compute(l.f.hive, nothing, NULL));
	CHECK_OK(hive_post_compute(l.f.hive, nothing, NULL));
	lone_become(&l, 0);
	CHECK_OK(hive_post_local(nothing, NULL));
	CHECK_OK(hive_post_local(nothing, NULL));
	CHECK_OK(hive_post_self(nothing, NULL));
	CHECK_OK(hive_post_self_after(HIVE_S(1), nothing, NULL, NULL));
	CHECK_OK(hive_post_self_after(HIVE_S(1), nothing, NULL, &post));
	hive_source_init(&source, HIVE_SOURCE_FD, 3, HIVE_EVENT_IN, ear_hear, NULL);
	CHECK_OK(hive_source_start(&source));
	CHECK_OK(hive_post_cancel(l.f.hive, post));
	CHECK_OK(hive_stats_read(l.f.hive, &s));
	CHECK_EQ(s.time_ns, l.f.now_ns);
	CHECK_EQ(s.io_workers, 2);
	CHECK_EQ(s.compute_workers, 0);
	CHECK_EQ(s.pool, 1);
	CHECK_EQ(s.compute_pool, 2);
	CHECK_EQ(s.timers, 1);
	CHECK_EQ(s.sources, 1);
	CHECK_EQ(s.posted, 8);
	CHECK_EQ(s.cancelled, 1);
	CHECK_EQ(s.ran, 0);
	CHECK_OK(hive_worker_stats_read(l.f.hive, l.ids[0], &w));
	CHECK_EQ(w.local, 2);
	CHECK_EQ(w.private_tasks, 1);
	CHECK_EQ(w.timers, 1);
	CHECK_EQ(w.sources, 1);
	CHECK_EQ(w.worker, l.ids[0]);
	CHECK_EQ(w.kind, HIVE_WORKER_IO);
	CHECK_STR(w.name, "a name");
	CHECK_STR(w.core, "fake");
	lone_close(&l);
}

/* beats, events, timers, thefts and spills are counted one by one. */
TEST(stats_count_beats_events_timers_thefts_and_spills)
{
	struct lone l = { 0 };
	struct hive_worker_stats w;
	struct ear ear;

	lone_open(&l, 2, (struct hive_worker_options){ .local_capacity = 4 });
	lone_become(&l, 0);
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_post_local(nothing, NULL));
	CHECK_OK(hive_post_self_after(0, nothing, NULL, NULL));
	memset(&ear, 0, sizeof ear);
	hive_source_init(&ear.source, HIVE_SOURCE_FD, 3, HIVE_EVENT_IN, ear_hear, &ear);
	CHECK_OK(hive_source_start(&ear.source));
	hive_source_deliver(&ear.source, HIVE_EVENT_IN);
	hive_source_deliver(&ear.source, HIVE_EVENT_IN);
	CHECK_EQ(hive_source_stop(&ear.source), 1);
	for (int i = 0; i < 3; i++)
		lone_beat(&l, 1); /* the pool's two, then half of the three that are left */
	lone_beat(&l, 0);
	CHECK_OK(hive_worker_stats_read(l.f.hive, l.ids[0], &w));
	CHECK_EQ(w.spilled, 2);
	CHECK_EQ(w.events, 2);
	CHECK_EQ(w.timers_fired, 1);
	CHECK_EQ(w.beats, 1);
	CHECK_OK(hive_worker_stats_read(l.f.hive, l.ids[1], &w));
	CHECK_EQ(w.stolen, 2);
	CHECK_EQ(w.beats, 3);
	lone_close(&l);
}

/* arguments are checked, and a failed call writes nothing. */
TEST(reading_stats_of_nobody_is_refused)
{
	struct fake f = { 0 };
	struct hive_stats s = { .posted = 99 };
	struct hive_worker_stats w = { .worker = 99 };

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_ERR(hive_stats_read(NULL, &s), -EINVAL);
	CHECK_ERR(hive_stats_read(f.hive, NULL), -EINVAL);
	CHECK_ERR(hive_worker_stats_read(f.hive, HIVE_WORKER_NONE, &w), -EINVAL);
	CHECK_ERR(hive_worker_stats_read(f.hive, HIVE_WORKER_MAIN, NULL), -EINVAL);
	CHECK_ERR(hive_worker_stats_read(NULL, HIVE_WORKER_MAIN, &w), -EINVAL);
	CHECK_ERR(hive_worker_stats_read(f.hive, 4711 << 11, &w), -ESRCH);
	CHECK_ERR(hive_stats_write(f.hive, 1, (enum hive_format)7), -EINVAL);
	CHECK_ERR(hive_stats_write(NULL, 1, HIVE_FORMAT_TEXT), -EINVAL);
	CHECK_ERR(hive_stats_write(f.hive, -1, HIVE_FORMAT_JSON), -EBADF);
	CHECK_EQ(s.posted, 99);
	CHECK_EQ(w.worker, 99);
	fake_destroy(&f);
}

/* What hive_stats_write() writes. */
static char *written(struct hive *hive, enum hive_format format)
{
	static char text[65536];
	FILE *file = tmpfile();
	size_t n;

	CHECK(file);
	CHECK_OK(hive_stats_write(hive, fileno(file), format));
	rewind(file);
	n = fread(text, 1, sizeof text - 1, file);
	text[n] = '\0';
	fclose(file);
	return text;
}

/* as JSON the figures are one object that says the same as the calls. */
TEST(stats_as_json_parse_and_tell_the_truth)
{
	struct fake f = { 0 };
	struct hive_worker_options worker = { .name = "quotes\" and \\ and \n" };
	struct hive_stats s;
	const char *text, *first;

	fake_create(&f, (struct hive_options){ .io_workers = 3, .compute_workers = 2 });
	CHECK_OK(hive_attach(f.hive, &worker, NULL));
	fake_start(&f);
	for (int i = 0; i < 100; i++)
		CHECK_OK(hive_post(f.hive, nothing, NULL));
	fake_settle(&f);
	text = written(f.hive, HIVE_FORMAT_JSON);
	CHECK(json_is_valid(text));
	CHECK_OK(hive_stats_read(f.hive, &s));
	CHECK_EQ(json_number(text, "io_workers", -1), 4);
	CHECK_EQ(json_number(text, "compute_workers", -1), 2);
	CHECK_EQ(json_number(text, "posted", -1), 100);
	CHECK_EQ(json_number(text, "ran", -1), 100);
	CHECK_EQ(json_number(text, "wakes", -1), (double)s.wakes);
	CHECK_EQ(json_number(text, "sleeps", -1), (double)s.sleeps);
	first = json_find(text, "workers");
	CHECK(first && *first == '[');
	CHECK(json_says(first + 1, "name", "io-0"));
	CHECK(json_says(first + 1, "core", "fake"));
	CHECK(json_number(first + 1, "woken", -1) >= 0);
	CHECK(json_number(first + 1, "beats", -1) > 0);
	fake_destroy(&f);
}

/* names that are no UTF-8, or cut within a character, do not break the text. */
TEST(stats_as_json_survive_any_name)
{
	static char cut[] = "...............\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9";
	const char *const names[] = { "\xff\xfe", cut, cut + 1, "\x7f", "" }; /* one of the two is cut within an é */

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct fake f = { 0 };
		struct hive_worker_options worker = { .name = names[i] };

		fake_create(&f, (struct hive_options){ 0 });
		CHECK_OK(hive_attach(f.hive, &worker, NULL));
		CHECK(json_is_valid(written(f.hive, HIVE_FORMAT_JSON)));
		fake_destroy(&f);
	}
}

/* the name of a core of one's own may be anything too. */
TEST(stats_as_json_survive_any_name_of_a_core)
{
	struct fake f = { 0 };
	struct hive_core_ops odd = fake_core;
	struct hive_worker_options worker = { .core = &odd };

	odd.name = "my \"core\"\\";
	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(f.hive, &worker, NULL));
	CHECK(json_is_valid(written(f.hive, HIVE_FORMAT_JSON)));
	fake_destroy(&f);
}

/* for people: a line for the hive and one per worker. */
TEST(stats_as_text_have_a_line_per_worker)
{
	struct fake f = { 0 };
	const char *text;
	int lines = 0;

	fake_create(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	fake_start(&f);
	fake_settle(&f);
	text = written(f.hive, HIVE_FORMAT_TEXT);
	CHECK(strstr(text, "io-0") && strstr(text, "io-1") && strstr(text, "compute-0"));
	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	CHECK_EQ(lines, 4);
	fake_destroy(&f);
}

/* ---- with threads ---- */

static _Atomic(bool) over;
static _Atomic(int64_t) looks;

static void *keep_reading(void *arg)
{
	struct hive *hive = arg;
	uint64_t ran = 0;

	while (!atomic_load(&over)) {
		uint32_t ids[16];
		struct hive_stats s;
		struct hive_worker_stats w;
		size_t n = hive_workers(hive, ids, 16);

		CHECK_OK(hive_stats_read(hive, &s));
		CHECK(s.ran >= ran); /* counters never fall */
		ran = s.ran;
		for (size_t i = 0; i < n && i < 16; i++)
			hive_worker_stats_read(hive, ids[i], &w);
		atomic_fetch_add(&looks, 1);
	}
	return NULL;
}

static _Atomic(int) bred;

static void breed(void *arg)
{
	intptr_t depth = (intptr_t)arg;

	atomic_fetch_add(&bred, 1);
	if (depth > 0) {
		CHECK_OK(hive_post_local(breed, (void *)(depth - 1)));
		CHECK_OK(hive_post_self_after(0, breed, (void *)(depth - 1), NULL));
	}
}

/* others read a worker's counts, sizes and sleep at any time; a sanitizer would see a race. */
TEST(stats_can_be_read_from_any_thread_while_everything_runs)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	pthread_t reader;

	atomic_store(&over, false);
	atomic_store(&looks, 0);
	atomic_store(&bred, 0);
	CHECK_EQ(pthread_create(&reader, NULL, keep_reading, hive), 0);
	for (int i = 1; i <= 20; i++) {
		CHECK_OK(hive_post(hive, breed, number(7)));
		CHECK_OK(hive_post_compute(hive, nothing, NULL));
		WAIT_UNTIL(atomic_load(&bred) == i * 255);
	}
	WAIT_UNTIL(atomic_load(&looks) > 100);
	atomic_store(&over, true);
	CHECK_EQ(pthread_join(reader, NULL), 0);
	CHECK_EQ(real_end(hive, HIVE_DRAIN).ran, 20 * 256);
}

static int full_pipe[2];
static volatile sig_atomic_t interruptions;

/* The first signal only interrupts, the second makes room. */
static void interrupt(int signal_number)
{
	char bytes[4096];
	int saved = errno;

	(void)signal_number;
	if (++interruptions == 2)
		while (read(full_pipe[0], bytes, sizeof bytes) > 0) {}
	errno = saved;
}

/* a signal in the middle of it does no harm. */
TEST(a_signal_does_not_keep_stats_from_being_written)
{
	struct fake f = { 0 };
	struct ticks ticks;
	char text[4096] = { 0 };
	ssize_t n;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(pipe2(full_pipe, O_NONBLOCK | O_CLOEXEC));
	while (write(full_pipe[1], text, sizeof text) > 0) {}
	CHECK_OK(fcntl(full_pipe[1], F_SETFL, 0)); /* from here on a write waits */
	interruptions = 0;
	ticks_start(&ticks, HIVE_MS(2), interrupt);
	CHECK_OK(hive_stats_write(f.hive, full_pipe[1], HIVE_FORMAT_TEXT));
	ticks_stop(&ticks);
	CHECK(interruptions >= 2);
	n = read(full_pipe[0], text, sizeof text - 1);
	CHECK(n > 0);
	CHECK(strncmp(text, "io 1  compute 0", 15) == 0); /* all of it, and once */
	CHECK(strstr(text, "io-0") && !strstr(strstr(text, "io-0") + 1, "io-0"));
	close_both(full_pipe);
	fake_destroy(&f);
}

/* Without a hook for warnings they go where a person may see them. */
TEST(a_warning_that_nobody_wants_goes_to_the_standard_error)
{
	struct hive *hive = NULL;
	FILE *file = tmpfile();
	char text[64] = "";
	int before = dup(2);

	CHECK(file && before >= 0);
	CHECK_OK(hive_create(NULL, &hive));
	CHECK_EQ(dup2(fileno(file), 2), 2);
	hive__warn(hive, "worker %s: %d", "x", 7);
	CHECK_EQ(dup2(before, 2), 2);
	CHECK_OK(close(before));
	rewind(file);
	CHECK(fgets(text, sizeof text, file));
	CHECK_STR(text, "rophive: worker x: 7\n");
	fclose(file);
	CHECK_OK(hive_destroy(hive));
}
