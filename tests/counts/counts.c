/* SPDX-License-Identifier: MIT */
/* usage: counts PATH N     about N operations of one hot path, after as many to warm up; between two calls of counts_mark()
 *        counts            all paths, a few operations each: that they do what they shall, in any build
 *        counts --list     their names
 *        counts --built    with what
 * On one thread, without a clock or chance: each run executes the same instructions. tests/counts/run counts them.            */
#include "paths.h"

#include <string.h>

static volatile unsigned marks;

__attribute__((noinline)) static void counts_mark(void)
{
	marks++;
}

static void open_world(struct world *w, const struct path *path)
{
	struct hive_worker_options io = { .timers = path->timers,
		                          .local_capacity = path->local_capacity,
		                          .local_budget = path->local_budget };
	struct hive_options options = { .io_workers = path->io_workers ? path->io_workers : 1,
		                        .compute_workers = path->compute_workers,
		                        .io = &io };

	MUST(hive_core_find("epoll", &io.core) == 0);
	world_open(w, options);
}

/* Returns the number of operations between the marks. */
static uint64_t turn(struct world *w, const struct path *path, uint64_t n, void (*mark)(void))
{
	uint64_t count;

	if (path->before)
		path->before(w, n);
	if (mark)
		mark();
	count = path->run(w, n);
	if (mark)
		mark();
	if (path->after)
		path->after(w, n);
	return count;
}

static uint64_t walk(const struct path *path, uint64_t n)
{
	static struct world w;
	uint64_t count;

	open_world(&w, path);
	if (path->open)
		path->open(&w);
	turn(&w, path, n, NULL);
	count = turn(&w, path, n, counts_mark);
	if (path->close)
		path->close(&w);
	world_close(&w);
	return count;
}

static const struct path *const tables[] = { task_paths, fiber_paths };
enum { TABLES = sizeof tables / sizeof *tables };

static int walk_one(const char *name, uint64_t n)
{
	for (int i = 0; i < TABLES; i++)
		for (const struct path *path = tables[i]; path->name; path++)
			if (strcmp(path->name, name) == 0) {
				printf("operations %llu\n", (unsigned long long)walk(path, n));
				return 0;
			}
	fprintf(stderr, "counts: no path named %s; counts --list has them\n", name);
	return 2;
}

static int walk_all(void)
{
	for (int i = 0; i < TABLES; i++)
		for (const struct path *path = tables[i]; path->name; path++)
			printf("%s: %llu operations\n", path->name, (unsigned long long)walk(path, 200));
	return 0;
}

static int list(void)
{
	for (int i = 0; i < TABLES; i++)
		for (const struct path *path = tables[i]; path->name; path++)
			printf("%s\n", path->name);
	return 0;
}

static int tell_built(void)
{
#if defined(__clang__)
	printf("clang %s\n", __clang_version__);
#elif defined(__GNUC__)
	printf("gcc %s\n", __VERSION__);
#else
	printf("another compiler\n");
#endif
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 1)
		return walk_all();
	if (argc == 2 && strcmp(argv[1], "--list") == 0)
		return list();
	if (argc == 2 && strcmp(argv[1], "--built") == 0)
		return tell_built();
	if (argc == 3 && strtoull(argv[2], NULL, 10) > 0)
		return walk_one(argv[1], strtoull(argv[2], NULL, 10));
	fprintf(stderr, "usage: counts [PATH N | --list | --built]\n");
	return 2;
}
