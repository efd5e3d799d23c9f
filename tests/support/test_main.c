/* SPDX-License-Identifier: MIT */
/* usage: <test program> [--list] [--fork] [name...]
 *   --list   the names of the tests
 *   --fork   each test in a process of its own, all of them even if one fails
 *   name     only these
 * environment
 *   ROPHIVE_TEST_TIMEOUT     seconds until a test counts as hanging (60; times test_slowness())
 *   ROPHIVE_STRESS_SECONDS   how long each stress test runs (2)
 *   ROPHIVE_EMULATOR         the command that runs programs of this architecture, if that takes one (tests/arch)    */
#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/wait.h>

#if defined(HIVE_BUS_ALONE)
#define hive__dump_all(fd) ((void)(fd)) /* there is no hive */
#else
#include "sched/internal.h"
#endif

static struct test *tests;
static const char *volatile current = "(none)";
static bool skipped;

/* Sorted by line: the order of constructors is the compiler's affair. */
void test_register(struct test *test)
{
	struct test **at = &tests;

	while (*at && (*at)->line < test->line)
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

/* _exit: other threads may be running, and what they hold is neither a leak nor ours to tear down. */
void test_fail(const char *file, int line, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fflush(stdout);
	fprintf(stderr, "%s:%d: in %s: %s\n", file, line, current, text);
	_exit(1);
}

void test_skip(const char *why)
{
	skipped = true;
	printf("skipped %s: %s\n", current, why);
}

const char *test_error(long long error)
{
	static _Thread_local char number[24];
	long long code = error < 0 ? -error : error;
	const char *name = code > 0 && code < 4096 ? strerrorname_np((int)code) : NULL;

	if (name)
		return name;
	snprintf(number, sizeof number, "%lld", error);
	return number;
}

int test_slowness(void)
{
	const char *preload = getenv("LD_PRELOAD"); /* valgrind shows itself there */

	return TEST_TSAN || TEST_ASAN || (preload && strstr(preload, "vgpreload")) || getenv("ROPHIVE_EMULATOR") ? 5
	                                                                                                         : 1;
}

long test_env(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtol(text, NULL, 10) : otherwise;
}

int64_t test_stress_ns(void)
{
	return (int64_t)test_env("ROPHIVE_STRESS_SECONDS", 2) * 1000000000;
}

static pid_t fork_flushed(void)
{
	fflush(NULL);
	pid_t child = fork();
	if (child < 0)
		test_fail(__FILE__, __LINE__, "fork: %s", strerrorname_np(errno));
	return child;
}

bool test_aborts_begin(int *ret_child)
{
	*ret_child = fork_flushed();
	if (*ret_child)
		return false;
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	if (!freopen("/dev/null", "w", stderr)) /* the assertion's message is expected here */
		_exit(2);
	signal(SIGABRT, SIG_DFL);
	return true;
}

void test_aborts_end(int child, const char *file, int line, const char *text)
{
	int status = 0;

	if (child == 0)
		_exit(0); /* survived */
	while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
		test_fail(file, line, "CHECK_MISUSE(%s): no abort, wait status 0x%x", text, (unsigned)status);
}

/* What every hive of this process is doing; then whoever looks at the core dump sees the rest. */
static void on_alarm(int signal_number)
{
	static const char text[] = " hangs: aborting\n";
	const char *name = current;

	(void)signal_number;
	if (write(2, name, strlen(name)) < 0 || write(2, text, sizeof text - 1) < 0)
		_exit(1);
	hive__dump_all(2);
	abort();
}

/* ---- what is open ---- */

enum { REMEMBERED = 256 };

struct descriptors {
	int count;
	struct {
		int fd;
		char link[100];
	} open[REMEMBERED]; /* the first of them */
};

static void remember_descriptor(struct descriptors *d, int fd)
{
	char path[32], *link;
	ssize_t n;

	if (d->count++ >= REMEMBERED)
		return;
	link = d->open[d->count - 1].link;
	d->open[d->count - 1].fd = fd;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof d->open[0].link - 1);
	link[n < 0 ? 0 : n] = '\0'; /* none: another thread has closed it meanwhile */
}

static void look_at_descriptors(struct descriptors *ret_open)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	ret_open->count = 0;
	if (!directory)
		return;
	while ((entry = readdir(directory)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory))
			remember_descriptor(ret_open, atoi(entry->d_name));
	closedir(directory);
}

/* Those that are not among the others: a number that stands for something else now is none of them. */
static void tell_descriptors(const struct descriptors *d, const struct descriptors *others, const char *what)
{
	for (int i = 0; i < d->count && i < REMEMBERED; i++) {
		bool found = false;

		for (int j = 0; j < others->count && j < REMEMBERED && !found; j++)
			found = others->open[j].fd == d->open[i].fd &&
			        strcmp(others->open[j].link, d->open[i].link) == 0;
		if (!found)
			fprintf(stderr, "%s: %d -> %s\n", what, d->open[i].fd, d->open[i].link);
	}
}

static void run_test(struct test *test)
{
	static struct descriptors before, after;

	look_at_descriptors(&before);
	current = test->name;
	skipped = false;
	alarm((unsigned)(test_env("ROPHIVE_TEST_TIMEOUT", 60) * test_slowness()));
	test->run();
	alarm(0);
	look_at_descriptors(&after);
	if (after.count != before.count) {
		tell_descriptors(&before, &after, "no longer open");
		tell_descriptors(&after, &before, "left open");
		test_fail(__FILE__, __LINE__, "%d descriptors open before, %d after", before.count, after.count);
	}
	if (!skipped)
		printf("ok %s\n", test->name);
	current = "(none)";
}

/* True when the child was content. */
static bool run_test_in_child(struct test *test)
{
	int status = 0;
	pid_t child = fork_flushed();

	if (child == 0) {
		run_test(test);
		exit(0); /* not _exit: a sanitizer looks for leaks here */
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
	if (status)
		printf("FAILED %s: wait status 0x%x\n", test->name, (unsigned)status);
	return status == 0;
}

static bool wanted(const struct test *test, int count, char **names)
{
	bool any = false;

	for (int i = 1; i < count; i++) {
		if (names[i][0] == '-')
			continue;
		if (strcmp(names[i], test->name) == 0)
			return true;
		any = true;
	}
	return !any;
}

int main(int argc, char **argv)
{
	bool list = false, in_child = false;
	int passed = 0, failed = 0;

	for (int i = 1; i < argc; i++) {
		list |= strcmp(argv[i], "--list") == 0;
		in_child |= strcmp(argv[i], "--fork") == 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, on_alarm);
	for (struct test *test = tests; test; test = test->next) {
		if (!wanted(test, argc, argv))
			continue;
		if (list) {
			puts(test->name);
		} else if (in_child && !run_test_in_child(test)) {
			failed++;
		} else {
			if (!in_child)
				run_test(test);
			passed++;
		}
	}
	if (list)
		return 0;
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed; /* a misspelt name is no success */
}
