/* SPDX-License-Identifier: MIT */
/* Once: a mutex around the call, and a word that says that it was made, for all who come later. */
#include "inside.h"
#include "words.h"

void hive_once_init(struct hive_once *once)
{
	if (!once)
		return;
	store_relaxed(&once->done, 0);
	once->spare = 0;
	hive_mutex_init(&once->mutex);
}

int hive_once_run(struct hive_once *once, hive_once_fn *fn, void *arg, int64_t deadline_ns)
{
	int r;

	if (!once || !fn || once->mutex.magic != MUTEX_MAGIC)
		return -EINVAL;
	if (done_is(&once->done))
		return 0;
	r = hive_mutex_lock(&once->mutex, deadline_ns);
	if (r < 0)
		return r;
	if (!done_is(&once->done)) {
		r = fn(arg);
		if (r >= 0)
			done_now(&once->done);
	}
	hive_mutex_unlock(&once->mutex);
	return r < 0 ? r : 0;
}
