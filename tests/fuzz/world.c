/* SPDX-License-Identifier: MIT */
#include "world.h"

#include "base/cpus.h"

/* In place of the library's: an input means the same on every machine, and no file is read for each hive. */
int32_t hive__cpus_allowed(void)
{
	return 2;
}

struct world_loop {
	struct hive_core core;
	struct hive_source *sources[WORLD_SOURCES];
};

static int loop_open(void *arg, struct hive_core **ret_core)
{
	struct world_loop *loop = (struct world_loop *)calloc(1, sizeof *loop);

	(void)arg;
	if (!loop)
		return -ENOMEM;
	loop->core.ops = &world_core;
	*ret_core = &loop->core;
	return 0;
}

static struct world_loop *loop_of(struct hive_core *core)
{
	return (struct world_loop *)(void *)core;
}

static void loop_close(struct hive_core *core)
{
	for (int i = 0; i < WORLD_SOURCES; i++)
		EXPECT(!loop_of(core)->sources[i]); /* they were all removed before */
	free(core);
}

/* The descriptor of a source is a word of the target's: the events that are ready. */
static int loop_turn(struct hive_core *core, int64_t timeout_ns)
{
	struct world_loop *loop = loop_of(core);

	EXPECT_EQ(timeout_ns, 0); /* the host waits, never the core */
	for (int i = 0; i < WORLD_SOURCES; i++) {
		struct hive_source *source = loop->sources[i];
		uint32_t *ready = source ? (uint32_t *)source->handle : NULL, events;

		if (!source || (events = *ready & (source->events | HIVE_EVENT_HUP | HIVE_EVENT_ERR)) == 0)
			continue;
		*ready &= ~events;
		hive_source_deliver(source, events);
	}
	return 0;
}

static void loop_wake(struct hive_core *core)
{
	(void)core;
	EXPECT(!"the host's wake comes first");
}

static int loop_add(struct hive_core *core, struct hive_source *source)
{
	for (uint32_t i = 0; i < WORLD_SOURCES; i++) {
		if (loop_of(core)->sources[i])
			continue;
		loop_of(core)->sources[i] = source;
		source->index = i;
		return 0;
	}
	return -ENOSPC;
}

static int loop_modify(struct hive_core *core, struct hive_source *source)
{
	EXPECT(loop_of(core)->sources[source->index] == source);
	return 0;
}

static void loop_remove(struct hive_core *core, struct hive_source *source)
{
	EXPECT(loop_of(core)->sources[source->index] == source);
	loop_of(core)->sources[source->index] = NULL;
}

const struct hive_core_ops world_core = {
	.name = "world",
	.kinds = 1u << HIVE_SOURCE_USER,
	.open = loop_open,
	.close = loop_close,
	.turn = loop_turn,
	.wake = loop_wake,
	.add = loop_add,
	.modify = loop_modify,
	.remove = loop_remove,
};

static int64_t host_now(void *arg)
{
	return ((struct world *)arg)->now_ns;
}

static uint64_t host_random(void *arg, uint32_t worker)
{
	struct world *w = (struct world *)arg;

	(void)worker;
	w->rng = w->rng * 6364136223846793005u + 1442695040888963407u;
	return w->rng;
}

static void *host_allocate(void *arg, void *old, size_t bytes)
{
	return counted_allocate(&((struct world *)arg)->memory, old, bytes);
}

static void host_wake(void *arg, uint32_t worker)
{
	struct world *w = (struct world *)arg;

	for (int i = 0; i < w->count; i++)
		if (w->workers[i].id == worker)
			w->workers[i].woken = true;
}

static int host_step_start(void *arg, uint32_t worker, hive_step_fn *step, void *step_arg)
{
	struct world *w = (struct world *)arg;

	if (w->count == WORLD_WORKERS)
		return -EAGAIN;
	w->workers[w->count++] = (struct world_worker){ worker, step, step_arg, w->now_ns, false, 0 };
	w->running++;
	return 0;
}

