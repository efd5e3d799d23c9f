/* SPDX-License-Identifier: MIT */
/* The mesh: thread 0 reads, the others write; lanes hold two letters. Beside it the inbox, for what finds no room. */
#define MESH_START UINT64_MAX /* cut to 63 bits: the next index is 0 */
#define MESH_LANES 2
#define MESH_PATIENCE 0
#define IDLE_WORKERS 2
#include "queue/idle.h"
#include "queue/inbox.h"
#include "queue/mesh.h"

#include "model.h"

struct note {
	struct mesh_cell cell; /* first */
	rl::var<int> text;
};

struct fallen {               /* by the inbox */
	struct letter letter; /* first */
	rl::var<int> text;
	struct mesh_lane *lane;
};

template <typename T, int THREADS, int LETTERS> struct mesh_suite : rl::test_suite<T, THREADS> {
	struct mesh mesh;
	struct mesh_lane lanes[2];
	rl::var<int> made[2]; /* what a sender did before his lane could be found */
	struct note notes[2][2];
	struct inbox inbox;
	struct fallen fallen[2][LETTERS];
	int sent[2], next[2]; /* per sender: how many were accepted; which the reader expects */

	void before()
	{
		mesh_init(&mesh);
		inbox_init(&inbox);
		for (int s = 0; s < 2; s++) {
			mesh_lane_init(&lanes[s], &notes[s][0].cell, sizeof *notes[s], 2);
			sent[s] = next[s] = 0;
		}
	}

	bool join(int s)
	{
		made[s]($) = 1;
		return mesh_join(&mesh, &lanes[s]) == 0;
	}

	/* Whose lane it is. */
	int found(struct mesh_lane *lane)
	{
		RL_ASSERT(lane >= lanes && lane < lanes + 2 && made[lane - lanes]($) == 1);
		return (int)(lane - lanes);
	}

	/* The next letter of sender s by its lane. */
	bool send(int s)
	{
		struct mesh_cell *cell = mesh_reserve(&lanes[s]);

		if (!cell)
			return false;
		((struct note *)cell)->text($) = sent[s];
		if (!mesh_commit(&lanes[s]))
			return false;
		sent[s]++;
		mesh_mark(&mesh, &lanes[s]);
		return true;
	}

	/* By the lane, else by the inbox; false: closed. */
	bool post(int s)
	{
		struct fallen *f;

		if (send(s))
			return true;
		f = &fallen[s][sent[s]];
		f->text($) = sent[s];
		f->lane = &lanes[s];
		if (!inbox_push(&inbox, &f->letter))
			return false;
		sent[s]++;
		mesh_fell(&lanes[s]);
		return true;
	}

	void arrive(int s, int text)
	{
		RL_ASSERT(text == next[s]);
		next[s]++;
	}

	int read_lane(int s)
	{
		int n = (int)mesh_waiting(&lanes[s]);

		RL_ASSERT(n <= 2);
		for (int i = 0; i < n; i++) {
			struct note *note = (struct note *)mesh_take(&lanes[s]);

			arrive(s, note->text($));
			mesh_free(&note->cell, 2);
		}
		return n;
	}

	int receive(struct letter *letters)
	{
		int n = 0;

		for (; letters; n++) {
			struct fallen *f = (struct fallen *)letters;
			struct mesh_lane *lane = f->lane;

			letters = letters->next;
			arrive((int)(lane - lanes), f->text($));
			mesh_return(&lane->returned);
		}
		return n;
	}

	/* As hive__take_letters(). */
	int read()
	{
		struct letter *letters = inbox_take(&inbox);
		int n = 0;

		for (uint64_t written = mesh_written(&mesh); written; written &= written - 1) {
			int s = found(mesh_lane(&mesh, (uint32_t)__builtin_ctzll(written)));

			n += read_lane(s);
		}
		return n + receive(letters);
	}

	/* As hive__close_letters(). */
	void close()
	{
		mesh_close(&mesh);
		for (uint32_t i = 0; i < MESH_LANES; i++) {
			struct mesh_lane *lane = mesh_lane(&mesh, i);

			if (lane)
				read_lane(found(lane));
		}
		receive(inbox_close(&inbox));
	}

	void check_all_arrived()
	{
		for (int s = 0; s < 2; s++)
			RL_ASSERT(next[s] == sent[s]);
	}
};

