/* SPDX-License-Identifier: MIT */
/* What every core owes its worker, turn by turn: which events, how often, and what may change while they are
 * delivered. R-104 names epoll and poll for Linux; each test runs on all.                                   */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "support/cores.h"

/* ---- which events ---- */

static void check_in_and_out(struct rig *r)
{
	struct ear in, out;
	int fds[2];

	make_pipe(fds);
	ear_start(&in, fds[0], HIVE_EVENT_IN);
	rig_turn(r, 0);
	CHECK_EQ(in.heard, 0);
	put_byte(fds[1]);
	rig_turn(r, 0);
	CHECK_EQ(in.heard, 1);
	CHECK_EQ(in.events, HIVE_EVENT_IN);
	ear_start(&out, fds[1], HIVE_EVENT_OUT);
	rig_turn(r, 0);
	CHECK_EQ(out.heard, 1);
	CHECK_EQ(out.events, HIVE_EVENT_OUT);
	while (write(fds[1], r, 4096) > 0)
		; /* full */
	rig_turn(r, 0);
	CHECK_EQ(out.heard, 1);
	ear_stop(&in);
	ear_stop(&out);
	close_both(fds);
}

/* readable is IN, writable is OUT, and neither is said before it is true. */
TEST(readable_is_in_and_writable_is_out)
{
	each_core(check_in_and_out);
}

static void check_hup_and_err(struct rig *r)
{
	struct ear ear;
	int fds[2];

	make_pipe(fds);
	ear_start(&ear, fds[0], 0); /* asks for nothing */
	CHECK_OK(close(fds[1]));
	rig_turn(r, 0);
	CHECK_EQ(ear.heard, 1);
	CHECK_EQ(ear.events, HIVE_EVENT_HUP);
	ear_stop(&ear);
	CHECK_OK(close(fds[0]));

	make_pipe(fds);
	ear_start(&ear, fds[1], 0);
	CHECK_OK(close(fds[0]));
	rig_turn(r, 0);
	CHECK_EQ(ear.heard, 1);
	CHECK_EQ(ear.events, HIVE_EVENT_ERR);
	ear_stop(&ear);
	CHECK_OK(close(fds[1]));

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	ear_start(&ear, fds[0], HIVE_EVENT_IN | HIVE_EVENT_OUT);
	put_byte(fds[1]);
	rig_turn(r, 0);
	CHECK_EQ(ear.events, HIVE_EVENT_IN | HIVE_EVENT_OUT); /* both at once: one call */
	CHECK_EQ(ear.heard, 1);
	CHECK_OK(close(fds[1]));
	rig_turn(r, 0);
	CHECK(ear.events & HIVE_EVENT_HUP);
	ear_stop(&ear);
	CHECK_OK(close(fds[0]));
}

/* hang-up and error are reported whether they were asked for or not. */
TEST(hang_up_and_error_are_reported_unasked)
{
	each_core(check_hup_and_err);
}

static void check_priority(struct rig *r)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    there = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int here;
	struct ear ear;

	CHECK(listener >= 0 && there >= 0);
	CHECK_OK(bind(listener, (struct sockaddr *)&address, size));
	CHECK_OK(listen(listener, 1));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&address, &size));
	CHECK_OK(connect(there, (struct sockaddr *)&address, size));
	here = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(here >= 0);
	ear_start(&ear, here, HIVE_EVENT_PRI);
	rig_turn(r, 0); /* it waits already */
	CHECK_EQ(send(there, "!", 1, MSG_OOB), 1);
	while (ear.heard == 0)
		rig_turn(r, HIVE_MS(10)); /* a network, however near, may take its time */
	CHECK_EQ(ear.events, HIVE_EVENT_PRI);
	ear_stop(&ear);
	CHECK_OK(close(here));
	CHECK_OK(close(there));
	CHECK_OK(close(listener));
}

/* urgent data is PRI. */
TEST(urgent_data_is_pri)
{
	each_core(check_priority);
}

/* ---- how often ---- */

