/* SPDX-License-Identifier: MIT */
/* Parameters from the environment: hive_tune_options(). */
#include "test.h"

#include <rophive/hive.h>

static int tune(const char *text, struct hive_worker_options *worker, struct hive_options *hive)
{
	int error;

	if (text)
		CHECK_OK(setenv("HIVE_TUNE", text, 1));
	else
		CHECK_OK(unsetenv("HIVE_TUNE"));
	error = hive_tune_options(worker, hive);
	CHECK_OK(unsetenv("HIVE_TUNE"));
	return error;
}

TEST(without_the_variable_nothing_changes)
{
	struct hive_worker_options worker = { .pool_batch = 7 };
	struct hive_options hive = { .io_workers = 3 };

	CHECK_OK(tune(NULL, &worker, &hive));
	CHECK_OK(tune("", &worker, &hive));
	CHECK_EQ(worker.pool_batch, 7);
	CHECK_EQ(hive.io_workers, 3);
	CHECK_OK(tune(NULL, NULL, NULL));
}

TEST(each_name_reaches_its_field_and_the_others_stay)
{
	struct hive_worker_options worker = { .name = "mine", .nice = 3 };
	struct hive_options hive = { .io_workers = 3 };

	CHECK_OK(tune("order=oldest,timers=wheel,victim=near,local_capacity=64,local_budget=adaptive,private_budget=5,"
	              "timer_budget=6,pool_probe_interval=7,pool_batch=8,steal_attempts=off,io_interval=9,"
	              "slice_ns=10000000000,spin_ns=off,preset=veloq,placement=choices,mesh=on",
	              &worker, &hive));
	CHECK_EQ(worker.order, HIVE_ORDER_OLDEST);
	CHECK_EQ(worker.timers, HIVE_TIMERS_WHEEL);
	CHECK_EQ(worker.victim, HIVE_VICTIM_NEAR);
	CHECK_EQ(worker.local_capacity, 64);
	CHECK_EQ(worker.local_budget, HIVE_OFF);
	CHECK_EQ(worker.private_budget, 5);
	CHECK_EQ(worker.timer_budget, 6);
	CHECK_EQ(worker.pool_probe_interval, 7);
	CHECK_EQ(worker.pool_batch, 8);
	CHECK_EQ(worker.steal_attempts, HIVE_OFF);
	CHECK_EQ(worker.io_interval, 9);
	CHECK_EQ(worker.slice_ns, 10000000000);
	CHECK_EQ(worker.spin_ns, HIVE_OFF);
	CHECK_EQ(hive.preset, HIVE_PRESET_VELOQ);
	CHECK_EQ(hive.placement, HIVE_PLACE_TWO_CHOICES);
	CHECK_EQ(hive.mesh, HIVE_MESH_ON);
	CHECK_STR(worker.name, "mine");
	CHECK_EQ(worker.nice, 3);
	CHECK_EQ(hive.io_workers, 3);
}

TEST(words_are_those_of_the_enums)
{
	static const struct {
		const char *text;
		int32_t order, timers, victim, preset, placement, mesh;
	} known[] = {
		{ "order=newest,timers=heap,victim=random,preset=rophive,placement=pool,mesh=off", HIVE_ORDER_NEWEST,
		  HIVE_TIMERS_HEAP, HIVE_VICTIM_RANDOM, HIVE_PRESET_ROPHIVE, HIVE_PLACE_POOL, HIVE_MESH_OFF },
		{ "victim=busiest,preset=faio", 0, 0, HIVE_VICTIM_BUSIEST, HIVE_PRESET_FAIO, 0, 0 },
		{ "order=default,timers=default,victim=default,preset=default,placement=default,mesh=default", 0, 0, 0,
		  0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct hive_worker_options worker = { 0 };
		struct hive_options hive = { 0 };

		CHECK_OK(tune(known[i].text, &worker, &hive));
		CHECK_EQ(worker.order, known[i].order);
		CHECK_EQ(worker.timers, known[i].timers);
		CHECK_EQ(worker.victim, known[i].victim);
		CHECK_EQ(hive.preset, known[i].preset);
		CHECK_EQ(hive.placement, known[i].placement);
		CHECK_EQ(hive.mesh, known[i].mesh);
	}
}

/* What is bad is refused as a whole: the good part before it is not set either. */
TEST(bad_text_is_refused_and_sets_nothing)
{
	static const char *const bad[] = {
		"pool_batch",
		"pool_batch=",
		"pool_batch=-1",
		"pool_batch=+1",
		"pool_batch= 1",
		"pool_batch=1x",
		"pool_batch=off",
		"pool_batch=2147483648",
		"slice_ns=9223372036854775808",
		"spin_ns=adaptive",
		"spin_ns=never",
		"order=",
		"order=old",
		"order=oldest newest",
		"order=1",
		"Order=oldest",
		"no_such_name=1",
		"=1",
		"=",
		",",
		",order=oldest",
		"io_workers=2",
		"reserved=1",
		"preset=each",
		"mesh=yes",
		"pool_batchy=1",
		"pool_batc=1",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hive_worker_options worker = { 0 };
		struct hive_options hive = { 0 };
		char text[128];

		snprintf(text, sizeof text, "io_interval=5,mesh=on,%s", bad[i]);
		if (tune(text, &worker, &hive) != -EINVAL || worker.io_interval != 0 || hive.mesh != HIVE_MESH_DEFAULT)
			test_fail(__FILE__, __LINE__, "accepted: %s", text);
		CHECK_ERR(tune(bad[i], NULL, NULL), -EINVAL); /* also where nobody would take it */
	}
}

TEST(the_largest_numbers_fit)
{
	struct hive_worker_options worker = { 0 };

	CHECK_OK(tune("pool_batch=2147483647,slice_ns=9223372036854775807,io_interval=007", &worker, NULL));
	CHECK_EQ(worker.pool_batch, INT32_MAX);
	CHECK_EQ(worker.slice_ns, INT64_MAX);
	CHECK_EQ(worker.io_interval, 7);
}

TEST(either_may_be_missing_and_a_compute_worker_has_no_timers)
{
	struct hive_worker_options io = { 0 }, compute = { .kind = HIVE_WORKER_COMPUTE };
	struct hive_options hive = { .io_workers = 1, .compute_workers = 1, .io = &io, .compute = &compute };
	struct hive *made;

	CHECK_OK(tune("timers=wheel,order=oldest,placement=choices", &io, NULL));
	CHECK_OK(tune("timers=wheel,order=oldest,placement=choices", &compute, NULL));
	CHECK_OK(tune("timers=wheel,order=oldest,placement=choices", NULL, &hive));
	CHECK_EQ(io.timers, HIVE_TIMERS_WHEEL);
	CHECK_EQ(compute.timers, HIVE_TIMERS_DEFAULT);
	CHECK_EQ(compute.order, HIVE_ORDER_OLDEST);
	CHECK_EQ(hive.placement, HIVE_PLACE_TWO_CHOICES);
	CHECK_OK(hive_create(&hive, &made)); /* it takes them all */
	CHECK_OK(hive_destroy(made));
	CHECK_OK(
		tune("local_capacity=100", &io, &hive)); /* a number; that it is no power of two is for others to say */
	CHECK_ERR(hive_create(&hive, &made), -EINVAL);
}
