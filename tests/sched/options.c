/* SPDX-License-Identifier: MIT */
/* Options of hives and workers: what is refused, and what the system's side of a worker looks like. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "support/child.h"
#include "support/fake.h"
#include "support/plain.h"
#include "support/real.h"
#include "test.h"

static void refuse(struct hive *hive, struct hive_worker_options o)
{
	uint32_t id = 77;

	CHECK_ERR(hive_attach(hive, &o, &id), -EINVAL);
	CHECK_EQ(id, 77);
	CHECK_EQ(hive_workers(hive, NULL, 0), 0);
}

/* each parameter has a domain; outside it the worker is refused and nothing has happened. */
TEST(worker_options_out_of_range_are_refused)
{
	struct hive *hive = real_create((struct hive_options){ 0 });
	static const int32_t capacities[] = { -1, 1, 2, 3, 5, 1000, 65537, 131072, INT32_MIN };
	static const uint16_t cpus[1];

	for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++)
		refuse(hive, (struct hive_worker_options){ .local_capacity = capacities[i] });
	refuse(hive, (struct hive_worker_options){ .kind = 2 });
	refuse(hive, (struct hive_worker_options){ .kind = (enum hive_worker_kind) - 1 });
	refuse(hive, (struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE, .core = &fake_core });
	refuse(hive, (struct hive_worker_options){ .local_budget = -2 });
	refuse(hive, (struct hive_worker_options){ .private_budget = -1 });
	refuse(hive, (struct hive_worker_options){ .timer_budget = INT32_MIN });
	refuse(hive, (struct hive_worker_options){ .pool_probe_interval = -1 });
	refuse(hive, (struct hive_worker_options){ .pool_batch = -1 });
	refuse(hive, (struct hive_worker_options){ .pool_batch = 257 });
	refuse(hive, (struct hive_worker_options){ .steal_attempts = -2 });
	refuse(hive, (struct hive_worker_options){ .ring_entries = 3 });
	refuse(hive, (struct hive_worker_options){ .ring_entries = -1 });
	refuse(hive, (struct hive_worker_options){ .ring_entries = 32769 });
	refuse(hive, (struct hive_worker_options){ .slice_ns = -1 });
	refuse(hive, (struct hive_worker_options){ .spin_ns = -2 });
	refuse(hive, (struct hive_worker_options){ .nice = 20 });
	refuse(hive, (struct hive_worker_options){ .nice = -21 });
	refuse(hive, (struct hive_worker_options){ .realtime = 100 });
	refuse(hive, (struct hive_worker_options){ .realtime = -2 });
	refuse(hive, (struct hive_worker_options){ .realtime = 1, .batch = true });
	refuse(hive, (struct hive_worker_options){ .cpu_count = 1 });
	refuse(hive, (struct hive_worker_options){ .cpu_count = UINT16_MAX + 1, .cpus = cpus });
	refuse(hive, (struct hive_worker_options){ .pool_share = -2 });
	refuse(hive, (struct hive_worker_options){ .pool_share = 257 });
	refuse(hive, (struct hive_worker_options){ .frame_ns = -2 });
	refuse(hive, (struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE, .ui = true });
	refuse(hive, (struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE, .pool_share = 1 });
	refuse(hive, (struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE, .frame_ns = 1 });
	for (size_t i = 0; i < sizeof((struct hive_worker_options *)0)->reserved / sizeof(uint64_t); i++) {
		struct hive_worker_options o = { 0 };

		o.reserved[i] = (uint64_t)1 << (8 * i);
		refuse(hive, o);
	}
	CHECK_ERR(hive_attach(NULL, NULL, NULL), -EINVAL);
	CHECK_OK(hive_destroy(hive));
}

