/* SPDX-License-Identifier: MIT */
/* A listener served by all workers, on each core: who gets the connections, how many there may be, and how it ends. */
#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>

#include "base/atomic.h"
#include "support/child.h"
#include "support/shot.h"

enum { WORKERS = 3, MANY = 60, SLACK = 2 + WORKERS };

struct service {
	struct hive *hive;
	struct hive_serve_options options;
	hive_serve_fn *fn;
	int64_t deadline_ns;
	int listener;
	uint16_t port;
	struct hive_fiber *fiber;
	struct hive_semaphore leave;
	uint32_t ids[WORKERS + 1];
	ATOMIC(uint32_t) at[WORKERS]; /* connections that began there */
	ATOMIC(uint32_t) begun, cancelled, now, most;
};

static int run_service(void *arg)
{
	struct service *s = arg;

	return hive_serve(s->hive, s->listener, &s->options, s->fn, s, s->deadline_ns);
}

static void open_service(struct service *s, const char *core, hive_serve_fn *fn)
{
	struct hive_address at;

	memset(s, 0, sizeof *s);
	s->hive = net_start(core, WORKERS, 1);
	s->fn = fn;
	s->deadline_ns = HIVE_FOREVER;
	s->options.grace_ns = HIVE_FOREVER;
	hive_semaphore_init(&s->leave, 0);
	CHECK_EQ(hive_workers(s->hive, s->ids, WORKERS + 1), WORKERS + 1);
	s->listener = hive_listen("127.0.0.1", 0, NULL);
	CHECK(s->listener >= 0);
	CHECK_OK(hive_address_of(s->listener, false, &at));
	s->port = hive_address_port(&at);
}

static void start_service(struct service *s)
{
	CHECK_OK(hive_spawn(s->hive, run_service, s, NULL, &s->fiber));
}

static void end_service(struct service *s, int expected)
{
	int result;

	if (expected == -ECANCELED)
		CHECK_OK(hive_fiber_cancel(s->fiber));
	CHECK_OK(hive_fiber_join(s->fiber, real_patience(), &result));
	CHECK_ERR(result, expected);
	CHECK_EQ(load_relaxed(&s->now), 0);
}

static void close_service(struct service *s)
{
	CHECK_OK(close(s->listener));
	real_end(s->hive, HIVE_DRAIN);
}

static int dial(const struct service *s)
{
	int fd = hive_dial("127.0.0.1", s->port, NULL, HIVE_FOREVER);

	CHECK(fd >= 0);
	return fd;
}

static void note_begin(struct service *s)
{
	uint32_t now = add_relaxed(&s->now, 1u) + 1, most = load_relaxed(&s->most);

	while (most < now && !cas_relaxed(&s->most, &most, now))
		;
	for (int i = 0; i < WORKERS; i++)
		if (s->ids[i] == hive_worker_current())
			add_relaxed(&s->at[i], 1u);
	add_release(&s->begun, 1u);
}

static int echo(int fd, void *arg)
{
	struct service *s = arg;
	char buffer[100];
	int64_t n;

	note_begin(s);
	while ((n = hive_recv(fd, buffer, sizeof buffer, HIVE_FOREVER)) > 0)
		CHECK_OK(hive_send_all(fd, buffer, (size_t)n, HIVE_FOREVER));
	if (n == -ECANCELED)
		add_relaxed(&s->cancelled, 1u);
	sub_relaxed(&s->now, 1u);
	return hive_close(fd, HIVE_FOREVER);
}

static void ask(int fd)
{
	char byte = 0;

	CHECK_EQ(hive_send(fd, "q", 1, HIVE_FOREVER), 1);
	CHECK_EQ(hive_recv(fd, &byte, 1, HIVE_FOREVER), 1);
	CHECK_EQ(byte, 'q');
}

/* Its connection has ended, without a word. */
static void see_end(int fd)
{
	char byte;
	int64_t n = hive_recv(fd, &byte, 1, real_patience());

	CHECK(n == 0 || n == -ECONNRESET);
	CHECK_OK(close(fd));
}

