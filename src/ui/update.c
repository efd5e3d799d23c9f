/* SPDX-License-Identifier: MIT */
/* Coalescing posts: notice.h has the word, this is the way to the worker and back. */
#include <rophive/hive.h>

#include "base/check.h"
#include "base/memory.h"
#include "sched/guest.h"
#include "ui/notice.h"

enum { UPDATE = 0x0bda7e };

struct notice {
	struct wrapped wrapped;     /* first */
	struct hive_update *update; /* I  not to be touched once it was stopped */
	struct memory memory;       /* I */
	ATOMIC(uint32_t) fate;      /* A */
};

static void free_notice(struct notice *n)
{
	struct memory memory = n->memory;

	hive__memory_free(&memory, n);
}

static bool was_stopped(struct notice *n)
{
	return load_relaxed(&n->fate) & NOTICE_STOPPED; /* the owner's own word */
}

/* The owner. From the take on the next post is one of its own: it may have come too late for what fn looks at. */
static void run(struct wrapped *wrapped)
{
	struct notice *n = (struct notice *)(void *)wrapped;
	struct hive_task task = wrapped->task;

	if (was_stopped(n)) {
		free_notice(n);
		return;
	}
	notice_take(&n->update->post);
	task.arg = n->update->arg;
	free_notice(n);
	task.fn(task.arg);
}

/* The hive has stopped, and it will not run. */
static void dropped(struct wrapped *wrapped)
{
	struct notice *n = (struct notice *)(void *)wrapped;

	if (!was_stopped(n))
		notice_withdraw(&n->update->post, n);
	free_notice(n);
}

void hive_update_init(struct hive_update *update, struct hive *hive, uint32_t worker, hive_fn *fn, void *arg)
{
	if (!update)
		return;
	*update = (struct hive_update){ .arg = arg, .fn = fn, .hive = hive, .worker = worker, .magic = UPDATE };
}

static struct notice *new_notice(struct hive_update *update)
{
	const struct memory *memory = hive__guest_memory(update->hive);
	struct notice *n = (struct notice *)hive__memory_new(memory, sizeof *n);

	if (!n)
		return NULL;
	n->wrapped = (struct wrapped){ run, dropped, { update->fn, update->arg } };
	n->update = update;
	n->memory = *memory;
	store_relaxed(&n->fate, 0u);
	return n;
}

/* The queue did not take it. */
static void take_back(struct hive_update *update, struct notice *n)
{
	if (notice_withdraw(&update->post, n) || notice_part(&n->fate, NOTICE_REFUSED))
		free_notice(n);
}

int hive_update_post(struct hive_update *update)
{
	struct notice *n;
	int r;

	if (!update || update->magic != UPDATE || !update->fn || !update->hive)
		return -EINVAL;
	if (notice_join(&update->post))
		return 1;
	r = hive__guest_door(update->hive); /* before memory is asked for */
	if (r < 0)
		return r;
	n = new_notice(update);
	if (!n)
		return -ENOMEM;
	while (!notice_hang(&update->post, n)) {
		if (notice_join(&update->post)) {
			free_notice(n);
			return 1;
		}
	}
	r = hive_post_to(update->hive, update->worker, hive__run_wrapped, n);
	if (r < 0)
		take_back(update, n);
	return r;
}

int hive_update_stop(struct hive_update *update)
{
	struct notice *n;

	if (!update || update->magic != UPDATE)
		return -EINVAL;
	if (MISUSE(!hive__acts_for(update->hive, update->worker), "not the worker on which it runs"))
		return -EPERM;
	n = (struct notice *)notice_take(&update->post);
	if (!n)
		return 0;
	if (notice_part(&n->fate, NOTICE_STOPPED))
		free_notice(n);
	return 1;
}