/* a core has all of its parts, or no worker takes it. */
TEST(incomplete_cores_are_refused)
{
	struct hive *hive = real_create((struct hive_options){ 0 });
	struct hive_core_ops core;
	void *const parts[] = { &core.name, &core.open, &core.close,  &core.turn,
		                &core.wake, &core.add,  &core.modify, &core.remove };

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		core = fake_core;
		memset(parts[i], 0, sizeof(void *));
		refuse(hive, (struct hive_worker_options){ .core = &core });
	}
	CHECK_OK(hive_destroy(hive));
}

static void refuse_hive(struct hive_options o)
{
	struct hive *hive = (struct hive *)77;

	CHECK_ERR(hive_create(&o, &hive), -EINVAL);
	CHECK(hive == (struct hive *)77);
}

/* the same for the hive, its templates and its host. */
TEST(hive_options_out_of_range_are_refused)
{
	struct hive_worker_options bad = { .local_capacity = 3 }, compute = { .kind = HIVE_WORKER_COMPUTE };
	struct hive_worker_options reserved = { .reserved = { 1 } };
	struct hive_host half = { .thread_start = (int (*)(void *, hive_fn *, void *, uint64_t *))(void *)refuse };
	int (*step_start)(void *, uint32_t, hive_step_fn *,
	                  void *) = (int (*)(void *, uint32_t, hive_step_fn *, void *))(void *)refuse;
	struct hive_host no_wait = { .step_start = step_start, .step_stop = (void (*)(void *, void *))(void *)refuse };
	struct hive_host no_stop = { .step_start = step_start, .step_wait = (int (*)(void *, int64_t))(void *)refuse };
	struct hive_host newer = { .reserved = { &half } };
	struct hive_core_ops incomplete = fake_core;

	CHECK_ERR(hive_create(NULL, NULL), -EINVAL);
	refuse_hive((struct hive_options){ .io_workers = -2 });
	refuse_hive((struct hive_options){ .io_workers = HIVE_WORKERS_MAX + 1 });
	refuse_hive((struct hive_options){ .compute_workers = -2 });
	refuse_hive((struct hive_options){ .compute_workers = INT32_MAX });
	refuse_hive((struct hive_options){ .preset = 4 });
	refuse_hive((struct hive_options){ .preset = (enum hive_preset) - 1 });
	refuse_hive((struct hive_options){ .placement = 3 });
	refuse_hive((struct hive_options){ .placement = (enum hive_placement) - 1 });
	refuse_hive((struct hive_options){ .io = &bad });
	refuse_hive((struct hive_options){ .compute = &bad });
	refuse_hive((struct hive_options){ .io = &reserved, .io_workers = 1 });
	refuse_hive((struct hive_options){ .io = &compute });
	refuse_hive((struct hive_options){ .host = &half });
	refuse_hive((struct hive_options){ .host = &no_wait });
	refuse_hive((struct hive_options){ .host = &no_stop });
	refuse_hive((struct hive_options){ .host = &newer });
	incomplete.open = NULL;
	refuse_hive((struct hive_options){ .host = &(struct hive_host){ .core = &incomplete } });
	refuse_hive((struct hive_options){ .reserve_tasks = SIZE_MAX });
	for (int i = 0; i < 6; i++) {
		struct hive_options o = { .io_workers = 1 };

		o.reserved[i] = 1;
		refuse_hive(o);
	}
}

/* How the system sees a worker's thread. */
struct view {
	char name[16];
	int nice, policy;
	cpu_set_t cpus;
	sigset_t blocked;
	int64_t slice_ns; /* 0: the kernel does not tell */
	struct gate seen;
};

/* Linux 6.12 tells, and an emulator may not know the call: size and policy, flags, niceness and priority, slice. */
static int64_t own_slice(void)
{
	int64_t words[6] = { 0 };

	return syscall(SYS_sched_getattr, 0, words, sizeof words, 0) == 0 ? words[3] : 0;
}

static void look(void *arg)
{
	struct view *v = arg;

	prctl(PR_GET_NAME, v->name);
	v->nice = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
	v->policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	v->slice_ns = own_slice();
	sched_getaffinity(0, sizeof v->cpus, &v->cpus);
	pthread_sigmask(SIG_BLOCK, NULL, &v->blocked);
	gate_open(&v->seen);
}

