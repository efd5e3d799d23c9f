/* SPDX-License-Identifier: MIT */
/* Stacks that are too small, each in a child that dies of it. */
#include "fiber/overflow.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <rophive/hive.h>

#include "fiber/switch.h"
#include "test.h"

static const struct memory memory = { hive__memory_system, NULL };
static struct stacks *stacks;
static struct stack stack;
static struct context home, away;

static void name_it(void *arg, struct stack s, char *ret_name, size_t bytes)
{
	CHECK_EQ(s.low, stack.low);
	CHECK_EQ(s.bytes, stack.bytes);
	strncpy(ret_name, (const char *)arg, bytes - 1);
}

/* Deeper and deeper, page by page. */
static __attribute__((noinline)) int sink(volatile int depth)
{
	volatile char frame[512];

	frame[0] = (char)depth;
	return depth < 0 ? frame[0] : sink(depth + 1) + frame[0];
}

static void sink_for_ever(void *arg)
{
	(void)arg;
	_exit(sink(1) & 1);
}

static void touch_closed_page(void *arg)
{
	volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	*page = 1;
	_exit(0);
}

static void earlier_handler(int number)
{
	static const char text[] = "the earlier handler\n";

	(void)number;
	_exit(write(2, text, sizeof text - 1) > 0 ? 42 : 1);
}

static void *run_on_thread(void *fn)
{
	void *alternate = NULL;

	CHECK_OK(hive__overflow_thread_begin(&memory, &alternate));
	context_here(&home);
	context_make(&away, stack.low, stack.bytes - STACK_TOP, (context_fn *)(uintptr_t)fn, NULL);
	context_switch(&home, &away);
	return alternate;
}

static int dive(void *arg)
{
	(void)arg;
	return sink(1);
}

/* A whole runtime, which watches by itself when the program has no handler. */
static void overflow_in_a_runtime(void)
{
	struct hive_fiber_options options = { .name = "the deep one", .stack_bytes = 16384 };
	struct hive_fiber *fiber;
	struct hive *hive;

	CHECK_OK(hive_runtime_start(NULL, &hive));
	CHECK_OK(hive_spawn(hive, dive, NULL, &options, &fiber));
	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, NULL));
	_exit(4);
}

