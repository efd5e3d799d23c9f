/* SPDX-License-Identifier: MIT */
/* All seats of a desk, by descriptor number: in chunks, for numbers are small and dense, but may be large. */
#include "io/seat.h"

static struct seat **place_of(struct desk *desk, int fd)
{
	uint32_t chunk = (uint32_t)fd / SEAT_CHUNK;

	if (chunk >= desk->chunk_count) {
		uint32_t count = chunk + 1 < 16 ? 16 : (chunk + 1) * 2;
		struct seat ***chunks = (struct seat ***)hive__memory_new(&desk->memory, count * sizeof *chunks);

		if (!chunks)
			return NULL;
		for (uint32_t i = 0; i < desk->chunk_count; i++)
			chunks[i] = desk->chunks[i];
		hive__memory_free(&desk->memory, desk->chunks);
		desk->chunks = chunks;
		desk->chunk_count = count;
	}
	if (!desk->chunks[chunk])
		desk->chunks[chunk] = (struct seat **)hive__memory_new(&desk->memory,
		                                                       SEAT_CHUNK * sizeof(struct seat *));
	return desk->chunks[chunk] ? &desk->chunks[chunk][(uint32_t)fd % SEAT_CHUNK] : NULL;
}

struct seat *hive__seat_of(struct desk *desk, int fd, hive_source_fn *on_ready)
{
	struct seat **place = place_of(desk, fd);

	if (!place || *place)
		return place ? *place : NULL;
	*place = (struct seat *)hive__memory_new(&desk->memory, sizeof **place);
	if (*place) {
		(*place)->desk = desk;
		(*place)->ready = SEAT_ALL; /* unknown: try */
		hive_source_init(&(*place)->source, HIVE_SOURCE_FD, fd, 0, on_ready, *place);
	}
	return *place;
}

void hive__seats_close(struct desk *desk)
{
	hive__seats_rest(desk);
	for (uint32_t chunk = 0; chunk < desk->chunk_count; chunk++) {
		for (uint32_t i = 0; desk->chunks[chunk] && i < SEAT_CHUNK; i++) {
			if (desk->chunks[chunk][i])
				hive__seat_take_out(desk->chunks[chunk][i]);
			hive__memory_free(&desk->memory, desk->chunks[chunk][i]);
		}
		hive__memory_free(&desk->memory, desk->chunks[chunk]);
	}
	hive__memory_free(&desk->memory, desk->chunks);
}
