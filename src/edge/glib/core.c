/* SPDX-License-Identifier: MIT */
/* A core that is a GMainContext. The worker's sources are in a core of epoll, whose descriptor is in the context: whoever iterates that, our
 * turn() or somebody inside, polls everything at once.
 *
 *   turn()          one iteration: prepare, query, poll, check, dispatch; and then the sources of the worker
 *   nested loop     somebody iterates the context inside a callback: our GSource makes the beats, each in an iteration of its own, and
 *                   the next iteration is for the others, or a worker with much to do would keep the window from being drawn     */
#include <glib.h>
#include <poll.h>
#include <time.h>

#include <rophive/glib.h>

#include "base/memory.h"

enum { FIRST_CAPACITY = 16 };
#define WAIT_WITHOUT_MEMORY HIVE_MS(10) /* not all descriptors are polled then */

struct glib_core {
	struct hive_core core;
	struct memory memory;
	GMainContext *context;
	GSource *source;         /* ours in the context */
	struct hive_core *inner; /* knows the sources */
	GPollFD inner_poll;
	GPollFD *fds; /* of the iteration under way */
	int capacity;
	bool pushed;    /* the context is the thread's default, by us */
	bool own;       /* inside our own iteration, before its dispatch */
	bool serving;   /* inside a turn of `inner` */
	bool beats;     /* nested: the next iteration is a beat's, not the others' */
	int64_t due_ns; /* nested: when the next beat is due */
};

static const struct hive_core_ops glib_ops;

struct context_source {
	GSource source;
	struct glib_core *core;
};

static struct glib_core *of(struct hive_core *core)
{
	return (struct glib_core *)(void *)core;
}

static struct glib_core *of_source(GSource *source)
{
	return ((struct context_source *)(void *)source)->core;
}

/* Whoever iterates the context inside a callback of a source would find the same events ready all the time: they are out of the poll. */
static int serve_sources(struct glib_core *c)
{
	int r;

	c->serving = true;
	c->inner_poll.events = c->inner_poll.revents = 0;
	r = c->inner->ops->turn(c->inner, 0);
	c->inner_poll.events = G_IO_IN;
	c->serving = false;
	return r;
}

/* ---- iterations that are not ours ---- */

static gboolean prepare_nested(GSource *source, gint *ret_timeout)
{
	struct glib_core *c = of_source(source);
	int64_t now;

	*ret_timeout = -1;
	if (c->own)
		return FALSE;
	if (c->beats)
		return TRUE;
	now = c->due_ns == HIVE_FOREVER ? 0 : hive_now(NULL);
	*ret_timeout = hive_poll_ms(c->due_ns == HIVE_FOREVER ? HIVE_FOREVER : c->due_ns > now ? c->due_ns - now : 0);
	return FALSE;
}

/* Callbacks of GLib's may follow in this iteration: for them the worker must be awake. What they post to it nobody wakes it for. */
static gboolean check_nested(GSource *source)
{
	struct glib_core *c = of_source(source);
	bool ready = c->beats;

	if (c->own)
		return FALSE;
	if (!ready && !c->serving)
		hive_core_enter(&c->core);
	c->beats = true;
	return ready;
}

