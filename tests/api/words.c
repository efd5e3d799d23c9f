/* SPDX-License-Identifier: MIT */
/* The small calls: words for errors, times, sizes, version. */
#include <limits.h>
#include <time.h>

#include "test.h"

#include <rophive/hive.h>
#include <rophive/sim.h>

/* Each code of error.h has a name and a meaning; the sign does not matter. */
TEST(errors_have_names_and_meanings)
{
	static const struct {
		int code;
		const char *name;
	} known[] = { { EINVAL, "EINVAL" },
		      { ENOMEM, "ENOMEM" },
		      { EPERM, "EPERM" },
		      { EDEADLK, "EDEADLK" },
		      { ESHUTDOWN, "ESHUTDOWN" },
		      { ESRCH, "ESRCH" },
		      { EBUSY, "EBUSY" },
		      { EALREADY, "EALREADY" },
		      { ETIMEDOUT, "ETIMEDOUT" },
		      { EINPROGRESS, "EINPROGRESS" },
		      { ENOTSUP, "ENOTSUP" },
		      { ENOSPC, "ENOSPC" },
		      { EOWNERDEAD, "EOWNERDEAD" },
		      { EEXIST, "EEXIST" },
		      { EBADF, "EBADF" },
		      { EMFILE, "EMFILE" },
		      { EAGAIN, "EAGAIN" },
		      { ENODATA, "ENODATA" },
		      { EPROTO, "EPROTO" },
		      { EKEYREJECTED, "EKEYREJECTED" },
		      { EACCES, "EACCES" },
		      { ECONNRESET, "ECONNRESET" },
		      { ELOOP, "ELOOP" } };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		CHECK_STR(hive_error_name(-known[i].code), known[i].name);
		CHECK_STR(hive_error_name(known[i].code), known[i].name);
		CHECK(strlen(hive_error_text(-known[i].code)) > 3);
		CHECK_STR(hive_error_text(-known[i].code), hive_error_text(known[i].code));
		for (size_t j = 0; j < i; j++)
			CHECK(strcmp(hive_error_text(known[i].code), hive_error_text(known[j].code)) != 0);
	}
}

/* Whatever the number, there is an answer. */
TEST(unknown_errors_have_an_answer_too)
{
	static const int odd[] = { 0, 1, -1, 4095, -4095, 100000, INT_MAX, INT_MIN, INT_MIN + 1 };

	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		CHECK(hive_error_name(odd[i]) && hive_error_text(odd[i]));
	CHECK_STR(hive_error_name(100000), "?");
	CHECK_STR(hive_error_name(INT_MIN), "?");
}

/* milliseconds for poll(): rounded up, clamped, -1 for ever; never 0 for a wait that is not over. */
TEST(waits_become_milliseconds_rounded_up_and_clamped)
{
	CHECK_EQ(hive_poll_ms(0), 0);
	CHECK_EQ(hive_poll_ms(-1), 0);
	CHECK_EQ(hive_poll_ms(INT64_MIN), 0);
	CHECK_EQ(hive_poll_ms(1), 1);
	CHECK_EQ(hive_poll_ms(HIVE_MS(1) - 1), 1);
	CHECK_EQ(hive_poll_ms(HIVE_MS(1)), 1);
	CHECK_EQ(hive_poll_ms(HIVE_MS(1) + 1), 2);
	CHECK_EQ(hive_poll_ms(HIVE_S(3)), 3000);
	CHECK_EQ(hive_poll_ms(HIVE_MS(INT_MAX)), INT_MAX);
	CHECK_EQ(hive_poll_ms(HIVE_MS(INT_MAX) + 1), INT_MAX);
	CHECK_EQ(hive_poll_ms(HIVE_S(86400) * 365), INT_MAX); /* a year: beyond 24.8 days it is waited for in parts */
	CHECK_EQ(hive_poll_ms(HIVE_FOREVER - 1), INT_MAX);
	CHECK_EQ(hive_poll_ms(HIVE_FOREVER), -1);
}

