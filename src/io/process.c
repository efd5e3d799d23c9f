/* SPDX-License-Identifier: MIT */
/* Child processes: from start to the wait that returns their end.
 *
 * Children belong to the process, so there is one list for all hives. A process id is its number: it stays the child's own until somebody
 * asks the system for its status, and that is done under the lock, by one of those who wait, who takes it off the list. Who waits
 * polls a descriptor that is readable when it has ended: a pidfd, or where the kernel has none an eventfd, with a thread that waits
 * for this child. So the wait is one of the operations, with deadline and cancel.
 *
 * The lock lies in memory that is zeros in a child after fork(); there the list is still that of its parent, whose children it may not
 * wait for.                                                                                                                       */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rophive/hive.h>
#include <rophive/io.h>
#include <rophive/process.h>

#include "base/forkmark.h"
#include "base/thread.h"
#include "io/number.h"
#include "io/op.h"
#include "io/spawn.h"

struct child {
	struct child *next; /* L */
	pid_t pid;          /* I */
	pid_t parent;       /* I */
	int fd;             /* L  readable when it has ended; -1: not yet made */
	bool is_pidfd;      /* L */
	uint64_t thread;    /* L  that waits for it; 0: none */
	uint32_t users;     /* L  who wait */
	bool ended;         /* L  and off the list */
	int result;         /* L  I once ended */
};

static ATOMIC(void *) lock_of_children; /* struct lock */
static struct child *children;          /* L */

static struct memory system_memory(void)
{
	return (struct memory){ hive__memory_system, NULL };
}

/* NULL: no memory. */
static struct lock *the_lock(void)
{
	return (struct lock *)hive__forkmark_once(&lock_of_children, sizeof(struct lock));
}

/* ---- the end of one; under the lock ---- */

static struct child **find(pid_t pid)
{
	struct child **at = &children;
	pid_t self = getpid();

	while (*at && ((*at)->pid != pid || (*at)->parent != self))
		at = &(*at)->next;
	return at;
}

static void take_off(struct child *child)
{
	struct child **at = find(child->pid);

	*at = child->next;
	child->ended = true;
}

/* Its status if it has ended, once: then nothing is left of it. */
static bool reap(struct child *child)
{
	siginfo_t about = { .si_pid = 0 };
	int error = errno, r;

	if (child->ended)
		return true;
	do
		r = waitid(P_PID, (id_t)child->pid, &about, WEXITED | WNOHANG);
	while (r < 0 && errno == EINTR);
	if (r == 0 && about.si_pid != 0) {
		child->result = about.si_code == CLD_EXITED ? about.si_status : 256 + about.si_status;
		take_off(child);
	} else if (r < 0) { /* somebody else has it */
		child->result = -errno;
		take_off(child);
	}
	errno = error;
	return child->ended;
}

/* ---- what tells of it ---- */

