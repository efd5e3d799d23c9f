/* SPDX-License-Identifier: MIT */
/* Words for numbers: error codes, version, sizes. */
#include <string.h>

#include "sched/internal.h"

#include <rophive/flow.h>
#include <rophive/sim.h>

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
	{ 0, "OK", "no error" },
	{ EINVAL, "EINVAL", "argument out of its domain, or object never initialised" },
	{ ENOMEM, "ENOMEM", "the allocator said no" },
	{ EPERM, "EPERM", "not on the thread that the call's rule names, or not allowed by the system" },
	{ EDEADLK, "EDEADLK", "the wait would wait for itself" },
	{ ESHUTDOWN, "ESHUTDOWN", "stop has begun" },
	{ ESRCH, "ESRCH", "no such worker or post any more" },
	{ EBUSY, "EBUSY", "still armed, running or referenced" },
	{ EALREADY, "EALREADY", "already armed, started or stopped" },
	{ ETIMEDOUT, "ETIMEDOUT", "the deadline passed first" },
	{ EINPROGRESS, "EINPROGRESS", "the deadline passed, what was asked for goes on by itself" },
	{ ENOTSUP, "ENOTSUP", "this core, platform or build cannot do it" },
	{ ENOSPC, "ENOSPC", "no slot left" },
	{ EOWNERDEAD, "EOWNERDEAD", "used in a child after fork" },
	{ EAGAIN, "EAGAIN", "the system has no resources for it now" },
	{ EEXIST, "EEXIST", "this descriptor has a source on this worker already" },
	{ EBADF, "EBADF", "not an open descriptor" },
	{ EMFILE, "EMFILE", "this process has too many descriptors open" },
	{ ENFILE, "ENFILE", "the system has too many descriptors open" },
	{ EINTR, "EINTR", "interrupted by a signal" },
	{ EIO, "EIO", "input or output failed" },
	{ EPIPE, "EPIPE", "nobody reads at the other end" },
	{ ENOSYS, "ENOSYS", "the kernel does not know this call" },
	{ ECANCELED, "ECANCELED", "cancelled" },
	{ EACCES, "EACCES", "not allowed by the system, or refused by the peer" },
	{ EBADMSG, "EBADMSG", "something else was expected there" },
	{ ECONNREFUSED, "ECONNREFUSED", "nobody listens there" },
	{ ECONNRESET, "ECONNRESET", "the peer broke the connection" },
	{ EISCONN, "EISCONN", "connected already" },
	{ EKEYREJECTED, "EKEYREJECTED", "the certificate is not trusted" },
	{ EMSGSIZE, "EMSGSIZE", "not the size that was expected" },
	{ ENOBUFS, "ENOBUFS", "the bus refuses this priority at its present fill" },
	{ ENODATA, "ENODATA", "the peer ended early, or did not reply" },
	{ ENOENT, "ENOENT", "no such file or name" },
	{ ENOTCONN, "ENOTCONN", "not connected" },
	{ ELOOP, "ELOOP", "nodes of a graph that wait for each other" },
	{ EPROTO, "EPROTO", "the peer does not keep to the protocol" },
};

static size_t find(int error)
{
	unsigned code = error < 0 ? 0u - (unsigned)error : (unsigned)error;
	size_t i = 0;

	while (i < sizeof errors / sizeof *errors && (unsigned)errors[i].code != code)
		i++;
	return i;
}

const char *hive_error_name(int error)
{
	size_t i = find(error);

	return i < sizeof errors / sizeof *errors ? errors[i].name : "?";
}

const char *hive_error_text(int error)
{
	size_t i = find(error);

	return i < sizeof errors / sizeof *errors ? errors[i].text : "an error of the system";
}

#define STRING(x) #x
#define VERSION(major, minor, patch) STRING(major) "." STRING(minor) "." STRING(patch)

const char *hive_version(void)
{
	return VERSION(HIVE_VERSION_MAJOR, HIVE_VERSION_MINOR, HIVE_VERSION_PATCH);
}

#define SIZE_OF(name)                      \
	{                                  \
#name, sizeof(struct name) \
	}

size_t hive_sizeof(const char *struct_name)
{
	static const struct {
		const char *name;
		size_t bytes;
	} sizes[] = {
		SIZE_OF(hive_task),           SIZE_OF(hive_timer),        SIZE_OF(hive_source),
		SIZE_OF(hive_options),        SIZE_OF(hive_report),       SIZE_OF(hive_worker_options),
		SIZE_OF(hive_stats),          SIZE_OF(hive_worker_stats), SIZE_OF(hive_host),
		SIZE_OF(hive_core_ops),       SIZE_OF(hive_core),         SIZE_OF(hive_sim_options),
		SIZE_OF(hive_cancel),         SIZE_OF(hive_cancel_watch), SIZE_OF(hive_group),
		SIZE_OF(hive_group_options),  SIZE_OF(hive_tile),         SIZE_OF(hive_reduction),
		SIZE_OF(hive_select),         SIZE_OF(hive_subscription), SIZE_OF(hive_rate),
		SIZE_OF(hive_rate_options),   SIZE_OF(hive_limiter),      SIZE_OF(hive_limiter_counts),
		SIZE_OF(hive_strand_options), SIZE_OF(hive_update),       SIZE_OF(hive_frames),
		SIZE_OF(hive_frame),          SIZE_OF(hive_frame_stats),
	};

	for (size_t i = 0; struct_name && i < sizeof sizes / sizeof *sizes; i++)
		if (strcmp(sizes[i].name, struct_name) == 0)
			return sizes[i].bytes;
	return 0;
}
