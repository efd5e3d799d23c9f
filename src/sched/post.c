/* SPDX-License-Identifier: MIT */
/* The doors that take a task to be run as soon as may be. Delayed ones: after.c. */
#include "base/thread.h"
#include "sched/internal.h"

int hive__refuse(struct hive *hive, uint64_t tasks)
{
	add_relaxed(&hive->refused, tasks);
	return -ESHUTDOWN;
}

/* What the doors ask that only the own worker has. */
int hive__own_door(hive_fn *fn, struct worker **ret_worker)
{
	*ret_worker = hive__current();
	if (MISUSE(!*ret_worker || (*ret_worker)->kind != HIVE_WORKER_IO, "not on an IO worker"))
		return -EPERM;
	return hive__door((*ret_worker)->hive, fn);
}

static int into_outbox(struct worker *w, struct hive_task task)
{
	if (w->outbox_count == TUNE_OUTBOX)
		hive__flush_outbox(w);
	if (w->outbox_count == TUNE_OUTBOX)
		return -ENOMEM;
	w->outbox[w->outbox_count++] = task;
	bump(&w->stats.posted, 1);
	return 0;
}

/* Puts, then looks for a sleeper: the order matters (idle.h). Inline, so that one task is a task and not an array of one. */
static inline __attribute__((always_inline)) int into_pool(struct hive *hive, struct pool *pool, struct workers *set,
                                                           const struct hive_task *tasks, size_t n)
{
	int r = pool_give_many(pool, hive__thread_number(), tasks, n, true);

	if (r == 0)
		hive__wake_if_needed(hive, set);
	else if (r == -ESHUTDOWN)
		hive__refuse(hive, n);
	return r;
}

int hive__post_to_pool(struct hive *hive, const struct hive_task *tasks, size_t n)
{
	return into_pool(hive, &hive->pool, &hive->io, tasks, n);
}

static int check_many(struct hive *hive, const struct hive_task *tasks, size_t count)
{
	if (!hive || (!tasks && count > 0) || count > SIZE_MAX / sizeof *tasks)
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		if (!tasks[i].fn)
			return -EINVAL;
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	return hive__state(hive) >= HIVE_DRAINING ? hive__refuse(hive, count) : 0;
}

int hive_post(struct hive *hive, hive_fn *fn, void *arg)
{
	struct hive_task task = { fn, arg };
	struct worker *w;
	int r = hive__door(hive, fn);

	if (r < 0)
		return r;
	w = hive__current_in(hive);
	if (w && w->kind == HIVE_WORKER_IO && w->setup.outbox)
		return into_outbox(w, task);
	if (hive->two_choices && hive__place_task(hive, task))
		return 0;
	return into_pool(hive, &hive->pool, &hive->io, &task, 1);
}

int hive_post_many(struct hive *hive, const struct hive_task *tasks, size_t count)
{
	int r = check_many(hive, tasks, count);

	return r < 0 || count == 0 ? r : hive__post_to_pool(hive, tasks, count);
}

static int into_compute(struct hive *hive, enum hive_priority level, const struct hive_task *tasks, size_t n)
{
	return into_pool(hive, &hive->compute_pool.pools[level], &hive->compute, tasks, n);
}

static bool is_priority(enum hive_priority priority)
{
	return (uint32_t)priority < LEVELS;
}

int hive_post_compute(struct hive *hive, hive_fn *fn, void *arg)
{
	struct hive_task task = { fn, arg };
	int r = hive__door(hive, fn);

	return r < 0 ? r : into_compute(hive, HIVE_PRIORITY_NORMAL, &task, 1);
}

int hive_post_compute_at(struct hive *hive, enum hive_priority priority, hive_fn *fn, void *arg)
{
	struct hive_task task = { fn, arg };
	int r = is_priority(priority) ? hive__door(hive, fn) : -EINVAL;

	return r < 0 ? r : into_compute(hive, priority, &task, 1);
}

int hive_post_compute_many(struct hive *hive, const struct hive_task *tasks, size_t count)
{
	return hive_post_compute_at_many(hive, HIVE_PRIORITY_NORMAL, tasks, count);
}

int hive_post_compute_at_many(struct hive *hive, enum hive_priority priority, const struct hive_task *tasks,
                              size_t count)
{
	int r = is_priority(priority) ? check_many(hive, tasks, count) : -EINVAL;

	return r < 0 || count == 0 ? r : into_compute(hive, priority, tasks, count);
}

