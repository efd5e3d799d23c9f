/* SPDX-License-Identifier: MIT */
/* hive_parallel_sort(): by merging, so that equals keep their order. Halves are forked, and so are the halves of a merge, for with few workers the
 * last merges are most of the work.
 *
 * A part that comes when the time is over does not sort any more, but still moves its items to where they are looked for: none is lost. */
#include "group/sort.h"

#include <string.h>

#include "base/memory.h"
#include "group/group.h"
#include "sched/guest.h"

enum { INSERT = 12, FORK_ITEMS = 4096, FORK_NUMBERS = 1 << 16, MERGE_ITEMS = 1 << 14 };

struct sorter {
	struct hive *hive;
	size_t bytes; /* of an item */
	hive_compare_fn *compare;
	enum sort_type type;
	size_t leaf; /* so many are sorted in one piece */
	int64_t deadline_ns;
	ATOMIC(int32_t) stopped; /* A  why */
};

/* Items that shall be in order, in the place where they are or in the other one. */
struct part {
	struct sorter *sorter;
	char *items, *scratch;
	size_t n;
	bool into_scratch;
};

/* On an IO worker outside a fiber, which drops it while the hive stops: there one cannot wait for what one forks. */
static bool is_dropped_here(void)
{
	struct worker *w = hive__current_worker;

	return !group_may_compute_here() && !w->place.now;
}

static bool is_stopped(struct sorter *s)
{
	int32_t none = 0;

	if (is_dropped_here())
		cas_relaxed(&s->stopped, &none, -ECANCELED);
	if (load_relaxed(&s->stopped) == 0 && s->deadline_ns != HIVE_FOREVER && hive_now(s->hive) >= s->deadline_ns)
		cas_relaxed(&s->stopped, &none, -ETIMEDOUT);
	return load_relaxed(&s->stopped) != 0;
}

static inline void copy(const struct sorter *s, void *to, const void *from)
{
	if (s->bytes == 8)
		memcpy(to, from, 8);
	else if (s->bytes == 4)
		memcpy(to, from, 4);
	else
		memcpy(to, from, s->bytes);
}

/* ---- merging ---- */

struct merge {
	struct sorter *sorter;
	const char *a, *b;
	size_t a_count, b_count;
	char *out;
};

static void merge_here(const struct merge *m)
{
	const struct sorter *s = m->sorter;
	const char *a = m->a, *b = m->b, *a_end = a + m->a_count * s->bytes, *b_end = b + m->b_count * s->bytes;
	char *out = m->out;

	if (s->type != SORT_ANY) {
		hive__radix_merge(s->type, a, m->a_count, b, m->b_count, out);
		return;
	}
	for (; a < a_end && b < b_end; out += s->bytes) {
		bool second = s->compare(b, a) < 0;

		copy(s, out, second ? b : a);
		*(second ? &b : &a) += s->bytes;
	}
	memcpy(out, a, (size_t)(a_end - a));
	memcpy(out + (a_end - a), b, (size_t)(b_end - b));
}

