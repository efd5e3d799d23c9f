/* SPDX-License-Identifier: MIT */
/* A program in a new process, by posix_spawn(): no code of ours runs between its fork and its exec, where in a program with threads
 * nothing is safe, and that exec failed is told. All descriptors of ours are close-on-exec from the moment they are made.    */
#include "io/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

#include <rophive/process.h>

#include "base/inherited.h"
#include "io/number.h"

enum { STANDARD = 3 }; /* descriptors 0, 1, 2 */

struct plan {
	int theirs[STANDARD]; /* what becomes 0, 1, 2; 3 or more, or -1: as it is */
	int opened[STANDARD]; /* the same if it was made here, else -1 */
	int ours[STANDARD];   /* our ends of pipes, else -1 */
	bool merge;
};

int hive__spawn_check(const char *const *argv, const struct hive_process_options *options)
{
	if (!argv || !argv[0])
		return -EINVAL;
	for (int i = 0; options && i < STANDARD; i++) {
		int fd = options->fds[i];

		if (fd < (i == 2 ? HIVE_PROCESS_MERGE : HIVE_OFF))
			return -EINVAL;
		if (options->redirect[i] && (fd != 0 || !options->ret_fds))
			return -EINVAL;
	}
	for (size_t i = 0; options && i < sizeof options->reserved / sizeof *options->reserved; i++)
		if (options->reserved[i] != 0)
			return -EINVAL;
	return 0;
}

/* ---- descriptors ---- */

static void close_all(const int fds[STANDARD])
{
	for (int i = 0; i < STANDARD; i++)
		if (fds[i] >= 0)
			hive__number_close(fds[i]);
}

/* The child's end blocks, as a program expects that knows nothing of us. */
static int make_pipe(struct plan *plan, int i)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	plan->opened[i] = ends[i == 0 ? 0 : 1];
	plan->ours[i] = number_made(ends[i == 0 ? 1 : 0]);
	return fcntl(plan->ours[i], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_nothing(struct plan *plan, int i)
{
	plan->opened[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
	return plan->opened[i] < 0 ? -errno : 0;
}

/* Away from 0 to 2, so that none is overwritten by another one before it is copied. */
static int lift(struct plan *plan, int i)
{
	int fd;

	if (plan->theirs[i] < 0 || plan->theirs[i] >= STANDARD)
		return 0;
	fd = fcntl(plan->theirs[i], F_DUPFD_CLOEXEC, STANDARD);
	if (fd < 0)
		return -errno;
	if (plan->opened[i] >= 0)
		hive__number_close(plan->opened[i]);
	plan->opened[i] = plan->theirs[i] = fd;
	return 0;
}

static int prepare(struct plan *plan, const struct hive_process_options *options, int i)
{
	int r = 0;

	if (options->redirect[i])
		r = make_pipe(plan, i);
	else if (options->fds[i] == HIVE_OFF)
		r = open_nothing(plan, i);
	else if (options->fds[i] == HIVE_PROCESS_MERGE)
		plan->merge = true;
	plan->theirs[i] = plan->opened[i] >= 0 ? plan->opened[i] : options->fds[i] > 0 ? options->fds[i] : -1;
	return r < 0 ? r : lift(plan, i);
}

/* ---- what happens in the child ---- */

/* Standard output that is ours alone, in a program that was started without, is none of the child's business. */
static int add_actions(const struct plan *plan, const char *cwd, posix_spawn_file_actions_t *actions)
{
	int error = 0;

	for (int i = 0; i < STANDARD && error == 0; i++)
		if (plan->theirs[i] >= 0)
			error = posix_spawn_file_actions_adddup2(actions, plan->theirs[i], i);
	if (error == 0 && plan->merge && plan->theirs[1] < 0 && !fd_is_inherited(1))
		error = posix_spawn_file_actions_addclose(actions, 2);
	else if (error == 0 && plan->merge)
		error = posix_spawn_file_actions_adddup2(actions, 1, 2);
	if (error == 0 && cwd)
		error = posix_spawn_file_actions_addchdir_np(actions, cwd);
	return -error;
}

static int add_signals(posix_spawnattr_t *attributes)
{
	sigset_t all, none;
	int error;

	/* Not sigfillset(): it leaves out the C library's own two, which the child would then ignore. */
	memset(&all, 0xff, sizeof all);
	sigemptyset(&none);
	error = posix_spawnattr_setsigdefault(attributes, &all);
	if (error == 0)
		error = posix_spawnattr_setsigmask(attributes, &none);
	if (error == 0)
		error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	return -error;
}

static char *const *strings(const char *const *list)
{
	return (char *const *)(uintptr_t)list; /* nobody writes to them */
}

static int spawn(const char *const *argv, const struct hive_process_options *options, const struct plan *plan,
                 pid_t *ret_pid)
{
	char *const *env = options->env ? strings(options->env) : environ;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r = -posix_spawn_file_actions_init(&actions);

	if (r < 0)
		return r;
	r = -posix_spawnattr_init(&attributes);
	if (r == 0) {
		r = add_actions(plan, options->cwd, &actions);
		if (r == 0)
			r = add_signals(&attributes);
		if (r == 0)
			r = -posix_spawnp(ret_pid, argv[0], &actions, &attributes, strings(argv), env);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

int hive__spawn(const char *const *argv, const struct hive_process_options *options, pid_t *ret_pid, int ret_fds[3])
{
	static const struct hive_process_options usual;
	struct plan plan = { { -1, -1, -1 }, { -1, -1, -1 }, { -1, -1, -1 }, false };
	int error = errno, r = 0;

	options = options ? options : &usual;
	for (int i = 0; i < STANDARD && r == 0; i++)
		r = prepare(&plan, options, i);
	if (r == 0)
		r = spawn(argv, options, &plan, ret_pid);
	close_all(plan.opened);
	if (r < 0)
		close_all(plan.ours);
	for (int i = 0; i < STANDARD && r == 0; i++)
		ret_fds[i] = plan.ours[i];
	errno = error;
	return r;
}