static void view(struct hive *hive, uint32_t id, enum hive_worker_kind kind, struct view *ret_view)
{
	gate_init(&ret_view->seen);
	CHECK_OK(kind == HIVE_WORKER_COMPUTE ? hive_post_compute(hive, look, ret_view)
	                                     : hive_post_to(hive, id, look, ret_view));
	gate_pass(&ret_view->seen);
	gate_destroy(&ret_view->seen);
}

static void view_worker(struct hive_worker_options o, struct view *ret_view)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	uint32_t id;

	CHECK_OK(hive_attach(hive, &o, &id));
	view(hive, id, o.kind, ret_view);
	real_end(hive, HIVE_DRAIN);
}

/* names are copied, cut, and shown to the system. */
TEST(workers_have_names)
{
	struct hive *hive = real_create((struct hive_options){ .io_workers = 1 });
	char name[64] = "a name that is longer than thirty-one bytes";
	struct hive_worker_stats stats;
	struct view v;
	uint32_t id;

	CHECK_OK(hive_attach(hive, &(struct hive_worker_options){ .name = name }, &id));
	memset(name, 'x', sizeof name - 1);
	CHECK_OK(hive_worker_stats_read(hive, id, &stats));
	CHECK_STR(stats.name, "a name that is longer than thir");
	CHECK_OK(hive_worker_stats_read(hive, HIVE_WORKER_MAIN, &stats));
	CHECK_STR(stats.name, "io-0");
	CHECK_OK(hive_destroy(hive));
	view_worker((struct hive_worker_options){ .name = "network" }, &v);
	CHECK_STR(v.name, "network");
	view_worker((struct hive_worker_options){ 0 }, &v);
	CHECK_STR(v.name, "io-1");
	view_worker((struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE }, &v);
	CHECK_STR(v.name, "compute-0");
}

/* compute workers stand back for the others by default. */
TEST(compute_workers_are_nicer_than_io_workers)
{
	int mine = getpriority(PRIO_PROCESS, 0), five = mine > 5 ? mine : 5;
	struct view v;

	view_worker((struct hive_worker_options){ 0 }, &v);
	CHECK_EQ(v.nice, mine);
	view_worker((struct hive_worker_options){ .nice = 19 }, &v);
	CHECK_EQ(v.nice, 19);
	view_worker((struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE, .nice = HIVE_OFF }, &v);
	CHECK_EQ(v.nice, mine);
	view_worker((struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE, .nice = 19 }, &v);
	CHECK_EQ(v.nice, 19);
	if (mine > 5) /* to be less nice again may be forbidden */
		return;
	view_worker((struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE }, &v);
	CHECK_EQ(v.nice, five);
}

/* Beside a UI worker as nice as can be, and in no hurry. */
TEST(compute_workers_give_way_to_a_ui_worker)
{
	struct hive_worker_options ui = { .ui = true };
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1, .io = &ui });
	struct view v;

	view(hive, 0, HIVE_WORKER_COMPUTE, &v);
	CHECK_EQ(v.nice, 19);
	if (v.slice_ns)
		CHECK_EQ(v.slice_ns, TUNE_UI_COMPUTE_SLICE_NS);
	real_end(hive, HIVE_DRAIN);
}