static gboolean dispatch_nested(GSource *source, GSourceFunc callback, gpointer data)
{
	struct glib_core *c = of_source(source);
	int64_t wait_ns = HIVE_FOREVER;
	bool serves = c->inner_poll.revents && !c->serving;

	(void)callback, (void)data;
	c->beats = false;
	if (serves) {
		hive_core_leave(&c->core);
		serve_sources(c);
		hive_core_enter(&c->core);
	}
	hive_core_beat(&c->core, &wait_ns); /* in a task: what it has posted goes out, and nothing else */
	if (serves) { /* which may have ended this loop: then a callback goes on, for which the worker must be awake */
		hive_core_enter(&c->core);
		wait_ns = 0;
	}
	c->beats = false; /* a loop inside may have thought otherwise */
	c->due_ns = hive_deadline(NULL, wait_ns);
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs context_funcs = { prepare_nested, check_nested, dispatch_nested, NULL, NULL, NULL };

/* ---- our own ---- */

static bool grow(struct glib_core *c, int capacity)
{
	GPollFD *fds = (GPollFD *)hive__memory_new_raw(&c->memory, (size_t)capacity * sizeof *fds);

	if (!fds)
		return false;
	hive__memory_free(&c->memory, c->fds);
	c->fds = fds;
	c->capacity = capacity;
	return true;
}

/* How many there are to poll. -ENOMEM: as many as there is room for, and something is left out. */
static int query(struct glib_core *c, gint priority, int *ret_count, int64_t *ret_timeout_ns)
{
	gint timeout_ms, count;
	int r = 0;

	while ((count = g_main_context_query(c->context, priority, &timeout_ms, c->fds, c->capacity)) > c->capacity) {
		if (grow(c, count * 2))
			continue;
		count = c->capacity;
		timeout_ms = (gint)(WAIT_WITHOUT_MEMORY / HIVE_MS(1));
		r = -ENOMEM;
		break;
	}
	if (timeout_ms >= 0 && HIVE_MS(timeout_ms) < *ret_timeout_ns)
		*ret_timeout_ns = HIVE_MS(timeout_ms);
	*ret_count = count;
	return r;
}

/* GLib's own is poll(), with milliseconds; another one is there for a reason. */
static int wait_in_poll(struct glib_core *c, int count, int64_t timeout_ns)
{
	struct timespec limit = { timeout_ns / HIVE_S(1), timeout_ns % HIVE_S(1) };
	GPollFunc poll_func = g_main_context_get_poll_func(c->context);
	int n;

	_Static_assert(sizeof(GPollFD) == sizeof(struct pollfd), "GLib says that they are the same");
	if (poll_func == g_poll)
		n = ppoll((struct pollfd *)(void *)c->fds, (nfds_t)count, timeout_ns == HIVE_FOREVER ? NULL : &limit,
		          NULL);
	else
		n = poll_func(c->fds, (guint)count, hive_poll_ms(timeout_ns));
	if (n >= 0)
		return 0;
	n = errno == EINTR ? 0 : -errno;
	for (int i = 0; i < count; i++)
		c->fds[i].revents = 0;
	return n;
}

static int glib_core_turn(struct hive_core *core, int64_t timeout_ns)
{
	struct glib_core *c = of(core);
	int r, waited, served = 0, count;
	bool ready;
	gint priority;

	c->own = true;
	c->inner_poll.revents =
		0; /* stays so if the set of descriptors changes meanwhile: then the next turn sees it */
	g_main_context_prepare(c->context, &priority);
	r = query(c, priority, &count, &timeout_ns);
	waited = wait_in_poll(c, count, timeout_ns);
	ready = g_main_context_check(c->context, priority, c->fds, count);
	c->own = false;
	c->beats = true;
	if (ready) {
		hive_core_enter(core);
		g_main_context_dispatch(c->context);
		hive_core_leave(core);
	}
	if (c->inner_poll.revents)
		served = serve_sources(c);
	return r < 0 ? r : waited < 0 ? waited : served;
}

/* ---- beginning and end ---- */

/* The context is ours all the time: between two turns others who iterate or invoke would else run it on their threads. */
static int take_context(struct glib_core *c, GMainContext *context)
{
	c->context = context ? g_main_context_ref(context) : g_main_context_ref_thread_default();
	c->pushed = context && context != g_main_context_get_thread_default();
	if (!g_main_context_acquire(c->context)) {
		g_main_context_unref(c->context);
		return -EBUSY;
	}
	if (c->pushed)
		g_main_context_push_thread_default(c->context);
	return 0;
}

static void leave_context(struct glib_core *c)
{
	if (c->pushed)
		g_main_context_pop_thread_default(c->context);
	g_main_context_release(c->context);
	g_main_context_unref(c->context);
}

/* As urgent as can be: it has to see each iteration, and gives way by itself. */
static void add_source(struct glib_core *c)
{
	c->source = g_source_new(&context_funcs, sizeof(struct context_source));
	((struct context_source *)(void *)c->source)->core = c;
	g_source_add_poll(c->source, &c->inner_poll);
	g_source_set_priority(c->source, G_MININT);
	g_source_set_can_recurse(c->source, TRUE);
	g_source_set_static_name(c->source, "rophive");
	g_source_attach(c->source, c->context);
}

static int open_parts(struct glib_core *c, GMainContext *context)
{
	const struct hive_core_ops *inner = NULL;
	int r = hive_core_find("epoll", &inner);

	if (r < 0)
		return r;
	r = inner->open(NULL, &c->inner);
	if (r < 0)
		return r;
	r = c->inner->ops->fd(c->inner);
	c->inner_poll = (GPollFD){ .fd = r, .events = G_IO_IN };
	if (r >= 0)
		r = grow(c, FIRST_CAPACITY) ? take_context(c, context) : -ENOMEM;
	if (r < 0) {
		c->inner->ops->close(c->inner);
		hive__memory_free(&c->memory, c->fds);
	}
	return r;
}

static int glib_core_open(void *arg, struct hive_core **ret_core)
{
	struct memory memory = { hive__memory_system, NULL };
	struct glib_core *c = (struct glib_core *)hive__memory_new(&memory, sizeof *c);
	int r;

	if (!c)
		return -ENOMEM;
	c->memory = memory;
	r = open_parts(c, (GMainContext *)arg);
	if (r < 0) {
		hive__memory_free(&memory, c);
		return r;
	}
	c->core.ops = &glib_ops;
	add_source(c);
	*ret_core = &c->core;
	return 0;
}

static void glib_core_close(struct hive_core *core)
{
	struct glib_core *c = of(core);
	struct memory memory = c->memory;

	g_source_destroy(c->source);
	g_source_unref(c->source);
	leave_context(c);
	c->inner->ops->close(c->inner);
	hive__memory_free(&memory, c->fds);
	hive__memory_free(&memory, c);
}

/* ---- what the core of the sources does ---- */

static void glib_core_wake(struct hive_core *core)
{
	of(core)->inner->ops->wake(of(core)->inner);
}

static int glib_core_add(struct hive_core *core, struct hive_source *source)
{
	return of(core)->inner->ops->add(of(core)->inner, source);
}

static int glib_core_modify(struct hive_core *core, struct hive_source *source)
{
	return of(core)->inner->ops->modify(of(core)->inner, source);
}

static void glib_core_remove(struct hive_core *core, struct hive_source *source)
{
	of(core)->inner->ops->remove(of(core)->inner, source);
}

static const struct hive_core_ops glib_ops = {
	.name = "glib",
	.kinds = 1u << HIVE_SOURCE_FD,
	.open = glib_core_open,
	.close = glib_core_close,
	.turn = glib_core_turn,
	.wake = glib_core_wake,
	.add = glib_core_add,
	.modify = glib_core_modify,
	.remove = glib_core_remove,
};

static void never_run(gpointer data, gpointer user_data)
{
	(void)data, (void)user_data;
}

/* The threads that all thread pools of GLib share (GTask's, too) are scheduled as the one is that makes the first of these pools: each asks for it
 * itself. That shall be no UI worker with its real-time priority, but whoever is here, where no worker runs yet.            */
static void *make_first_pool(void *arg)
{
	GThreadPool *pool = g_thread_pool_new(never_run, NULL, 1, FALSE, NULL);

	if (pool)
		g_thread_pool_free(pool, TRUE, FALSE);
	return arg;
}

const struct hive_core_ops *hive_core_glib(void)
{
	static GOnce once = G_ONCE_INIT;

	g_once(&once, make_first_pool, NULL);
	return &glib_ops;
}
