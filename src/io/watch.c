/* SPDX-License-Identifier: MIT */
/* Which signals are watched: handlers, the thread that listens, and how things were before. */
#include "io/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/first.h"
#include "base/forkmark.h"
#include "base/thread.h"

static ATOMIC(void *) all; /* struct signals: made once, never freed: a handler may be late */
static struct sigaction
	before[SIGNAL_NUMBERS]; /* L life  what a watched signal did; a child after fork() needs it too */

struct signals *hive__signals(void)
{
	return (struct signals *)hive__forkmark_once(&all, sizeof(struct signals));
}

/* ---- the handler ---- */

static void ring(const struct signals *s)
{
	uint64_t one = 1;

	while (write(s->bell_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

static void on_signal(int number);

static int take_over(int number)
{
	struct sigaction ours = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK };

	sigemptyset(&ours.sa_mask);
	return sigaction(number, &ours, NULL) < 0 ? -errno : 0;
}

/* False: it is not watched. */
static bool count(struct signals *s, int number)
{
	if (!handlers_watch(&s->handlers, number))
		return false;
	add_relaxed(&s->arrived[number], 1u); /* the bell carries it to who listens */
	ring(s);
	return true;
}

static bool is_ours(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == on_signal;
}

static bool has_ours(int number)
{
	struct sigaction now;

	return sigaction(number, NULL, &now) == 0 && is_ours(&now);
}

/* Nobody watches it: this is a child after fork(), where our handler is still set, or a thread that comes late. It may be so late that
 * somebody watches it again, or does so no more: whoever of the two is second to set a handler sets the right one. Or its user has set one
 * of his own, who meets it.                                                                                                  */
static void give_back(struct signals *s, int number)
{
	while (has_ours(number)) {
		if (count(s, number))
			return;
		sigaction(number, &before[number], NULL);
		if (handlers_watch(&s->handlers, number))
			take_over(number);
	}
	raise(number); /* blocked until we return */
}

/* On any thread, anywhere in its code. */
static void on_signal(int number)
{
	struct signals *s = (struct signals *)first_seen(&all);
	int error = errno;

	handlers_enter(&s->handlers);
	if (!count(s, number))
		give_back(s, number);
	handlers_leave(&s->handlers);
	errno = error;
}

int hive__watch_take(struct signals *s, signal_set set)
{
	for (int number = 1; number < SIGNAL_NUMBERS && set >> (number - 1); number++) {
		uint32_t n = set & signal_bit(number) ? load_relaxed(&s->arrived[number]) : 0;

		while (n > 0)
			if (cas_relaxed(&s->arrived[number], &n, n - 1))
				return number;
	}
	return 0;
}

/* Life. A child after fork() may find our own handler: `before` is still right then. */
static int install(struct signals *s, int number)
{
	struct sigaction was;
	int r;

	if (sigaction(number, NULL, &was) < 0)
		return -errno;
	if (!is_ours(&was))
		before[number] = was;
	store_relaxed(&s->arrived[number], 0u);
	handlers_begin(&s->handlers, number); /* first: a handler finds it */
	r = take_over(number);
	if (r < 0)
		handlers_end(&s->handlers, number);
	return r;
}

/* Whoever has set another handler meanwhile wants that one. */
static void put_back(int number)
{
	if (has_ours(number))
		sigaction(number, &before[number], NULL);
}

/* Life. The handler first: one that comes late and finds that nobody watches leaves what it finds. And last: one that was late before
 * may have set ours again.                                                                                                  */
static void restore(struct signals *s, signal_set set)
{
	for (int number = 1; number < SIGNAL_NUMBERS; number++) {
		if (!(set & signal_bit(number)))
			continue;
		put_back(number);
		handlers_end(&s->handlers, number);
		put_back(number);
		store_relaxed(&s->arrived[number], 0u);
	}
}

/* ---- the thread that listens ---- */

static void count_blocked(struct signals *s)
{
	struct signalfd_siginfo about;

	while (read(s->blocked_fd, &about, sizeof about) == (ssize_t)sizeof about)
		if (about.ssi_signo < SIGNAL_NUMBERS &&
		    (load_relaxed(&s->handlers.watched) & signal_bit((int)about.ssi_signo)))
			add_relaxed(&s->arrived[about.ssi_signo], 1u);
}

static void hear(void *arg)
{
	struct signals *s = (struct signals *)arg;
	struct pollfd ears[2] = { { .fd = s->bell_fd, .events = POLLIN }, { .fd = s->blocked_fd, .events = POLLIN } };
	uint64_t rings;

	hive__thread_name("signals");
	while (!load_relaxed(&s->over)) {
		poll(ears, 2, -1);
		if (read(s->bell_fd, &rings, sizeof rings) < 0)
			rings = 0; /* it did not ring */
		count_blocked(s);
		hive__signals_arrived(s);
	}
}

/* Life. What is blocked everywhere comes to our descriptor from here on; so may what is pending already. The plain system call, whose
 * sets are as ours, because a checker of threads takes signalfd() for a new descriptor, while another thread reads.            */
static int listen_to(const struct signals *s, signal_set set)
{
	return syscall(SYS_signalfd4, s->blocked_fd, &set, sizeof set, SFD_NONBLOCK | SFD_CLOEXEC) < 0 ? -errno : 0;
}

/* Life. */
static int start_listening(struct signals *s)
{
	sigset_t none;
	int r = 0;

	if (s->thread)
		return 0;
	sigemptyset(&none);
	store_relaxed(&s->over, 0u);
	s->bell_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (s->bell_fd < 0)
		return -errno;
	s->blocked_fd = signalfd(-1, &none, SFD_NONBLOCK | SFD_CLOEXEC);
	r = s->blocked_fd < 0 ? -errno : hive__thread_start(hear, s, &s->thread);
	if (r < 0) {
		if (s->blocked_fd >= 0)
			close(s->blocked_fd);
		close(s->bell_fd);
		s->thread = 0;
	}
	return r;
}

/* Life. Nothing is watched. A handler that is still inside may ring the bell; one that begins will not. */
static void stop_listening(struct signals *s)
{
	if (!s->thread)
		return;
	for (uint32_t tries = 0; !handlers_are_gone(&s->handlers); tries++)
		hive__thread_give_way(tries);
	store_relaxed(&s->over, 1u);
	ring(s);
	hive__thread_join(s->thread);
	s->thread = 0;
	close(s->blocked_fd);
	close(s->bell_fd);
}

/* ---- who wants them ---- */

static signal_set unwanted(const struct signals *s, signal_set set)
{
	for (int number = 1; number < SIGNAL_NUMBERS; number++)
		if (s->interest[number] > 0)
			set &= ~signal_bit(number);
	return set;
}

/* Life. */
static void forget(struct signals *s, signal_set set)
{
	int error = errno;

	if (s->thread)
		listen_to(s, load_relaxed(&s->handlers.watched) & ~set);
	restore(s, set);
	if (load_relaxed(&s->handlers.watched) == 0)
		stop_listening(s);
	errno = error;
}

/* Life. */
static int begin(struct signals *s, signal_set set)
{
	signal_set fresh = unwanted(s, set), done = 0;
	int error = errno, r = fresh ? start_listening(s) : 0;

	for (int number = 1; number < SIGNAL_NUMBERS && r == 0; number++)
		if (fresh & signal_bit(number)) {
			r = install(s, number);
			if (r == 0)
				done |= signal_bit(number);
		}
	if (r == 0 && fresh)
		r = listen_to(s, load_relaxed(&s->handlers.watched));
	if (r < 0)
		forget(s, done);
	for (int number = 1; number < SIGNAL_NUMBERS && r == 0; number++)
		s->interest[number] += set & signal_bit(number) ? 1 : 0;
	errno = error;
	return r;
}

/* Life. */
static void end(struct signals *s, signal_set set)
{
	signal_set gone;

	for (int number = 1; number < SIGNAL_NUMBERS; number++)
		if ((set & signal_bit(number)) && s->interest[number] > 0)
			s->interest[number]--;
	gone = unwanted(s, set) & load_relaxed(&s->handlers.watched);
	if (gone)
		forget(s, gone);
}

int hive__watch_begin(struct signals *s, signal_set set)
{
	int r;

	lock_acquire(&s->life);
	r = begin(s, set);
	lock_release(&s->life);
	return r;
}

void hive__watch_end(struct signals *s, signal_set set)
{
	lock_acquire(&s->life);
	end(s, set);
	lock_release(&s->life);
}

int hive__watch_keep(struct signals *s, signal_set *mine, signal_set set)
{
	int r;

	lock_acquire(&s->life);
	r = begin(s, set & ~*mine);
	if (r == 0)
		*mine |= set;
	lock_release(&s->life);
	return r;
}

void hive__watch_drop(struct signals *s, signal_set *mine, signal_set set)
{
	lock_acquire(&s->life);
	set &= *mine;
	*mine &= ~set;
	end(s, set);
	lock_release(&s->life);
}
