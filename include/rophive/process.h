/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/time.h>

/* Signals, child processes and terminals: what belongs to the process as a whole, so that fibers of several hives and other threads
 * may use it side by side. As in io.h, a fiber parks, a compute task or a foreign thread blocks, and results are -errno.       */
HIVE_BEGIN
struct hive_op; /* op.h: the starters here are as those there */

/* ---- signals ----
 *
 * From the first wait for a signal, or watch, until its hive is destroyed (or it is unwatched), a signal is watched: it has no other
 * effect than to end waits, and one that comes while nobody waits is kept. Watched for the hive of the caller; all who are on no
 * worker count as one hive more, which nobody destroys. When nobody watches it any more, what it did before is what it does
 * again (unless the program has changed that meanwhile), and what was kept is dropped. Nothing is done to other signals.
 *
 * It does not matter which threads block a watched signal: workers do by default, threads of the program need not (system calls of
 * theirs may be interrupted, -1 and EINTR, if they do not). But it has to be sent to the process, as kill() and the terminal do: one
 * that is sent to a single thread that blocks it, as raise() does on a worker, stays there.
 *
 * A child after fork() has nothing of this: there the signal does what it did before. */

/* May wait. The next of these, or one that was kept; its number. Who waits for the same signal gets it in turn, one each time.
 * -EINVAL: none, no such signal, SIGKILL, SIGSTOP, or one that a fault of the program raises (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
 * SIGTRAP, SIGSYS, SIGABRT). -EAGAIN, -ENOMEM, -EMFILE: no thread that listens, with two descriptors. -ENOTSUP: in a simulated hive.            */
int hive_signal_wait(const int *signals, size_t count, int64_t deadline_ns);
/* Any thread. The same with on_done; watched for the hive of the op, whoever starts it. The numbers are lent. */
HIVE_CHECKED int hive_op_signal_wait(struct hive_op *op, const int *signals, size_t count, int64_t deadline_ns);
/* Any thread. From here on they are kept until somebody waits. Again: nothing. Errors as those of wait. */
int hive_signal_watch(const int *signals, size_t count);
/* Any thread. No longer for this hive. Who waits for one keeps it watched until he is done. */
int hive_signal_unwatch(const int *signals, size_t count);

/* ---- child processes ---- */

#define HIVE_PROCESS_MERGE (-2) /* in fds[2]: where standard output goes */

struct hive_process_options {
	const char *const *env; /* NULL: ours */
	const char *cwd;        /* NULL: ours; a relative argv[0] counts from there */
	int fds[3]; /* what it has as 0, 1, 2; 0: what we have there, unless that is close-on-exec; HIVE_OFF: /dev/null */
	bool redirect[3]; /* through a pipe, our end of which is for us to read, or write; fds[i] is 0 then */
	int *ret_fds;     /* int[3]: those ends, non-blocking, yours to close; -1 for others. NULL: none redirected */
	uint64_t reserved[4]; /* must be zero */
};

/* May wait, without a deadline: for no longer than the system takes to begin the program, and a cancel does not end it, so that nobody has a child
 * of which he does not know. argv[0] is searched for in PATH unless it contains a slash; argv ends with NULL. Signals are as in a fresh process: none blocked,
 * none ignored. It has the descriptors 0 to 2, and those of the program that are not close-on-exec; ours all are. It is not started on an IO
 * worker, and is scheduled as its threads are, without real-time; one that a compute task starts is as nice as that.
 * 0: it runs argv, and *ret_process, its process id, stays valid until a wait has returned its end, even if it has ended long ago: so wait
 * for each. Else what the system says of the attempt: -ENOENT, -EACCES, -ENOEXEC, -EMFILE, … and there is no process. -ENOTSUP: in a simulated
 * hive. options may be NULL.                                                                                                 */
HIVE_CHECKED int hive_process_start(const char *const *argv, const struct hive_process_options *options,
                                    int *ret_process);
/* Any thread. The same with on_done; the result is 0 or -errno. argv, options, what they point to, and ret_process are lent. A cancel ends one that
 * has not begun.                                                                                                              */
HIVE_CHECKED int hive_op_process_start(struct hive_op *op, const char *const *argv,
                                       const struct hive_process_options *options, int *ret_process);
/* May wait. Exit status, or 256 + the signal that ended it; to all who wait at that moment. It is gone then, no zombie stays.
 * -ESRCH: not started by us, or gone. -ECHILD: somebody else has asked the system for its status, by wait(), or by ignoring
 * SIGCHLD; gone too. After an error other than these it is still there.                                                  */
int hive_process_wait(int process, int64_t deadline_ns);
/* Any thread. The same with on_done. */
HIVE_CHECKED int hive_op_process_wait(struct hive_op *op, int process, int64_t deadline_ns);
/* Any thread. As kill(); it reaches this process or none. -ESRCH: as above. 0 for one that has ended and was not waited for. */
int hive_process_signal(int process, int signal);

/* ---- terminals ---- */

struct hive_tty { /* how one was set */
	uint64_t saved[16];
};

/* Any thread. Bytes as they are typed: no lines, no echo, no signals from keys. -ENOTTY. ret_saved, for restore, may be NULL. Nothing waits
 * for output that is under way.                                                                                               */
int hive_tty_raw(int fd, struct hive_tty *ret_saved);
int hive_tty_restore(int fd, const struct hive_tty *saved);
/* Any thread. In characters; 0 where the terminal does not know. SIGWINCH tells of changes. */
int hive_tty_size(int fd, int *ret_columns, int *ret_rows);
/* Any thread. The same terminal once more: a descriptor that is non-blocking without making that of others so, which they would notice,
 * as a shell that we share it with does. Reading and writing through it never needs a compute worker, and several fibers may do so at
 * once. -ENOTTY: none, or the other side of one (a pty's master).                                                                */
int hive_tty_open(int fd);
HIVE_END
