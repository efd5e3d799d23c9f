/* SPDX-License-Identifier: MIT */
/* Starts, attachments and ends that the caller, the host or the system makes impossible: the reason is reported, and nothing is
 * left of the attempt. The children of this file make threads, so its tests themselves make none.                             */
#include <sched.h>

#include "core/cores.h"
#include "support/child.h"
#include "support/fake.h"

static void quit(void *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

/* ---- the caller ---- */

TEST(a_hive_that_is_none_cannot_be_started)
{
	CHECK_ERR(hive_start(NULL), -EINVAL);
	CHECK_ERR(hive_run(NULL), -EINVAL);
	CHECK_OK(hive_destroy(NULL));
}

TEST(a_hive_without_workers_cannot_be_started_and_not_at_all_once_stopped)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ 0 });
	CHECK_ERR(hive_start(f.hive), -EINVAL);
	CHECK_ERR(hive_run(f.hive), -EINVAL);
	CHECK_OK(hive_stop(f.hive, HIVE_NOW, HIVE_NOWAIT));
	CHECK_ERR(hive_start(f.hive), -ESHUTDOWN);
	CHECK_ERR(hive_run(f.hive), -ESHUTDOWN);
	fake_destroy(&f);
}

/* Between the moment in which everything has stopped and the return of hive_run(), which still looks at the hive. */
TEST(a_hive_cannot_be_destroyed_before_run_has_returned)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_post(f.hive, quit, f.hive));
	CHECK_OK(hive_run(f.hive));
	store_relaxed(&f.hive->in_run, 1u);
	CHECK_ERR(hive_destroy(f.hive), -EBUSY);
	store_relaxed(&f.hive->in_run, 0u);
	fake_destroy(&f);
}

/* ---- the host ---- */

/* It has no place for another worker, neither for one with a core nor for one without. */
TEST(a_worker_that_the_host_refuses_leaves_nothing)
{
	struct fake f = { 0 };
	struct fake_core_script script = { 0 };
	struct hive_worker_options io = { .core_arg = &script };
	struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE };
	uint32_t id = 77;
	int before;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	fake_settle(&f);
	before = f.worker_count;
	f.worker_count = FAKE_WORKERS;
	CHECK_ERR(hive_attach(f.hive, &io, &id), -EAGAIN);
	CHECK_ERR(hive_attach(f.hive, &compute, &id), -EAGAIN);
	f.worker_count = before;
	CHECK_EQ(id, 77);
	CHECK_EQ(script.opens, 1);
	CHECK_EQ(script.closes, 1);
	CHECK_EQ(hive_workers(f.hive, NULL, 0), 1);
	CHECK_EQ(load_relaxed(&f.hive->alive), 1);
	CHECK_EQ(load_relaxed(&f.hive->compute_alive), 0);
	CHECK_OK(hive_attach(f.hive, &compute, &id)); /* and then there is one */
	fake_log_clear();
	CHECK_OK(hive_post_compute(f.hive, fake_note, (void *)1));
	fake_settle(&f);
	CHECK_STR(fake_log(), "1");
	fake_destroy(&f);
}

TEST(a_slot_is_as_before_when_its_next_worker_finds_no_memory)
{
	struct fake f = { 0 };
	static const uint16_t cpus[] = { 0 };
	struct hive_worker_options o = { .cpus = cpus, .cpu_count = 1 };
	uint32_t first, second = 77, third;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_attach(f.hive, NULL, &first));
	fake_start(&f);
	CHECK_OK(hive_detach(f.hive, first, HIVE_FOREVER));
	f.fail_at = 1;
	CHECK_ERR(hive_attach(f.hive, &o, &second), -ENOMEM);
	CHECK_EQ(second, 77);
	CHECK_EQ(hive_workers(f.hive, NULL, 0), 1);
	CHECK_ERR(hive_post_to(f.hive, first, fake_note, NULL), -ESRCH);
	CHECK_OK(hive_attach(f.hive, &o, &third));
	CHECK(third != first);
	CHECK_EQ(load_relaxed(&f.hive->io.limit), 2); /* the same slot */
	fake_destroy(&f);
}

