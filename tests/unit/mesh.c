/* SPDX-License-Identifier: MIT */
/* Lanes of four letters whose indices wrap after six; a table of three. */
#define MESH_START (UINT64_MAX / 2 - 5)
#define MESH_LANES 3
#define MESH_PATIENCE 0
#include "queue/inbox.h"
#include "queue/mesh.h"

#include "unit.h"

enum { ROOM = 4 };

struct note {
	struct mesh_cell cell; /* first */
	struct letter letter;
	uint64_t number;
	int street; /* by the inbox: whose */
};

struct street {
	struct mesh_lane lane;
	struct note notes[ROOM];
};

static struct street streets[4];
static struct mesh mesh;

static void init(struct street *s)
{
	mesh_lane_init(&s->lane, &s->notes[0].cell, sizeof *s->notes, ROOM);
}

static bool send(struct street *s, uint64_t number)
{
	struct mesh_cell *cell = mesh_reserve(&s->lane);

	if (!cell)
		return false;
	((struct note *)(void *)cell)->number = number;
	if (!mesh_commit(&s->lane))
		return false;
	mesh_mark(&mesh, &s->lane);
	return true;
}

static struct note *take(struct street *s)
{
	return mesh_waiting(&s->lane) ? (struct note *)(void *)mesh_take(&s->lane) : NULL;
}

static uint64_t take_and_free(struct street *s)
{
	struct note *note = take(s);
	uint64_t number = note ? note->number : UINT64_MAX;

	if (note)
		mesh_free(&note->cell, ROOM);
	return number;
}

TEST(first_in_first_out_across_the_wrap)
{
	mesh_init(&mesh);
	init(&streets[0]);
	CHECK_OK(mesh_join(&mesh, &streets[0].lane));
	for (uint64_t i = 0; i < 40; i++) {
		CHECK(send(&streets[0], 2 * i));
		CHECK(send(&streets[0], 2 * i + 1));
		CHECK_EQ(mesh_waiting(&streets[0].lane), 2);
		CHECK_EQ(mesh_length(&streets[0].lane), 2);
		CHECK_EQ(take_and_free(&streets[0]), 2 * i);
		CHECK_EQ(take_and_free(&streets[0]), 2 * i + 1);
		CHECK_EQ(take_and_free(&streets[0]), UINT64_MAX);
	}
}

TEST(a_cell_is_used_again_when_it_was_freed_and_not_when_it_was_taken)
{
	struct note *notes[ROOM];

	mesh_init(&mesh);
	init(&streets[0]);
	CHECK_OK(mesh_join(&mesh, &streets[0].lane));
	for (uint64_t round = 0; round < 10; round++) {
		for (uint64_t i = 0; i < ROOM; i++)
			CHECK(send(&streets[0], i));
		CHECK(!send(&streets[0], 9));
		for (int i = 0; i < ROOM; i++)
			notes[i] = take(&streets[0]);
		CHECK(!send(&streets[0], 9)); /* taken, and still in use */
		for (int i = ROOM - 1; i > 0; i--) {
			mesh_free(&notes[i]->cell, ROOM); /* in any order; the next in turn decides */
			CHECK(!send(&streets[0], 9));
		}
		mesh_free(&notes[0]->cell, ROOM);
		CHECK(send(&streets[0], 9));
		CHECK_EQ(take_and_free(&streets[0]), 9);
	}
}

TEST(the_word_says_which_lanes_were_written_to)
{
	mesh_init(&mesh);
	for (int i = 0; i < 3; i++) {
		init(&streets[i]);
		CHECK_OK(mesh_join(&mesh, &streets[i].lane));
		CHECK(mesh_lane(&mesh, (uint32_t)i) == &streets[i].lane);
	}
	CHECK(mesh_is_empty(&mesh));
	CHECK_EQ(mesh_written(&mesh), 0);
	CHECK(send(&streets[2], 1));
	CHECK(send(&streets[0], 1));
	CHECK(send(&streets[0], 2));
	CHECK(!mesh_is_empty(&mesh));
	CHECK_EQ(mesh_written(&mesh), 5);
	CHECK(mesh_is_empty(&mesh));
	CHECK_EQ(mesh_written(&mesh), 0);
}

TEST(a_full_table_takes_no_further_lane)
{
	mesh_init(&mesh);
	for (int i = 0; i < 4; i++) {
		init(&streets[i]);
		CHECK_ERR(mesh_join(&mesh, &streets[i].lane), i < 3 ? 0 : -ENOSPC);
	}
}

TEST(what_took_the_other_way_keeps_the_lane_closed_to_what_follows)
{
	mesh_init(&mesh);
	init(&streets[0]);
	CHECK_OK(mesh_join(&mesh, &streets[0].lane));
	CHECK(send(&streets[0], 1));
	mesh_fell(&streets[0].lane);
	mesh_fell(&streets[0].lane);
	CHECK(!send(&streets[0], 4));
	mesh_return(&streets[0].lane.returned);
	CHECK(!send(&streets[0], 4));
	mesh_return(&streets[0].lane.returned);
	CHECK(send(&streets[0], 4));
	CHECK_EQ(take_and_free(&streets[0]), 1);
	CHECK_EQ(take_and_free(&streets[0]), 4);
}