static void wait_for_end(void *arg)
{
	const struct child *child = (const struct child *)arg;
	siginfo_t about;
	uint64_t one = 1;

	while (waitid(P_PID, (id_t)child->pid, &about, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	while (write(child->fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

static int open_pidfd(struct child *child)
{
	int fd = number_made((int)syscall(SYS_pidfd_open, child->pid, 0));

	if (fd < 0)
		return -errno;
	child->fd = fd;
	child->is_pidfd = true;
	return 0;
}

/* Under the lock. A kernel of old, or one that forbids it. */
static int start_thread(struct child *child)
{
	int fd = number_made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), r;

	if (fd < 0)
		return -errno;
	child->fd = fd;
	r = hive__thread_start(wait_for_end, child, &child->thread);
	if (r < 0) {
		hive__number_close(fd);
		child->fd = -1;
		child->thread = 0;
	}
	return r;
}

/* Under the lock. */
static int make_ready(struct child *child)
{
	int error = errno, r = child->fd >= 0 ? 0 : open_pidfd(child);

	if (r == -ENOSYS || r == -EPERM || r == -EINVAL)
		r = start_thread(child);
	errno = error;
	return r;
}

/* Nobody knows it any more. */
static void discard(struct child *child)
{
	struct memory memory = system_memory();

	if (child->thread)
		hive__thread_join(child->thread);
	if (child->fd >= 0)
		hive__number_close(child->fd);
	hive__memory_free(&memory, child);
}

/* ---- start ---- */

struct start {
	const char *const *argv;
	const struct hive_process_options *options;
	struct child *child;
	pid_t pid;
	int fds[3];
	int result;
	struct once once;
};

/* On the list as soon as it runs, whoever asks for it. */
static void run(struct start *start, struct lock *lock)
{
	struct child *child = start->child;

	start->result = hive__spawn(start->argv, start->options, &start->pid, start->fds);
	if (start->result < 0)
		return;
	child->pid = start->pid;
	child->parent = getpid();
	lock_acquire(lock);
	if (open_pidfd(child) < 0)
		child->fd = -1; /* a wait will try again */
	child->next = children;
	children = child;
	lock_release(lock);
}

static void run_in_thread(void *arg)
{
	struct start *start = (struct start *)arg;

	hive__thread_name("start");
	hive__thread_ordinary();
	run(start, the_lock());
	once_finish(&start->once);
}

/* Not a compute worker: what it starts would be as nice as it is, for ever. A thread of a moment begins as its maker is. */
static int run_for_fiber(struct start *start)
{
	uint64_t thread;
	int r;

	once_init(&start->once);
	r = hive__thread_start(run_in_thread, start, &thread);
	if (r < 0)
		return r;
	do
		r = once_wait(&start->once, true, "process", HIVE_FOREVER);
	while (r < 0);
	hive__thread_join(thread);
	return 0;
}

int hive_process_start(const char *const *argv, const struct hive_process_options *options, int *ret_process)
{
	struct guest_place *place = hive__place();
	struct start start = { .argv = argv, .options = options };
	struct memory memory = system_memory();
	struct lock *lock = the_lock();
	int r = ret_process ? hive__spawn_check(argv, options) : -EINVAL;

	if (r < 0)
		return r;
	if (place && !place->now)
		return -EDEADLK;
	if (place && hive__guest_world())
		return -ENOTSUP; /* real threads have no part in a simulated hive */
	start.child = lock ? (struct child *)hive__memory_new(&memory, sizeof *start.child) : NULL;
	if (!start.child)
		return -ENOMEM;
	start.child->fd = -1;
	if (place)
		r = run_for_fiber(&start);
	else
		run(&start, lock);
	r = r < 0 ? r : start.result;
	if (r < 0) {
		hive__memory_free(&memory, start.child);
		return r;
	}
	for (int i = 0; i < 3 && options && options->ret_fds; i++)
		options->ret_fds[i] = start.fds[i];
	*ret_process = (int)start.pid;
	return 0;
}

/* ---- wait ---- */

/* 0: the caller is one of its users. */
static int enter(struct lock *lock, pid_t pid, struct child **ret_child)
{
	struct child *child;
	int r = 0;

	lock_acquire(lock);
	child = *find(pid);
	if (!child)
		r = -ESRCH;
	else if (!reap(child))
		r = make_ready(child);
	if (r == 0)
		child->users++;
	lock_release(lock);
	*ret_child = child;
	return r;
}

/* Its end if it has ended; else -EAGAIN. */
static int look(struct lock *lock, struct child *child)
{
	int r;

	lock_acquire(lock);
	r = reap(child) ? child->result : -EAGAIN;
	lock_release(lock);
	return r;
}

static void leave(struct lock *lock, struct child *child)
{
	bool last;

	lock_acquire(lock);
	last = --child->users == 0 && child->ended;
	lock_release(lock);
	if (last)
		discard(child);
}

int hive_process_wait(int process, int64_t deadline_ns)
{
	struct lock *lock = the_lock();
	struct child *child;
	int waited = 0, r = lock ? enter(lock, process, &child) : -ENOMEM;

	if (r < 0)
		return r;
	while ((r = look(lock, child)) == -EAGAIN && waited >= 0)
		waited = deadline_ns > HIVE_NOWAIT ? hive_poll_fd(child->fd, HIVE_EVENT_IN, deadline_ns) : -ETIMEDOUT;
	leave(lock, child);
	return r == -EAGAIN ? waited : r;
}

/* Under the lock nobody of us asks for its status: the id is still its own. */
static int send_signal(const struct child *child, int signal)
{
	int r = child->is_pidfd ? (int)syscall(SYS_pidfd_send_signal, child->fd, signal, NULL, 0) : -1;

	if (r < 0 && (!child->is_pidfd || errno == ENOSYS || errno == EPERM)) /* which filters forbid one by one */
		r = kill(child->pid, signal);
	return r < 0 ? -errno : 0;
}

int hive_process_signal(int process, int signal)
{
	struct lock *lock = the_lock();
	struct child *child;
	int error = errno, r = -ESRCH;

	if (!lock)
		return -ENOMEM;
	lock_acquire(lock);
	child = *find(process);
	if (child)
		r = send_signal(child, signal);
	lock_release(lock);
	errno = error;
	return r;
}
