/* SPDX-License-Identifier: MIT */
/* The handshake for callbacks. It computes and waits in turns, so a fiber does it; who asked is called when that is over. */
#include <rophive/fiber.h>
#include <rophive/stats.h>
#include <rophive/worker.h>

#include "edge/tls/tls.h"

static int shake_and_tell(void *arg)
{
	struct hive_tls *tls = arg;
	struct then then = tls->then;
	int r = tls->context->server ? hive_tls_accept(tls, then.deadline_ns)
	                             : hive_tls_connect(tls, then.host, then.deadline_ns);

	tls_leave(&tls->shaking);
	then.on_done(tls, r, then.arg); /* which may destroy it */
	return 0;
}

static bool is_on_io_worker(void)
{
	struct hive_worker_stats stats = {
		.kind = HIVE_WORKER_IO
	}; /* one that leaves has none any more: spawn knows it */

	if (!hive_current())
		return false;
	(void)hive_worker_stats_read(hive_current(), hive_worker_current(), &stats);
	return stats.kind == HIVE_WORKER_IO;
}

int hive_tls_handshake_then(struct hive_tls *tls, const char *host, int64_t deadline_ns, struct hive_cancel *cancel,
                            hive_tls_fn *on_done, void *arg)
{
	struct hive_fiber_options options = { .name = "tls handshake", .cancel = cancel };
	int r = tls && on_done ? 0 : -EINVAL;

	if (r == 0 && !is_on_io_worker())
		r = -EPERM;
	if (r == 0)
		r = hive__tls_enter(tls, &tls->shaking);
	if (r < 0)
		return r;
	options.worker = hive_worker_current();
	tls->then = (struct then){ host, deadline_ns, on_done, arg };
	r = host && tls->context->server ? -EINVAL : hive_spawn(hive_current(), shake_and_tell, tls, &options, NULL);
	if (r < 0)
		tls_leave(&tls->shaking);
	return r;
}
