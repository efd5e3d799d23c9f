/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/cores.h"

int hive_core_find(const char *name, const struct hive_core_ops **ret_core)
{
	static const struct hive_core_ops *const cores[] = { &hive__core_epoll, &hive__core_poll }; /* best first */

	if (!name || !ret_core)
		return -EINVAL;
	if (strcmp(name, "best") == 0)
		name = cores[0]->name;
	for (size_t i = 0; i < sizeof cores / sizeof *cores; i++) {
		if (strcmp(cores[i]->name, name) == 0) {
			*ret_core = cores[i];
			return 0;
		}
	}
	return -ENOTSUP;
}