/* A deadline is now plus the delay and stops at the end of the clock; a negative delay counts as none. */
TEST(deadlines_stop_at_the_end_of_the_clock)
{
	int64_t before = hive_now(NULL), deadline = hive_deadline(NULL, HIVE_S(1)), after = hive_now(NULL);

	CHECK(deadline >= before + HIVE_S(1) && deadline <= after + HIVE_S(1));
	CHECK_EQ(hive_deadline(NULL, HIVE_FOREVER), HIVE_FOREVER);
	CHECK_EQ(hive_deadline(NULL, HIVE_FOREVER - 1), HIVE_FOREVER);
	before = hive_now(NULL);
	deadline = hive_deadline(NULL, INT64_MIN);
	CHECK(deadline >= before && deadline <= hive_now(NULL));
}

/* Without a hive the clock is the system's monotonic one. */
TEST(the_clock_without_a_hive_is_the_monotonic_one)
{
	struct timespec a, b;
	int64_t now;

	clock_gettime(CLOCK_MONOTONIC, &a);
	now = hive_now(NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	CHECK(now >= HIVE_S(a.tv_sec) + a.tv_nsec && now <= HIVE_S(b.tv_sec) + b.tv_nsec);
	CHECK_EQ(HIVE_US(3), 3000);
	CHECK_EQ(HIVE_MS(3), 3000000);
	CHECK_EQ(HIVE_S(3), 3000000000);
}

#define KNOWS(name) CHECK_EQ(hive_sizeof(#name), sizeof(struct name))

/* For bindings: the size of each struct that a program makes itself. */
TEST(sizes_of_public_structs_are_known_by_name)
{
	KNOWS(hive_task);
	KNOWS(hive_timer);
	KNOWS(hive_source);
	KNOWS(hive_options);
	KNOWS(hive_report);
	KNOWS(hive_worker_options);
	KNOWS(hive_stats);
	KNOWS(hive_worker_stats);
	KNOWS(hive_host);
	KNOWS(hive_core_ops);
	KNOWS(hive_core);
	KNOWS(hive_sim_options);
	KNOWS(hive_group);
	KNOWS(hive_group_options);
	KNOWS(hive_tile);
	KNOWS(hive_reduction);
	KNOWS(hive_select);
	KNOWS(hive_subscription);
	KNOWS(hive_rate);
	KNOWS(hive_rate_options);
	KNOWS(hive_limiter);
	KNOWS(hive_limiter_counts);
	KNOWS(hive_strand_options);
	CHECK_EQ(hive_sizeof("hive"), 0);
	CHECK_EQ(hive_sizeof("no_such_struct"), 0);
	CHECK_EQ(hive_sizeof(""), 0);
	CHECK_EQ(hive_sizeof(NULL), 0);
}

/* The version of the library is that of its headers. */
TEST(the_version_is_that_of_the_headers)
{
	char expected[64];

	snprintf(expected, sizeof expected, "%d.%d.%d", HIVE_VERSION_MAJOR, HIVE_VERSION_MINOR, HIVE_VERSION_PATCH);
	CHECK_STR(hive_version(), expected);
}

/* There is at least one CPU, and never more than the system has. */
TEST(there_is_at_least_one_cpu)
{
	CHECK(hive_cpus() >= 1);
	CHECK(hive_cpus() <= sysconf(_SC_NPROCESSORS_CONF));
}

static void nothing(void *arg)
{
	(void)arg;
}

/* A field that a newer header might have: not zero means that we cannot do what is asked. */
TEST(reserved_fields_must_be_zero)
{
	struct hive_options options = { .reserved = { 0, 0, 0, 0, 0, 1 } };
	struct hive_host host = { .reserved = { &options } };
	struct hive_sim_options how = { .reserved = { 1 } };
	struct hive_sim *sim = NULL;
	struct hive *hive = NULL;

	CHECK_ERR(hive_create(&options, &hive), -EINVAL);
	CHECK_ERR(hive_create(&(struct hive_options){ .host = &host }, &hive), -EINVAL);
	CHECK_ERR(hive_sim_create(&how, &sim), -EINVAL);
	CHECK(!hive && !sim);
	CHECK_ERR(hive_create(NULL, NULL), -EINVAL);
	CHECK_ERR(hive_post(NULL, nothing, NULL), -EINVAL);
}
