/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/cores.h"

struct listed {
	const struct hive_core_ops *core;
	int (*probe)(void); /* NULL: it is always there */
};

static const struct listed cores[] = {
	{ &hive__core_epoll, NULL }, /* the default */
	{ &hive__core_poll, NULL },
#if defined(HIVE_URING)
	{ &hive__core_uring, hive__uring_probe },
#endif
};

static const struct listed *listed_as(const char *name)
{
	for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
		if (strcmp(cores[i].core->name, name) == 0)
			return &cores[i];
	return NULL;
}

int hive__core_refusal(const char *name)
{
	const struct listed *listed = listed_as(name);

	if (!listed)
		return -ENOENT;
	return listed->probe ? listed->probe() : 0;
}

/* What the environment asks for, if it can be had. */
static const struct hive_core_ops *best(void)
{
	const char *wish = getenv("HIVE_CORE");

	return wish && hive__core_refusal(wish) == 0 ? listed_as(wish)->core : cores[0].core;
}

int hive_core_find(const char *name, const struct hive_core_ops **ret_core)
{
	if (!name || !ret_core)
		return -EINVAL;
	if (strcmp(name, "best") == 0) {
		*ret_core = best();
		return 0;
	}
	if (hive__core_refusal(name) < 0)
		return -ENOTSUP;
	*ret_core = listed_as(name)->core;
	return 0;
}
