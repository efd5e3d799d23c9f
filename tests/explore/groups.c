/* SPDX-License-Identifier: MIT */
/* Programs with groups: compute tasks that fork and join, threads, fibers and tasks of IO workers that wait, what follows the end; while the
 * hive stops, and while a compute worker leaves. Each task of a group is run once or dropped once, before whoever waits goes on; and after
 * that nobody touches the group.                                                                                          */
#include <errno.h>
#include <string.h>

#include "programs.h"
#include "house.h"
#include "sched/internal.h"
#include "support/invariants.h"

enum { JOBS = 64, GROUPS = 32, POISON = 0x5a };

struct place { /* of a group, used once */
	struct hive_group group;
	bool gone;    /* whoever waited for it has gone on */
	bool failed;  /* by one of us */
	int sharing;  /* who else waits for it */
	int followed; /* what comes afterwards has come */
};

struct job {
	struct place *place;
	bool begun, ended, dropped;
	int depth;
};

static struct {
	struct place places[GROUPS];
	struct job jobs[JOBS];
	int places_used, jobs_used, drops, roots, begun_roots;
	bool stopping, now, joined;
	bool fibers; /* there were some: those that never began are in the report, and not told to the hook */
} world;

static bool has_ended(const struct job *j)
{
	return j->ended || j->dropped;
}

/* At every switch: what is gone stays as it was left. */
static const char *check_gone(void)
{
	for (int i = 0; i < world.places_used; i++) {
		const unsigned char *bytes = (const unsigned char *)&world.places[i].group;

		for (size_t n = 0; world.places[i].gone && n < sizeof world.places[i].group; n++)
			if (bytes[n] != POISON)
				return "somebody has written to a group that is gone";
	}
	return NULL;
}

static void release(struct place *p)
{
	for (int i = 0; i < world.jobs_used; i++)
		EXPECT(world.jobs[i].place != p || has_ended(&world.jobs[i]));
	EXPECT(!p->gone);
	memset((void *)&p->group, POISON, sizeof p->group);
	p->gone = true;
}

static struct place *new_place(void)
{
	return world.places_used < GROUPS ? &world.places[world.places_used++] : NULL;
}

/* ---- tasks ---- */

static void fork_and_join(int depth);
static void work(void *arg);

static void run_one(struct place *p, int depth)
{
	struct job *j = &world.jobs[world.jobs_used];

	if (world.jobs_used == JOBS)
		return;
	world.jobs_used++;
	*j = (struct job){ .place = p, .depth = depth };
	hive_group_run(&p->group, work, j);
}

static void work(void *arg)
{
	struct job *j = arg;

	EXPECT(!j->begun && !has_ended(j) && !j->place->gone);
	j->begun = true;
	switch (explore_draw(6)) {
	case 0:
		explore_yield();
		break;
	case 1:
		if (j->depth < 2)
			run_one(j->place, j->depth + 1);
		break;
	case 2:
		if (explore_draw(4) == 0) {
			j->place->failed = true;
			EXPECT(hive_group_fail(&j->place->group, -EIO) == 0);
		}
		break;
	case 3:
	case 4:
		if (j->depth < 2)
			fork_and_join(j->depth + 1);
		break;
	default:
		break;
	}
	EXPECT(!has_ended(j) && !j->place->gone);
	j->ended = true;
}

static int work_in_fiber(void *arg)
{
	struct job *j = arg;

	work(arg);
	return explore_draw(8) == 0 ? (j->place->failed = true, -EIO) : 3;
}

static void spawn_one(struct place *p, int depth)
{
	struct job *j = &world.jobs[world.jobs_used];
	int r;

	if (world.jobs_used == JOBS)
		return;
	world.jobs_used++;
	*j = (struct job){ .place = p, .depth = depth };
	world.fibers = true;
	r = hive_group_spawn(&p->group, work_in_fiber, j, NULL);
	EXPECT(r == 0 || r == -ENOMEM || (r == -ESHUTDOWN && world.stopping));
	if (r == 0)
		return;
	j->dropped = true; /* it is told */
	p->failed = true;
}

