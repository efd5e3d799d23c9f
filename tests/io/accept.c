/* SPDX-License-Identifier: MIT */
/* No descriptor left for a connection, on each core: it is told once for each question, nobody spins, and it goes on afterwards. */
#include <sys/resource.h>

#include "base/atomic.h"
#include "support/child.h"
#include "support/net.h"

enum { LIMIT = 100 };

static int filler[LIMIT], fillers;

static void fill_all(void)
{
	for (fillers = 0; fillers < LIMIT && (filler[fillers] = dup(0)) >= 0; fillers++)
		;
	CHECK_EQ(errno, EMFILE);
}

static void free_one(void)
{
	CHECK_OK(close(filler[--fillers]));
}

static void free_all(void)
{
	while (fillers > 0)
		free_one();
}

static int accept_one(void *arg)
{
	return hive_accept(*(int *)arg, HIVE_FOREVER);
}

/* Sockets that exist already, for no more can be made. */
static void knock(int client, const struct hive_address *at)
{
	CHECK_OK(hive_connect(client, at, HIVE_FOREVER));
}

static int without_room(void *arg)
{
	int listener = hive_listen("unix:@rophive.emfile", 0, NULL), clients[3], fd;
	struct hive_address at;
	struct hive_fiber *fiber;

	(void)arg;
	CHECK(listener >= 0);
	CHECK_OK(hive_address_of(listener, false, &at));
	for (int i = 0; i < 3; i++)
		CHECK((clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) >= 0);
	fiber = net_spawn(accept_one, &listener); /* it may wait already, or not */
	CHECK_OK(hive_yield());
	fill_all();
	knock(clients[0], &at);
	CHECK_EQ(net_join(fiber), -EMFILE);
	for (int i = 0; i < 10; i++)
		CHECK_ERR(hive_accept(listener, HIVE_FOREVER), -EMFILE); /* told each time, and still there */
	free_one();
	fd = hive_accept(listener, HIVE_FOREVER);
	CHECK(fd >= 0);
	knock(clients[1], &at);
	knock(clients[2], &at);
	CHECK_ERR(hive_accept(listener, HIVE_FOREVER), -EMFILE);
	CHECK_OK(close(fd));
	fd = hive_accept(listener, HIVE_FOREVER);
	CHECK(fd >= 0);
	CHECK_OK(close(fd));
	fd = hive_accept(listener, HIVE_FOREVER);
	CHECK(fd >= 0);
	free_all();
	CHECK_OK(close(fd));
	CHECK_OK(close(listener));
	for (int i = 0; i < 3; i++)
		CHECK_OK(close(clients[i]));
	return 0;
}

static ATOMIC(uint32_t) accepted, ended;
static ATOMIC(int64_t) last;

static void on_accept(struct hive_op *op, int64_t result)
{
	(void)op;
	if (result >= 0)
		CHECK_OK(close((int)result));
	else
		store_relaxed(&last, result);
	add_release(result >= 0 ? &accepted : &ended, 1u);
}

static uint64_t beats_of(struct hive *hive)
{
	struct hive_worker_stats stats;

	CHECK_OK(hive_worker_stats_read(hive, HIVE_WORKER_MAIN, &stats));
	return stats.beats;
}

/* Somebody knocks, and nobody may let him in: until the operation is started again nothing happens. */
static void check_quiet(struct hive *hive)
{
	uint64_t beats;

	real_wait_asleep(hive, 1);
	beats = beats_of(hive);
	real_pass_time(HIVE_MS(1));
	CHECK(beats_of(hive) <= beats + 2);
}

static void repeat_without_room(struct hive *hive)
{
	int listener = hive_listen("unix:@rophive.emfile", 0, NULL), clients[2];
	struct hive_address at;
	struct hive_op op;

	CHECK(listener >= 0);
	CHECK_OK(hive_address_of(listener, false, &at));
	for (int i = 0; i < 2; i++)
		CHECK((clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) >= 0);
	store_relaxed(&accepted, 0u);
	store_relaxed(&ended, 0u);
	hive_op_init(&op, hive, on_accept, NULL);
	CHECK_OK(hive_op_accept(&op, listener, HIVE_OP_REPEAT, HIVE_FOREVER));
	knock(clients[0], &at);
	WAIT_UNTIL(load_acquire(&accepted) == 1);
	fill_all();
	knock(clients[1], &at);
	WAIT_UNTIL(load_acquire(&ended) == 1);
	CHECK_EQ(load_relaxed(&last), -EMFILE);
	check_quiet(hive);
	free_all();
	check_quiet(hive);
	CHECK_EQ(load_relaxed(&accepted), 1);
	CHECK_OK(hive_op_accept(&op, listener, HIVE_OP_REPEAT, HIVE_FOREVER));
	WAIT_UNTIL(load_acquire(&accepted) == 2);
	CHECK_OK(hive_op_cancel(&op));
	WAIT_UNTIL(load_acquire(&ended) == 2);
	CHECK_EQ(load_relaxed(&last), -ECANCELED);
	CHECK_OK(close(listener));
	net_close(clients);
}

static void in_child(void)
{
	struct rlimit limit;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = LIMIT;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	net_each(without_room);
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 0);

		repeat_without_room(hive);
		real_end(hive, HIVE_NOW);
	}
}

TEST(no_descriptor_left_is_told_and_it_goes_on)
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
