/* SPDX-License-Identifier: MIT */
/* Descriptor numbers, and how often each has begun anew. */
#include <errno.h>
#include <unistd.h>

#include "io/number.h"
#include "io/op.h"

ATOMIC(uint32_t) hive__number_lives[NUMBERS];

void hive__number_begins(int fd)
{
	struct guest_place *place = hive__place();
	struct desk *desk = place ? (struct desk *)place->cache[GUESTS_IO] : NULL;

	if (fd < 0)
		return;
	if (desk)
		hive__seat_forget(desk, fd);
	add_relaxed(&hive__number_lives[(uint32_t)fd % NUMBERS], 1u);
}

void hive__number_close(int fd)
{
	int error = errno;

	hive__number_begins(fd); /* as soon as it is free it may be another's */
	close(fd);
	errno = error;
}