static void host_step_stop(void *arg, void *step_arg)
{
	struct world *w = (struct world *)arg;

	for (int i = 0; i < w->count; i++) {
		if (w->workers[i].step_arg == step_arg && w->workers[i].step) {
			w->workers[i].step = NULL;
			w->running--;
		}
	}
}

/* Somebody outside waits: the next worker that wants a beat gets it, else time goes on to the next point of interest. */
static int host_step_wait(void *arg, int64_t deadline_ns)
{
	struct world *w = (struct world *)arg;
	int64_t due = HIVE_FOREVER;

	EXPECT_EQ(w->stepping, 0); /* nobody waits inside a worker */
	for (int n = 0; n < w->count; n++) {
		int i = w->next++ % w->count; /* in turn */

		if (world_wants_beat(w, i)) {
			world_step(w, i);
			return 0;
		}
		if (w->workers[i].step && w->workers[i].due_ns < due)
			due = w->workers[i].due_ns;
	}
	if (due == HIVE_FOREVER && deadline_ns == HIVE_FOREVER)
		return -EDEADLK;
	if (deadline_ns < due) {
		w->now_ns = deadline_ns;
		return -ETIMEDOUT;
	}
	w->now_ns = due;
	w->idle_beats = 0;
	return 0;
}

void world_init(struct world *w, uint64_t seed, int64_t now_ns)
{
	memset(w, 0, sizeof *w);
	counted_memory_init(&w->memory);
	w->rng = seed;
	w->now_ns = now_ns;
	w->host = (struct hive_host){ .arg = w,
		                      .now = host_now,
		                      .random = host_random,
		                      .allocate = host_allocate,
		                      .wake = host_wake,
		                      .core = &world_core,
		                      .step_start = host_step_start,
		                      .step_stop = host_step_stop,
		                      .step_wait = host_step_wait };
}

int64_t world_step(struct world *w, int index)
{
	struct world_worker *worker = &w->workers[index];
	bool wanted = world_wants_beat(w, index);
	uint64_t before = w->progress;
	int64_t wait_ns = -1;
	int r;

	EXPECT(worker->step);
	worker->woken = false;
	worker->beat = ++w->begun;
	w->stepping++;
	r = worker->step(worker->step_arg, &wait_ns);
	w->stepping--;
	w->idle_beats = r < 0 || !wanted || w->progress != before ? 0 : w->idle_beats + 1;
	EXPECT(w->patience == 0 || w->idle_beats < w->patience); /* else: workers that spin */
	if (r < 0) {
		EXPECT_EQ(r, -ESHUTDOWN);
		worker->step = NULL;
		w->running--;
		if (w->on_left)
			w->on_left(worker->id);
		return r;
	}
	EXPECT(wait_ns >= 0);
	worker->due_ns = wait_ns > HIVE_FOREVER - w->now_ns ? HIVE_FOREVER : w->now_ns + wait_ns;
	return wait_ns;
}

bool world_wants_beat(const struct world *w, int index)
{
	const struct world_worker *worker = &w->workers[index];

	return worker->step && (worker->woken || worker->due_ns <= w->now_ns);
}

bool world_settle(struct world *w, long beats)
{
	bool again = true;

	while (again) {
		again = false;
		for (int i = 0; i < w->count; i++) {
			if (!world_wants_beat(w, i))
				continue;
			if (beats-- == 0)
				return false;
			world_step(w, i);
			again = true;
		}
	}
	return true;
}

void world_settle_one(struct world *w, int index, long *beats)
{
	w->idle_beats = 0;
	for (; world_wants_beat(w, index) && *beats > 0; --*beats)
		world_step(w, index);
}

void world_warn(void *hook_arg, const char *text)
{
	EXPECT(text && *text);
	((struct world *)hook_arg)->warnings++;
}