/* Two senders; each letter arrives once, in order, and is found by the word. */
struct mesh_two_senders_lose_nothing : mesh_suite<mesh_two_senders_lose_nothing, 3, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			read();
			read();
		} else {
			RL_ASSERT(join((int)i - 1));
			RL_ASSERT(send((int)i - 1));
			RL_ASSERT(send((int)i - 1));
		}
	}

	void after()
	{
		read();
		check_all_arrived();
		RL_ASSERT(sent[0] == 2 && sent[1] == 2);
	}
};
SCENARIO(mesh_two_senders_lose_nothing, 50000, 2);

/* A cell is written again when its letter has been read, and freed. */
struct mesh_cell_is_used_again : mesh_suite<mesh_cell_is_used_again, 2, 5> {
	void before()
	{
		mesh_suite::before();
		join(0);
	}

	void thread(unsigned i)
	{
		for (int n = 0; n < 4; n++)
			if (i == 0)
				read();
			else
				send(0);
	}

	void after()
	{
		read();
		check_all_arrived();
	}
};
SCENARIO(mesh_cell_is_used_again, 50000, 3);

/* What fell back to the inbox is behind what the lane held, and before what it holds next. */
struct mesh_order_holds_across_the_inbox : mesh_suite<mesh_order_holds_across_the_inbox, 2, 5> {
	void before()
	{
		mesh_suite::before();
		join(0);
	}

	void thread(unsigned i)
	{
		for (int n = 0; n < (i == 0 ? 3 : 5); n++)
			if (i == 0)
				read();
			else
				RL_ASSERT(post(0));
	}

	void after()
	{
		read();
		check_all_arrived();
	}
};
SCENARIO(mesh_order_holds_across_the_inbox, 100000, 3);

/* Sent before the close: found by it. Afterwards: refused. A lane that is made meanwhile is closed, or cannot be made. */
struct mesh_close_refuses_or_delivers : mesh_suite<mesh_close_refuses_or_delivers, 3, 3> {
	void before()
	{
		mesh_suite::before();
		join(0);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			close();
		} else if (i == 1) {
			post(0);
			post(0);
		} else if (join(1)) {
			post(1);
		}
	}

	void after()
	{
		check_all_arrived();
		RL_ASSERT(!send(0) && !post(0));
	}
};
SCENARIO(mesh_close_refuses_or_delivers, 50000, 2);

/* The last look against a letter: the word alone is looked at. */
struct mesh_sleeper_against_letters : mesh_suite<mesh_sleeper_against_letters, 2, 2> {
	struct idle idle;
	struct parker parker;

	void before()
	{
		mesh_suite::before();
		join(0);
		idle_init(&idle);
		parker_init(&parker);
	}

	void thread(unsigned i)
	{
		if (i == 1) {
			for (int n = 0; n < 2; n++) {
				RL_ASSERT(send(0));
				if (idle_claim(&idle, 0))
					parker_unpark(&parker);
			}
			return;
		}
		for (int n = read(); n < 2; n += read()) {
			idle_announce(&idle, 0, false, 0);
			if (mesh_is_empty(&mesh))
				parker_park(&parker, HIVE_FOREVER);
			else
				rl::yield(1, $);
			idle_retract(&idle, 0);
		}
	}

	void after()
	{
		check_all_arrived();
	}
};
SCENARIO(mesh_sleeper_against_letters, 50000, 4);

/* The next owner of the place: what was sent to the one before is not lost, and the lane is as good as new. */
struct mesh_next_life_uses_the_lane : mesh_suite<mesh_next_life_uses_the_lane, 2, 4> {
	rl::atomic<int> name;

	void before()
	{
		mesh_suite::before();
		join(0);
		name.store(1, rl::mo_relaxed, $);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			close();
			inbox_open(&inbox);
			mesh_open(&mesh);
			name.store(2, rl::mo_release, $);
			read();
		} else {
			post(0);
			if (name.load(rl::mo_acquire, $) == 2)
				RL_ASSERT(post(0));
			post(0);
		}
	}

	void after()
	{
		read();
		check_all_arrived();
	}
};
SCENARIO(mesh_next_life_uses_the_lane, 50000, 3);