static _Noreturn void start_as_a_nice_user(void)
{
	struct hive *hive = real_create((struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	struct view v;

	CHECK_OK(setpriority(PRIO_PROCESS, 0, 15));
	if (geteuid() == 0)
		CHECK_OK(setuid(65534));
	CHECK_OK(hive_start(hive));
	view(hive, 0, HIVE_WORKER_COMPUTE, &v);
	CHECK_EQ(v.nice, 15);
	real_end(hive, HIVE_DRAIN);
	_exit(0);
}

/* who is nicer already stays so: nobody needs a privilege to start compute workers. */
TEST(compute_workers_start_in_a_program_that_is_nice)
{
	int status = -1;
	pid_t child;

	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		start_as_a_nice_user();
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

/* pinned to the CPUs named, and to no others; the array is copied; impossible ones are refused. */
TEST(workers_can_be_pinned)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	uint16_t cpus[1] = { 0 }, nowhere = UINT16_MAX, huge[2] = { 1023, 1022 };
	struct view v;
	cpu_set_t all;
	size_t last = 0;

	CHECK_OK(sched_getaffinity(0, sizeof all, &all));
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all))
			last = i;
	cpus[0] = (uint16_t)last;
	view_worker((struct hive_worker_options){ .cpus = cpus, .cpu_count = 1 }, &v);
	CHECK_EQ(CPU_COUNT(&v.cpus), 1);
	CHECK(CPU_ISSET(last, &v.cpus));
	view_worker((struct hive_worker_options){ .cpus = cpus, .cpu_count = 1, .kind = HIVE_WORKER_COMPUTE }, &v);
	CHECK_EQ(CPU_COUNT(&v.cpus), 1);
	view_worker((struct hive_worker_options){ 0 }, &v);
	CHECK(CPU_EQUAL(&v.cpus, &all));
	CHECK_ERR(hive_attach(hive, &(struct hive_worker_options){ .cpus = &nowhere, .cpu_count = 1 }, NULL), -EINVAL);
	if (!CPU_ISSET(1023, &all) && !CPU_ISSET(1022, &all))
		CHECK_ERR(hive_attach(hive, &(struct hive_worker_options){ .cpus = huge, .cpu_count = 2 }, NULL),
		          -EINVAL);
	CHECK_EQ(hive_workers(hive, NULL, 0), 1);
	real_end(hive, HIVE_DRAIN);
}

/* Worker threads leave signals to the program, but for those that a fault raises in the thread itself. */
TEST(worker_threads_block_signals_unless_told_otherwise)
{
	static const int theirs[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGALRM, SIGPIPE };
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	sigset_t before, after;
	struct view v;

	pthread_sigmask(SIG_BLOCK, NULL, &before);
	for (int kind = HIVE_WORKER_IO; kind <= HIVE_WORKER_COMPUTE; kind++) {
		view_worker((struct hive_worker_options){ .kind = (enum hive_worker_kind)kind }, &v);
		for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
			CHECK(sigismember(&v.blocked, theirs[i]));
		for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
			CHECK(!sigismember(&v.blocked, faults[i]));
		view_worker((struct hive_worker_options){ .kind = (enum hive_worker_kind)kind, .keep_signals = true },
		            &v);
		for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
			CHECK(!sigismember(&v.blocked, theirs[i]));
	}
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	for (int i = 1; i < 32; i++)
		CHECK_EQ(sigismember(&before, i), sigismember(&after, i));
}

TEST(batch_workers_are_scheduled_as_such)
{
	struct view v;

	view_worker((struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE, .batch = true }, &v);
	CHECK_EQ(v.policy, SCHED_BATCH);
	view_worker((struct hive_worker_options){ 0 }, &v);
	CHECK_EQ(v.policy, sched_getscheduler(0));
}

/* Either the system allows it, and then it is so, or attach says that it does not. */
TEST(realtime_is_applied_or_refused)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	struct hive_worker_options o = { .realtime = 1 };
	struct view v;
	uint32_t id;
	int r = hive_attach(hive, &o, &id);

	CHECK(r == 0 || r == -EPERM);
	CHECK_EQ(hive_workers(hive, NULL, 0), r == 0 ? 2 : 1);
	if (r == 0) {
		view(hive, id, HIVE_WORKER_IO, &v);
		CHECK_EQ(v.policy, SCHED_FIFO);
	}
	real_end(hive, HIVE_DRAIN);
}

static void look_and_stop(void *arg)
{
	look(arg);
	CHECK_OK(hive_stop(hive_current(), HIVE_DRAIN, HIVE_NOWAIT));
}