/* A fiber that is stopped before it has begun is not told to the hook. */
static void settle_fibers(const struct place *p)
{
	for (int i = 0; i < world.jobs_used; i++) {
		struct job *j = &world.jobs[i];

		if (j->place == p && world.now && !j->begun && !has_ended(j))
			j->dropped = true;
	}
}

static bool in_io_task(void)
{
	return hive__current() && hive__current()->kind == HIVE_WORKER_IO && !hive_fiber_current();
}

static void check_result(const struct place *p, int r, int64_t deadline)
{
	EXPECT(r == 0 || (r == -EIO && p->failed) || (r == -ECANCELED && world.now) ||
	       (r == -ETIMEDOUT && deadline != HIVE_FOREVER) ||
	       (r == -ENOMEM && (p->failed || deadline != HIVE_FOREVER)) ||
	       (r == -ESHUTDOWN && p->failed && world.stopping));
	for (int i = 0; i < world.jobs_used && r == 0; i++)
		EXPECT(world.jobs[i].place != p || !world.jobs[i].dropped);
}

static int64_t draw_deadline(void)
{
	uint32_t how = explore_draw(6);

	if (how > 1)
		return HIVE_FOREVER;
	return how ? HIVE_NOWAIT : hive_deadline(ledger.hive, (int64_t)explore_draw(3000));
}

static void fork_and_join(int depth)
{
	struct place *p = new_place();
	bool micro = in_io_task() || explore_draw(4) == 0, fibers = !in_io_task() && explore_draw(4) == 0;
	int64_t deadline;
	int r;

	if (!p)
		return;
	hive_group_init(&p->group, ledger.hive, micro ? HIVE_MICRO : HIVE_COMPUTE);
	for (uint32_t n = explore_draw(4); n > 0; n--)
		run_one(p, depth);
	if (fibers)
		spawn_one(p, depth);
	deadline = draw_deadline();
	r = hive_group_wait(&p->group, deadline);
	if (fibers)
		settle_fibers(p);
	check_result(p, r, deadline);
	release(p);
}

/* ---- what comes afterwards ---- */

static void come_after(void *arg)
{
	struct place *p = arg;

	EXPECT(p->followed++ == 0 && !world.joined);
	release(p);
}

static void leave_behind(void)
{
	struct place *p = new_place();
	int r;

	if (!p)
		return;
	hive_group_init(&p->group, ledger.hive, hive__current()->kind == HIVE_WORKER_IO ? HIVE_MICRO : HIVE_COMPUTE);
	for (uint32_t n = explore_draw(4); n > 0; n--)
		run_one(p, 1);
	r = hive_group_then(&p->group, come_after, p);
	EXPECT(r == 0 || r == -ENOMEM);
	if (r == 0)
		return;
	check_result(p, hive_group_wait(&p->group, HIVE_FOREVER), HIVE_FOREVER);
	release(p);
}

/* ---- who begins it ---- */

/* For which several wait. Its own tasks do not: one that waits runs others on top of itself, and among these may be one that waits for it. */
static struct place *common;

static void end_sharing(void)
{
	if (--common->sharing == 0)
		release(common);
}

static void wait_for_common(void)
{
	check_result(common, hive_group_wait(&common->group, HIVE_FOREVER), HIVE_FOREVER);
	end_sharing();
}

static void root(void *arg)
{
	EXPECT(!world.joined);
	world.begun_roots++;
	if (arg)
		wait_for_common();
	else if (explore_draw(3) == 0)
		leave_behind();
	else
		fork_and_join(0);
}

static int root_in_fiber(void *arg)
{
	root(arg);
	return 0;
}

