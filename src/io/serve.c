/* SPDX-License-Identifier: MIT */
/* A listener served by all workers: a porter at each of them, a fiber for each connection.
 *
 *   hive_serve() waits for a tree of fibers:   keeper --- porters, one at each worker --- connections --- what they spawn
 *
 * The keeper sends the porters away when he is told so; the tree has gone when the last connection has. What is on its way from a porter to
 * a fiber that never begins, because the hive stops, is in a list; whoever waits for the tree closes it.
 *
 * A porter that has let one in always comes back, also if there is no room: he waits for room with the connection in his hand. So no
 * other one has to be told of what came together with it (hive__op_accept_alone).                                          */
#include <errno.h>

#include <rophive/hive.h>
#include <rophive/io.h>
#include <rophive/sync.h>

#include "base/lock.h"
#include "base/memory.h"
#include "fiber/fiber.h"
#include "io/number.h"
#include "io/op.h"

enum { FEWER = 2, IN_A_ROW = 16 }; /* a worker with so many fewer gets it; accepted at once, until others have a turn */
#define PAUSE_NS HIVE_MS(20)       /* until there are descriptors again, maybe */

struct server;

struct door {                      /* of one worker */
	struct server *server;     /* I */
	uint32_t worker;           /* I */
	ATOMIC(uint32_t) inside;   /* A  connections that began, or are about to begin there */
	struct hive_fiber *porter; /* O  of the keeper */
};

struct guest_in { /* a connection that has not begun */
	struct guest_in *next, **link;
	struct door *door;
	int fd;
};

struct server {
	struct hive *hive; /* I */
	const struct memory *memory;
	int listener;      /* I */
	hive_serve_fn *fn; /* I */
	void *arg;         /* I */
	struct hive_serve_options options;
	struct hive_semaphore room;  /* with a limit: for so many more */
	struct hive_semaphore close; /* the keeper waits for it */
	ATOMIC(int) error;           /* A  of the listener */
	struct lock lock;
	struct guest_in *coming; /* L */
	uint32_t doors;          /* I */
	struct door door[];
};

/* ---- a connection ---- */

static void take_off(struct server *s, struct guest_in *in)
{
	lock_acquire(&s->lock);
	*in->link = in->next;
	if (in->next)
		in->next->link = in->link;
	lock_release(&s->lock);
	hive__memory_free(s->memory, in);
}

static void put_on(struct server *s, struct guest_in *in)
{
	lock_acquire(&s->lock);
	in->link = &s->coming;
	in->next = s->coming;
	if (in->next)
		in->next->link = &in->next;
	s->coming = in;
	lock_release(&s->lock);
}

static void leave(struct server *s, struct door *door)
{
	sub_relaxed(&door->inside, 1u);
	if (s->options.connections > 0)
		hive_semaphore_release(&s->room, 1);
}

static int connection(void *arg)
{
	struct guest_in *in = (struct guest_in *)arg;
	struct door *door = in->door;
	struct server *s = door->server;
	int fd = in->fd, result;

	take_off(s, in);
	hive__fiber_here()->pinned =
		HIVE_WORKER_NONE; /* it began here; from now on whoever is idle may go on with it */
	result = s->fn(fd, s->arg);
	leave(s, door);
	return result;
}

/* Where it was accepted, unless that worker has more than its share. */
static struct door *choose(struct door *mine)
{
	struct server *s = mine->server;
	struct door *best = mine;

	if (load_relaxed(&mine->inside) < FEWER)
		return mine;
	for (uint32_t i = 0; i < s->doors; i++)
		if (load_relaxed(&s->door[i].inside) < load_relaxed(&best->inside))
			best = &s->door[i];
	return load_relaxed(&best->inside) + FEWER <= load_relaxed(&mine->inside) ? best : mine;
}

