/* SPDX-License-Identifier: MIT */
/* usage: victim [option...] [core...]      cores: epoll (with hive_start), poll (with hive_run); all if none is named
 *   --codes E,E     errors that calls may return
 *   --io            in place of the scenario: one that is about input and output; whatever error comes is right
 *   --strict        with --io: none may come
 *   --deaf          the cores' waiting fails for good: nobody waits for an event
 *   --refuse C E    the system call C always returns the error E
 *   --watchdog S    seconds until it counts as hanging; 60
 *   --hang          it does, and nothing else
 *   --lose-fds      close() itself is made to fail: open descriptors are not our fault
 * The scenario with real threads, for somebody outside who makes system calls fail (tests/faults/run). Status 0: all right,
 * or a documented error was returned and everything cleaned up; 3: something was not as promised; 4: it hung.           */
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>

#include "core/cores.h"
#include "io.h"
#include "scenario.h"
#include "sched/internal.h"
#include "wrap.h"

enum { VIOLATED = 3, HUNG = 4, WATCHDOG_S = 60, FDS = 256 };

/* In place of tests/support: no test registers here, and the status tells what happened. */
_Noreturn void test_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%s:%d: ", file, line);
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	_exit(VIOLATED);
}

const char *test_error(long long error)
{
	const char *name = strerrorname_np((int)(error < 0 ? -error : error));

	return name ? name : "?";
}

static struct ledger ledger;
static struct scenario scenario;

static void on_alarm(int number)
{
	static const char text[] = "hangs\n";

	(void)number;
	if (write(2, text, sizeof text - 1) < 0)
		_exit(VIOLATED);
	hive__dump_all(2);
	_exit(HUNG);
}

static ATOMIC(int64_t) balance;

static void *allocate(void *arg, void *old, size_t bytes)
{
	void *block = bytes ? realloc(old, bytes) : NULL;

	(void)arg;
	if (bytes == 0) {
		sub_seq(&balance, (int64_t)(old != NULL));
		free(old);
	} else if (!old && block) {
		add_seq(&balance, (int64_t)1);
	}
	return block;
}

static void pass(void *arg)
{
	struct timespec moment = { 0, 100000 };

	(void)arg;
	nanosleep(&moment, NULL); /* the watchdog ends this if nothing happens */
}

/* By a call that the library does not make, so that no fault hits it. */
static int open_fds(void)
{
	struct statfs about;
	int count = 0;

	for (int fd = 0; fd < FDS; fd++)
		count += fstatfs(fd, &about) >= 0 || errno != EBADF;
	return count;
}

static int code_of(const char *name)
{
	for (int code = 1; code < 200; code++)
		if (strerrorname_np(code) && strcmp(strerrorname_np(code), name) == 0)
			return -code;
	test_fail(__FILE__, __LINE__, "no error is named %s", name);
}

static void parse_codes(char *names, int *ret_codes, int most)
{
	int count = 0;

	for (char *name = strtok(names, ","); name && count < most - 1; name = strtok(NULL, ","))
		ret_codes[count++] = code_of(name);
	ret_codes[count] = 0;
}

/* Calls that the kernel answers with an error, always, without anybody who traces us. Of futex only the waiting. (The C library
 * uses the same call in its locks, and waits otherwise elsewhere.)                                                       */
static const struct {
	const char *name;
	uint32_t call, operation; /* UINT32_MAX: whatever its second argument */
} refusable[] = {
	{ "futex_wait", SYS_futex, FUTEX_WAIT_PRIVATE },
	{ "epoll_pwait2", SYS_epoll_pwait2, UINT32_MAX },
};

/* A wait without a limit does not run into it: the C library ends the process when one does. The address of the limit is the fourth argument. */
static void refuse(uint32_t call, uint32_t operation, int error)
{
	bool limited = call == SYS_futex && error == ETIMEDOUT;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(operation == UINT32_MAX ? BPF_JMP | BPF_JGE | BPF_K : BPF_JMP | BPF_JEQ | BPF_K,
		         operation == UINT32_MAX ? 0 : operation, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, limited ? 1 : 0, 2, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3]) + sizeof(uint32_t)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };

	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void refuse_by_name(const char *name, int error)
{
	for (size_t i = 0; i < sizeof refusable / sizeof *refusable; i++)
		if (strcmp(refusable[i].name, name) == 0) {
			refuse(refusable[i].call, refusable[i].operation, error);
			return;
		}
	test_fail(__FILE__, __LINE__, "%s is not among what can be refused", name);
}

static int out_fd;

/* Not hive_core_find(): asking whether the system gives a core is a call that may be made to fail. */
static const struct hive_core_ops *core_named(const char *name)
{
	static const struct hive_core_ops *const cores[] = {
		&hive__core_epoll,
		&hive__core_poll,
#if defined(HIVE_URING)
		&hive__core_uring,
#endif
	};

	for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
		if (strcmp(cores[i]->name, name) == 0)
			return cores[i];
	return NULL;
}