static void on_drop(void *hook_arg, const struct hive_task *task)
{
	(void)hook_arg;
	EXPECT(!world.joined && world.drops++ >= 0);
	if (task->fn == come_after) {
		EXPECT(world.stopping);
		come_after(task->arg);
	} else if (task->fn == work) {
		struct job *j = task->arg;

		EXPECT(!j->begun && !has_ended(j) && !j->place->gone);
		j->dropped = true;
	} else {
		EXPECT(task->fn == root && world.now);
		world.begun_roots++;
		if (task->arg)
			end_sharing();
	}
}

static void give_up_root(void *arg)
{
	world.roots--;
	if (arg)
		end_sharing();
}

/* A root somewhere; with `common` it waits for that, where one may. */
static void begin_one(void)
{
	uint32_t where = explore_draw(4);
	void *arg = common && where < 2 && explore_draw(2) ? common : NULL;
	int r;

	world.roots++;
	if (arg)
		common->sharing++;
	if (where < 2)
		r = hive_post_compute(ledger.hive, root, arg);
	else
		r = where == 2 ? hive_post(ledger.hive, root, arg) : -ENOSYS;
	world.fibers |= where == 3;
	if (r == -ENOSYS && hive_spawn(ledger.hive, root_in_fiber, arg, NULL, NULL) < 0)
		world.roots--;
	else if (r < 0 && r != -ENOSYS)
		give_up_root(arg);
}

static void thread(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--)
		if (explore_draw(3))
			begin_one();
		else
			fork_and_join(0);
}

static void stopper(void *mode)
{
	int64_t deadline = !mode && explore_draw(3) == 0 ? hive_deadline(ledger.hive, (int64_t)explore_draw(5000))
	                                                 : HIVE_FOREVER;
	int r;

	world.now |= mode || deadline != HIVE_FOREVER;
	world.stopping = true;
	r = hive_stop(ledger.hive, mode ? HIVE_NOW : HIVE_DRAIN, deadline);
	EXPECT(r == 0 || r == -EALREADY);
}

/* One compute worker stays. */
static void leaver(void *arg)
{
	uint32_t ids[16];
	size_t n = hive_workers(ledger.hive, ids, 16);
	int r = hive_detach(ledger.hive, ids[n - 1], explore_draw(2) ? HIVE_FOREVER : HIVE_NOWAIT);

	(void)arg;
	EXPECT(r == 0 || r == -EINPROGRESS || r == -ESHUTDOWN);
}

/* ---- the whole ---- */

static bool open_world(struct range io, struct range compute)
{
	bool opened;

	memset((void *)&world, 0, sizeof world);
	common = NULL;
	drop_hook = on_drop;
	opened = open_hive(io, compute, 0);
	drop_hook = NULL;
	if (opened)
		watched = check_gone;
	return opened;
}

static void begin_sharing(void)
{
	struct hive_group_options options = { .flags = HIVE_GROUP_SHARED };

	common = new_place();
	common->sharing = 1;
	EXPECT(hive_group_init_with(&common->group, ledger.hive, HIVE_COMPUTE, &options) == 0);
	EXPECT(hive_group_enter(&common->group) == 0);
}

/* All sleep. Nobody is late, whatever the time is. */
static void check_all_done(void)
{
	const char *wrong;

	explore_sleep(HIVE_S(2));
	explore_wait_quiet();
	explore_hold();
	wrong = invariants_quiet(ledger.hive);
	if (wrong)
		explore_fail("while all sleep: %s", wrong);
	EXPECT(world.begun_roots == world.roots);
	for (int i = 0; i < world.jobs_used; i++)
		if (!has_ended(&world.jobs[i]))
			explore_fail("all sleep, and task %d has not %s", i, world.jobs[i].begun ? "ended" : "begun");
	for (int i = 0; i < world.places_used; i++)
		EXPECT(world.places[i].gone);
	explore_go_on();
}