static int begin(struct door *mine, int fd)
{
	struct server *s = mine->server;
	struct guest_in *in = (struct guest_in *)hive__memory_new(s->memory, sizeof *in);
	struct hive_fiber_options how = { .name = s->options.name, .stack_bytes = s->options.stack_bytes };
	int r;

	if (!in)
		return -ENOMEM;
	in->fd = fd;
	in->door = choose(mine);
	how.worker = in->door->worker;
	put_on(s, in);
	add_relaxed(&in->door->inside, 1u);
	r = hive_spawn(s->hive, connection, in, &how, NULL);
	if (r == -ESRCH) { /* that worker has left the hive */
		how.worker = HIVE_WORKER_NONE;
		r = hive_spawn(s->hive, connection, in, &how, NULL);
	}
	if (r < 0) {
		sub_relaxed(&in->door->inside, 1u);
		take_off(s, in);
	}
	return r;
}

/* ---- the porters ---- */

static int accept_one(struct server *s)
{
	struct hive_op op;
	int r;

	hive_op_init(&op, s->hive, NULL, NULL);
	r = hive__op_accept_alone(&op, s->listener, HIVE_FOREVER);
	if (r < 0)
		return r == -ESHUTDOWN ? -ECANCELED : r;
	return (int)hive_op_wait(&op);
}

/* Nothing is wrong with the listener, but there is no room in this process, or on this machine. */
static bool will_pass(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM;
}

/* It was about a connection that has gone meanwhile: accept(2). */
static bool is_of_the_peer(int error)
{
	return error == -ENETDOWN || error == -EPROTO || error == -ENOPROTOOPT || error == -EHOSTDOWN ||
	       error == -ENONET || error == -EHOSTUNREACH || error == -ENETUNREACH || error == -EPERM;
}

/* 0: the next one, please. Whoever cannot be let in is told by the end of his connection. */
static int let_in(struct door *door, int fd)
{
	struct server *s = door->server;
	int r = s->options.connections > 0 ? hive_semaphore_acquire(&s->room, 1, HIVE_FOREVER) : 0;

	if (r == 0) {
		r = begin(door, fd);
		if (r < 0 && s->options.connections > 0)
			hive_semaphore_release(&s->room, 1);
	}
	if (r < 0)
		hive__number_close(fd);
	return r == -ENOMEM ? hive_sleep(PAUSE_NS) : r == -ESHUTDOWN ? -ECANCELED : r;
}

static int porter(void *arg)
{
	struct door *door = (struct door *)arg;
	struct server *s = door->server;
	int r = 0;

	for (uint32_t i = 1; r == 0; i++) {
		int fd = accept_one(s);

		if (fd >= 0)
			r = let_in(door, fd);
		else if (will_pass(fd))
			r = hive_sleep(PAUSE_NS);
		else if (!is_of_the_peer(fd))
			r = fd;
		if (r == 0 && i % IN_A_ROW == 0)
			r = hive_yield();
	}
	if (r != -ECANCELED)
		store_relaxed(&s->error, r);
	hive_semaphore_release(&s->close, 1);
	return r;
}

static int keeper(void *arg)
{
	struct server *s = (struct server *)arg;
	uint32_t porters = 0;
	int r = 0;

	for (uint32_t i = 0; i < s->doors && r == 0; i++) {
		struct hive_fiber_options there = { .name = "porter", .worker = s->door[i].worker };

		r = hive_spawn(s->hive, porter, &s->door[i], &there, &s->door[i].porter);
		if (r == 0)
			porters++;
		else if (r == -ESRCH) /* it has just left */
			r = 0;
	}
	if (r == 0)
		r = porters > 0 ? hive_semaphore_acquire(&s->close, 1, HIVE_FOREVER) : -ESHUTDOWN;
	for (uint32_t i = 0; i < s->doors; i++)
		if (s->door[i].porter) {
			hive_fiber_cancel(s->door[i].porter);
			hive_fiber_detach(s->door[i].porter);
		}
	return r;
}

/* ---- the end ---- */

static int64_t grace_of(const struct server *s)
{
	int64_t grace = s->options.grace_ns;

	return grace == HIVE_FOREVER ? HIVE_FOREVER : grace <= 0 ? HIVE_NOWAIT : hive_deadline(s->hive, grace);
}

