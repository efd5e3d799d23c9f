/* SPDX-License-Identifier: MIT */
#pragma once
/* One program that uses all of a hive, in 25 steps, for worlds in which something fails: with a host without threads, with real
 * threads, under strace. Each call may fail with a documented code; then it is tried again, and if that does not help
 * the scenario goes on without it. What was accepted must happen all the same, and at the end the books must balance.   */
#include "scenario_fibers.h"

/* ---- posts ---- */

enum how { TO_POOL, TO_MAIN, TO_SECOND, TO_COMPUTE, THEN, SOON, FAR, BY_KIND, LOCAL, SELF, SELF_SOON };

static inline int post_once(struct scenario *s, enum how how, struct entry *e, uint64_t *ret_post)
{
	switch (how) {
	case TO_POOL:
		return hive_post(s->hive, ledger_run, e);
	case TO_MAIN:
		return hive_post_to(s->hive, HIVE_WORKER_MAIN, ledger_run, e);
	case TO_SECOND:
		return hive_post_to(s->hive, s->second, ledger_run, e);
	case TO_COMPUTE:
		return hive_post_compute(s->hive, ledger_run, e);
	case THEN:
		return hive_post_compute_then(s->hive, ledger_work, HIVE_WORKER_MAIN, ledger_run, e);
	case SOON:
		return hive_post_after(s->hive, HIVE_US(200), ledger_run, e, ret_post);
	case FAR:
		return hive_post_after(s->hive, HIVE_S(1000), ledger_run, e, ret_post);
	case BY_KIND:
		return hive_post_kind(s->hive, HIVE_MICRO, HIVE_US(100), ledger_run, e);
	case LOCAL:
		return hive_post_local(ledger_run, e);
	case SELF:
		return hive_post_self(ledger_run, e);
	case SELF_SOON:
		return hive_post_self_after(HIVE_US(300), ledger_run, e, ret_post);
	}
	return -EINVAL;
}

static inline struct entry *post_with(struct scenario *s, enum how how, void (*body)(void *), uint64_t *ret_post)
{
	struct entry *e = ledger_open(s->ledger, how == FAR);
	int r;

	e->body = body;
	e->is_then = how == THEN;
	ATTEMPT(s, r, post_once(s, how, e, ret_post));
	ledger_answered(e, r);
	return e;
}

static inline void post_some(struct scenario *s, enum how how, int count)
{
	while (count-- > 0)
		post_with(s, how, NULL, NULL);
}

/* All or none. */
static inline void post_batch(struct scenario *s, bool compute, int count)
{
	struct hive_task tasks[5000];
	int r;

	CHECK(count <= 5000);
	for (int i = 0; i < count; i++)
		tasks[i] = (struct hive_task){ ledger_run, ledger_open(s->ledger, false) };
	ATTEMPT(s, r,
	        compute ? hive_post_compute_many(s->hive, tasks, (size_t)count)
	                : hive_post_many(s->hive, tasks, (size_t)count));
	for (int i = 0; i < count; i++)
		ledger_answered(tasks[i].arg, r);
}

/* ---- what happens on workers ---- */

/* Bytes go by readv and writev, so that a fault in the library's read and write does not hit them. */
static inline void move_byte(int fd, bool out)
{
	char byte = 'x';
	struct iovec io = { &byte, 1 };

	while ((out ? writev(fd, &io, 1) : readv(fd, &io, 1)) < 0 && errno == EINTR)
		;
}

static inline void hear(struct hive_source *source, uint32_t events)
{
	struct ear *ear = source->arg;

	CHECK(events != 0);
	move_byte((int)source->handle, false);
	add_seq(&ear->heard, 1u);
}

static inline void start_ear(struct scenario *s, struct ear *ear, int fd)
{
	int r;

	if (fd < 0)
		return;
	hive_source_init(&ear->source, HIVE_SOURCE_FD, fd, HIVE_EVENT_IN, hear, ear);
	ATTEMPT(s, r, hive_source_start(&ear->source));
	if (r == 0)
		ATTEMPT(s, r, hive_source_modify(&ear->source, HIVE_EVENT_IN | HIVE_EVENT_PRI));
	store_seq(&ear->started, (uint32_t)(ear->source.owner != NULL));
}

