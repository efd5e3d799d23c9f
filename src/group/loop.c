/* SPDX-License-Identifier: MIT */
/* hive_parallel_for(), its form for tables, and hive_parallel_invoke(). */
#include "group/loop.h"

static bool takes_part(const struct loop *loop)
{
	struct worker *w = hive__current_worker;

	return group_may_compute_here() || (loop->group.kind == HIVE_MICRO && !w->place.now);
}

int hive__loop_begin(struct loop *loop, struct hive *hive, enum hive_kind kind, int64_t begin, int64_t end,
                     int64_t grain, int64_t deadline_ns)
{
	int r = grain < 0 ? -EINVAL : hive__group_check_place(hive, kind);

	if (r < 0)
		return r;
	if (end <= begin)
		return 1;
	store_relaxed(&loop->taken, UINT64_C(0));
	store_relaxed(&loop->asked, 0u);
	loop->begin = begin;
	loop->length = (uint64_t)end - (uint64_t)begin;
	loop->grain = grain > 0 ? (uint64_t)grain : 1;
	loop->measured = grain == 0;
	loop->short_ns = kind == HIVE_MICRO ? LOOP_SHORT_IO_NS : LOOP_SHORT_NS;
	loop->long_ns = kind == HIVE_MICRO ? LOOP_LONG_IO_NS : LOOP_LONG_NS;
	loop->crew = hive__team_size(hive, kind);
	loop->crew += loop->crew == 0; /* nobody: whoever is asked is told to do it himself */
	loop->hive = hive;
	loop->deadline_ns = deadline_ns;
	hive__group_init_insisting(&loop->group, hive, kind);
	return 0;
}

/* ---- one who takes part ---- */

void hive__loop_enter(struct loop *loop, struct loop_part *part)
{
	part->piece = loop->grain;
	part->pieces = 0;
	part->entered_ns = part->began_ns = 0;
}

/* How much it takes: not so much that others have nothing to do at the end. */
static uint64_t size_up(const struct loop *loop, const struct loop_part *part, uint64_t left)
{
	uint64_t share = left / (2 * ((uint64_t)loop->crew + 1)), piece = part->piece;

	if (loop->measured && piece > share)
		piece = share > 0 ? share : 1;
	return piece < left ? piece : left;
}

/* By how long the last piece took. */
static void learn(const struct loop *loop, struct loop_part *part, int64_t now_ns)
{
	int64_t took_ns = now_ns - part->began_ns;

	if (part->pieces == 0)
		return;
	if (took_ns < loop->short_ns && part->piece <= UINT64_MAX / 2)
		part->piece *= 2;
	else if (took_ns > loop->long_ns && part->piece > 1)
		part->piece /= 2;
}

static void ask_one_in(struct loop *loop)
{
	if (load_relaxed(&loop->asked) >= loop->crew || add_relaxed(&loop->asked, 1u) >= loop->crew)
		return;
	hive_group_run(&loop->group, loop->ticket, loop);
}

/* It will not be over in a moment: it has lasted for some time already, or, where time stands still, for some pieces. */
static bool is_worth_asking(const struct loop *loop, const struct loop_part *part, int64_t now_ns)
{
	return !loop->measured || now_ns - part->entered_ns >= LOOP_WORTH_NS || part->pieces >= LOOP_FEW;
}

/* On a worker: only if somebody looks for work. From elsewhere all are asked, as soon as it is known to be worth it. */
static void ask_in(struct loop *loop, const struct loop_part *part, int64_t now_ns)
{
	struct worker *w = hive__current_worker;

	if (load_relaxed(&loop->asked) >= loop->crew || !is_worth_asking(loop, part, now_ns))
		return;
	if (w && w->hive == loop->hive) {
		if (team_is_wanted(w))
			ask_one_in(loop);
		return;
	}
	while (load_relaxed(&loop->asked) < loop->crew)
		ask_one_in(loop);
}

static bool is_over(struct loop *loop, int64_t now_ns)
{
	if (hive_group_error(&loop->group) < 0)
		return true;
	if (now_ns < loop->deadline_ns)
		return false;
	hive_group_fail(&loop->group, -ETIMEDOUT);
	return true;
}

bool hive__loop_next(struct loop *loop, struct loop_part *part, int64_t *ret_begin, int64_t *ret_end)
{
	bool timed = loop->measured || loop->deadline_ns != HIVE_FOREVER;
	int64_t now_ns = timed ? hive_now(loop->hive) : 0;
	uint64_t taken = load_relaxed(&loop->taken), piece;

	if (is_over(loop, timed ? now_ns : INT64_MIN))
		return false;
	if (loop->measured)
		learn(loop, part, now_ns);
	do {
		if (taken >= loop->length)
			return false;
		piece = size_up(loop, part, loop->length - taken);
	} while (!cas_relaxed(&loop->taken, &taken, taken + piece));
	if (part->pieces++ == 0)
		part->entered_ns = now_ns;
	if (taken + piece < loop->length)
		ask_in(loop, part, now_ns);
	part->began_ns = now_ns;
	*ret_begin = (int64_t)((uint64_t)loop->begin + taken);
	*ret_end = (int64_t)((uint64_t)loop->begin + taken + piece);
	return true;
}