static void play(const char *core, const int *codes, bool deaf)
{
	static struct hive_host host = { .allocate = allocate };
	struct hive_worker_options io = { 0 };

	io.core = core_named(core);
	memset(&scenario, 0, sizeof scenario);
	scenario.options.host = &host;
	scenario.options.io = &io;
	scenario.codes = codes;
	scenario.retries = 2;
	scenario.deaf = deaf;
	scenario.use_run = strcmp(core, "poll") == 0;
	scenario.pass = pass;
	scenario.out_fd = out_fd;
	scenario_play(&scenario, &ledger);
	printf("%s: %u errors, %u warnings, %u tasks\n", core, load_seq(&ledger.errors), load_seq(&ledger.warnings),
	       load_seq(&ledger.count));
	CHECK_EQ(load_seq(&balance), 0);
}

static void ignore(void *hook_arg, const char *text)
{
	(void)hook_arg, (void)text;
}

static void play_io(const char *core, bool strict)
{
	static struct hive_host host = { .allocate = allocate };
	struct hive_worker_options io = { .core = core_named(core) };
	struct io_scenario s = { .options = { .host = &host, .io = &io, .on_warn = ignore }, .strict = strict };

	printf("%s: %u errors of input and output\n", core, io_play(&s));
	CHECK_EQ(load_seq(&balance), 0);
}

static void quit(void *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_NOWAIT));
}

/* What a window's thread is asked for without having been demanded: whatever the system says, it runs. */
static void play_ui(const char *core)
{
	struct hive_worker_options ui = { .core = core_named(core), .ui = true };
	struct hive_options options = { .io_workers = 1, .io = &ui };
	struct hive *hive;

	CHECK_OK(hive_create(&options, &hive));
	CHECK_OK(hive_post(hive, quit, hive));
	CHECK_OK(hive_run(hive));
	CHECK_OK(hive_destroy(hive));
}

/* What the watchdog finds. */
_Noreturn static void hang(void)
{
	struct hive_options options = { .io_workers = 1, .compute_workers = 1 };
	struct hive *hive;

	CHECK_OK(hive_create(&options, &hive));
	CHECK_OK(hive_start(hive));
	for (;;)
		pause();
}

/* The cores that can be had, if not all of them: what the system is asked for that may fail. */
static void ask_for_cores(void)
{
	static const char *const names[] = { "best", "epoll", "poll", "uring" };
	const struct hive_core_ops *ops;

	for (int i = 0; i < 4; i++) {
		int r = hive_core_find(names[i], &ops);

		if (i < 3)
			CHECK_OK(r);
		else if (r == 0)
			CHECK_STR(ops->name, names[i]);
	}
}

/* Pages for signals and children, and a buffer of the C library, are made at the first use. */
static void make_what_stays(void)
{
	static const int number = SIGUSR1;

	CHECK_OK(hive_signal_unwatch(&number, 1));
	CHECK_ERR(hive_process_wait(1, HIVE_NOWAIT), -ESRCH);
	printf("cores:\n");
}

int main(int argc, char **argv)
{
	bool deaf = false, lose_fds = false, any = false, io = false, ui = false, strict = false;
	int codes[16] = { 0 }, before;
	int64_t blocks;

	signal(SIGALRM, on_alarm);
	alarm(WATCHDOG_S);
	out_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	CHECK(out_fd >= 0);
	make_what_stays();
	blocks = load_relaxed(&wrap.balance);
	getppid(); /* a mark in the trace: what comes before is not ours */
	before = open_fds();
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--codes") == 0 && i + 1 < argc)
			parse_codes(argv[++i], codes, 16);
		else if (strcmp(argv[i], "--refuse") == 0 && i + 2 < argc)
			refuse_by_name(argv[i + 1], -code_of(argv[i + 2]));
		else if (strcmp(argv[i], "--watchdog") == 0 && i + 1 < argc)
			alarm((unsigned)atoi(argv[++i]));
		else if (strcmp(argv[i], "--deaf") == 0)
			deaf = true;
		else if (strcmp(argv[i], "--io") == 0)
			io = true;
		else if (strcmp(argv[i], "--ui") == 0)
			ui = true;
		else if (strcmp(argv[i], "--strict") == 0)
			strict = true;
		else if (strcmp(argv[i], "--lose-fds") == 0)
			lose_fds = true;
		else if (strcmp(argv[i], "--hang") == 0)
			hang();
	}
	ask_for_cores();
	for (int i = 1; i < argc; i++)
		if (core_named(argv[i])) {
			any = true;
			if (io)
				play_io(argv[i], strict);
			else if (ui)
				play_ui(argv[i]);
			else
				play(argv[i], codes, deaf);
		}
	if (!any) {
		play("epoll", codes, deaf);
		play("poll", codes, deaf);
	}
	if (!lose_fds)
		CHECK_EQ(open_fds(), before);
	if (io)
		CHECK_EQ(load_relaxed(&wrap.balance), blocks);
	return 0;
}