/* See MESH_PATIENCE, which is 0 here: then he looks each time. */
TEST(a_sender_looks_now_and_then_whether_all_have_arrived)
{
#if !defined(HIVE_LOCKED_QUEUES)
	init(&streets[0]);
	mesh_fell(&streets[0].lane);
	streets[0].lane.ask_at = 3;
	mesh_return(&streets[0].lane.returned);
	CHECK(!mesh_is_settled(&streets[0].lane));
	mesh_fell(&streets[0].lane);
	mesh_return(&streets[0].lane.returned);
	CHECK(!mesh_is_settled(&streets[0].lane));
	mesh_fell(&streets[0].lane);
	CHECK(!mesh_is_settled(&streets[0].lane)); /* it has looked, and one is missing */
	CHECK_EQ(streets[0].lane.returned_seen, 2);
	mesh_return(&streets[0].lane.returned);
	CHECK(mesh_is_settled(&streets[0].lane));
#endif
}

TEST(a_closed_table_refuses_letters_and_lanes_and_gives_out_what_it_has)
{
	mesh_init(&mesh);
	init(&streets[0]);
	CHECK_OK(mesh_join(&mesh, &streets[0].lane));
	for (int round = 0; round < 10; round++) {
		CHECK(send(&streets[0], 7));
		CHECK(mesh_reserve(&streets[0].lane) != NULL); /* filled in, but not yet sent */
		mesh_close(&mesh);
		CHECK(!mesh_commit(&streets[0].lane));
		CHECK(!send(&streets[0], 8));
		init(&streets[1]);
		CHECK_ERR(mesh_join(&mesh, &streets[1].lane), -ESHUTDOWN);
		mesh_close(&mesh); /* once more does no harm */
		CHECK(mesh_lane(&mesh, 1) == NULL);
		CHECK_EQ(take_and_free(&streets[0]), 7);
		CHECK_EQ(take_and_free(&streets[0]), UINT64_MAX);
		mesh_open(&mesh);
		CHECK(mesh_lane(&mesh, 1) == NULL);
		CHECK(send(&streets[0], 9));
		CHECK_EQ(take_and_free(&streets[0]), 9);
	}
	CHECK_OK(mesh_join(&mesh, &streets[1].lane));
}

/* ---- threads: three senders, one reader, and an inbox for what finds no room ---- */

enum { SENDERS = 3, LETTERS = 60000 };

static struct inbox inbox;
static _Atomic(uint64_t) by_lane, by_inbox;

static void send_somehow(struct street *s, uint64_t number)
{
	struct note *note;

	if (send(s, number)) {
		atomic_fetch_add(&by_lane, 1);
		return;
	}
	note = calloc(1, sizeof *note);
	CHECK(note);
	note->number = number;
	note->street = (int)(s - streets);
	CHECK(inbox_push(&inbox, &note->letter));
	mesh_fell(&s->lane);
	atomic_fetch_add(&by_inbox, 1);
}

static void read_all(uint64_t *next, uint64_t *left)
{
	struct letter *letters = inbox_take(&inbox);
	uint64_t written = mesh_written(&mesh);

	for (; written; written &= written - 1) {
		int i = __builtin_ctzll(written);

		for (uint64_t n = mesh_waiting(&streets[i].lane); n > 0; n--, --*left)
			CHECK_EQ(take_and_free(&streets[i]), next[i]++);
	}
	while (letters) {
		struct note *note = (struct note *)(void *)((char *)letters - offsetof(struct note, letter));
		int i = note->street;

		letters = letters->next;
		CHECK_EQ(note->number, next[i]++);
		--*left;
		mesh_return(&streets[i].lane.returned);
		free(note);
	}
}

static void work(int index, void *arg)
{
	uint64_t letters = (uint64_t)rounds(LETTERS), next[SENDERS] = { 0 }, left = SENDERS * letters;

	(void)arg;
	if (index < SENDERS) {
		for (uint64_t i = 0; i < letters; i++)
			send_somehow(&streets[index], i);
		return;
	}
	while (left > 0) {
		read_all(next, &left);
		breathe();
	}
}

TEST(letters_of_each_sender_come_in_order_by_whatever_way)
{
	mesh_init(&mesh);
	inbox_init(&inbox);
	for (int i = 0; i < SENDERS; i++) {
		init(&streets[i]);
		CHECK_OK(mesh_join(&mesh, &streets[i].lane));
	}
	crew_run(SENDERS + 1, work, NULL);
	CHECK(atomic_load(&by_lane) > 0 && atomic_load(&by_inbox) > 0);
	CHECK(inbox_is_empty(&inbox));
}