/* ---- all of it ---- */

/* What was taken is done when the group is over. */
int hive__loop_run(struct loop *loop, hive_fn *ticket)
{
	int r;

	loop->ticket = ticket;
	if (takes_part(loop))
		ticket(loop);
	else
		do
			ask_one_in(loop);
		while (load_relaxed(&loop->asked) < loop->crew);
	r = hive_group_wait(&loop->group, loop->deadline_ns);
	return load_relaxed(&loop->taken) >= loop->length ? 0 : r;
}

struct plain_loop {
	struct loop loop; /* first */
	hive_range_fn *fn;
	void *arg;
};

static void take_part(void *arg)
{
	struct plain_loop *plain = (struct plain_loop *)arg;
	struct loop_part part;
	int64_t begin, end;

	hive__loop_enter(&plain->loop, &part);
	while (hive__loop_next(&plain->loop, &part, &begin, &end))
		plain->fn(plain->arg, begin, end);
}

int hive_parallel_for_on(struct hive *hive, enum hive_kind kind, int64_t begin, int64_t end, int64_t grain,
                         hive_range_fn *fn, void *arg, int64_t deadline_ns)
{
	struct plain_loop plain = { .fn = fn, .arg = arg };
	int r = fn ? hive__loop_begin(&plain.loop, hive, kind, begin, end, grain, deadline_ns) : -EINVAL;

	if (r != 0)
		return r < 0 ? r : 0;
	return hive__loop_run(&plain.loop, take_part);
}

int hive_parallel_for(struct hive *hive, int64_t begin, int64_t end, int64_t grain, hive_range_fn *fn, void *arg,
                      int64_t deadline_ns)
{
	return hive_parallel_for_on(hive, HIVE_COMPUTE, begin, end, grain, fn, arg, deadline_ns);
}

/* ---- tables ---- */

struct table {
	int64_t rows, columns, tile_rows, tile_columns, across;
	hive_tile_fn *fn;
	void *arg;
};

static int64_t at_most(int64_t value, int64_t limit)
{
	return value < limit ? value : limit;
}

static void take_tiles(void *arg, int64_t begin, int64_t end)
{
	const struct table *t = (const struct table *)arg;

	for (int64_t i = begin; i < end; i++) {
		int64_t row = i / t->across * t->tile_rows, column = i % t->across * t->tile_columns;
		struct hive_tile tile = { row, row + at_most(t->rows - row, t->tile_rows), column,
			                  column + at_most(t->columns - column, t->tile_columns) };

		t->fn(t->arg, &tile);
	}
}

/* How many tiles lie beside each other. */
static int64_t tiles(int64_t length, int64_t tile)
{
	return length / tile + (length % tile > 0);
}

int hive_parallel_for_2d(struct hive *hive, int64_t rows, int64_t columns, int64_t tile_rows, int64_t tile_columns,
                         hive_tile_fn *fn, void *arg, int64_t deadline_ns)
{
	struct table t = { rows, columns, tile_rows ? tile_rows : 64, tile_columns ? tile_columns : 64, 0, fn, arg };
	int64_t down;

	if (!fn || rows < 0 || columns < 0 || tile_rows < 0 || tile_columns < 0)
		return -EINVAL;
	t.across = tiles(columns, t.tile_columns);
	down = tiles(rows, t.tile_rows);
	if (t.across > 0 && down > INT64_MAX / t.across)
		return -EINVAL;
	return hive_parallel_for(hive, 0, down * t.across, 0, take_tiles, &t, deadline_ns);
}

/* ---- several at once ---- */

int hive_parallel_invoke(struct hive *hive, const struct hive_task *tasks, size_t count, int64_t deadline_ns)
{
	int r = count > 0 && !tasks ? -EINVAL : hive__group_check_place(hive, HIVE_COMPUTE);
	struct hive_group group;
	size_t first;

	for (size_t i = 0; r == 0 && i < count; i++)
		if (!tasks[i].fn)
			r = -EINVAL;
	if (r < 0 || count == 0)
		return r;
	first = group_may_compute_here() ? 1 : 0;
	hive_group_init(&group, hive, HIVE_COMPUTE);
	for (size_t i = count; i-- > first;) /* whoever waits takes the newest first: the second, then */
		hive_group_run(&group, tasks[i].fn, tasks[i].arg);
	if (first)
		tasks[0].fn(tasks[0].arg);
	return hive_group_wait(&group, deadline_ns);
}
