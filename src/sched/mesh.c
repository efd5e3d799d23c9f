/* SPDX-License-Identifier: MIT */
/* The mesh: lanes between IO workers (queue/mesh.h), by which letters travel that would else go to the inbox, where all senders meet. A lane
 * belongs to two slots, is made when the one first writes to the other, and stays until the hive is destroyed; whoever has a slot next uses its
 * lanes. A letter says for which life it was meant, as in the inbox (private.c).
 *
 * Where a lane cannot take a letter, the inbox does: it was closed, is full, or could not be made. Letters from one worker to one other arrive
 * in the order in which they were sent all the same: while one of them is in the inbox its sender does not use the lane, and does not make
 * one. Letters of different workers have no order.
 *
 * What is placed by load (place.c) does not travel here: a thief could not take it, for lanes have one reader.               */
#include "sched/internal.h"

enum { ROAD_UNKNOWN = 0, ROAD_NONE = UINT8_MAX }; /* else: number of the lane + 1 */

_Static_assert(MESH_LANES < ROAD_NONE, "roads are bytes");

struct lane_block { /* a lane and its letters */
	struct mesh_lane lane;
	alignas(CACHE_LINE) struct parcel letters[TUNE_MESH];
};

/* The other IO worker of this hive on which the caller runs; NULL: he has no lanes, and no order to keep. */
static struct worker *sender_to(const struct worker *to)
{
	struct worker *from = hive__current_in(to->hive);

	return to->hive->mesh && from && from != to && from->kind == HIVE_WORKER_IO ? from : NULL;
}

/* NULL: no memory, or there are as many as there may be: *ret_never. */
static struct lane_block *new_block(struct hive *hive, bool *ret_never)
{
	struct lane_block *block = NULL;

	*ret_never = add_relaxed(&hive->lanes, 1u) >= TUNE_MESH_LANES;
	if (!*ret_never)
		block = (struct lane_block *)hive__memory_new(&hive->memory, sizeof *block);
	if (!block)
		sub_relaxed(&hive->lanes, 1u);
	return block;
}

/* While a letter that found no lane is on its way, a lane would overtake it. */
static struct mesh_lane *make_lane(struct worker *from, struct worker *to)
{
	struct hive *hive = to->hive;
	struct lane_block *block;
	bool never;
	int r;

	if (mesh_returned(&from->loose_returned) != from->loose)
		return NULL;
	block = new_block(hive, &never);
	r = never ? -ENOSPC : -ENOMEM;
	if (block) {
		mesh_lane_init(&block->lane, &block->letters[0].cell, sizeof *block->letters, TUNE_MESH);
		r = mesh_join(&to->mesh, &block->lane);
	}
	if (r == -ENOSPC)
		store_relaxed(&to->roads[from->index], (uint8_t)ROAD_NONE);
	if (r == 0) {
		store_relaxed(&to->roads[from->index], (uint8_t)(block->lane.number + 1));
		return &block->lane;
	}
	if (block) {
		hive__memory_free(&hive->memory, block);
		sub_relaxed(&hive->lanes, 1u);
	}
	return NULL;
}

/* The sender, or who had his slot before, has made it: no order is needed. */
static struct mesh_lane *lane_known(struct worker *to, uint8_t road)
{
	return load_relaxed(&to->mesh.lanes[road - 1]);
}

/* Any thread. True: it is on its way, and its addressee is awake. False: by the inbox, then. */
bool hive__send_by_lane(struct worker *to, uint32_t target, struct hive_task task)
{
	struct worker *from = sender_to(to);
	uint8_t road = from ? load_relaxed(&to->roads[from->index]) : (uint8_t)ROAD_NONE;
	struct mesh_lane *lane;
	struct mesh_cell *cell;
	struct parcel *p;

	if (road == ROAD_NONE)
		return false;
	lane = road == ROAD_UNKNOWN ? make_lane(from, to) : lane_known(to, road);
	cell = lane ? mesh_reserve(lane) : NULL;
	if (!cell)
		return false;
	p = parcel_of_cell(cell);
	p->kind = PARCEL_LANE;
	p->target = target;
	p->task = task;
	if (!mesh_commit(lane))
		return false;
	mesh_mark(&to->mesh, lane);
	hive__wake_if_asleep(to);
	return true;
}

/* By the inbox, and nothing of this sender overtakes it by a lane. False: closed. */
bool hive__send_parcel(struct worker *to, struct parcel *p)
{
	struct worker *from = sender_to(to);
	uint8_t road = from ? load_relaxed(&to->roads[from->index]) : (uint8_t)ROAD_NONE;
	struct mesh_lane *lane = road == ROAD_UNKNOWN || road == ROAD_NONE ? NULL : lane_known(to, road);

	p->receipt = lane ? &lane->returned : road == ROAD_UNKNOWN ? &from->loose_returned : NULL;
	if (!inbox_push(&to->inbox, &p->letter))
		return false;
	if (lane)
		mesh_fell(lane);
	else if (road == ROAD_UNKNOWN)
		from->loose++;
	if (from)
		bump(&from->stats.lane_falls, 1);
	hive__wake_if_asleep(to);
	return true;
}

static void receive_lane(struct worker *w, struct mesh_lane *lane)
{
	uint64_t n = mesh_waiting(lane);

	bump(&w->stats.lane_letters, n);
	while (n-- > 0)
		hive__receive_one(w, parcel_of_cell(mesh_take(lane)));
}

static void receive_lanes(struct worker *w, uint64_t written)
{
	if (written)
		hive__trail(w, TRAIL_RECEIVED, 0);
	for (; written; written &= written - 1)
		receive_lane(w, mesh_lane(&w->mesh, (uint32_t)__builtin_ctzll(written)));
}

/* The owner. What is in the inbox now is younger than what its sender has in a lane: looked at first, received last. */
void hive__take_letters(struct worker *w)
{
	struct letter *letters = inbox_take(&w->inbox);

	receive_lanes(w, mesh_written(&w->mesh));
	hive__receive(w, letters);
}

/* The owner, or who has it to himself. The last letters; none can follow. Lanes first: who finds his closed turns to the inbox. */
void hive__close_letters(struct worker *w)
{
	mesh_close(&w->mesh);
	mesh_written(&w->mesh); /* else it would be kept awake by lanes that are empty */
	for (uint32_t n = 0; n < MESH_LANES; n++) {
		struct mesh_lane *lane = mesh_lane(&w->mesh, n);

		if (lane)
			receive_lane(w, lane);
	}
	hive__receive(w, inbox_close(&w->inbox));
}

/* Any thread, also a signal handler: letters in lanes, about. */
uint64_t hive__letters_in_lanes(struct worker *w, uint32_t *ret_lanes)
{
	uint64_t letters = 0;

	*ret_lanes = 0;
	for (uint32_t n = 0; n < MESH_LANES; n++) {
		struct mesh_lane *lane = mesh_lane(&w->mesh, n);

		if (!lane)
			continue;
		letters += mesh_length(lane);
		++*ret_lanes;
	}
	return letters;
}

void hive__mesh_destroy(struct worker *w)
{
	for (uint32_t n = 0; n < MESH_LANES; n++)
		hive__memory_free(&w->hive->memory, mesh_lane(&w->mesh, n)); /* the first thing in its block */
}