/* The child's wait status; what it said is in text. fn NULL: a fiber of a runtime overflows. */
static int child_says(context_fn *fn, bool watch, bool earlier, bool on_thread, char *text, size_t bytes)
{
	int ends[2], status = 0;
	size_t length = 0;
	ssize_t n;
	pid_t child;

	CHECK_OK(pipe(ends));
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		pthread_t thread;

		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		dup2(ends[1], 2);
		signal(SIGSEGV, earlier ? earlier_handler : SIG_DFL);
		CHECK_OK(hive__stacks_create(&memory, &stacks));
		CHECK_OK(hive__stack_get(stacks, NULL, 16384, &stack));
		if (!fn)
			overflow_in_a_runtime();
		if (watch)
			CHECK_OK(hive__overflow_watch(stacks, name_it, "the diver"));
		if (on_thread) {
			CHECK_EQ(pthread_create(&thread, NULL, run_on_thread, (void *)(uintptr_t)fn), 0);
			pthread_join(thread, NULL);
		} else {
			run_on_thread((void *)(uintptr_t)fn);
		}
		_exit(3);
	}
	close(ends[1]);
	while ((n = read(ends[0], text + length, bytes - 1 - length)) > 0)
		length += (size_t)n;
	text[length] = 0;
	close(ends[0]);
	while (waitpid(child, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	return status;
}

static bool killed(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

TEST(an_overflow_kills_in_silence_when_nobody_watches)
{
	char text[512];

	CHECK(killed(child_says(sink_for_ever, false, false, false, text, sizeof text)));
	CHECK(!strstr(text, "rophive"));
}

/* A runtime watches by itself when the program has no handler; with one it stays away. */
TEST(a_fiber_that_overflows_is_named_by_its_runtime)
{
	char text[512];

	CHECK(killed(child_says(NULL, false, false, false, text, sizeof text)));
	CHECK(strstr(text, "rophive: stack overflow in fiber the deep one: access to 0x"));
	CHECK(!strstr(text, "the earlier handler"));
	child_says(NULL, false, true, false, text, sizeof text);
	CHECK(!strstr(text, "rophive: stack overflow"));
}

TEST(an_overflow_is_told_and_names_the_fiber)
{
	char text[512], size[64];

	for (int on_thread = 0; on_thread < 2; on_thread++) {
		CHECK(killed(child_says(sink_for_ever, true, false, on_thread, text, sizeof text)));
		CHECK(strstr(text, "rophive: stack overflow in fiber the diver: access to 0x"));
		snprintf(size, sizeof size, "below its stack of %d bytes at 0x", 32768 - 4096);
		CHECK(strstr(text, size) || sysconf(_SC_PAGESIZE) != 4096);
		CHECK(!strstr(strchr(text, '\n'), "rophive")); /* once */
	}
}

TEST(another_fault_is_none_of_our_business)
{
	char text[512];

	CHECK(killed(child_says(touch_closed_page, true, false, false, text, sizeof text)));
	CHECK(!strstr(text, "rophive"));
}

TEST(a_handler_that_was_there_before_has_its_turn)
{
	char text[512];
	int status = child_says(sink_for_ever, true, true, true, text, sizeof text);

	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 42);
	CHECK(strstr(text, "fiber the diver"));
	CHECK(strstr(text, "the earlier handler"));
}

TEST(the_last_unwatch_takes_the_handler_away)
{
	struct stacks *many[OVERFLOW_WATCHED + 1];
	struct sigaction before, now;

	sigaction(SIGSEGV, NULL, &before);
	for (int i = 0; i <= OVERFLOW_WATCHED; i++) {
		CHECK_OK(hive__stacks_create(&memory, &many[i]));
		CHECK_ERR(hive__overflow_watch(many[i], name_it, NULL), i < OVERFLOW_WATCHED ? 0 : -ENOSPC);
	}
	CHECK_ERR(hive__overflow_watch(many[0], name_it, NULL), -EEXIST);
	for (int i = 0; i <= OVERFLOW_WATCHED; i++) {
		sigaction(SIGSEGV, NULL, &now);
		CHECK_EQ(now.sa_sigaction != before.sa_sigaction, i < OVERFLOW_WATCHED);
		hive__overflow_unwatch(many[i]); /* the last one is unknown: nothing happens */
		hive__stacks_destroy(many[i]);
	}
	sigaction(SIGSEGV, NULL, &now);
	CHECK_EQ(now.sa_sigaction, before.sa_sigaction);
}

static void *no_memory(void *arg, void *old, size_t bytes)
{
	(void)arg, (void)old, (void)bytes;
	return NULL;
}

static void *begin_and_end(void *arg)
{
	void *alternate = NULL, *second = NULL;
	stack_t found;
	bool own;

	(void)arg;
	CHECK_OK(sigaltstack(NULL, &found));
	own = found.ss_flags & SS_DISABLE; /* sanitizers give each thread one */
	CHECK_ERR(hive__overflow_thread_begin(&(struct memory){ no_memory, NULL }, &alternate), own ? -ENOMEM : 0);
	CHECK_EQ(alternate, NULL);
	CHECK_OK(hive__overflow_thread_begin(&memory, &alternate));
	CHECK_EQ(alternate != NULL, own);
	CHECK_OK(hive__overflow_thread_begin(&memory, &second));
	CHECK_EQ(second, NULL);
	hive__overflow_thread_end(&memory, second);
	CHECK_OK(sigaltstack(NULL, &found));
	CHECK(!(found.ss_flags & SS_DISABLE));
	hive__overflow_thread_end(&memory, alternate);
	CHECK_OK(sigaltstack(NULL, &found));
	CHECK_EQ(!!(found.ss_flags & SS_DISABLE), own);
	return NULL;
}

TEST(a_thread_gets_one_alternate_stack)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, begin_and_end, NULL), 0);
	pthread_join(thread, NULL);
}
