/* SPDX-License-Identifier: MIT */
/* hive_dump(), and all hives of the process for a watchdog that does not know which of them hangs. No locks: whoever holds
 * one may be the one that hangs.                                                                                         */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rophive/trace.h>

#include "base/peek.h"
#include "sched/internal.h"

enum { MOST_LETTERS = 10000 }; /* that are counted */

static struct lock all_lock;
static ATOMIC(struct hive *) all; /* A  changed under all_lock, looked at without */

void hive__remember(struct hive *hive)
{
	lock_acquire(&all_lock);
	store_relaxed(&hive->next_of_all, load_relaxed(&all));
	store_release(&all, hive); /* ALL-1 (pairs with ALL-2) */
	lock_release(&all_lock);
}

void hive__forget(struct hive *hive)
{
	ATOMIC(struct hive *) *at = &all;

	lock_acquire(&all_lock);
	while (load_relaxed(at) && load_relaxed(at) != hive)
		at = &load_relaxed(at)->next_of_all;
	if (load_relaxed(at))
		store_relaxed(at, load_relaxed(&hive->next_of_all));
	lock_release(&all_lock);
}

struct text {
	int fd, error;
	size_t used;
	char bytes[1024];
};

static void flush(struct text *t)
{
	for (size_t done = 0; done < t->used && t->error == 0;) {
		ssize_t n = write(t->fd, t->bytes + done, t->used - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			t->error = n == 0 ? -EIO : -errno;
	}
	t->used = 0;
}

static void say(struct text *t, const char *words)
{
	size_t n = strlen(words);

	if (n > sizeof t->bytes - t->used)
		flush(t);
	if (n > sizeof t->bytes)
		n = sizeof t->bytes;
	memcpy(t->bytes + t->used, words, n);
	t->used += n;
}

/* Not printf(): a signal handler may be the caller. */
static void say_number(struct text *t, const char *words, uint64_t number, unsigned base)
{
	char digits[24], *at = digits + sizeof digits;

	*--at = 0;
	do
		*--at = "0123456789abcdef"[number % base];
	while ((number /= base) != 0);
	say(t, words);
	say(t, base == 16 ? "0x" : "");
	say(t, at);
}

static void say_to(void *text, const char *words)
{
	say((struct text *)text, words);
}

static void say_count(struct text *t, const char *words, uint64_t number)
{
	if (number > 0)
		say_number(t, words, number, 10);
}

static void say_trail(struct text *t, struct trail *trail)
{
	static const char *const words[TRAIL_EVENTS] = {
		[TRAIL_SLEEP] = " sleep",       [TRAIL_UP] = " up",
		[TRAIL_CLAIMED] = " claimed",   [TRAIL_RECEIVED] = " received",
		[TRAIL_TIMER] = " timer",       [TRAIL_TOOK] = " took",
		[TRAIL_STOLE] = " stole",       [TRAIL_SPILLED] = " spilled",
		[TRAIL_FLUSHED] = " flushed",   [TRAIL_EVENT] = " event",
		[TRAIL_SILENCED] = " silenced", [TRAIL_LEAVES] = " leaves",
	};
	uint32_t next = load_relaxed(&trail->next);

	say(t, "\n    last:");
	for (uint32_t i = next > TRAIL_LENGTH ? next - TRAIL_LENGTH : 0; i != next; i++) {
		uint64_t thing = load_relaxed(&trail->things[i % TRAIL_LENGTH]);
		uint64_t event = thing >> 56, many = thing >> 40 & UINT16_MAX;

		if (event == TRAIL_NOTHING || event >= TRAIL_EVENTS)
			continue;
		say(t, words[event]);
		if (many > 1)
			say_number(t, " ", many, 10);
		say_number(t, " @", thing & TRAIL_BEAT, 10);
	}
	say(t, "\n");
}

/* Its owner may take them, and their memory may go, while we count. Hence the system reads it, and the count is exact if the newest is
 * still the same one.                                                                                                    */
static void say_inbox(struct text *t, struct inbox *inbox)
{
	const struct letter *newest = inbox_newest(inbox), *at = newest;
	struct letter copy;
	uint64_t n = 0;

	while (at && n < MOST_LETTERS && hive__peek(at, &copy, sizeof copy)) {
		at = copy.next;
		n++;
	}
	if (!newest)
		return;
	if (n == 0 || inbox_newest(inbox) != newest)
		say(t, ", inbox at least 1");
	else
		say_number(t, at ? ", inbox at least " : ", inbox ", n, 10);
}

static const char *doing(struct workers *set, struct worker *w)
{
	if (load_relaxed(&w->gone))
		return "gone";
	if (idle_is_asleep(&set->idle, w->index) ||
	    (w->kind == HIVE_WORKER_IO && idle_is_asleep(&w->hive->outside, w->index)))
		return "asleep";
	return load_relaxed(&w->leave) ? "awake, leaving" : "awake";
}

static void say_worker(struct text *t, struct workers *set, struct worker *w)
{
	uint32_t lanes;

	say(t, "  ");
	say(t, w->name);
	say(t, hive__is_live(set, w->index) ? ": " : " (detached): ");
	say(t, doing(set, w));
	say_number(t, ", beats ", load_relaxed(&w->stats.beats), 10);
	say_number(t, ", ran ", load_relaxed(&w->stats.ran), 10);
	if (w->kind == HIVE_WORKER_IO) {
		say_count(t, ", local ", local_size(&w->local));
		say_count(t, ", placed ", tray_length(&w->placed));
		say_count(t, ", private ", load_relaxed(&w->stats.private_tasks));
		say_inbox(t, &w->inbox);
		say_count(t, ", in lanes ", hive__letters_in_lanes(w, &lanes));
		say_count(t, ", timers ", worker_timers(w));
		say_count(t, ", sources ", load_relaxed(&w->stats.sources));
		say_count(t, ", operations ", load_relaxed(&w->place.under_way));
	}
	say_number(t, ", last task ", (uint64_t)(uintptr_t)load_relaxed(&w->last_task), 16);
	say_trail(t, &w->trail);
}

static void say_set(struct text *t, struct workers *set)
{
	for (uint32_t i = 0; i < hive__limit(set); i++)
		say_worker(t, set, hive__slot(set, i));
}

static int dump(struct hive *h, int fd)
{
	static const char *const states[] = { "created", "starting", "undoing its start", "running", "draining",
		                              "leaving", "stopped" };
	struct text t = { .fd = fd };
	uint32_t state = load_relaxed(&h->state);

	say(&t, "hive ");
	say(&t, state < sizeof states / sizeof *states ? states[state] : "?");
	say_number(&t, ": io workers ", load_relaxed(&h->io.count), 10);
	say_number(&t, ", asleep ", idle_sleepers(load_relaxed(&h->io.idle.count)), 10);
	say_number(&t, ", searching ", (uint32_t)idle_searchers(load_relaxed(&h->io.idle.count)), 10);
	say_number(&t, ", compute workers ", load_relaxed(&h->compute.count), 10);
	say_number(&t, ", asleep ", idle_sleepers(load_relaxed(&h->compute.idle.count)), 10);
	say_number(&t, ", pool ", pool_length(&h->pool), 10);
	say_number(&t, ", compute pool ", levels_length(&h->compute_pool), 10);
	say_count(&t, ", of these high ", pool_length(&h->compute_pool.pools[HIVE_PRIORITY_HIGH]));
	say_count(&t, ", of these low ", pool_length(&h->compute_pool.pools[HIVE_PRIORITY_LOW]));
	say_count(&t, ", answers under way ", load_relaxed(&h->holds));
	say_number(&t, ", threads ", load_relaxed(&h->alive), 10);
	say(&t, load_relaxed(&h->registry_lock.state) == LOCK_FREE ? "\n" : ", registry locked\n");
	say_set(&t, &h->io);
	say_set(&t, &h->compute);
	for (int sort = 0; sort < GUESTS_SORTS; sort++) {
		void *guests = hive__guests(h, (enum guests)sort);

		if (guests && h->guest_ops[sort]->dump)
			h->guest_ops[sort]->dump(guests, &t, say_to);
	}
	flush(&t);
	return t.error;
}

int hive_dump(const struct hive *hive, int fd)
{
	int saved = errno, r;

	if (!hive || fd < 0)
		return -EINVAL;
	r = dump((struct hive *)(uintptr_t)hive, fd);
	errno = saved;
	return r;
}

void hive__dump_all(int fd)
{
	for (struct hive *h = load_acquire(&all); h; h = load_relaxed(&h->next_of_all)) /* ALL-2 (pairs with ALL-1) */
		hive_dump(h, fd);
}