static void look_and_attach(void *arg)
{
	struct view *views = arg;
	uint32_t id;

	look(&views[0]);
	CHECK_OK(hive_attach(hive_current(), NULL, &id));
	CHECK_OK(hive_post_to(hive_current(), id, look_and_stop, &views[1]));
}

/* The thread of hive_run() as well, while it runs; not those of the others, whoever attaches them. */
TEST(realtime_of_the_main_worker_is_applied_or_refused)
{
	struct hive_worker_options o = { .realtime = 1 };
	struct hive *hive = real_create((struct hive_options){ .io = &o, .io_workers = 1, .compute_workers = 1 });
	struct view views[3];
	int r;

	for (int i = 0; i < 3; i++)
		gate_init(&views[i].seen);
	CHECK_OK(hive_post_compute(hive, look, &views[2]));
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, look_and_attach, views));
	r = hive_run(hive);
	CHECK(r == 0 || r == -EPERM);
	if (r < 0)
		test_skip("no right to real-time priority");
	if (r == 0) {
		CHECK_EQ(views[0].policy, SCHED_FIFO);
		CHECK_EQ(views[1].policy, SCHED_OTHER);
		CHECK_EQ(views[2].policy, SCHED_OTHER);
	}
	CHECK_EQ(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
	for (int i = 0; i < 3; i++)
		gate_destroy(&views[i].seen);
	CHECK_OK(hive_destroy(hive));
}

/* How a UI worker shall be scheduled that has said nothing of it; where the system does not allow more, the test says so. */
static int policy_of_ui(void)
{
	struct hive_worker_options demand = { .realtime = 1 };
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	int r = hive_attach(hive, &demand, NULL);

	CHECK(r == 0 || r == -EPERM);
	real_end(hive, HIVE_DRAIN);
	if (r < 0)
		test_skip("no right to real-time priority");
	return r == 0 && hive_cpus() > 1 && is_plain() ? SCHED_FIFO : sched_getscheduler(0);
}

static void start_ui(void)
{
	struct view v;

	view_worker((struct hive_worker_options){ .ui = true }, &v);
	CHECK_EQ(v.policy, sched_getscheduler(0));
}

TEST(a_ui_that_may_not_be_real_time_is_ordinary)
{
	struct view v;

	view_worker((struct hive_worker_options){ .ui = true, .realtime = HIVE_OFF }, &v);
	CHECK_EQ(v.policy, sched_getscheduler(0));
	child_without_calls(EPERM, start_ui, SYS_sched_setscheduler);
}

TEST(a_ui_is_real_time_where_that_is_allowed)
{
	int policy = policy_of_ui();
	struct view v;

	view_worker((struct hive_worker_options){ .ui = true }, &v);
	CHECK_EQ(v.policy, policy);
}

/* Who plays sound gets his real-time priority for such a limit, which then is everybody's. */
static void limit_the_time_of_a_ui(void)
{
	struct hive_worker_options o = { .ui = true, .spin_ns = HIVE_OFF };
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	struct view v;
	uint32_t id;

	CHECK_OK(hive_attach(hive, &o, &id));
	view(hive, id, o.kind, &v);
	CHECK_EQ(v.policy, SCHED_FIFO);
	limit_real_time();
	while (v.policy != SCHED_OTHER)
		view(hive, id, o.kind, &v); /* it sleeps before each, and has a look now and then */
	real_end(hive, HIVE_DRAIN);
}

TEST(a_ui_gives_back_what_nobody_asked_for_when_it_may_be_killed_for_it)
{
	if (policy_of_ui() == SCHED_FIFO)
		child_without(NULL, 0, 0, limit_the_time_of_a_ui);
}