/* How many items come before `item`; `equals`: those like it as well. */
static size_t rank(const struct sorter *s, const char *items, size_t n, const char *item, bool equals)
{
	size_t low = 0;

	while (n > 0) {
		int order = s->compare(items + (low + n / 2) * s->bytes, item);

		if (order < 0 || (equals && order == 0)) {
			low += n / 2 + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return low;
}

/* Cuts the longer one in the middle, and the other one where that belongs. */
static void cut(const struct merge *m, struct merge *ret_low, struct merge *ret_high)
{
	const struct sorter *s = m->sorter;
	size_t i = m->a_count / 2, j = m->b_count / 2;

	if (m->a_count >= m->b_count)
		j = rank(s, m->b, m->b_count, m->a + i * s->bytes, false);
	else
		i = rank(s, m->a, m->a_count, m->b + j * s->bytes, true);
	*ret_low = (struct merge){ m->sorter, m->a, m->b, i, j, m->out };
	*ret_high = (struct merge){ m->sorter,      m->a + i * s->bytes, m->b + j * s->bytes,
		                    m->a_count - i, m->b_count - j,      m->out + (i + j) * s->bytes };
}

static void merge(void *arg)
{
	struct merge *m = (struct merge *)arg, low, high;
	struct hive_group group;

	if (is_stopped(m->sorter)) {
		memcpy(m->out, m->a, m->a_count * m->sorter->bytes);
		memcpy(m->out + m->a_count * m->sorter->bytes, m->b, m->b_count * m->sorter->bytes);
		return;
	}
	if (m->a_count + m->b_count <= MERGE_ITEMS) {
		merge_here(m);
		return;
	}
	cut(m, &low, &high);
	hive__group_init_insisting(&group, m->sorter->hive, HIVE_COMPUTE);
	hive_group_run(&group, merge, &high);
	merge(&low);
	hive_group_wait(&group, HIVE_FOREVER);
}

/* ---- sorting ---- */

static void insert(const struct part *p)
{
	const struct sorter *s = p->sorter;
	char *items = p->items, *item = p->scratch; /* room for one */

	for (size_t i = 1; i < p->n; i++) {
		size_t at = i;

		while (at > 0 && s->compare(items + (at - 1) * s->bytes, items + i * s->bytes) > 0)
			at--;
		if (at == i)
			continue;
		copy(s, item, items + i * s->bytes);
		memmove(items + (at + 1) * s->bytes, items + at * s->bytes, (i - at) * s->bytes);
		copy(s, items + at * s->bytes, item);
	}
	if (p->into_scratch)
		memcpy(p->scratch, p->items, p->n * s->bytes);
}

static void halve(const struct part *p, struct part *ret_low, struct part *ret_high)
{
	size_t half = p->n / 2, bytes = p->sorter->bytes;

	*ret_low = (struct part){ p->sorter, p->items, p->scratch, half, !p->into_scratch };
	*ret_high = (struct part){ p->sorter, p->items + half * bytes, p->scratch + half * bytes, p->n - half,
		                   !p->into_scratch };
}

/* The halves are in the other place, in order. */
static struct merge merge_of(const struct part *p)
{
	const char *from = p->into_scratch ? p->items : p->scratch;
	size_t half = p->n / 2;

	return (struct merge){ p->sorter, from,        from + half * p->sorter->bytes,
		               half,      p->n - half, p->into_scratch ? p->scratch : p->items };
}

static void sort_alone(const struct part *p)
{
	struct part low, high;
	struct merge both;

	if (p->n <= INSERT) {
		insert(p);
		return;
	}
	halve(p, &low, &high);
	sort_alone(&low);
	sort_alone(&high);
	both = merge_of(p);
	merge_here(&both);
}

static void sort_leaf(const struct part *p)
{
	const struct sorter *s = p->sorter;

	if (s->type != SORT_ANY && p->n >= RADIX_FEW)
		hive__radix_sort(s->type, p->items, p->scratch, p->n, p->into_scratch);
	else
		sort_alone(p);
}

static void sort(void *arg)
{
	struct part *p = (struct part *)arg, low, high;
	struct hive_group group;
	struct merge both;

	if (is_stopped(p->sorter)) {
		if (p->into_scratch)
			memcpy(p->scratch, p->items, p->n * p->sorter->bytes);
		return;
	}
	if (p->n <= p->sorter->leaf) {
		sort_leaf(p);
		return;
	}
	halve(p, &low, &high);
	hive__group_init_insisting(&group, p->sorter->hive, HIVE_COMPUTE);
	hive_group_run(&group, sort, &high);
	sort(&low);
	hive_group_wait(&group, HIVE_FOREVER);
	both = merge_of(p);
	merge(&both);
}

/* Numbers in a few long pieces: what merging costs, sorting by digits does not. */
static size_t choose_leaf(struct hive *hive, enum sort_type type, size_t count)
{
	size_t share = count / (2 * ((size_t)hive__team_size(hive, HIVE_COMPUTE) + 1)) + 1;

	if (type == SORT_ANY)
		return FORK_ITEMS;
	return share > FORK_NUMBERS ? share : FORK_NUMBERS;
}

static void sort_somewhere(struct part *p)
{
	struct hive_group group;

	if (group_may_compute_here()) {
		sort(p);
		return;
	}
	hive__group_init_insisting(&group, p->sorter->hive, HIVE_COMPUTE);
	hive_group_run(&group, sort, p);
	hive_group_wait(&group, HIVE_FOREVER);
}

int hive_parallel_sort(struct hive *hive, void *items, size_t count, size_t item_bytes, hive_compare_fn *compare,
                       int64_t deadline_ns)
{
	struct sorter sorter = { .hive = hive, .bytes = item_bytes, .compare = compare, .deadline_ns = deadline_ns };
	struct part all = { &sorter, (char *)items, NULL, count, false };
	int r = hive__group_check_place(hive, HIVE_COMPUTE);
	const struct memory *memory;

	if (!compare || item_bytes == 0 || (count > 0 && (!items || count > PTRDIFF_MAX / item_bytes)))
		return -EINVAL;
	if (r < 0 || count < 2)
		return r;
	memory = hive__guest_memory(hive);
	all.scratch = (char *)hive__memory_new_raw(memory, count * item_bytes);
	if (!all.scratch)
		return -ENOMEM;
	sorter.type = (uintptr_t)items % item_bytes == 0 ? hive__sort_type(compare, item_bytes) : SORT_ANY;
	sorter.leaf = choose_leaf(hive, sorter.type, count);
	sort_somewhere(&all);
	hive__memory_free(memory, all.scratch);
	return load_relaxed(&sorter.stopped);
}
