/* SPDX-License-Identifier: MIT */
/* Sources: the scheduler's half. It keeps the list of what is started and guards every call into user code; the core
 * knows descriptors.                                                                                                */
#include "sched/internal.h"
#include "sched/stir.h"

enum { SOURCE_IDLE = 0x50041d1e, SOURCE_STARTED = 0x5004a11e, SOURCE_OF_GUEST = 0x50046e57 };
enum {
	EVENTS_ALL = HIVE_EVENT_IN | HIVE_EVENT_OUT | HIVE_EVENT_PRI | HIVE_EVENT_HUP | HIVE_EVENT_ERR |
	             HIVE_EVENT_EDGE | HIVE_EVENT_ONCE | HIVE_EVENT_END
};

void hive_source_init(struct hive_source *source, enum hive_source_kind kind, intptr_t handle, uint32_t events,
                      hive_source_fn *on_ready, void *arg)
{
	if (!source)
		return;
	*source = (struct hive_source){ .arg = arg,
		                        .handle = handle,
		                        .kind = (uint32_t)kind,
		                        .events = events,
		                        .state = SOURCE_IDLE,
		                        .on_ready = on_ready };
}

static bool is_valid(const struct hive_source *source)
{
	return source && (source->state == SOURCE_IDLE || source->state == SOURCE_STARTED);
}

static void link_source(struct worker *w, struct hive_source *source)
{
	source->owner = w;
	source->prev = NULL;
	source->next = w->sources;
	if (w->sources)
		w->sources->prev = source;
	w->sources = source;
	source->state = SOURCE_STARTED;
	bump(&w->stats.sources, 1);
}

static void unlink_source(struct worker *w, struct hive_source *source)
{
	struct hive_source *next = (struct hive_source *)source->next, *prev = (struct hive_source *)source->prev;

	if (prev)
		prev->next = next;
	else
		w->sources = next;
	if (next)
		next->prev = prev;
	source->state = SOURCE_IDLE;
	bump(&w->stats.sources, (uint64_t)-1);
}

int hive_source_start(struct hive_source *source)
{
	struct worker *w = hive__current();
	int r;

	if (!is_valid(source) || !source->on_ready || source->kind == 0 || source->kind > 31 ||
	    (source->events & ~(uint32_t)EVENTS_ALL) || (source->kind == HIVE_SOURCE_FD && source->handle < 0))
		return -EINVAL;
	if (source->state == SOURCE_STARTED)
		return -EALREADY;
	if (MISUSE(!w || w->kind != HIVE_WORKER_IO, "not on an IO worker"))
		return -EPERM;
	if (forkmark_is_child(w->hive->mark))
		return -EOWNERDEAD;
	if (hive__state(w->hive) >= HIVE_DRAINING)
		return -ESHUTDOWN;
	if (!(w->core->ops->kinds & (1u << source->kind))) {
		hive__warn(w->hive, "worker %s: core %s takes no source of kind %u", w->name, w->core->ops->name,
		           source->kind);
		MISUSE(true, "this core does not take this kind of source");
		return -ENOTSUP;
	}
	r = w->core->ops->add(w->core, source);
	if (r == 0)
		link_source(w, source);
	return r;
}

int hive_source_modify(struct hive_source *source, uint32_t events)
{
	uint32_t before;
	int r;

	if (!is_valid(source) || source->state != SOURCE_STARTED || (events & ~(uint32_t)EVENTS_ALL))
		return -EINVAL;
	if (MISUSE(source->owner != hive__current(), "not the worker on which it was started"))
		return -EPERM;
	before = source->events;
	source->events = events;
	r = hive__current()->core->ops->modify(hive__current()->core, source);
	if (r < 0)
		source->events = before;
	return r;
}

int hive_source_stop(struct hive_source *source)
{
	struct worker *w = hive__current();

	if (!is_valid(source))
		return -EINVAL;
	if (source->state == SOURCE_IDLE)
		return 0;
	if (MISUSE(source->owner != w, "not the worker on which it was started"))
		return -EPERM;
	w->core->ops->remove(w->core, source);
	unlink_source(w, source);
	return 1;
}

/* The first event of a turn that slept ends the sleep: user code must not run while others count on this worker. */
void hive_source_deliver(struct hive_source *source, uint32_t events)
{
	struct worker *w = (struct worker *)source->owner;

	bool is_users = source->state == SOURCE_STARTED && !hive__is_stopping(w);

	if (!is_users && source->state != SOURCE_OF_GUEST)
		return;
	stirs(w, is_users);
	source->on_ready(source, events);
}

/* Takes out whatever is still started; how many there were. */
uint32_t hive__stop_sources(struct worker *w)
{
	uint32_t n = 0;

	while (w->sources) {
		struct hive_source *source = w->sources;

		w->core->ops->remove(w->core, source);
		unlink_source(w, source);
		n++;
	}
	return n;
}

/* ---- those of guests ---- */

int hive__place_add(struct guest_place *place, struct hive_source *source)
{
	struct worker *w = hive__worker_of_place(place);
	int r;

	if (!(w->core->ops->kinds & (1u << source->kind)))
		return -ENOTSUP;
	source->owner = w;
	r = w->core->ops->add(w->core, source);
	if (r == 0)
		source->state = SOURCE_OF_GUEST;
	return r;
}

int hive__place_modify(struct guest_place *place, struct hive_source *source, uint32_t events)
{
	struct worker *w = hive__worker_of_place(place);

	source->events = events;
	return w->core->ops->modify(w->core, source);
}

void hive__place_remove(struct guest_place *place, struct hive_source *source)
{
	struct worker *w = hive__worker_of_place(place);

	w->core->ops->remove(w->core, source);
	source->state = SOURCE_IDLE;
}