static void check_level(struct rig *r)
{
	struct ear ear;
	int fds[2];

	make_pipe(fds);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	put_byte(fds[1]);
	for (int i = 1; i <= 5; i++) {
		rig_turn(r, HIVE_FOREVER);
		CHECK_EQ(ear.heard, i);
	}
	take_byte(fds[0]);
	rig_turn(r, 0);
	CHECK_EQ(ear.heard, 5);
	ear_stop(&ear);
	close_both(fds);
}

/* a source is told in every turn as long as it is ready. */
TEST(level_triggered_sources_are_told_until_they_are_served)
{
	each_core(check_level);
}

static void check_edge(struct rig *r)
{
	struct ear ear;
	int fds[2];

	make_pipe(fds);
	ear_init(&ear, fds[0], HIVE_EVENT_IN | HIVE_EVENT_EDGE);
	if (!rig_has_edges(r)) {
		CHECK_ERR(hive_source_start(&ear.source), -ENOTSUP);
		CHECK_EQ(hive_source_stop(&ear.source), 0);
		ear_start(&ear, fds[0], HIVE_EVENT_IN);
		CHECK_ERR(hive_source_modify(&ear.source, HIVE_EVENT_OUT | HIVE_EVENT_EDGE), -ENOTSUP);
		CHECK_EQ(ear.source.events, HIVE_EVENT_IN); /* and everything is as before */
		put_byte(fds[1]);
		rig_turn(r, 0);
		CHECK_EQ(ear.heard, 1);
		ear_stop(&ear);
		close_both(fds);
		return;
	}
	CHECK_OK(hive_source_start(&ear.source));
	put_byte(fds[1]);
	rig_turn(r, 0);
	rig_turn(r, 0);
	CHECK_EQ(ear.heard, 1);
	CHECK_EQ(ear.events, HIVE_EVENT_IN); /* EDGE is asked for, never reported */
	put_byte(fds[1]);
	rig_turn(r, 0);
	rig_turn(r, 0);
	CHECK_EQ(ear.heard, 2);
	ear_stop(&ear);
	close_both(fds);
}

/* edges where the core has them, a clear refusal where it has not. */
TEST(edge_triggered_sources_are_told_once_per_edge_or_refused)
{
	each_core(check_edge);
}

static void check_once(struct rig *r)
{
	struct ear ear;
	int fds[2];

	make_pipe(fds);
	ear_start(&ear, fds[0], HIVE_EVENT_IN | HIVE_EVENT_ONCE);
	rig_turn(r, 0);
	put_byte(fds[1]);
	put_byte(fds[1]);
	rig_turn(r, 0);
	rig_turn(r, 0);
	CHECK_EQ(ear.heard, 1);
	CHECK_EQ(ear.events, HIVE_EVENT_IN);
	CHECK_OK(hive_source_modify(&ear.source, HIVE_EVENT_IN | HIVE_EVENT_ONCE)); /* re-armed */
	rig_turn(r, 0);
	rig_turn(r, 0);
	CHECK_EQ(ear.heard, 2);
	CHECK_OK(close(fds[1])); /* even a hang-up is not told while it is disarmed */
	rig_turn(r, 0);
	CHECK_EQ(ear.heard, 2);
	CHECK_OK(hive_source_modify(&ear.source, HIVE_EVENT_IN)); /* for good */
	rig_turn(r, 0);
	rig_turn(r, 0);
	CHECK_EQ(ear.heard, 4);
	ear_stop(&ear);
	CHECK_OK(close(fds[0]));
}

/* a one-shot source is told once, then is silent until it is modified. */
TEST(one_shot_sources_are_silent_until_they_are_modified)
{
	each_core(check_once);
}

static void rearm(struct ear *ear)
{
	CHECK_OK(hive_source_modify(&ear->source, HIVE_EVENT_IN | HIVE_EVENT_ONCE));
}

static void check_rearm_inside(struct rig *r)
{
	struct ear ear;
	int fds[2];

	make_pipe(fds);
	ear_start(&ear, fds[0], HIVE_EVENT_IN | HIVE_EVENT_ONCE);
	ear.then = rearm;
	put_byte(fds[1]);
	for (int i = 1; i <= 3; i++) {
		rig_turn(r, 0);
		CHECK_EQ(ear.heard, i);
	}
	ear_stop(&ear);
	close_both(fds);
}