static inline void fire_once(struct hive_timer *timer)
{
	struct scenario *s = timer->arg;

	sub_seq(&s->ledger->open, 1);
}

static inline void fire_periodic_thrice(struct hive_timer *timer)
{
	struct scenario *s = timer->arg;

	if (add_seq(&s->periods, 1u) < 2)
		return;
	CHECK_EQ(hive_timer_stop(timer), 1);
	sub_seq(&s->ledger->open, 1);
}

static inline void fire_nothing(struct hive_timer *timer)
{
	(void)timer;
}

static inline void start_timer(struct scenario *s, struct hive_timer *timer, hive_timer_fn *on_fire, int64_t period_ns)
{
	bool awaited = on_fire != fire_nothing;
	int r;

	hive_timer_init(timer, on_fire, s);
	if (awaited)
		add_seq(&s->ledger->open, 1);
	ATTEMPT(s, r, hive_timer_start(timer, awaited ? HIVE_US(100) : HIVE_S(500), period_ns));
	if (r < 0 && awaited)
		sub_seq(&s->ledger->open, 1);
}

static inline void cancel_own(struct scenario *s)
{
	uint64_t post = 0;
	struct entry *e = post_with(s, FAR, NULL, &post);

	if (load_seq(&e->accepted))
		ledger_cancel(s->hive, e, post);
}

/* On the main worker: all doors that only a worker has, more than fits into one piece of memory of each. */
static inline void be_busy_on_main(void *arg)
{
	struct scenario *s = arg;

	post_some(s, SELF, 130);
	post_some(s, LOCAL, 40);    /* the queue has 8 places: it spills */
	post_some(s, TO_POOL, 600); /* the outbox has 256 */
	post_some(s, SELF_SOON, 40);
	post_some(s, THEN, 3);
	start_timer(s, &s->once, fire_once, 0);
	start_timer(s, &s->periodic, fire_periodic_thrice, HIVE_US(100));
	start_timer(s, &s->guard, fire_nothing, 0); /* it sleeps with a time-out while bytes arrive */
	for (int i = 0; i < SCENARIO_SOURCES; i++)  /* the poll core has 16 places at first */
		start_ear(s, &s->pipe_ears[i], i == 0 ? s->pipe[0] : dup(s->pipe[0]));
	cancel_own(s);
}

/* On a worker that will be detached with all this. */
static inline void be_busy_on_second(void *arg)
{
	struct scenario *s = arg;

	start_ear(s, &s->pair_ear, s->pair[0]);
	start_timer(s, &s->left_behind, fire_nothing, 0);
	post_some(s, LOCAL, 20);
	post_some(s, SELF, 20);
	post_some(s, SELF_SOON, 20);
	post_some(s, FAR, 3);
}

static inline void stop_ears(void *arg)
{
	struct scenario *s = arg;

	for (int i = 0; i < SCENARIO_SOURCES; i += 2)
		CHECK(hive_source_stop(&s->pipe_ears[i].source) >= 0 || !load_seq(&s->pipe_ears[i].started));
	CHECK(hive_timer_stop(&s->periodic) >= 0);
	CHECK(hive_timer_stop(&s->guard) >= 0);
}

/* ---- the steps ---- */

/* Everything accepted so far has ended. */
static inline void step_settle(struct scenario *s)
{
	while (s->running && load_seq(&s->ledger->open) > 0)
		s->pass(s->pass_arg);
	s->steps++;
}

static inline void note_up(void *arg)
{
	store_seq(&((struct scenario *)arg)->up, 1u);
}