int hive_post_kind(struct hive *hive, enum hive_kind kind, int64_t delay_ns, hive_fn *fn, void *arg)
{
	if (kind != HIVE_MICRO && kind != HIVE_COMPUTE)
		return -EINVAL;
	if (MISUSE(kind == HIVE_COMPUTE && delay_ns > 0, "a compute task cannot be delayed"))
		return -EINVAL;
	if (kind == HIVE_COMPUTE)
		return hive_post_compute(hive, fn, arg);
	return delay_ns > 0 ? hive_post_after(hive, delay_ns, fn, arg, NULL) : hive_post(hive, fn, arg);
}

static void fill(struct parcel *p, uint32_t kind, uint32_t target, struct hive_task task)
{
	p->kind = kind;
	p->target = target;
	p->task = task;
	p->receipt = NULL;
}

/* Ids name one life of a slot; HIVE_WORKER_MAIN cannot go away, so it needs no check on arrival. */
static uint32_t target_of(uint32_t id)
{
	return id == HIVE_WORKER_MAIN ? HIVE_WORKER_NONE : id;
}

static int find_addressee(struct hive *hive, uint32_t id, struct worker **ret_worker)
{
	*ret_worker = id == HIVE_WORKER_NONE ? NULL : hive__find_io(hive, id);
	if (*ret_worker)
		return 0;
	return id == HIVE_WORKER_NONE || hive__names_compute(hive, id) ? -EINVAL : -ESRCH;
}

int hive_post_to(struct hive *hive, uint32_t worker, hive_fn *fn, void *arg)
{
	struct hive_task task = { fn, arg };
	struct worker *w;
	struct parcel *p;
	int r = hive__door(hive, fn);

	if (r < 0)
		return r;
	r = find_addressee(hive, worker, &w);
	if (r < 0)
		return r;
	if (hive->mesh && hive__send_by_lane(w, target_of(worker), task))
		return 0;
	p = hive__parcel_new(w);
	if (!p)
		return -ENOMEM;
	fill(p, PARCEL_TASK, target_of(worker), task);
	if (hive__send_parcel(w, p))
		return 0;
	hive__parcel_free(p);
	return hive__state(hive) >= HIVE_DRAINING ? hive__refuse(hive, 1) : -ESRCH;
}

int hive_post_local(hive_fn *fn, void *arg)
{
	struct hive_task task = { fn, arg };
	struct worker *w;
	int r = hive__own_door(fn, &w);

	if (r < 0)
		return r;
	if (!local_post(&w->local, task))
		r = hive__post_to_full(w, task, true);
	if (r < 0)
		return r;
	bump(&w->stats.posted, 1);
	if (w->setup.stealing)
		hive__wake_if_needed(w->hive, &w->hive->io);
	return 0;
}

int hive_post_self(hive_fn *fn, void *arg)
{
	struct hive_task task = { fn, arg };
	struct worker *w;
	struct parcel *p;
	int r = hive__own_door(fn, &w);

	if (r < 0)
		return r;
	p = hive__parcel_new(w);
	if (!p)
		return -ENOMEM;
	fill(p, PARCEL_TASK, HIVE_WORKER_NONE, task);
	hive__mail_append(w, p);
	bump(&w->stats.posted, 1);
	return 0;
}

int hive_post_compute_then(struct hive *hive, hive_fn *work, uint32_t reply_to, hive_fn *done, void *arg)
{
	struct hive_task first = { work, arg }, task = { hive__run_then, NULL };
	struct worker *w;
	struct parcel *p;
	int r = done ? hive__door(hive, work) : -EINVAL;

	if (r == 0)
		r = find_addressee(hive, reply_to, &w);
	if (r < 0)
		return r;
	p = hive__parcel_new(w);
	if (!p)
		return -ENOMEM;
	fill(p, PARCEL_REPLY, target_of(reply_to), first);
	p->then = done;
	task.arg = p;
	holds_begin(&hive->holds, 1u);
	r = into_compute(hive, HIVE_PRIORITY_NORMAL, &task, 1);
	if (r < 0) {
		hive__parcel_free(p);
		hive__let_end(hive, 1);
	}
	return r;
}