/* re-arming in its own callback holds. */
TEST(a_one_shot_source_may_re_arm_itself_in_its_callback)
{
	each_core(check_rearm_inside);
}

static void check_modify(struct rig *r)
{
	struct ear ear;
	int fds[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	put_byte(fds[1]);
	ear_start(&ear, fds[0], HIVE_EVENT_IN);
	rig_turn(r, 0);
	CHECK_EQ(ear.events, HIVE_EVENT_IN);
	CHECK_OK(hive_source_modify(&ear.source, HIVE_EVENT_OUT));
	CHECK_EQ(ear.source.events, HIVE_EVENT_OUT);
	rig_turn(r, 0);
	CHECK_EQ(ear.events, HIVE_EVENT_OUT);
	CHECK_OK(hive_source_modify(&ear.source, 0));
	ear.heard = 0;
	rig_turn(r, 0);
	CHECK_EQ(ear.heard, 0);
	CHECK_OK(hive_source_modify(&ear.source, HIVE_EVENT_IN | HIVE_EVENT_OUT));
	rig_turn(r, 0);
	CHECK_EQ(ear.events, HIVE_EVENT_IN | HIVE_EVENT_OUT);
	ear_stop(&ear);
	close_both(fds);
}

/* modify changes what is told from the next turn on. */
TEST(modify_changes_what_is_told)
{
	each_core(check_modify);
}

/* ---- what may change while events are delivered ---- */

enum { MANY = 200 };
static struct ear ears[MANY];
static int pipes[MANY][2];
static struct rig *the_rig;

static void open_many(struct rig *r, int count)
{
	the_rig = r;
	for (int i = 0; i < count; i++) {
		make_pipe(pipes[i]);
		put_byte(pipes[i][1]);
		ear_start(&ears[i], pipes[i][0], HIVE_EVENT_IN);
	}
}

static void close_many(int count)
{
	for (int i = 0; i < count; i++) {
		hive_source_stop(&ears[i].source);
		close_both(pipes[i]);
	}
}

static void stop_yourself(struct ear *ear)
{
	ear_stop(ear);
	memset(ear, 0xa5, sizeof *ear); /* the memory is free after stop */
	ear->heard = 100;
}

static void check_stop_self(struct rig *r)
{
	open_many(r, 10);
	for (int i = 0; i < 10; i++)
		ears[i].then = stop_yourself;
	rig_turn(r, 0);
	rig_turn(r, 0);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(ears[i].heard, 100);
		ear_init(&ears[i], pipes[i][0], HIVE_EVENT_IN);
	}
	close_many(10);
}

/* a source may stop itself in its callback, and its memory is free then. */
TEST(a_source_may_stop_itself_in_its_callback)
{
	each_core(check_stop_self);
}

static void stop_all_others(struct ear *ear)
{
	for (int i = 0; i < 10; i++)
		if (&ears[i] != ear)
			ear_stop(&ears[i]);
}

static int total_heard(int count)
{
	int heard = 0;

	for (int i = 0; i < count; i++)
		heard += ears[i].heard;
	return heard;
}

static void check_stop_others(struct rig *r)
{
	open_many(r, 10);
	for (int i = 0; i < 10; i++)
		ears[i].then = stop_all_others;
	rig_turn(r, 0);
	CHECK_EQ(total_heard(10), 1); /* whoever came first silenced the rest of the batch */
	for (int i = 0; i < 10; i++)
		ears[i].then = NULL;
	rig_turn(r, 0);
	CHECK_EQ(total_heard(10), 2);
	close_many(10);
}

/* after stop nothing is delivered, not even what is in the batch already. */
TEST(sources_stopped_by_another_callback_of_the_batch_are_not_told)
{
	each_core(check_stop_others);
}

static int reuse_done;
static bool same_memory;
static struct ear fresh;