static inline int step_create(struct scenario *s)
{
	int r;

	s->io = s->options.io ? *s->options.io : (struct hive_worker_options){ 0 };
	s->io.local_capacity = 8;
	s->io.on_start = note_up;
	s->io.hook_arg = s;
	s->options.io = &s->io;
	s->options.io_workers = 1;
	s->options.hook_arg = s->ledger;
	s->options.on_drop = ledger_drop;
	s->options.on_warn = ledger_warn;
	ATTEMPT(s, r, hive_create(&s->options, &s->hive));
	s->steps++;
	return r;
}

static inline void step_attach(struct scenario *s, uint32_t *ret_worker, enum hive_worker_kind kind)
{
	struct hive_worker_options o = s->io;
	uint16_t cpu = 0;
	int r;

	if (kind == HIVE_WORKER_COMPUTE)
		o = (struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE, .nice = 6 };
	o.on_start = NULL;
	if (ret_worker == &s->third) {
		o.cpus = &cpu;
		o.cpu_count = 1;
		o.batch = true;
	}
	ATTEMPT(s, r, hive_attach(s->hive, &o, ret_worker));
	if (r < 0 && ret_worker)
		*ret_worker = HIVE_WORKER_MAIN;
	s->steps++;
}

static inline void *run_hive(void *arg)
{
	struct scenario *s = arg;

	s->run_result = hive_run(s->hive);
	store_seq(&s->run_ended, 1u);
	return NULL;
}

/* hive_run() on a thread of ours. 0: it runs. */
static inline int run_aside(struct scenario *s)
{
	store_seq(&s->up, 0u);
	store_seq(&s->run_ended, 0u);
	if (pthread_create(&s->runner, NULL, run_hive, s) != 0) {
		s->runner = 0;
		return hive_start(s->hive); /* our own thread is not what is tested */
	}
	while (!load_seq(&s->up) && !load_seq(&s->run_ended))
		s->pass(s->pass_arg);
	if (load_seq(&s->up))
		return 0;
	CHECK(pthread_join(s->runner, NULL) == 0);
	s->runner = 0;
	return s->run_result;
}

static inline void step_start(struct scenario *s)
{
	int r;

	ATTEMPT(s, r, s->use_run ? run_aside(s) : hive_start(s->hive));
	s->running = r == 0;
	s->steps++;
}

static inline void step_posts(struct scenario *s)
{
	post_some(s, TO_POOL, 10);
	post_some(s, TO_MAIN, 70);
	post_some(s, TO_SECOND, 70);
	post_some(s, TO_COMPUTE, 10);
	post_some(s, THEN, 5);
	post_some(s, SOON, 70);
	post_some(s, BY_KIND, 2);
	s->steps++;
}

static inline void step_batches(struct scenario *s)
{
	post_batch(s, false, 5000); /* a lane's ring has 4096 places */
	post_batch(s, true, 300);
	post_batch(s, false, 7);
	s->steps++;
}

static inline void step_inside(struct scenario *s, enum how how, void (*body)(void *))
{
	if (s->running)
		post_with(s, how, body, NULL);
	s->steps++;
}

static inline uint32_t heard(struct scenario *s, bool *ret_any)
{
	uint32_t sum = 0;

	*ret_any = false;
	for (int i = 0; i < SCENARIO_SOURCES; i++) {
		sum += load_seq(&s->pipe_ears[i].heard);
		*ret_any |= load_seq(&s->pipe_ears[i].started) != 0;
	}
	return sum;
}

/* Bytes arrive; if there is a source for them, it hears of it. */
static inline void step_bytes(struct scenario *s)
{
	for (int i = 0; s->running && i < 3; i++) {
		bool any;
		uint32_t before = heard(s, &any);

		move_byte(s->pipe[1], true);
		move_byte(s->pair[1], true);
		while (any && !s->deaf && heard(s, &any) == before)
			s->pass(s->pass_arg);
	}
	s->steps++;
}

static inline void step_cancel(struct scenario *s)
{
	for (int i = 0; i < 40; i++) {
		uint64_t post = 0;
		struct entry *e = post_with(s, i % 2 ? FAR : SOON, NULL, &post);

		if (load_seq(&e->accepted))
			ledger_cancel(s->hive, e, post);
	}
	s->steps++;
}

