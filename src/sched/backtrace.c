/* SPDX-License-Identifier: MIT */
/* Asking a thread for its stack, by a signal. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.h"
#include "sched/backtrace.h"
#include "sched/internal.h"

#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAS_UNWINDER 1
#endif
#endif

enum { IDLE, ASKED, WRITING, ANSWERED, STATES = 4 };
enum {
	OUR_CODE = -7,      /* of our signals; see send() */
	OWN_FRAMES = 2,     /* the handler, and how it was entered */
	PATIENCE_MS = 100,  /* for a thread that blocks it, or does not get a CPU */
	WRITING_MS = 1000,  /* for one that has begun */
	SIGNAL_FROM_TOP = 3 /* few use the last ones but one */
};

static struct {
	struct lock lock; /* opening and closing */
	int opened;       /* L lock */
	ATOMIC(int) number;
	struct sigaction previous;

	struct lock asking;    /* one question at a time */
	ATOMIC(uint32_t) word; /* A  question * STATES + state; a futex */
	struct worker *target; /* who shall answer */
	void *frames[BACKTRACE_MAX + OWN_FRAMES];
	struct backtrace answer;
} desk;

/* On the thread that was asked, if it still is that worker's. */
static void write_down(struct worker *w, struct backtrace *b)
{
	void *guests = load_relaxed(&w->hive->guests[GUESTS_FIBERS]);
	int depth = 0;

#if defined(HAS_UNWINDER)
	depth = backtrace(desk.frames, BACKTRACE_MAX + OWN_FRAMES);
#endif
	b->depth = depth > OWN_FRAMES ? depth - OWN_FRAMES : 0;
	for (int i = 0; i < b->depth; i++)
		b->frames[i] = desk.frames[i + OWN_FRAMES];
	if (guests && w->place.now)
		w->hive->guest_ops[GUESTS_FIBERS]->who(w->place.now, &b->fiber_fn, b->fiber_name);
}

static void answer(uint32_t question)
{
	uint32_t asked = question * STATES + ASKED;

	if (!cas_acquire(&desk.word, &asked, question * STATES + WRITING)) /* TRACE-2 (pairs with TRACE-1) */
		return;
	if (hive__current() == desk.target)
		write_down(desk.target, &desk.answer);
	store_release(&desk.word, question * STATES + ANSWERED); /* TRACE-3 (pairs with TRACE-4) */
	hive__futex_wake(&desk.word, 1);
}

/* What would have happened without us. */
static void go_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction *p = &desk.previous;

	if (p->sa_flags & SA_SIGINFO) {
		p->sa_sigaction(number, info, context);
	} else if (p->sa_handler == SIG_DFL) {
		sigaction(number, p, NULL);
		raise(number);
	} else if (p->sa_handler != SIG_IGN) {
		p->sa_handler(number);
	}
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	int error = errno;

	if (info->si_code == OUR_CODE)
		answer((uint32_t)info->si_value.sival_int);
	else
		go_on(number, info, context);
	errno = error;
}

/* The unwinder is a library of its own, loaded by the first call: not in a handler. */
static void install(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
#if defined(HAS_UNWINDER)
	backtrace(desk.frames, 1);
#endif
	action.sa_sigaction = on_signal;
	action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
	sigemptyset(&action.sa_mask);
	store_relaxed(&desk.number, SIGRTMAX - SIGNAL_FROM_TOP);
	sigaction(load_relaxed(&desk.number), &action, &desk.previous);
}

static void uninstall(void)
{
	struct sigaction now;
	int number = load_relaxed(&desk.number);

	/* Somebody who came after us may call us: then we must stay. */
	if (sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal)
		sigaction(number, &desk.previous, NULL);
}

bool hive__backtrace_open(void)
{
#if defined(HAS_UNWINDER) && defined(SYS_rt_tgsigqueueinfo)
	int saved = errno;

	lock_acquire(&desk.lock);
	if (desk.opened++ == 0)
		install();
	lock_release(&desk.lock);
	errno = saved;
	return true;
#else
	return false;
#endif
}

void hive__backtrace_close(void)
{
	lock_acquire(&desk.lock);
	if (--desk.opened == 0)
		uninstall();
	lock_release(&desk.lock);
}

int hive__backtrace_signal(void)
{
	return load_relaxed(&desk.number);
}

/* The code is SI_DETHREAD: no sender uses it, and the kernel knows how such a signal is laid out. Of codes that it does not know it
 * refuses those with anything behind what it knows (E2BIG), and an emulator hands it what was on its stack.                */
static bool send(uint32_t thread, uint32_t question)
{
#if defined(SYS_rt_tgsigqueueinfo)
	siginfo_t info;
	int number = load_relaxed(&desk.number);

	memset(&info, 0, sizeof info);
	info.si_signo = number;
	info.si_code = OUR_CODE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = (int)question;
	return syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)thread, number, &info) == 0;
#else
	(void)thread, (void)question;
	return false;
#endif
}

/* Until the word is another one, or that took too long. */
static void wait_while(uint32_t value, int64_t patience_ms)
{
	for (int64_t waited = 0; waited < patience_ms && load_relaxed(&desk.word) == value; waited++)
		hive__futex_wait(&desk.word, value, 1000000);
}

static bool wait_for_answer(uint32_t question)
{
	uint32_t asked = question * STATES + ASKED;

	wait_while(asked, PATIENCE_MS);
	if (cas_relaxed(&desk.word, &asked, question * STATES + IDLE))
		return false;
	wait_while(question * STATES + WRITING, WRITING_MS);
	return load_acquire(&desk.word) == question * STATES + ANSWERED; /* TRACE-4 (pairs with TRACE-3) */
}

bool hive__backtrace_ask(struct worker *w, uint32_t thread, struct backtrace *ret_backtrace)
{
	uint32_t question, state;
	int saved = errno;
	bool answered = false;

	lock_acquire(&desk.asking);
	question = load_acquire(&desk.word) / STATES; /* TRACE-4 (pairs with TRACE-3) */
	state = load_relaxed(&desk.word) % STATES;
	if (state != WRITING) { /* else somebody of old still writes */
		question = (question + 1) % (UINT32_MAX / STATES);
		desk.target = w;
		memset(&desk.answer, 0, sizeof desk.answer);
		store_release(&desk.word, question * STATES + ASKED); /* TRACE-1 (pairs with TRACE-2) */
		answered = send(thread, question) && wait_for_answer(question);
		if (answered)
			*ret_backtrace = desk.answer;
		else if (load_relaxed(&desk.word) % STATES == ASKED)
			store_relaxed(&desk.word, question * STATES + IDLE);
	}
	lock_release(&desk.asking);
	errno = saved;
	return answered;
}