/* Stops and closes all the others, then starts new sources on descriptors with the same numbers, which have nothing. */
static void replace_others(struct ear *ear)
{
	struct ear *now = same_memory ? &ears[1] : &fresh;
	int old = (int)ears[1].source.handle, fds[2];

	if (ear == &ears[1] || reuse_done++)
		return;
	ear_stop(&ears[1]);
	make_pipe(fds);
	CHECK_EQ(dup3(fds[0], old, O_CLOEXEC), old); /* the old one is closed, its number lives on */
	CHECK_OK(close(fds[0]));
	CHECK_OK(close(pipes[1][1]));
	pipes[1][1] = fds[1];
	ear_start(now, old, HIVE_EVENT_IN);
}

static void check_reuse_of_number(struct rig *r)
{
	for (int i = 0; i < 2; i++) {
		struct ear *now;

		same_memory = i == 1;
		now = same_memory ? &ears[1] : &fresh;
		memset(&fresh, 0, sizeof fresh);
		reuse_done = 0;
		open_many(r, 3);
		ears[0].then = ears[2].then = replace_others;
		rig_turn(r, 0);
		CHECK_EQ(reuse_done > 0, 1);
		now->heard = 0; /* it may have been told as the old source, before the others came to their turn */
		now->events = 0;
		rig_turn(r, 0);
		CHECK_EQ(now->heard, 0); /* nothing was ever written to the new pipe */
		put_byte(pipes[1][1]);
		rig_turn(r, 0);
		CHECK_EQ(now->heard, 1);
		ear_stop(now);
		close_many(3);
	}
}

/* a descriptor's number that comes back within a batch, in old memory or new, hears nothing of the old one. */
TEST(a_number_that_is_used_again_hears_nothing_of_its_predecessor)
{
	each_core(check_reuse_of_number);
}

static void replace_in_order(struct ear *ear)
{
	struct ear *next = ear + 1;
	int fds[2];

	if (next->heard)
		return;
	ear_stop(next);
	make_pipe(fds);
	CHECK_EQ(dup3(fds[0], pipes[next - ears][0], O_CLOEXEC), pipes[next - ears][0]);
	CHECK_OK(close(fds[0]));
	CHECK_OK(close(pipes[next - ears][1]));
	pipes[next - ears][1] = fds[1];
	ear_start(next, pipes[next - ears][0], HIVE_EVENT_IN);
}

static void check_reuse_in_batch(struct rig *r)
{
	open_many(r, 64);
	for (int i = 0; i < 64; i += 2)
		ears[i].then = replace_in_order;
	rig_turn(r, 0);
	for (int i = 1; i < 64; i += 2)
		CHECK_EQ(ears[i].heard,
		         0); /* replaced by the one before it, each in the same batch and the same memory */
	rig_turn(r, 0);
	for (int i = 1; i < 64; i += 2)
		CHECK_EQ(ears[i].heard, 0);
	close_many(64);
}

/* the same for many at once, in the order in which they became ready. */
TEST(replaced_sources_of_one_batch_are_not_told_in_place_of_the_old_ones)
{
	each_core(check_reuse_in_batch);
}

static void start_the_rest(struct ear *ear)
{
	(void)ear;
	for (int i = 1; i < MANY; i++)
		ear_start(&ears[i], pipes[i][0], HIVE_EVENT_IN);
	ears[0].then = NULL;
}

static void check_add_inside(struct rig *r)
{
	for (int i = 0; i < MANY; i++) {
		make_pipe(pipes[i]);
		put_byte(pipes[i][1]);
	}
	ear_start(&ears[0], pipes[0][0], HIVE_EVENT_IN);
	ears[0].then = start_the_rest;
	rig_turn(r, 0);
	CHECK_EQ(ears[0].heard, 1);
	CHECK_EQ(total_heard(MANY), 1); /* they are ready, but their turn is the next one */
	for (int i = 0; i < 2 * (MANY / 64 + 1); i++)
		rig_turn(r, 0);
	for (int i = 0; i < MANY; i++)
		CHECK(ears[i].heard > 0);
	close_many(MANY);
}