TEST(a_step_of_a_worker_that_has_left_does_nothing)
{
	struct fake f = { 0 };
	struct fake_worker *w;
	int64_t wait_ns = 5;
	uint64_t beats;
	uint32_t id;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_attach(f.hive, NULL, &id));
	fake_start(&f);
	w = fake_worker(&f, id);
	CHECK_OK(hive_detach(f.hive, id, HIVE_FOREVER));
	CHECK(w->left);
	beats = load_relaxed(&hive__slot(&f.hive->io, 1)->stats.beats);
	CHECK_ERR(w->step(w->step_arg, &wait_ns), -ESHUTDOWN);
	CHECK_EQ(wait_ns, 5);
	CHECK_EQ(load_relaxed(&hive__slot(&f.hive->io, 1)->stats.beats), beats);
	fake_destroy(&f);
}

/* Ids name one life of a slot, for as many lives as there is room for in a number; none of them is 0. */
TEST(ids_of_a_slot_begin_again_after_the_last_one)
{
	struct fake f = { 0 };
	uint32_t first, last, again;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_attach(f.hive, NULL, &first));
	CHECK_OK(hive_detach(f.hive, first, HIVE_NOWAIT));
	hive__slot(&f.hive->io, 1)->generation = (UINT32_MAX >> 11) - 1;
	CHECK_OK(hive_attach(f.hive, NULL, &last));
	CHECK_EQ(last >> 11, UINT32_MAX >> 11);
	CHECK_OK(hive_detach(f.hive, last, HIVE_NOWAIT));
	CHECK_OK(hive_attach(f.hive, NULL, &again));
	CHECK_EQ(again, first);
	CHECK_ERR(hive_post_to(f.hive, last, fake_note, NULL), -ESRCH);
	CHECK_OK(hive_detach(f.hive, again, HIVE_NOWAIT));
	fake_destroy(&f);
}

/* ---- the system ---- */

/* Memory that is there already: the system gives none. */
static void *allocate_here(void *arg, void *old, size_t bytes)
{
	static _Alignas(64) char room[8 << 20];
	static size_t used;
	char *block = room + used;

	(void)arg, (void)old;
	used += (bytes + 63) & ~(size_t)63;
	return bytes > 0 && used <= sizeof room ? block : NULL;
}

static void create_in_vain(void)
{
	struct hive_host host = { .allocate = allocate_here };
	struct hive *hive = (struct hive *)77;

	CHECK_ERR(hive_create(&(struct hive_options){ .host = &host, .io_workers = 1 }, &hive), -ENOMEM);
	CHECK(hive == (struct hive *)77);
}

TEST(a_hive_that_cannot_mark_its_process_is_not_made)
{
	child_without_calls(ENOMEM, create_in_vain, SYS_mmap);
}

/* A hive with one worker like this cannot be started; without it, it can. */
static void start_in_vain(struct hive_worker_options o)
{
	struct hive *hive = NULL;
	uint32_t id;

	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 1 }, &hive));
	CHECK_OK(hive_attach(hive, &o, &id));
	CHECK_ERR(hive_start(hive), -EPERM);
	CHECK_ERR(hive_run(hive), -EPERM);
	CHECK_OK(hive_detach(hive, id, HIVE_NOWAIT));
	CHECK_OK(hive_post(hive, quit, hive));
	CHECK_OK(hive_run(hive));
	CHECK_OK(hive_destroy(hive));
}

static void start_without_privileges(void)
{
	start_in_vain((struct hive_worker_options){ .realtime = 1 });
	start_in_vain((struct hive_worker_options){ .batch = true });
	start_in_vain((struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE, .nice = 3 });
}

static struct hive *the_hive;
static struct hive_core_ops ops;
static int closed;

/* Others who wait for the end of the start may wake it as soon as that is over. */
static void close_in_time(struct hive_core *core)
{
	CHECK_EQ(hive__state(the_hive), HIVE_UNDOING);
	closed++;
	hive__core_epoll.close(core);
}

