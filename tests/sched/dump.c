/* SPDX-License-Identifier: MIT */
/* A hive that hangs says what it is doing: to who asks with hive_dump(), and to who waits for a test in vain. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/peek.h"
#include "support/dump.h"
#include "support/lone.h"
#include "support/real.h"

static void check_says(const char *text, const char *words)
{
	if (!strstr(text, words))
		test_fail(__FILE__, __LINE__, "nothing of \"%s\" in: %s", words, text);
}

/* Letters that may be gone are read by the system. The emulator does not know how. */
static bool can_count(void)
{
	int copy, one = 1;

	return hive__peek(&one, &copy, sizeof copy);
}

TEST(a_dump_tells_state_queues_and_the_last_things_done)
{
	struct lone l = { 0 };
	const char *text;

	lone_open(&l, 2, (struct hive_worker_options){ .name = "ears" });
	CHECK_OK(hive_post(l.f.hive, fake_note, number(1)));
	lone_beat(&l, 0);
	lone_beat(&l, 0);
	lone_become(&l, 1);
	CHECK_OK(hive_post_local(fake_note, number(2)));
	CHECK_OK(hive_post_self(fake_note, number(3)));
	lone_become(&l, LONE_NOBODY);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post_to(l.f.hive, l.ids[1], fake_note, number(4)));
	CHECK_OK(hive_post_compute(l.f.hive, fake_note, number(5)));
	text = dump_text(l.f.hive);
	check_says(text, "hive running: io workers 2");
	check_says(text, "compute pool 1");
	check_says(text, "ears");
	check_says(text, "ran 1");
	check_says(text, "took @");
	check_says(text, can_count() ? "local 1, private 1, inbox 3," : "local 1, private 1, inbox at least 1,");
	check_says(text, "last task 0x");
	lone_close(&l);
}

enum { POSTS = 20000, DUMPS = 100 };

static void nop(void *arg)
{
	(void)arg;
}

static void *post_many(void *hive)
{
	uint32_t worker;

	CHECK_EQ(hive_workers(hive, &worker, 1), 1);
	for (int i = 0; i < POSTS / test_slowness(); i++)
		CHECK_OK(hive_post_to(hive, worker, nop, NULL));
	return NULL;
}

/* It counts letters that are taken meanwhile, and memory that is another's by then. */
TEST(a_dump_may_meet_letters_that_come_and_go)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	pthread_t posters[2];

	for (int i = 0; i < 2; i++)
		CHECK_OK(pthread_create(&posters[i], NULL, post_many, hive));
	for (int i = 0; i < DUMPS; i++)
		check_says(dump_text(hive), "hive running: io workers 1");
	for (int i = 0; i < 2; i++)
		CHECK_OK(pthread_join(posters[i], NULL));
	real_end(hive, HIVE_DRAIN);
}

TEST(a_dump_refuses_what_it_cannot_do)
{
	struct hive *hive = real_create((struct hive_options){ .io_workers = 1 });

	CHECK_ERR(hive_dump(NULL, 1), -EINVAL);
	CHECK_ERR(hive_dump(hive, -1), -EINVAL);
	CHECK_ERR(hive_dump(hive, 9999), -EBADF);
	CHECK_OK(hive_destroy(hive));
}

/* The test below runs this one in another process, which is then ended by its watchdog. */
TEST(it_hangs_when_asked_to)
{
	struct hive *hive;
	struct block block;

	if (!test_env("ROPHIVE_HANG", 0))
		return;
	hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	block_init(&block);
	CHECK_OK(hive_post_compute(hive, block_task, &block));
	gate_pass(&block.entered);
	CHECK_OK(hive_post_compute(hive, block_task, &block));
	real_wait_asleep(hive, 2);
	raise(SIGALRM); /* as the watchdog would in a minute */
}

TEST(a_test_that_hangs_explains_itself)
{
	const char *emulator = getenv("ROPHIVE_EMULATOR");
	char command[8192], self[4096], text[8192];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	size_t size;
	FILE *output;

	CHECK(n > 0);
	self[n] = 0;
	snprintf(command, sizeof command, "ulimit -c 0; ROPHIVE_HANG=1 %s '%s' it_hangs_when_asked_to 2>&1",
	         emulator ? emulator : "", self);
	output = popen(command, "r");
	CHECK(output);
	size = fread(text, 1, sizeof text - 1, output);
	text[size] = 0;
	CHECK(pclose(output) != 0);
	check_says(text, "it_hangs_when_asked_to hangs: aborting");
	check_says(text, "hive running: io workers 2, asleep 2");
	check_says(text, "compute pool 1");
	check_says(text, "compute-0: awake, beats ");
	check_says(text, ", ran 1, last task 0x");
	check_says(text, "sleep @");
}