static inline void step_detach(struct scenario *s, uint32_t worker, int64_t deadline_ns)
{
	int r;

	s->steps++;
	if (worker == HIVE_WORKER_MAIN)
		return;
	r = hive_detach(s->hive, worker, deadline_ns);
	if (r != -EINPROGRESS || deadline_ns != HIVE_NOWAIT)
		CHECK_OK(r);
	s->second = worker == s->second ? HIVE_WORKER_MAIN : s->second;
}

static inline void step_stats(struct scenario *s)
{
	struct hive_stats stats;
	struct hive_worker_stats worker;
	uint32_t ids[8];
	int r;

	CHECK_OK(hive_stats_read(s->hive, &stats));
	CHECK(hive_workers(s->hive, ids, 8) >= 1);
	CHECK_OK(hive_worker_stats_read(s->hive, ids[0], &worker));
	ATTEMPT(s, r, hive_stats_write(s->hive, s->out_fd, HIVE_FORMAT_JSON));
	s->steps++;
}

static inline void step_stop(struct scenario *s)
{
	struct entry *e;

	post_some(s, FAR, 5);
	post_some(s, SOON, 5);
	CHECK_OK(hive_stop(s->hive, HIVE_DRAIN, HIVE_FOREVER));
	e = ledger_open(s->ledger, false);
	CHECK_ERR(hive_post(s->hive, ledger_run, e), -ESHUTDOWN);
	ledger_answered(e, -ESHUTDOWN);
	s->steps++;
}

static inline void step_join(struct scenario *s)
{
	CHECK_OK(hive_join(s->hive, HIVE_FOREVER));
	if (s->runner)
		CHECK(pthread_join(s->runner, NULL) == 0);
	s->steps++;
}

static inline void step_report(struct scenario *s)
{
	struct hive_report report;

	CHECK_OK(hive_report_read(s->hive, &report));
	ledger_check(s->ledger, &report);
	s->steps++;
}

static inline void close_all(struct scenario *s)
{
	for (int i = 1; i < SCENARIO_SOURCES; i++)
		if (s->pipe_ears[i].source.on_ready)
			close((int)s->pipe_ears[i].source.handle);
	for (int i = 0; i < 2; i++) {
		close(s->pipe[i]);
		close(s->pair[i]);
	}
}

static inline void play_inside_out(struct scenario *s)
{
	step_attach(s, &s->second, HIVE_WORKER_IO);
	step_attach(s, NULL, HIVE_WORKER_COMPUTE);
	step_posts(s); /* before anybody runs */
	step_start(s);
	step_attach(s, &s->third, HIVE_WORKER_IO);
	step_posts(s);
	step_batches(s);
	step_inside(s, TO_MAIN, be_busy_on_main);
	step_inside(s, TO_SECOND, be_busy_on_second);
	step_settle(s);
	step_fibers(s);
	step_bytes(s);
	step_cancel(s);
	step_posts(s);
	step_detach(s, s->second, HIVE_FOREVER); /* under load */
	step_detach(s, s->third, HIVE_NOWAIT);
	step_stats(s);
	step_inside(s, TO_MAIN, stop_ears);
	step_attach(s, &s->second, HIVE_WORKER_IO); /* a used place */
	step_posts(s);
	step_settle(s); /* the hive works as before */
}

/* Returns how many calls failed with a documented code. */
static inline uint32_t scenario_play(struct scenario *s, struct ledger *ledger)
{
	ledger_clear(ledger, s);
	s->ledger = ledger;
	s->second = s->third = HIVE_WORKER_MAIN;
	CHECK_OK(pipe2(s->pipe, O_NONBLOCK | O_CLOEXEC));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, s->pair));
	if (step_create(s) == 0) {
		play_inside_out(s);
		step_stop(s);
		step_join(s);
		step_report(s);
		CHECK_EQ(s->steps, SCENARIO_STEPS);
		CHECK_OK(hive_destroy(s->hive));
	}
	close_all(s);
	return load_seq(&ledger->errors);
}
