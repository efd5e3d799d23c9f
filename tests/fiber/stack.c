/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "fiber/annotate.h"
#include "support/child.h"
#include "support/stacks.h"
#include "test.h"

TEST(a_fresh_stack_reads_as_zeros_and_can_be_written_from_top_to_low)
{
	struct stacks *s = open_stacks();
	struct stack stack;

	for (size_t bytes = 0; bytes < 1 << 20; bytes = bytes * 2 + 1) {
		CHECK_OK(hive__stack_get(s, NULL, bytes, &stack));
		CHECK(stack.bytes >= bytes);
		for (size_t i = 0; i < stack.bytes; i++) {
			CHECK_EQ(((char *)stack.low)[i], 0);
			((char *)stack.low)[i] = 1;
		}
	}
	hive__stacks_destroy(s);
}

TEST(a_stack_comes_back_from_the_cache_newest_first)
{
	struct stacks *s = open_stacks();
	struct stack_cache cache = { 0 };
	struct stack a, b, c;

	CHECK_OK(hive__stack_get(s, &cache, 0, &a));
	CHECK_OK(hive__stack_get(s, &cache, 0, &b));
	CHECK(a.low != b.low);
	memset(top_of(a) - STACK_TOP, 7, STACK_TOP);
	hive__stack_put(s, &cache, b);
	hive__stack_put(s, &cache, a);
	CHECK_OK(hive__stack_get(s, &cache, 0, &c));
	CHECK_EQ(c.low, a.low);
	CHECK_EQ(c.bytes, a.bytes);
	for (int i = 0; i < STACK_TOP; i++)
		CHECK_EQ(top_of(c)[i - STACK_TOP], 7);
	CHECK_OK(hive__stack_get(s, &cache, 0, &c));
	CHECK_EQ(c.low, b.low);
	hive__stacks_destroy(s);
}

/* The smallest classes, the largest, and what is too much. */
TEST(each_size_has_its_class)
{
	struct stacks *s = open_stacks();
	size_t page = (size_t)sysconf(_SC_PAGESIZE), largest = ((size_t)1 << 30) - (64 << 10);
	struct stack stack = { 0 }, kept = { (void *)1, 1 };

	CHECK_OK(hive__stack_get(s, NULL, 1, &stack));
	CHECK(stack.bytes == 16384 - page || page > 4096);
	CHECK_OK(hive__stack_get(s, NULL, stack.bytes + 1, &stack));
	CHECK(stack.bytes == 32768 - page || page > 4096);
	CHECK_OK(hive__stack_get(s, NULL, 0, &stack));
#if !defined(FIBER_ASAN) && !defined(FIBER_TSAN)
	CHECK(stack.bytes == 65536 - page || page > 4096);
#endif
	CHECK_OK(hive__stack_get(s, NULL, largest, &stack));
	CHECK_EQ(stack.bytes, largest);
	*(char *)stack.low = 1;
	top_of(stack)[-1] = 1;
	CHECK_ERR(hive__stack_get(s, NULL, largest + 1, &kept), -EINVAL);
	CHECK_ERR(hive__stack_get(s, NULL, SIZE_MAX, &kept), -EINVAL);
	CHECK_EQ(kept.bytes, 1); /* untouched */
	hive__stacks_destroy(s);
}

/* ---- guards ---- */

/* Can a byte be written there? Asked by a system call, so that nothing has to die. */
static bool writable(void *at)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, at, 1);

	CHECK(fd >= 0);
	CHECK(n == 1 || errno == EFAULT);
	close(fd);
	return n == 1;
}

static void check_guards(void)
{
	struct stacks *s = open_stacks();
	struct stack stack, found;

	for (size_t bytes = 1; bytes < 4 << 20; bytes *= 2) {
		errno = 7;
		CHECK_OK(hive__stack_get(s, NULL, bytes, &stack));
		CHECK_EQ(errno, 7);
		CHECK(writable(stack.low));
		CHECK(!writable((char *)stack.low - 1));
		CHECK(hive__stack_owns_guard(s, (char *)stack.low - 1, &found));
		CHECK_EQ(found.low, stack.low);
		CHECK_EQ(found.bytes, stack.bytes);
		CHECK(!hive__stack_owns_guard(s, stack.low, &found));
		CHECK(!hive__stack_owns_guard(s, top_of(stack) - 1, &found));
	}
	CHECK(!hive__stack_owns_guard(s, &stack, &found));
	CHECK(!hive__stack_owns_guard(s, NULL, &found));
	hive__stacks_destroy(s);
}

TEST(below_each_stack_is_a_guard)
{
	check_guards();
}

TEST(guards_also_work_on_kernels_that_cannot_mark_them)
{
	if (getenv("ROPHIVE_EMULATOR"))
		return; /* there they never can */
	child_without_calls(EINVAL, check_guards, SYS_madvise);
}

TEST(a_hit_of_the_guard_kills)
{
	struct stacks *s = open_stacks();
	struct stack stack;
	int status = 0;
	pid_t child;

	CHECK_OK(hive__stack_get(s, NULL, 0, &stack));
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		signal(SIGSEGV, SIG_DFL);
		((volatile char *)stack.low)[-1] = 1;
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	hive__stacks_destroy(s);
}

/* ---- what the system refuses ---- */

static long map_limit(void)
{
	char text[32] = "";
	int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
		return 0;
	close(fd);
	return strtol(text, NULL, 10);
}