static int open_as_ours(void *arg, struct hive_core **ret_core)
{
	int r = hive__core_epoll.open(arg, ret_core);

	if (r == 0)
		(*ret_core)->ops = &ops;
	return r;
}

static void run_without_privileges(void)
{
	uint16_t first = (uint16_t)sched_getcpu();
	struct hive_worker_options o = { .core = &ops, .realtime = 1, .cpus = &first, .cpu_count = 1 };
	cpu_set_t before, after;

	ops = hive__core_epoll;
	ops.open = open_as_ours;
	ops.close = close_in_time;
	CHECK_OK(sched_getaffinity(0, sizeof before, &before));
	CHECK_OK(hive_create(&(struct hive_options){ .io = &o, .io_workers = 1, .compute_workers = 1 }, &the_hive));
	CHECK_ERR(hive_run(the_hive), -EPERM);
	CHECK_ERR(hive_run(the_hive), -EPERM); /* it is as before: not started */
	CHECK_EQ(closed, 2);
	CHECK_OK(sched_getaffinity(0, sizeof after, &after));
	CHECK(CPU_EQUAL(&before, &after));
	CHECK_OK(hive_destroy(the_hive));
}

TEST(a_run_fails_when_the_main_worker_may_not_be_scheduled_as_it_shall)
{
	child_without_calls(EPERM, run_without_privileges, SYS_sched_setscheduler);
}

TEST(a_start_fails_when_a_worker_may_not_be_scheduled_as_it_shall)
{
	child_without_calls(EPERM, start_without_privileges, SYS_sched_setscheduler, SYS_setpriority);
}

static void run_pinned(void)
{
	cpu_set_t before, after;
	uint16_t cpu = 0;
	struct hive_worker_options o = { .cpus = &cpu, .cpu_count = 1 };
	struct hive *hive = NULL;

	CHECK_OK(sched_getaffinity(0, sizeof before, &before));
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CHECK_OK(hive_create(NULL, &hive));
	CHECK_OK(hive_attach(hive, &o, NULL));
	CHECK_OK(hive_post(hive, quit, hive));
	CHECK_OK(hive_run(hive));
	CHECK_OK(hive_destroy(hive));
	CHECK_OK(sched_getaffinity(0, sizeof after, &after));
	CHECK(CPU_COUNT(&after) == 1 && CPU_ISSET(cpu, &after));
}

static void run_pinned_in_vain(void)
{
	static const uint16_t cpu = CPU_SETSIZE;
	struct hive_worker_options o = { .cpus = &cpu, .cpu_count = 1 };
	struct hive *hive = NULL;

	CHECK_OK(hive_create(NULL, &hive));
	CHECK_OK(hive_attach(hive, &o, NULL));
	CHECK_ERR(hive_run(hive), -EINVAL);
	CHECK_ERR(hive_run(hive), -EINVAL); /* it is as before: not started */
	CHECK_OK(hive_destroy(hive));
}

static void run_before_others_in_vain(void)
{
	static const uint16_t cpu = CPU_SETSIZE;
	struct hive_worker_options o = { .cpus = &cpu, .cpu_count = 1, .realtime = 1 };
	int policy = sched_getscheduler(0), slack = prctl(PR_GET_TIMERSLACK), r;
	struct hive *hive = NULL;

	CHECK_OK(hive_create(NULL, &hive));
	CHECK_OK(hive_attach(hive, &o, NULL));
	r = hive_run(hive);
	CHECK(r == -EINVAL || r == -EPERM);
	CHECK_EQ(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, policy);
	CHECK_EQ(prctl(PR_GET_TIMERSLACK), slack);
	CHECK_OK(hive_destroy(hive));
}

/* In children, since the thread that calls run stays where it was put. */
TEST(the_main_worker_is_pinned_by_run_or_run_is_refused)
{
	child_without(NULL, 0, 0, run_pinned);
	child_without(NULL, 0, 0, run_pinned_in_vain);
	child_without(NULL, 0, 0, run_before_others_in_vain);
}
