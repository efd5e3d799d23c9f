/* SPDX-License-Identifier: MIT */
/* `hive tune` with commands whose figure is known: a function of the parameters, and noise that depends on the number of the sample
 * alone. Nothing here depends on how fast anything is. HIVE_TOOL names the program, as in hive.c.                             */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/tool.h"
#include "test.h"

static char folder[64], report[1 << 18];

/* Half of all: enough to go wrong with. */
#define SOME "--parameters order,victim,local_budget,pool_probe_interval,pool_batch,io_interval,spin_ns,mesh "

/* ± 1 % of 100000, the same in each run. */
#define NOISE                                                             \
	"n=$(( (HIVE_TUNE_SAMPLE * 1103515245 + 12345) % 2147483648 ))\n" \
	"n=$(( (n * 1103515245 + 12345) / 65536 % 2001 - 1000 ))\n"

/* Three parameters help, one harms, the others do nothing. */
static const char hill[] = "f=100000\n"
			   "case ,$HIVE_TUNE, in\n"
			   "*,pool_batch=64,*) f=$((f+8000));;\n"
			   "*,pool_batch=32,*) f=$((f+5000));;\n"
			   "*,pool_batch=128,*) f=$((f+4000));;\n"
			   "*,pool_batch=4,*) f=$((f-9000));;\n"
			   "esac\n"
			   "case ,$HIVE_TUNE, in *,spin_ns=off,*) f=$((f+6000));; esac\n"
			   "case ,$HIVE_TUNE, in *,io_interval=16,*) f=$((f+4000));; esac\n"
			   "case ,$HIVE_TUNE, in *,order=oldest,*) f=$((f-4000));; esac\n" NOISE "echo some words\n"
			   "echo hive-tune: 1\n" /* the last one counts */
			   "echo hive-tune: $((f+n)).5\n";

static const char *in_folder(const char *name)
{
	static char paths[4][128];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(in_folder(name), "w");

	CHECK(file);
	CHECK(fputs(text, file) >= 0);
	CHECK_OK(fclose(file));
}

static void read_file(const char *name, char *text, size_t size)
{
	FILE *file = fopen(in_folder(name), "r");
	size_t n;

	CHECK(file);
	n = fread(text, 1, size - 1, file);
	text[n] = '\0';
	fclose(file);
}

/* A folder for the test, with the command in it; false: no tool. */
static bool begin(const char *script)
{
	if (!find_tool())
		return false;
	snprintf(folder, sizeof folder, "/tmp/hive-tune-XXXXXX");
	CHECK(mkdtemp(folder));
	write_file("app", script);
	return true;
}

