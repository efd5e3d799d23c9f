/* SPDX-License-Identifier: MIT */
/* Waiting for signals: a list of those who do, first come, first served. What is watched, and by what means: watch.h. */
#include <errno.h>
#include <signal.h>

#include <rophive/hive.h>
#include <rophive/process.h>

#include "io/op.h"
#include "io/watch.h"

struct signal_wait {
	struct wait_node node; /* first */
	signal_set set;        /* I */
	int number;            /* once woken */
};

/* A fault that the handler returned from would happen again, for ever. 32 and its like are the C library's own. */
static bool is_fit(int number)
{
	static const int unfit[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };

	for (size_t i = 0; i < sizeof unfit / sizeof *unfit; i++)
		if (number == unfit[i])
			return false;
	return number > 0 && number < SIGNAL_NUMBERS && (number <= 31 || number >= SIGRTMIN) && number <= SIGRTMAX;
}

static int set_of(const int *signals, size_t count, signal_set *ret_set)
{
	signal_set set = 0;

	for (size_t i = 0; signals && i < count; i++) {
		if (!is_fit(signals[i]))
			return -EINVAL;
		set |= signal_bit(signals[i]);
	}
	*ret_set = set;
	return set ? 0 : -EINVAL;
}

int hive__signals_check(const int *signals, size_t count)
{
	signal_set set;

	return set_of(signals, count, &set);
}

/* What the caller's hive has watched. NULL: no memory. */
static signal_set *mine(struct signals *s)
{
	struct hive *hive = hive_current();

	return hive ? hive__desk_signals(hive) : &s->outside;
}

static int look(const int *signals, size_t count, struct signals **ret_s, signal_set *ret_set)
{
	int r = set_of(signals, count, ret_set);

	if (r < 0)
		return r;
	if (hive__guest_world())
		return -ENOTSUP;
	*ret_s = hive__signals();
	return *ret_s && mine(*ret_s) ? 0 : -ENOMEM;
}

int hive_signal_watch(const int *signals, size_t count)
{
	struct signals *s;
	signal_set set;
	int r = look(signals, count, &s, &set);

	return r < 0 ? r : hive__watch_keep(s, mine(s), set);
}

int hive_signal_unwatch(const int *signals, size_t count)
{
	struct signals *s;
	signal_set set;
	int r = look(signals, count, &s, &set);

	if (r == 0)
		hive__watch_drop(s, mine(s), set);
	return r;
}

/* Under the lock, in the order in which they came. Who came too late is out of the list already, and what was meant for him is there for
 * others.                                                                                                                       */
static void deal_out(struct signals *s)
{
	struct wait_node *next;

	for (struct wait_node *node = s->waits.first; node; node = next) {
		struct signal_wait *w = (struct signal_wait *)(void *)node;
		int number = hive__watch_take(s, w->set);

		next = node->next;
		if (number == 0)
			continue;
		w->number = number;
		node_remove(&s->waits, node);
		if (!hive__wait_wake(node->wait))
			add_relaxed(&s->arrived[number], 1u);
	}
}

void hive__signals_arrived(struct signals *s)
{
	lock_acquire(&s->lock);
	deal_out(s);
	lock_release(&s->lock);
}

static int take_now(struct signals *s, signal_set set)
{
	int number;

	lock_acquire(&s->lock);
	deal_out(s);
	number = hive__watch_take(s, set);
	lock_release(&s->lock);
	return number > 0 ? number : -ETIMEDOUT;
}

static int wait_in_list(struct signals *s, signal_set set, int64_t deadline_ns)
{
	struct signal_wait w = { .set = set };
	struct wait wait;
	int r = hive__wait_begin(&wait, "signal");

	if (r < 0)
		return r;
	lock_acquire(&s->lock);
	node_add(&s->waits, &w.node, wait);
	deal_out(s); /* something may be there for us, if for nobody before us */
	lock_release(&s->lock);
	r = hive__wait_end(wait, deadline_ns);
	if (r == 0)
		return w.number;
	lock_acquire(&s->lock);
	node_remove(&s->waits, &w.node);
	lock_release(&s->lock);
	return r;
}

int hive_signal_wait(const int *signals, size_t count, int64_t deadline_ns)
{
	struct guest_place *place = hive__place();
	struct signals *s;
	signal_set set;
	int r = look(signals, count, &s, &set);

	if (r == 0 && place && !place->now && deadline_ns > HIVE_NOWAIT)
		r = -EDEADLK;
	if (r == 0)
		r = hive__watch_begin(s, set); /* for this wait, whatever others do meanwhile */
	if (r < 0)
		return r;
	r = hive__watch_keep(s, mine(s), set); /* for later */
	if (r == 0)
		r = deadline_ns <= HIVE_NOWAIT ? take_now(s, set) : wait_in_list(s, set, deadline_ns);
	hive__watch_end(s, set);
	return r;
}