/* sources may be started in callbacks, however many. */
TEST(sources_started_in_a_callback_are_served_from_the_next_turn_on)
{
	each_core(check_add_inside);
}

static void serve(struct ear *ear)
{
	take_byte((int)ear->source.handle);
}

static void check_many(struct rig *r)
{
	open_many(r, MANY);
	for (int i = 0; i < MANY; i++)
		ears[i].then = serve;
	for (int i = 0; i < MANY / 64 + 1; i++)
		rig_turn(r, HIVE_FOREVER * (total_heard(MANY) < MANY)); /* while something is ready it does not block */
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(ears[i].heard, 1);
	close_many(MANY);
}

/* more ready than one batch holds: each is told, none twice. */
TEST(more_ready_sources_than_one_batch_holds_are_all_told)
{
	each_core(check_many);
}

/* ---- refusals ---- */

static void check_refusals(struct rig *r)
{
	struct ear first, second;
	int fds[2];

	make_pipe(fds);
	ear_start(&first, fds[0], HIVE_EVENT_IN);
	ear_init(&second, fds[0], HIVE_EVENT_IN);
	CHECK_ERR(hive_source_start(&second.source), -EEXIST);
	put_byte(fds[1]);
	rig_turn(r, 0);
	CHECK_EQ(first.heard, 1);
	CHECK_EQ(second.heard, 0);
	ear_stop(&first);
	CHECK_OK(hive_source_start(&second.source));
	rig_turn(r, 0);
	CHECK_EQ(second.heard, 1);
	ear_stop(&second);
	close_both(fds);
	ear_init(&first, fds[0], HIVE_EVENT_IN);
	CHECK_ERR(hive_source_start(&first.source), -EBADF);
	CHECK_EQ(hive_source_stop(&first.source), 0);
	rig_turn(r, 0);
	CHECK_EQ(first.heard, 0);
}

/* one source per descriptor, and only descriptors that are open. */
TEST(a_second_source_for_a_descriptor_and_a_closed_descriptor_are_refused)
{
	each_core(check_refusals);
}

static void check_kinds(struct rig *r)
{
	struct ear ear;

	ear_init(&ear, 0, HIVE_EVENT_IN);
	ear.source.kind = HIVE_SOURCE_HANDLE;
	CHECK_MISUSE(lone_start_source(&r->l, &ear.source), -ENOTSUP);
#if !defined(HIVE_DEBUG)
	CHECK_EQ(r->l.f.warnings, 1);
	CHECK(strstr(r->l.f.last_warning, r->name));
#endif
	CHECK_EQ(r->ops->kinds, 1u << HIVE_SOURCE_FD);
}

/* kinds that do not fit are refused with a warning, by their number alone. */
TEST(kinds_that_are_not_descriptors_are_refused_with_a_warning)
{
	each_core(check_kinds);
}

static void check_memory(struct rig *r)
{
	struct ear first;
	int fds[2], refused = 0;

	make_pipe(fds);
	ear_start(&first, fds[0], HIVE_EVENT_IN);
	for (int i = 0; i < 40; i++) {
		make_pipe(pipes[i]);
		ear_init(&ears[i], pipes[i][0], HIVE_EVENT_IN);
		r->l.f.allocations = 0;
		r->l.f.fail_at = 1;
		if (hive_source_start(&ears[i].source) == -ENOMEM) {
			refused++;
			r->l.f.fail_at = 0;
			CHECK_OK(hive_source_start(&ears[i].source)); /* the next try may have more luck */
		}
		r->l.f.fail_at = 0;
	}
	CHECK_EQ(refused > 0, !rig_is(r, "epoll") && !rig_is_foreign(r)); /* epoll needs no memory of ours */
	put_byte(fds[1]);
	rig_turn(r, 0);
	CHECK_EQ(first.heard, 1);
	ear_stop(&first);
	close_both(fds);
	close_many(40);
}

/* a source for which there is no memory is refused; the others are as before. */
TEST(a_source_without_memory_is_refused_and_the_others_go_on)
{
	each_core(check_memory);
}