/* ---- who gets them ---- */

static void check_spread(const struct service *s)
{
	uint32_t least = UINT32_MAX, most = 0;

	for (int i = 0; i < WORKERS; i++) {
		uint32_t n = load_relaxed(&s->at[i]);

		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	CHECK(most - least <= SLACK);
}

/* Held open, they are spread, whether they come one by one or all at once. */
TEST(connections_are_spread_over_the_workers)
{
	EACH_CORE(core)
	{
		for (int at_once = 0; at_once < 2; at_once++) {
			struct service s;
			int fds[MANY];

			open_service(&s, core_names[core], echo);
			if (!at_once)
				start_service(&s);
			for (int i = 0; i < MANY; i++) {
				fds[i] = dial(&s);
				if (!at_once)
					ask(fds[i]);
			}
			if (at_once)
				start_service(&s);
			for (int i = 0; i < MANY; i++)
				ask(fds[i]);
			CHECK_EQ(load_acquire(&s.begun), MANY);
			check_spread(&s);
			for (int i = 0; i < MANY; i++)
				CHECK_OK(close(fds[i]));
			end_service(&s, -ECANCELED);
			close_service(&s);
		}
	}
}

/* How often the thread of this worker has waited. */
static void add_waits(void *arg)
{
	struct rusage usage;

	CHECK_OK(getrusage(RUSAGE_THREAD, &usage));
	*(long *)arg += usage.ru_nvcsw;
}

static long waits_of(const struct service *s)
{
	long waits = 0;

	for (int i = 0; i < WORKERS; i++)
		shot_at(s->hive, s->ids[i], add_waits, &waits);
	real_wait_asleep(s->hive, WORKERS + 1);
	return waits;
}

static int hang_up(int fd, void *arg)
{
	struct service *s = arg;

	add_release(&s->begun, 1u);
	return close(fd);
}

/* Everybody sleeps, somebody knocks: one is told, where the core can do that. The others would look, find nothing, and sleep again. */
static void wake_one(const char *core)
{
	struct service s;
	long waits;

	open_service(&s, core, hang_up);
	start_service(&s);
	waits = waits_of(&s);
	for (uint32_t i = 0; i < MANY; i++) {
		int fd = dial(&s);

		WAIT_UNTIL(load_acquire(&s.begun) == i + 1);
		see_end(fd);
		poll(NULL, 0, 1); /* whoever was told for nothing has the time to look */
	}
	waits = waits_of(&s) - waits;
	CHECK(waits <= 2 * MANY); /* all of them would be WORKERS * MANY */
	end_service(&s, -ECANCELED);
	close_service(&s);
}

TEST(a_connection_wakes_one_worker)
{
	EACH_CORE(core)
	{
		if (strcmp(core_names[core], "poll") != 0)
			wake_one(core_names[core]);
	}
}

/* ---- how many there may be ---- */

static int stay(int fd, void *arg)
{
	struct service *s = arg;

	note_begin(s);
	CHECK_OK(hive_semaphore_acquire(&s->leave, 1, HIVE_FOREVER));
	sub_relaxed(&s->now, 1u);
	return close(fd);
}

/* As many as have left are let in. */
TEST(no_more_at_the_same_time_than_allowed)
{
	EACH_CORE(core)
	{
		for (uint32_t limit = 1; limit <= 4; limit += 3) {
			uint32_t left = 0;
			struct service s;
			int fds[20];

			open_service(&s, core_names[core], stay);
			s.options.connections = limit;
			start_service(&s);
			for (int i = 0; i < 20; i++)
				fds[i] = dial(&s); /* by the kernel: they wait at the door */
			for (; left + limit < 20; left++) {
				WAIT_UNTIL(load_acquire(&s.begun) == left + limit);
				CHECK_OK(hive_semaphore_release(&s.leave, 1));
			}
			WAIT_UNTIL(load_acquire(&s.begun) == 20);
			CHECK_EQ(load_relaxed(&s.most), limit);
			CHECK_OK(hive_semaphore_release(&s.leave, limit));
			for (int i = 0; i < 20; i++)
				see_end(fds[i]);
			end_service(&s, -ECANCELED);
			close_service(&s);
		}
	}
}

/* ---- without descriptors ---- */

enum { LIMIT = 100, WAITING = WORKERS + 4 };

/* accept(2) takes a number before it looks for a connection: while the numbers are taken away, each porter may hold one that he gives back, and
 * let one more in. The others must wait. */
static void without_room(const char *core)
{
	int filler[LIMIT], fillers = 0, client = -1, clients[WAITING];
	struct service s;

	open_service(&s, core, echo);
	for (int i = 0; i < WAITING; i++)
		CHECK((clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
	start_service(&s);
	client = dial(&s);
	ask(client);
	while (fillers < LIMIT && (filler[fillers] = dup(0)) >= 0)
		fillers++;
	CHECK_EQ(errno, EMFILE);
	for (int i = 0; i < WAITING; i++) {
		struct hive_address at;

		CHECK_OK(hive_address_parse("127.0.0.1", s.port, &at));
		CHECK_OK(hive_connect(clients[i], &at, HIVE_FOREVER));
	}
	CHECK(shot_restless(s.hive) < SHOT_RESTFUL);
	ask(client); /* the others go on meanwhile */
	CHECK(load_acquire(&s.begun) <= 1 + WORKERS);
	while (fillers > 0)
		CHECK_OK(close(filler[--fillers]));
	for (int i = 0; i < WAITING; i++) {
		ask(clients[i]);
		CHECK_OK(close(clients[i]));
	}
	CHECK_OK(close(client));
	CHECK_EQ(load_acquire(&s.begun), 1 + WAITING);
	end_service(&s, -ECANCELED);
	close_service(&s);
}

static void in_child(void)
{
	struct rlimit limit;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = LIMIT;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	EACH_CORE(core)
	without_room(core_names[core]);
}

TEST(without_descriptors_it_pauses_and_goes_on)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		in_child();
		_exit(0);
	}
	CHECK_EQ(child_wait(child), 0);
}

/* ---- how it ends ---- */

static int count_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	CHECK(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* They may go on until they have done what they were asked for; nobody new is let in. */
TEST(connections_have_their_time_at_the_end)
{
	EACH_CORE(core)
	{
		struct service s;
		int fd;

		open_service(&s, core_names[core], echo);
		start_service(&s);
		fd = dial(&s);
		ask(fd);
		CHECK_OK(hive_fiber_cancel(s.fiber));
		for (int i = 0; i < 100; i++)
			ask(fd);
		CHECK_ERR(hive_fiber_join(s.fiber, HIVE_NOWAIT, NULL), -ETIMEDOUT);
		CHECK_OK(close(fd));
		end_service(&s, -ECANCELED);
		CHECK_EQ(load_relaxed(&s.cancelled), 0);
		fd = dial(&s); /* at the door, and nobody comes */
		CHECK_OK(close(fd));
		CHECK_EQ(load_relaxed(&s.begun), 1);
		close_service(&s);
	}
}

TEST(connections_are_cancelled_when_their_time_is_over)
{
	static const int64_t graces[] = { 0, HIVE_MS(5) };

	EACH_CORE(core)
	{
		for (int i = 0; i < 4; i++) {
			bool deadline = i >= 2;
			struct service s;
			int fd;

			open_service(&s, core_names[core], echo);
			s.options.grace_ns = graces[i % 2];
			start_service(&s);
			fd = dial(&s);
			ask(fd);
			if (deadline) {
				end_service(&s, -ECANCELED);
				CHECK_EQ(load_relaxed(&s.cancelled), 1);
				see_end(fd);
				store_relaxed(&s.cancelled, 0u);
				s.deadline_ns = hive_deadline(NULL, HIVE_MS(200));
				start_service(&s);
				fd = dial(&s);
				ask(fd);
			}
			end_service(&s, deadline ? -ETIMEDOUT : -ECANCELED);
			CHECK_EQ(load_relaxed(&s.cancelled), 1);
			see_end(fd);
			close_service(&s);
		}
	}
}

/* A thread waits as well; and a listener that is shut down lets nobody in any more. */
static void *shut_down(void *arg)
{
	struct service *s = arg;
	int fd = dial(s);

	ask(fd);
	CHECK_OK(close(fd));
	CHECK_OK(shutdown(s->listener, SHUT_RDWR));
	return NULL;
}

TEST(an_error_of_the_listener_ends_it)
{
	EACH_CORE(core)
	{
		pthread_t thread;
		struct service s;

		open_service(&s, core_names[core], echo);
		CHECK_EQ(pthread_create(&thread, NULL, shut_down, &s), 0);
		CHECK_ERR(hive_serve(s.hive, s.listener, NULL, echo, &s, real_patience()), -EINVAL);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		CHECK_ERR(hive_serve(s.hive, 4000, NULL, echo, &s, HIVE_FOREVER), -EBADF);
		close_service(&s);
	}
}

/* Some are in, some are on their way to a fiber that never begins: none of their descriptors is left. */
TEST(a_stop_at_once_leaves_nothing_behind)
{
	EACH_CORE(core)
	{
		for (int round = 0; round < 10; round++) {
			int before = count_open(), fds[MANY];
			struct service s;

			open_service(&s, core_names[core], echo);
			start_service(&s);
			for (int i = 0; i < MANY; i++)
				fds[i] = dial(&s);
			if (round % 2)
				ask(fds[0]);
			CHECK_OK(hive_stop(s.hive, HIVE_NOW, HIVE_FOREVER));
			CHECK_OK(hive_join(s.hive, real_patience()));
			for (int i = 0; i < MANY; i++)
				CHECK_OK(close(fds[i]));
			CHECK_OK(close(s.listener));
			CHECK_OK(hive_fiber_join(s.fiber, HIVE_NOWAIT, NULL));
			CHECK_OK(hive_destroy(s.hive));
			CHECK_EQ(count_open(), before);
		}
	}
}

/* The worker of a porter leaves; the others go on, and so does the porter. */
TEST(workers_may_leave)
{
	EACH_CORE(core)
	{
		struct service s;
		int fds[10];

		open_service(&s, core_names[core], echo);
		start_service(&s);
		fds[0] = dial(&s);
		ask(fds[0]);
		CHECK_OK(hive_detach(s.hive, s.ids[1], real_patience()));
		for (int i = 1; i < 10; i++) {
			fds[i] = dial(&s);
			ask(fds[i]);
		}
		CHECK_OK(hive_detach(s.hive, s.ids[2], real_patience()));
		for (int i = 0; i < 10; i++) {
			ask(fds[i]);
			CHECK_OK(close(fds[i]));
		}
		end_service(&s, -ECANCELED);
		close_service(&s);
	}
}

static void in_task(void *arg)
{
	struct service *s = arg;

	CHECK_ERR(hive_serve(s->hive, s->listener, NULL, echo, s, HIVE_FOREVER), -EDEADLK);
}

TEST(mistakes_are_told)
{
	struct hive_serve_options bad = { .reserved = { 0, 0, 0, 1 } };
	struct service s;

	open_service(&s, "epoll", echo);
	CHECK_ERR(hive_serve(NULL, s.listener, NULL, echo, &s, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_serve(s.hive, -1, NULL, echo, &s, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_serve(s.hive, s.listener, NULL, NULL, &s, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_serve(s.hive, s.listener, &bad, echo, &s, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_serve(s.hive, s.listener, NULL, echo, &s, HIVE_NOWAIT), -ETIMEDOUT);
	shot_at(s.hive, HIVE_WORKER_NONE, in_task, &s);
	close_service(&s);
}