/* Each guard is a mapping of its own here, until there are no more. Then a stack that comes back is one that can be had. */
static void use_up_mappings(void)
{
	struct stacks *s = open_stacks();
	struct stack stack, last;
	long limit = map_limit(), count = 0;
	int r;

	while ((r = hive__stack_get(s, NULL, 1, &stack)) == 0) {
		last = stack;
		CHECK(++count <= limit);
	}
	CHECK_EQ(r, -ENOMEM);
	CHECK(count > limit / 4);
	CHECK_ERR(hive__stack_get(s, NULL, 1, &stack), -ENOMEM);
	hive__stack_put(s, NULL, last);
	CHECK_OK(hive__stack_get(s, NULL, 1, &stack));
	CHECK_EQ(stack.low, last.low);
	CHECK_ERR(hive__stack_get(s, NULL, 1, &stack), -ENOMEM);
	hive__stacks_destroy(s);
	s = open_stacks(); /* and all mappings are back */
	CHECK_OK(hive__stack_get(s, NULL, 1, &stack));
	hive__stacks_destroy(s);
}

TEST(no_more_mappings_is_told)
{
	if (test_slowness() > 1 || map_limit() == 0 || map_limit() > 100000) {
		test_skip("would take too long here");
		return;
	}
	child_without_calls(EINVAL, use_up_mappings, SYS_madvise);
}

TEST(guards_that_are_marks_are_not_limited)
{
	struct stacks *s = open_stacks();
	struct stack stack;
	long count = 0, most = 70000;
	int r = 0;

	while (count < most / test_slowness() && (r = hive__stack_get(s, NULL, 1, &stack)) == 0)
		count++;
	if (r == -ENOMEM) {
		CHECK(count > map_limit() / 4);
		test_skip("this kernel does not mark guards");
	} else {
		CHECK_OK(r);
	}
	hive__stacks_destroy(s);
}

static struct stacks *before_the_fall;

static void get_without_memory(void)
{
	struct stack stack;

	CHECK_ERR(hive__stack_get(before_the_fall, NULL, 1 << 20, &stack), -ENOMEM);
	CHECK_ERR(hive__stack_get(before_the_fall, NULL, 1 << 20, &stack), -ENOMEM);
	CHECK_OK(hive__stack_get(before_the_fall, NULL, 0, &stack)); /* that region is there */
	hive__stack_put(before_the_fall, NULL, stack);
}

TEST(no_memory_is_told)
{
	struct stack stack;

	if (getenv("ROPHIVE_EMULATOR")) {
		test_skip("the emulator refuses filters of system calls");
		return;
	}
	before_the_fall = open_stacks();
	CHECK_OK(hive__stack_get(before_the_fall, NULL, 0, &stack));
	child_without_calls(ENOMEM, get_without_memory, SYS_mmap);
	hive__stack_put(before_the_fall, NULL, stack); /* a free one needs nothing of the system */
	child_without_calls(ENOMEM, get_without_memory, SYS_madvise, SYS_mprotect, SYS_mmap);
	hive__stacks_destroy(before_the_fall);
}

/* Refused while its guard was made, a stack is tried again later and not lost. */
static void get_without_guards(void)
{
	struct stack stack;

	for (int i = 0; i < 200; i++)
		CHECK_ERR(hive__stack_get(before_the_fall, NULL, 0, &stack), -ENOMEM);
}

static void count_one(void *arg, struct stack stack)
{
	(void)stack;
	++*(int *)arg;
}

static void get_without_guards_and_count(void)
{
	int count = 0;

	get_without_guards();
	hive__stacks_visit(before_the_fall, count_one, &count);
	CHECK_EQ(count, 1);
}

TEST(a_refused_guard_loses_no_stack)
{
	if (getenv("ROPHIVE_EMULATOR")) {
		test_skip("the emulator refuses filters of system calls");
		return;
	}
	before_the_fall = open_stacks();
	child_without_calls(ENOMEM, get_without_guards_and_count, SYS_madvise, SYS_mprotect);
	hive__stacks_destroy(before_the_fall);
}

static void *no_memory(void *arg, void *old, size_t bytes)
{
	int *left = arg;

	if (bytes && --*left < 0)
		return NULL;
	return hive__memory_system(NULL, old, bytes);
}

TEST(an_allocator_that_refuses_is_told)
{
	struct stacks *s;
	struct stack stack;
	int left = 0;
	struct memory stingy = { no_memory, &left };

	CHECK_ERR(hive__stacks_create(&stingy, &s), -ENOMEM);
	left = 1;
	CHECK_OK(hive__stacks_create(&stingy, &s));
	CHECK_ERR(hive__stack_get(s, NULL, 0, &stack), -ENOMEM);
	left = 1;
	CHECK_OK(hive__stack_get(s, NULL, 0, &stack));
	hive__stacks_destroy(s);
}

/* A region of the size that is due does not fit; smaller ones do. */
static void get_within_limit(void)
{
	struct stacks *s = open_stacks();
	struct stack stack;
	struct rlimit limit;
	long pages = 0, count = 0;
	FILE *statm = fopen("/proc/self/statm", "re");
	int r;

	CHECK(statm && fscanf(statm, "%ld", &pages) == 1);
	fclose(statm);
	limit.rlim_cur = limit.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (30 << 20);
	CHECK_OK(setrlimit(RLIMIT_AS, &limit));
	while ((r = hive__stack_get(s, NULL, 0, &stack)) == 0)
		CHECK(++count <= 30 << 4);
	CHECK_EQ(r, -ENOMEM);
	CHECK(count > 28 << 4); /* 4 + 4 + 8 MiB, then what is left in halves */
	hive__stacks_destroy(s);
}

TEST(a_limit_of_the_address_space_is_used_up_to_its_end)
{
	if (test_slowness() > 1) {
		test_skip("sanitizers and emulators need address space themselves");
		return;
	}
	child_without_calls(ENOSYS, get_within_limit, SYS_reboot);
}