static void close_world(void)
{
	struct hive_report report;

	EXPECT(hive_join(ledger.hive, HIVE_FOREVER) == 0);
	world.joined = true;
	for (int i = 0; i < world.jobs_used; i++)
		EXPECT(has_ended(&world.jobs[i]));
	for (int i = 0; i < world.places_used; i++)
		EXPECT(world.places[i].gone);
	EXPECT(hive_report_read(ledger.hive, &report) == 0);
	EXPECT(report.posted == report.ran + report.cancelled + report.dropped);
	EXPECT(report.dropped == (uint64_t)world.drops || (world.fibers && report.dropped > (uint64_t)world.drops));
	explore_check_always(NULL, NULL);
	EXPECT(hive_destroy(ledger.hive) == 0);
}

static void work_together(bool stops)
{
	int threads[4], n = 0;
	bool leaves;

	if (!open_world((struct range){ 1, 2 }, (struct range){ 1, 3 }))
		return;
	leaves = ledger.compute_workers > 1 && explore_draw(3) == 0;
	if (explore_draw(3) == 0)
		begin_sharing();
	for (uint32_t i = 1 + explore_draw(2); i > 0; i--)
		threads[n++] = explore_spawn("thread", thread, number(1 + (intptr_t)explore_draw(3)));
	if (stops)
		threads[n++] = explore_spawn("stopper", stopper, explore_draw(2) ? &world : NULL);
	if (leaves)
		threads[n++] = explore_spawn("leaver", leaver, NULL);
	for (uint32_t i = common ? explore_draw(3) : 0; i > 0; i--)
		run_one(common, 2);
	if (common)
		EXPECT(hive_group_leave(&common->group, 0) == 0);
	for (int i = 0; i < n; i++)
		explore_join(threads[i]);
	if (common)
		wait_for_common();
	if (!stops) {
		check_all_done();
		stopper(explore_draw(2) ? &world : NULL);
	}
	close_world();
}

void groups_come_to_their_end(void *arg)
{
	(void)arg;
	work_together(false);
}

void a_stop_races_with_groups(void *arg)
{
	(void)arg;
	work_together(true);
}

/* ---- a slow one ---- */

static void be_quick(void *arg)
{
	struct job *j = arg;

	j->begun = true;
	if (explore_draw(2))
		explore_yield();
	j->ended = true;
}

static uint64_t clock_jumps(void)
{
	int n = 0;

	while (strcmp(explore_fault_name(n), "clock jump") != 0)
		n++;
	return explore_fault_count(n);
}

/* Forks, by turns, and runs one of them itself now and then, so that others come at any moment. */
static void be_slow(void *arg)
{
	struct place *p = arg;
	uint64_t jumps;

	hive_group_init(&p->group, ledger.hive, HIVE_COMPUTE);
	for (int i = 0; i < world.jobs_used; i++) {
		struct fork fork;

		world.jobs[i].place = p;
		hive_group_run(&p->group, be_quick, &world.jobs[i]);
		if (explore_draw(3) == 0 && team_pop(hive__current(), &fork))
			hive__current()->forks->run(hive__current(), &fork, false);
	}
	jumps = clock_jumps();
	explore_sleep(HIVE_MS(100));
	for (int i = 0; i < world.jobs_used && clock_jumps() == jumps; i++)
		EXPECT(world.jobs[i].ended);
	EXPECT(hive_group_wait(&p->group, HIVE_FOREVER) == 0);
	release(p);
}

/* Who has nothing to do takes what lies behind one that takes its time: kept private, or forked while he fell asleep. */
void forks_do_not_wait_behind_a_slow_one(void *arg)
{
	(void)arg;
	if (!open_world((struct range){ 1, 1 }, (struct range){ 2, 3 }))
		return;
	world.jobs_used = 1 + (int)explore_draw(4);
	if (hive_post_compute(ledger.hive, be_slow, new_place()) == 0) {
		explore_sleep(HIVE_S(1));
		explore_wait_quiet();
	} else {
		world.jobs_used = world.places_used = 0;
	}
	stopper(NULL);
	close_world();
}