static void end(void)
{
	static const char *const names[] = { "app", "state", "held", "cut", "found.h", "errors" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unlink(in_folder(names[i]));
	CHECK_OK(rmdir(folder));
}

/* Its exit code, in the folder; stdout in `output`, or both if `both`. No limit of time unless the arguments have one. */
static int tune(const char *arguments, bool both)
{
	char command[4096];
	size_t n = 0, got;
	FILE *pipe;
	int status;

	snprintf(command, sizeof command, "cd %s && TERM=dumb '%s' tune --seconds 0 %s %s", folder, tool, arguments,
	         both ? "2>&1" : "2>errors");
	fflush(NULL);
	pipe = popen(command, "r");
	CHECK(pipe);
	while ((got = fread(output + n, 1, sizeof output - 1 - n, pipe)) > 0)
		n += got;
	output[n] = '\0';
	status = pclose(pipe);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect(int code, const char *arguments, const char *words)
{
	int got = tune(arguments, true);

	if (got != code || !strstr(output, words))
		test_fail(__FILE__, __LINE__, "%s: exit %d, expected %d and \"%s\":\n%s", arguments, got, code, words,
		          output);
}

/* "best: …" of `output`. */
static const char *best(void)
{
	static char line[512];
	const char *at = strstr(output, "\nbest: ");

	line[0] = '\0';
	if (at)
		sscanf(at, "\nbest: %511[^\n]", line);
	return line;
}

/* What comes after the first line, which has the seconds. */
static void keep_report(void)
{
	const char *at = strchr(output, '\n');

	CHECK(at);
	snprintf(report, sizeof report, "%s", at);
}

TEST(it_finds_what_helps_and_leaves_out_the_rest)
{
	static const char found[] =
		"#pragma once\n#include <rophive/hive.h>\n\n"
		"#define HIVE_TUNED_WORKER .pool_batch = 64, .io_interval = 16, .spin_ns = HIVE_OFF\n"
		"#define HIVE_TUNED_HIVE .reserved = { 0 } /* the defaults */\n";

	if (!begin(hill))
		return;
	for (int seed = 1; seed <= 2; seed++) {
		char arguments[256];
		double gain = 0;

		snprintf(arguments, sizeof arguments, SOME "--seed %d --write found.h -- sh app", seed);
		CHECK_EQ(tune(arguments, false), 0);
		CHECK_STR(best(), "pool_batch=64,io_interval=16,spin_ns=off");
		CHECK_EQ(sscanf(strstr(output, "\nbest: "), "\nbest: %*[^\n] %lf", &gain), 1);
		CHECK(gain > 16.5 && gain < 19.5); /* 18 %, with noise of one */
		read_file("found.h", report, sizeof report);
		CHECK(strstr(report, found));
	}
	/* What each is worth: 8, 4 and 6 of 118. */
	for (int i = 0; i < 3; i++) {
		static const struct {
			const char *name;
			double effect;
		} worth[] = { { "\n  pool_batch=64 ", -6.8 },
			      { "\n  io_interval=16 ", -3.4 },
			      { "\n  spin_ns=off ", -5.1 } };
		const char *row = strstr(output, worth[i].name);
		double effect = 0;

		CHECK(row);
		CHECK_EQ(sscanf(row + strlen(worth[i].name), "%lf", &effect), 1);
		CHECK(effect > worth[i].effect - 1.2 && effect < worth[i].effect + 1.2);
		CHECK(strstr(row, "matters\n"));
	}
	end();
}

/* Fewer candidates than there are neighbours: the later generations find what the first one did not draw. */
TEST(a_small_set_climbs_in_generations)
{
	if (!begin(hill))
		return;
	CHECK_EQ(tune(SOME "--candidates 16 --generations 8 --repeat 7 --seed 5 -- sh app", false), 0);
	CHECK_STR(best(), "pool_batch=64,io_interval=16,spin_ns=off");
	end();
}

TEST(less_is_better_if_it_is_said)
{
	if (!begin("f=100000\n"
	           "case ,$HIVE_TUNE, in *,pool_batch=8,*) f=$((f-5000));; *,pool_batch=32,*) f=$((f+5000));; esac\n" NOISE
	           "echo hive-tune: $((f+n))\n"))
		return;
	CHECK_EQ(tune("--parameters pool_batch,mesh --less -- sh app", false), 0);
	CHECK_STR(best(), "pool_batch=8");
	CHECK(strstr(output, "(less is better)"));
	CHECK_EQ(tune("--parameters pool_batch,mesh -- sh app", false), 0);
	CHECK_STR(best(), "pool_batch=32");
	end();
}

/* Two that harm alone and help together: a space that is small enough is tried as a whole. */
TEST(values_that_are_good_only_together_are_found_in_a_small_space)
{
	if (!begin("f=100000\n"
	           "case ,$HIVE_TUNE, in\n"
	           "*placement=choices,mesh=on,*) f=107000;;\n"
	           "*,placement=choices,*|*,mesh=on,*) f=95000;;\n"
	           "esac\n" NOISE "echo hive-tune: $((f+n))\n"))
		return;
	CHECK_EQ(tune("--parameters pool_batch=8:32,placement,mesh -- sh app", false), 0);
	CHECK_STR(best(), "placement=choices,mesh=on");
	end();
}

/* Noise alone: the best of many is not better than the defaults, and that is what is said. */
TEST(noise_is_not_taken_for_a_gain)
{
	static const char nothing[] = "#define HIVE_TUNED_WORKER .reserved = { 0 } /* the defaults */\n";
	int taken = 0;

	if (!begin("f=100000\n" NOISE "echo hive-tune: $((f+n*10))\n"))
		return;
	for (int seed = 1; seed <= 6; seed++) {
		char arguments[128];

		snprintf(arguments, sizeof arguments,
		         "--candidates 24 --generations 1 --seed %d --write found.h -- sh app", seed);
		CHECK_EQ(tune(arguments, false), 0);
		if (strcmp(best(), "the defaults") != 0) {
			taken++;
			continue;
		}
		CHECK(strstr(output, "not better by more than the spread"));
		read_file("found.h", report, sizeof report);
		CHECK(strstr(report, nothing));
	}
	CHECK(taken <= 1); /* the same in each run: docs/tuning.md says how often to expect it */
	end();
}

/* An interrupted run goes on: wherever its file ends, also in the middle of a line, the result is that of a run in one piece. */
TEST(a_run_goes_on_where_it_was_interrupted)
{
	static char whole[1 << 18], state[1 << 18], again[1 << 18];
	size_t length;

	if (!begin(hill))
		return;
	CHECK_EQ(tune("--parameters pool_batch,spin_ns,order --candidates 16 --state state -- sh app", false), 0);
	keep_report();
	snprintf(whole, sizeof whole, "%s", report);
	read_file("state", state, sizeof state);
	length = strlen(state);
	CHECK(length > 1000);
	for (size_t i = 0; i < 6; i++) {
		size_t keep = (size_t[]){ 0, 20, length / 5, length / 2, length - 40, length }[i];
		unsigned long long samples = 0, fresh = 0;

		snprintf(again, sizeof again, "%.*s", (int)keep, state);
		write_file("cut", again);
		CHECK_EQ(tune("--parameters pool_batch,spin_ns,order --candidates 16 --state cut -- sh app", false), 0);
		CHECK_EQ(sscanf(output, "samples: %llu, of these %llu new", &samples, &fresh), 2);
		CHECK((fresh == 0) == (keep == length));
		CHECK(keep < length / 5 ? fresh == samples : fresh < samples);
		keep_report();
		CHECK_STR(report, whole);
		/* And the file is whole again: what was cut off has left nothing behind. */
		CHECK_EQ(tune("--parameters pool_batch,spin_ns,order --candidates 16 --state cut -- sh app", false), 0);
		CHECK_EQ(sscanf(output, "samples: %llu, of these %llu new", &samples, &fresh), 2);
		CHECK_EQ(fresh, 0);
	}
	end();
}

/* By a signal, in the middle of a sample, of the defaults or of another one: told, and nothing of that sample is kept. */
TEST(a_signal_ends_the_run_and_the_state_stays)
{
	if (!begin(""))
		return;
	for (int last = 7; last <= 8; last++) { /* of one round: one of them at least is not the defaults */
		char text[256];
		int lines = 0;

		snprintf(text, sizeof text,
		         "[ \"$HIVE_TUNE_SAMPLE\" -lt %d ] || { kill -TERM $PPID; sleep 600; }\necho hive-tune: 5\n",
		         last);
		write_file("app", text);
		CHECK_EQ(tune("--parameters pool_batch --state state -- sh app", true), 128 + SIGTERM);
		snprintf(text, sizeof text, "interrupted after %d samples; the same command goes on from here", last);
		CHECK(strstr(output, text));
		read_file("state", output, sizeof output);
		for (const char *at = output; *at; at++)
			lines += *at == '\n';
		CHECK_EQ(lines, last); /* the head and the samples before */
		write_file("app", "echo hive-tune: 5\n");
		CHECK_EQ(tune("--parameters pool_batch --state state -- sh app", false), 0);
		CHECK_STR(best(), "the defaults");
		CHECK(!strstr(output, "failed"));
		CHECK_OK(unlink(in_folder("state")));
	}
	end();
}

TEST(a_state_of_another_search_or_a_broken_one_is_refused)
{
	if (!begin(hill))
		return;
	CHECK_EQ(tune("--parameters order --state state -- sh app", false), 0);
	expect(1, "--parameters order --seed 2 --state state -- sh app", "state is of another search");
	expect(1, "--parameters order --state state -- sh app other", "state is of another search");
	read_file("state", report, sizeof report);
	strcat(report, "nonsense\n");
	write_file("state", report);
	expect(1, "--parameters order --state state -- sh app", "not a sample");
	write_file("state", "somebody's diary\n");
	expect(1, "--parameters order --state state -- sh app", "another search");
	read_file("state", report, sizeof report);
	CHECK_STR(report, "somebody's diary\n"); /* untouched */
	expect(1, "--parameters order --state no/such/folder -- sh app", "no/such/folder");
	expect(1, "--parameters order --write no/such/folder -- sh app", "no/such/folder");
	end();
}

/* With the defaults it has to work. */
TEST(a_command_that_fails_says_nothing_or_hangs_is_told)
{
	if (!begin("echo it is broken >&2\nexit 5\n"))
		return;
	expect(1, "-- sh app", "hive tune: command, with the defaults: exit code 5: it is broken");
	CHECK_EQ(strncmp(output, "hive tune: command", 18), 0); /* and before any candidate */
	expect(1, "-- ./no_such_program", "no_such_program: No such file or directory");
	write_file("app", "echo a lot of words, no figure\n");
	expect(1, "-- sh app", "printed no line \"hive-tune: F\"");
	write_file("app", "exit 0\n");
	expect(1, "-- sh app", "printed no line \"hive-tune: F\"");
	for (size_t i = 0; i < 6; i++) {
		char script[64];

		snprintf(script, sizeof script, "echo 'hive-tune: %s'\n",
		         (const char *[]){ "0", "-3", "nan", "inf", "12 apples", "" }[i]);
		write_file("app", script);
		expect(1, "-- sh app", "with a number F above 0");
	}
	write_file("app", "kill -SEGV $$\n");
	expect(1, "-- sh app", "ended by signal 11");
	write_file("app", "sleep 600\n");
	expect(3, "--limit 0.05 -- sh app", "no end after 0.05 seconds");
	write_file("app", "exec >&- 2>&-\nsleep 600\n"); /* closes its output and lives on */
	expect(3, "--limit 0.05 -- sh app", "no end after 0.05 seconds");
	end();
}

/* A candidate may fail or hang; the search goes on without it. What it has started ends with it. */
TEST(a_candidate_that_fails_or_hangs_is_left_out)
{
	char byte;
	int held;

	if (!begin("f=100000\n"
	           "case ,$HIVE_TUNE, in\n"
	           "*,pool_batch=8,*) echo not with 8 >&2; exit 1;;\n"
	           "*,pool_batch=32,*) sleep 600 >held 2>&1 & sleep 600;;\n"
	           "*,pool_batch=64,*) f=106000;;\n"
	           "esac\n" NOISE "echo hive-tune: $((f+n))\n"))
		return;
	CHECK_OK(mkfifo(in_folder("held"), 0600));
	held = open(in_folder("held"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(held >= 0);
	/* Only the one that never ends may reach the limit, however slow the others are. */
	CHECK_EQ(tune("--parameters pool_batch=8:32:64 --limit 3 --state state -- sh app", false), 0);
	CHECK_STR(best(), "pool_batch=64");
	CHECK(strstr(output, "failed: 2, the last one pool_batch="));
	read_file("errors", report, sizeof report);
	CHECK(strstr(report, "pool_batch=8: command: exit code 1: not with 8"));
	CHECK(strstr(report, "pool_batch=32: command: no end after 3 seconds"));
	CHECK_OK(fcntl(held, F_SETFL, 0));
	CHECK_EQ(read(held, &byte, 1), 0); /* nobody is left who could write: else this waits */
	CHECK_OK(close(held));
	read_file("state", report, sizeof report);
	CHECK(strstr(report, "pool_batch=8 = failed\n") && strstr(report, "pool_batch=32 = failed\n"));
	end();
}

/* An hour would not be enough; there is next to none. It says so instead of judging. */
TEST(without_time_nothing_is_judged)
{
	if (!begin("echo hive-tune: 5\n"))
		return;
	CHECK_EQ(tune("--seconds 0.000001 -- sh app", false), 0);
	CHECK_STR(best(), "the defaults");
	CHECK(strstr(output, "the time was over before anything could be judged"));
	end();
}

/* One line that is written over, and lines that stay, on a terminal; else only these. */
TEST(progress_is_shown_on_a_terminal_and_told_in_lines_elsewhere)
{
	char *const arguments[] = { tool, "tune", "--seconds",    "0", "--parameters", "mesh",
		                    "--", "echo", "hive-tune: 5", NULL };
	int terminal, status = 0;
	size_t n = 0;
	ssize_t got;
	pid_t child;

	if (!begin(""))
		return;
	terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(terminal >= 0);
	CHECK_OK(grantpt(terminal));
	CHECK_OK(unlockpt(terminal));
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);

		if (other < 0 || dup2(other, STDERR_FILENO) < 0 || dup2(other, STDOUT_FILENO) < 0 ||
		    (other > STDERR_FILENO && close(other) != 0) || setenv("TERM", "xterm", 1) != 0)
			_exit(99);
		execv(tool, arguments);
		_exit(99);
	}
	/* Until the last one has closed the other end, which is an error of read. */
	while ((got = read(terminal, output + n, sizeof output - 1 - n)) > 0 || (got < 0 && errno == EINTR) ||
	       (got < 0 && n == 0 && waitpid(child, &status, WNOHANG) == 0))
		n += got > 0 ? (size_t)got : 0;
	output[n] = '\0';
	CHECK_OK(close(terminal));
	if (status == 0)
		CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK(strstr(output, "\r\x1b[K") && strstr(output, "] 1 of 18  search 1, rung 1"));
	CHECK(strstr(output, "search 1, rung 1: 2 candidates, 9 of 9 rounds; none above the defaults"));
	CHECK_EQ(tune("--parameters mesh -- echo hive-tune: 5", true), 0);
	CHECK(!strchr(output, '\x1b') && !strchr(output, '\r'));
	CHECK(strstr(output, "search 1, rung 1: 2 candidates, 9 of 9 rounds; none above the defaults\n"));
	end();
}

TEST(a_dry_run_prints_candidates_and_starts_nothing)
{
	if (!begin("echo ran >found.h\n"))
		return;
	CHECK_EQ(tune("--dry-run --parameters pool_batch=8:32,mesh -- sh app", true), 0);
	CHECK_STR(output, "-\npool_batch=8\npool_batch=32\nmesh=on\npool_batch=8,mesh=on\npool_batch=32,mesh=on\n");
	CHECK(access(in_folder("found.h"), F_OK) != 0);
	CHECK_EQ(tune("--dry-run --candidates 10 --seed 3 --scenario post", true), 0);
	keep_report();
	CHECK_EQ(tune("--dry-run --candidates 10 --seed 3 --scenario post", true), 0);
	CHECK(strstr(output, report)); /* the same seed, the same candidates */
	CHECK_EQ(tune("--dry-run --candidates 10 --seed 4 --scenario post", true), 0);
	CHECK(!strstr(output, report));
	end();
}

TEST(bad_command_lines_are_refused)
{
	static const struct {
		int code;
		const char *arguments, *words;
	} bad[] = {
		{ 2, "", "which scenario, or which command?" },
		{ 2, "sh app", "A command comes after --" },
		{ 2, "--no-such-option -- sh app", "unrecognized option" },
		{ 2, "--parameters no_such -- sh app", "there is no parameter 'no_such'" },
		{ 2, "--parameters pool_batch=x -- sh app", "'x' is no value for pool_batch" },
		{ 2, "--parameters pool_batch=300 -- sh app", "'300' is no value for pool_batch" },
		{ 2, "--parameters local_capacity=100 -- sh app", "'100' is no value for local_capacity" },
		{ 2, "--parameters pool_batch=8: -- sh app", "'' is no value for pool_batch" },
		{ 2, "--parameters pool_batch,pool_batch -- sh app", "pool_batch is named twice" },
		{ 2, "--parameters pool_batch=default -- sh app", "nothing to try but the defaults" },
		{ 2, "--parameters pool_batch=1:2:3:4:5:6:7:8:9:10:11:12:13 -- sh app", "more than 12 values" },
		{ 2, "--parameters '' -- sh app", "there is no parameter ''" },
		{ 2, "--seconds -1 -- sh app", "not a value for its option: -1" },
		{ 2, "--limit 0 -- sh app", "not a value for its option: 0" },
		{ 2, "--repeat 2 -- sh app", "not a value for its option: 2" },
		{ 2, "--candidates 1 -- sh app", "not a value for its option: 1" },
		{ 2, "--generations many -- sh app", "not a value for its option: many" },
		{ 2, "--seed -1 -- sh app", "not a value for its option: -1" },
		{ 2, "--scenario post --less", "--less is for the figure of a command" },
		{ 2, "--scenario switch", "nothing to tune in the scenario switch" },
		{ 2, "--scenario ,", "which scenario?" },
		{ 10, "--scenario post,no_such", "no scenario 'no_such'" },
		{ 1, "--scenario post -- --threads none", "exit code 2" },
		{ 0, "--help", "usage: hive tune" },
	};

	if (!begin("echo hive-tune: 5\n"))
		return;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		expect(bad[i].code, bad[i].arguments, bad[i].words);
	end();
}

/* The built-in scenarios take the candidates, each in a process of its own; what comes out is the machine's business. A server that such a process starts
 * tells with which ones it runs; that they have an effect there is bench_obeys_the_parameters_of_the_environment in bench.c.                          */
TEST(scenarios_are_measured_with_the_candidates)
{
	if (!begin("echo \"got '$HIVE_TUNE'\" >>held\n"
	           "exec \"$SPIED_TOOL\" bench --scenario echo_server --in-process --port 0 --seconds 60\n"))
		return;
	CHECK_EQ(tune("--scenario post,yield --parameters pool_batch=8,preset=faio --repeat 3 --state state "
	              "-- --n 200 --threads 1",
	              false),
	         0);
	CHECK(strstr(output, "defaults: post ") && strstr(output, "defaults: yield "));
	CHECK(strstr(output, "ops_per_s (more is better)"));
	CHECK(strstr(output, "\nbest: "));
	read_file("state", report, sizeof report);
	CHECK(strstr(report, "search0.0.0 post - = ") && strstr(report, "search0.0.0 yield - = "));
	CHECK(strstr(report, " post pool_batch=8,preset=faio = ") && !strstr(report, "failed"));
	CHECK_OK(setenv("SPIED_TOOL", tool, 1));
	CHECK_EQ(tune("--scenario echo_server --parameters pool_batch=8 --repeat 3 "
	              "-- --connections 1 --seconds 0.05 --threads 1 --server 'spy=exec sh ./app'",
	              false),
	         0);
	read_file("held", report, sizeof report);
	CHECK(strstr(report, "got ''\n") && strstr(report, "got 'pool_batch=8'\n"));
	end();
}
