/* SPDX-License-Identifier: MIT */
#include "doctor.h"
#include "machine.h"
#include "sync.h"
#include <rophive/hive.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What a worker can wait in, and whether a hive really runs here. */
#define TRIAL_PATIENCE_NS HIVE_S(5)

static void put_core(struct record *record, const char *name)
{
	const struct hive_core_ops *core = NULL;
	char text[64];
	int error = hive_core_find(name, &core);
	if (error)
		snprintf(text, sizeof text, "no (%s)", hive_error_name(error));
	else
		snprintf(text, sizeof text, strcmp(core->name, name) == 0 ? "yes" : "%s", core->name);
	record_text(record, name, text);
}

/* -errno of the system call when it is tried with nothing to do; 0: it is there. */
static int try_io_uring(void)
{
#ifdef SYS_io_uring_setup
	_Alignas(8) unsigned char parameters[256] = { 0 }; /* larger than any version of the struct */
	long ring = syscall(SYS_io_uring_setup, 1, parameters);
	if (ring < 0)
		return -errno;
	close((int)ring);
	return 0;
#else
	return -ENOSYS;
#endif
}

static int try_epoll_pwait2(void)
{
#ifdef SYS_epoll_pwait2
	/* -EBADF: the call exists and has looked at its arguments. */
	return syscall(SYS_epoll_pwait2, -1, NULL, 1, NULL, NULL, 0) < 0 && errno == ENOSYS ? -ENOSYS : 0;
#else
	return -ENOSYS;
#endif
}

static void put_call(struct record *record, const char *name, int error)
{
	char text[64];
	snprintf(text, sizeof text, error ? "no (%s)" : "yes", hive_error_name(error));
	record_text(record, name, text);
}

/* Why there is no such core; "": there is. */
static const char *uring_refusal(char *text, size_t size)
{
	const struct hive_core_ops *core;
	int error = try_io_uring();
	char disabled[MACHINE_TEXT] = "";
	bool is_disabled = machine_read_line("/proc/sys/kernel/io_uring_disabled", disabled, sizeof disabled) &&
	                   disabled[0] != '0';
	if (hive_core_find("uring", &core) == 0)
		return "";
	if (!error)
		return "not in this build, or the kernel is too old for what it needs";
	if (error == -ENOSYS)
		return "this kernel has no io_uring (Linux 5.1)";
	snprintf(text, size, "the system refuses it (%s%s%s)", hive_error_name(error),
	         is_disabled       ? ", kernel.io_uring_disabled is "
	         : error == -EPERM ? ", as in many containers"
	                           : "",
	         is_disabled ? disabled : "");
	return text;
}

static void put_uring(struct checkup *checkup, struct record *record)
{
	char text[128], words[160];
	const char *why = uring_refusal(text, sizeof text);
	snprintf(words, sizeof words, *why ? "no: %s" : "yes", why);
	record_text(record, "uring", words);
	if (*why)
		checkup_warn(checkup, "no io_uring core: %s; HIVE_CORE=uring falls back to epoll", why);
}

void doctor_look_at_cores(struct checkup *checkup)
{
	struct record *record = checkup_section(checkup, "cores");
	const struct hive_core_ops *best = NULL;
	put_core(record, "epoll");
	put_core(record, "poll");
	put_uring(checkup, record);
	put_core(record, "best");
	put_call(record, "epoll_pwait2", try_epoll_pwait2());
	put_call(record, "io_uring", try_io_uring());
	if (hive_core_find("best", &best) != 0) {
		checkup_warn(checkup, "no core at all: IO workers have nothing to wait in");
		checkup->unusable = true;
	}
	if (try_epoll_pwait2() != 0)
		checkup_warn(checkup, "no epoll_pwait2 (Linux 5.11): timers are rounded up to the millisecond");
}

static void note_time(void *arg)
{
	_Atomic int64_t *started_ns = arg;
	atomic_store_explicit(started_ns, sync_now(), memory_order_release);
}

static int run_trial(struct hive *hive, int64_t *ret_start_ns, int64_t *ret_run_ns)
{
	static _Atomic int64_t started_ns;
	int64_t begin = sync_now();
	int error = hive_start(hive);
	*ret_start_ns = sync_now() - begin;
	if (error)
		return error;
	begin = sync_now();
	error = hive_post(hive, note_time, &started_ns);
	int64_t started = error ? 0 : sync_await(&started_ns, TRIAL_PATIENCE_NS);
	*ret_run_ns = started - begin;
	if (!error && !started)
		error = -ETIMEDOUT;
	hive_stop(hive, HIVE_NOW, hive_deadline(hive, TRIAL_PATIENCE_NS));
	int joined = hive_join(hive, hive_deadline(hive, TRIAL_PATIENCE_NS));
	return error ? error : joined;
}

void doctor_try_a_hive(struct checkup *checkup)
{
	struct record *record = checkup_section(checkup, "trial");
	const struct hive_options options = { .io_workers = HIVE_AUTO, .compute_workers = HIVE_AUTO };
	struct hive *hive = NULL;
	int64_t start_ns = 0, run_ns = 0;
	int error = hive_create(&options, &hive);
	if (!error)
		error = run_trial(hive, &start_ns, &run_ns);
	record_text(record, "result", error ? hive_error_name(error) : "good");
	record_count(record, "io_workers", hive_cpus());
	record_count(record, "compute_workers", hive_cpus());
	record_real(record, "start_us", (double)start_ns / 1e3);
	record_real(record, "first_task_us", (double)run_ns / 1e3);
	if (error) {
		checkup_warn(checkup, "a hive did not run: %s", hive_error_text(error));
		checkup->unusable = true;
	}
	if (error != -ETIMEDOUT)
		hive_destroy(hive);
}
