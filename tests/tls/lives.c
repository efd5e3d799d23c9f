/* SPDX-License-Identifier: MIT */
/* A connection that is destroyed closes its socket so that each worker learns of it: the number's next life is registered at once. */
#include "meet.h"
#include "support/counted.h"

struct scene {
	struct hive *hive;
	struct hive_tls_context *context;
	uint32_t there;
	int fds[2], ends[2];
};

static int know(void *arg)
{
	struct scene *s = arg;
	char byte;

	CHECK_ERR(hive_recv(s->fds[0], &byte, 1, hive_deadline(NULL, HIVE_US(10))), -ETIMEDOUT);
	return 0;
}

static int destroy(void *arg)
{
	struct scene *s = arg;
	struct hive_tls *tls;

	CHECK_OK(hive_tls_create(s->context, s->fds[0], &tls));
	CHECK_OK(hive_tls_destroy(tls, HIVE_FOREVER));
	net_pair(s->ends);
	CHECK_EQ(s->ends[0], s->fds[0]);
	return 0;
}

static int speak(void *arg)
{
	struct scene *s = arg;

	return (int)hive_send(s->ends[1], "x", 1, HIVE_FOREVER);
}

static int listen_to_it(void *arg)
{
	struct scene *s = arg;
	struct hive_fiber *other = net_spawn(speak, s);
	char byte;

	CHECK_EQ(hive_recv(s->ends[0], &byte, 1, HIVE_FOREVER), 1);
	CHECK_EQ(net_join(other), 1);
	return 0;
}

TEST(a_number_that_was_a_connection_is_registered_at_once)
{
	struct scene s = { .context = context_client() };

	for (int in_thread = 0; in_thread < 2; in_thread++) {
		s.hive = counted_start(0, &s.there);
		net_pair(s.fds);
		counted_run(s.hive, s.there, know, &s);
		if (in_thread)
			destroy(&s);
		else
			counted_run(s.hive, HIVE_WORKER_MAIN, destroy, &s);
		counted_run(s.hive, s.there, listen_to_it, &s);
		CHECK_EQ(atomic_load(&counted_in_vain), 0);
		CHECK_OK(close(s.fds[1]));
		net_close(s.ends);
		counted_end(s.hive);
	}
	hive_tls_context_destroy(s.context);
}
