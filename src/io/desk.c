/* SPDX-License-Identifier: MIT */
/* Desks: where the operations of a worker are kept, and what becomes of them when it stops or leaves. */
#include <rophive/hive.h>

#include "io/buffers.h"
#include "io/op.h"
#include "io/watch.h"

struct io { /* of one hive */
	struct hive *hive;
	signal_set signals; /* that it watches: watch.h */
};

static void all_end(void *io)
{
	struct hive *hive = ((struct io *)io)->hive;
	signal_set *signals = &((struct io *)io)->signals;

	if (*signals)
		hive__watch_drop(hive__signals(), signals, *signals);
	hive__memory_free(hive__guest_memory(hive), io);
}

static void stop(void *io, void *desk)
{
	(void)io;
	if (desk)
		hive__ops_cancel((struct desk *)desk);
}

static void move(void *io, void *desk)
{
	(void)io;
	hive__ops_move((struct desk *)desk);
}

static void leave(void *io, void *cache)
{
	struct desk *desk = (struct desk *)cache;
	struct memory memory = desk->memory;

	(void)io;
	hive__shares_close(desk);
	hive__seats_close(desk);
	hive__memory_free(&memory, desk);
}

static const struct guest_ops ops = { stop, all_end, move, leave, NULL, NULL, NULL };

static bool is_known(struct hive *hive)
{
	struct io *io;

	if (hive__guests(hive, GUESTS_IO))
		return true;
	io = (struct io *)hive__memory_new(hive__guest_memory(hive), sizeof *io);
	if (!io)
		return false;
	io->hive = hive;
	if (hive__guests_set(hive, GUESTS_IO, io, &ops) != io)
		all_end(io);
	return true;
}

uint64_t *hive__desk_signals(struct hive *hive)
{
	return is_known(hive) ? &((struct io *)hive__guests(hive, GUESTS_IO))->signals : NULL;
}

static struct desk *new_desk(struct guest_place *place)
{
	const struct memory *memory = hive__guest_memory(place->hive);
	struct desk *desk = is_known(place->hive) ? (struct desk *)hive__memory_new(memory, sizeof *desk) : NULL;

	if (!desk)
		return NULL;
	desk->place = place;
	desk->hive = place->hive;
	desk->memory = *memory;
	desk->worker = hive__place_worker(place);
	desk->by_seats = !(hive__place_core(place)->ops->native_ops & (1u << HIVE_OP_RECV | 1u << HIVE_OP_SEND));
	place->cache[GUESTS_IO] = desk;
	return desk;
}

struct desk *hive__desk(struct guest_place *place)
{
	struct desk *desk = (struct desk *)place->cache[GUESTS_IO];

	return desk ? desk : new_desk(place);
}