/* The porters go first, the connections when their time is over. */
static int wait_for_all(struct server *s, struct hive_fiber *root, struct tracker *tracker, int64_t deadline_ns)
{
	int r = once_wait(&tracker->once, false, "serve", deadline_ns);

	if (r == 0)
		return load_relaxed(&s->error) < 0 ? load_relaxed(&s->error) : tracker->result;
	hive_semaphore_release(&s->close, 1);
	if (once_wait(&tracker->once, true, "serve", grace_of(s)) == 0)
		return r;
	hive__fiber_cancel_tree(root);
	while (once_wait(&tracker->once, true, "serve", HIVE_FOREVER) < 0)
		;
	return r;
}

static void close_unbegun(struct server *s)
{
	while (s->coming) {
		hive__number_close(s->coming->fd);
		take_off(s, s->coming);
	}
}

static int serve(struct server *s, int64_t deadline_ns)
{
	struct hive_fiber_options how = { .name = "keeper", .worker = HIVE_WORKER_NONE };
	struct hive_fiber *handle, *root;
	struct tracker tracker = { .result = 0 };
	int r;

	once_init(&tracker.once);
	r = hive__fiber_start(s->hive, keeper, s, &how, &tracker, &handle);
	if (r < 0)
		return r;
	root = (struct hive_fiber *)HANDLE_ADDRESS((uintptr_t)handle);
	r = wait_for_all(s, root, &tracker, deadline_ns);
	hive__fiber_release(root, load_relaxed(&root->fate) & FATE_LIFE);
	close_unbegun(s);
	return r;
}

/* ---- the beginning ---- */

static int check(const struct hive_serve_options *options, struct hive_serve_options *ret)
{
	*ret = options ? *options : (struct hive_serve_options){ 0 };
	for (size_t i = 0; i < sizeof ret->reserved / sizeof *ret->reserved; i++)
		if (ret->reserved[i] != 0)
			return -EINVAL;
	return ret->stack_bytes > (size_t)1 << STACK_SHIFT_LAST ? -EINVAL : 0; /* told now, not when somebody comes */
}

static struct server *new_server(struct hive *hive)
{
	const struct memory *memory = hive__guest_memory(hive);
	size_t most = hive_workers(hive, NULL, 0);
	uint32_t *ids = (uint32_t *)hive__memory_new(memory, (most + 1) * sizeof *ids);
	struct server *s = (struct server *)hive__memory_new(memory, sizeof *s + most * sizeof *s->door);
	size_t found = ids ? hive_workers(hive, ids, most) : 0;

	for (size_t i = 0; s && i < found && i < most; i++) {
		struct hive_worker_stats about;

		if (hive_worker_stats_read(hive, ids[i], &about) == 0 && about.kind == HIVE_WORKER_IO)
			s->door[s->doors++] = (struct door){ .server = s, .worker = ids[i] };
	}
	if (!ids) {
		hive__memory_free(memory, s);
		s = NULL;
	}
	hive__memory_free(memory, ids);
	if (s)
		s->memory = memory;
	return s;
}

int hive_serve(struct hive *hive, int fd, const struct hive_serve_options *options, hive_serve_fn *fn, void *arg,
               int64_t deadline_ns)
{
	struct guest_place *place = hive__place();
	struct hive_serve_options how;
	struct server *s;
	int r = fn && fd >= 0 ? check(options, &how) : -EINVAL;

	if (r == 0)
		r = hive__guest_door(hive);
	if (r == 0 && place && !place->now)
		r = -EDEADLK;
	if (r == 0 && deadline_ns <= HIVE_NOWAIT)
		r = -ETIMEDOUT;
	s = r == 0 ? new_server(hive) : NULL;
	if (!s)
		return r < 0 ? r : -ENOMEM;
	s->hive = hive;
	s->listener = fd;
	s->fn = fn;
	s->arg = arg;
	s->options = how;
	lock_init(&s->lock);
	hive_semaphore_init(&s->room, how.connections);
	hive_semaphore_init(&s->close, 0);
	r = serve(s, deadline_ns);
	hive__memory_free(hive__guest_memory(hive), s);
	return r;
}