/* The thread of hive_run() as well, for as long. */
TEST(the_main_worker_is_real_time_as_a_ui_and_as_it_was_after_that)
{
	struct hive_worker_options o = { .ui = true };
	struct hive *hive;
	struct view views[2];
	int policy = policy_of_ui();

	hive = real_create((struct hive_options){ .io = &o, .io_workers = 1 });
	for (int i = 0; i < 2; i++)
		gate_init(&views[i].seen);
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, look_and_attach, views));
	CHECK_OK(hive_run(hive));
	CHECK_EQ(views[0].policy, policy);
	CHECK_EQ(views[1].policy, SCHED_OTHER);
	CHECK_EQ(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
	for (int i = 0; i < 2; i++)
		gate_destroy(&views[i].seen);
	CHECK_OK(hive_destroy(hive));
}

/* It does other things, too. */
TEST(the_host_of_a_guest_stays_as_it_is)
{
	struct hive_worker_options o = { .ui = true };
	struct hive *hive;
	int64_t wait_ns;
	int fd, r = 0;

	policy_of_ui();
	hive = real_create((struct hive_options){ .io = &o, .io_workers = 1 });
	CHECK_OK(hive_guest_start(hive, &fd));
	CHECK_EQ(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_NOWAIT));
	while (r == 0)
		r = hive_guest_step(hive, &wait_ns);
	CHECK_ERR(r, -ESHUTDOWN);
	CHECK_OK(hive_destroy(hive));
}

struct hooks {
	int starts, stops, parks, unparks, wrong;
	uint32_t id;
	pthread_t thread;
	struct gate parked;
};

static void note_hook(struct hooks *h, int *counter)
{
	h->wrong += hive_worker_current() == HIVE_WORKER_NONE ||
	            (h->starts > 0 && !pthread_equal(h->thread, pthread_self()));
	(*counter)++;
}

static void hook_start(void *arg)
{
	struct hooks *h = arg;

	h->wrong += h->parks + h->unparks + h->stops + h->starts;
	h->thread = pthread_self();
	h->id = hive_worker_current();
	note_hook(h, &h->starts);
}

static void hook_stop(void *arg)
{
	note_hook(arg, &((struct hooks *)arg)->stops);
}

static void hook_park(void *arg)
{
	struct hooks *h = arg;

	h->wrong += h->stops || h->parks != h->unparks;
	note_hook(h, &h->parks);
	gate_open(&h->parked);
}

static void hook_unpark(void *arg)
{
	struct hooks *h = arg;

	note_hook(h, &h->unparks);
	h->wrong += h->parks != h->unparks;
}

/* start once, before all else; park and unpark in pairs around each wait; stop once, after all else; on the
 * worker's own thread, with its own id.                                                                               */
TEST(hooks_come_in_order_on_the_workers_thread)
{
	for (int kind = HIVE_WORKER_IO; kind <= HIVE_WORKER_COMPUTE; kind++) {
		struct hooks h = { .starts = 0 };
		struct hive_worker_options o = { .kind = (enum hive_worker_kind)kind,
			                         .on_start = hook_start,
			                         .on_stop = hook_stop,
			                         .on_park = hook_park,
			                         .on_unpark = hook_unpark,
			                         .hook_arg = &h,
			                         .spin_ns = HIVE_OFF };
		struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
		struct gate done;
		uint32_t id;

		gate_init(&h.parked);
		gate_init(&done);
		CHECK_OK(hive_attach(hive, &o, &id));
		for (int i = 0; i < 10; i++) {
			gate_pass(&h.parked);
			if (kind == HIVE_WORKER_IO)
				CHECK_OK(hive_post_to(hive, id, gate_open_task, &done));
			else
				CHECK_OK(hive_post_compute(hive, gate_open_task, &done));
			gate_pass(&done);
		}
		CHECK_OK(hive_detach(hive, id, real_patience()));
		CHECK_EQ(h.starts, 1);
		CHECK_EQ(h.stops, 1);
		CHECK(h.parks >= 10);
		CHECK_EQ(h.parks, h.unparks);
		CHECK_EQ(h.wrong, 0);
		CHECK_EQ(h.id, id);
		CHECK(!pthread_equal(h.thread, pthread_self()));
		real_end(hive, HIVE_DRAIN);
		gate_destroy(&h.parked);
		gate_destroy(&done);
	}
}
