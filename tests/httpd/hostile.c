/* SPDX-License-Identifier: MIT */
/* examples/httpd and clients that do not behave: slow, greedy, gone, too many, or with one request inside another. */
#include "live.h"

static char text[65536];

/* ---- requests that hide others ---- */

static void smuggle(const char *core)
{
	static const struct {
		int status;
		const char *request;
	} table[] = {
		{ 400,
		  "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
		{ 400, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde" },
		{ 501, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" },
		{ 400, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n" },
		{ 400, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" },
		{ 400, "GET / HTTP/1.1\nHost: h\n\n" },
		{ 400, "GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\n\r\n" },
		{ 505, "GET / HTTP/3.0\r\nHost: h\r\n\r\n" },
		{ 501, "TRACE / HTTP/1.1\r\nHost: h\r\n\r\n" },
		{ 400, "\x16\x03\x01\x02\r\n\r\n" },
	};
	struct live live = live_start(core, NULL);

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		char request[512];
		const char *second;

		/* what stands behind it is never answered */
		snprintf(request, sizeof request, "%sGET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n", table[i].request);
		CHECK_EQ(live_ask(&live, request, text, sizeof text), table[i].status);
		CHECK(strstr(text, "Connection: close") != NULL);
		second = strstr(text + 1, "HTTP/1.1 ");
		CHECK(second == NULL);
	}
	live_stop(&live);
}

TEST(an_ambiguous_request_is_the_last_of_its_connection)
{
	live_each(smuggle);
}

/* ---- limits ---- */

static void exceed(const char *core)
{
	const char *const more[] = { "--header-bytes",
		                     "1000",
		                     "--request-line",
		                     "200",
		                     "--header-count",
		                     "5",
		                     "--body-bytes",
		                     "10",
		                     "--requests",
		                     "3",
		                     NULL };
	struct live live = live_start(core, more);
	static char request[4096];
	int fd;

	memset(request, 'x', sizeof request);
	memcpy(request, "GET /", 5);
	request[300] = 0;
	CHECK_EQ(live_ask(&live, request, text, sizeof text), 414);
	memcpy(request, "GET / HTTP/1.0\r\nA: ", 19);
	memset(request + 19, 'x', sizeof request - 19);
	request[3000] = 0;
	CHECK_EQ(live_ask(&live, request, text, sizeof text), 431);
	CHECK_EQ(live_ask(&live, "GET / HTTP/1.0\r\na:\r\nb:\r\nc:\r\nd:\r\ne:\r\nf:\r\n\r\n", text, sizeof text), 431);
	CHECK_EQ(live_ask(&live, "POST /echo HTTP/1.0\r\nContent-Length: 11\r\n\r\n", text, sizeof text), 413);
	fd = live_connect(&live);
	CHECK(live_say(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
	                   "b\r\n01234567890\r\n0\r\n\r\n"));
	CHECK_EQ(live_status(fd, true), 413);
	CHECK(live_is_closed(fd));
	CHECK_OK(close(fd));
	fd = live_connect(&live);
	for (int i = 0; i < 3; i++) {
		CHECK(live_say(fd, "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n"));
		CHECK_EQ(live_status(fd, true), 200);
	}
	CHECK(live_is_closed(fd));
	CHECK_OK(close(fd));
	live_stop(&live);
}

TEST(each_limit_has_its_answer)
{
	live_each(exceed);
}

static void too_many(const char *core)
{
	const char *const more[] = { "--connections", "3", "--workers", "2", NULL };
	struct live live = live_start(core, more);
	int fds[3], extra;

	for (int i = 0; i < 3; i++) {
		fds[i] = live_connect(&live);
		CHECK(live_say(fds[i], "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n"));
		CHECK_EQ(live_status(fds[i], true), 200);
	}
	CHECK_EQ(live_ask(&live, "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n", text, sizeof text), 503);
	CHECK(strstr(text, "Retry-After") != NULL);
	CHECK_OK(close(fds[0]));
	for (int tries = 0, status = 503; status == 503; tries++) { /* it has to notice first */
		CHECK(tries < 1000);
		extra = live_connect(&live);
		CHECK(live_say(extra, "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n"));
		status = live_status(extra, true);
		CHECK(status == 200 || status == 503);
		CHECK_OK(close(extra));
	}
	CHECK_OK(close(fds[1]));
	CHECK_OK(close(fds[2]));
	live_stop(&live);
}

TEST(connections_beyond_the_limit_are_told_so)
{
	live_each(too_many);
}

/* ---- too slow ---- */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A byte now and then, for ever: until the server has had enough. */
static void drip(int fd, const char *bytes, int every_ms)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	for (size_t i = 0; poll(&ready, 1, every_ms) == 0; i++)
		if (!live_send(fd, bytes[i] ? bytes + i : "x", 1) || i > 3000)
			break;
}

static const char *const short_patience[] = {
	"--header-timeout", "0.3", "--idle-timeout", "0.4", "--grace", "0.3", "--rate", "1000000", NULL
};

static void be_slow(const char *core)
{
	struct live live = live_start(core, short_patience);
	int64_t began = now_ms();
	int fd = live_connect(&live);

	/* slowloris */
	drip(fd, "GET / HTTP/1.1\r\nHost: h\r\nX-A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 10);
	CHECK_EQ(live_status(fd, true), 408);
	CHECK(now_ms() - began >= 300);
	CHECK_OK(close(fd));
	/* a body that drips */
	fd = live_connect(&live);
	CHECK(live_say(fd, "POST /none HTTP/1.1\r\nHost: h\r\nContent-Length: 10000\r\n\r\n"));
	drip(fd, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 10);
	CHECK_EQ(live_status(fd, true), 405); /* that was clear at once */
	CHECK_OK(close(fd));
	fd = live_connect(&live);
	CHECK(live_say(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10000\r\n\r\n"));
	CHECK_EQ(live_status(fd, true), 408);
	CHECK_OK(close(fd));
	/* silence: no answer, but an end */
	fd = live_connect(&live);
	CHECK(live_is_closed(fd));
	CHECK_OK(close(fd));
	fd = live_connect(&live);
	CHECK(live_say(fd, "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n"));
	CHECK_EQ(live_status(fd, true), 200);
	CHECK(live_is_closed(fd));
	CHECK_OK(close(fd));
	live_stop(&live);
}

TEST(slow_clients_meet_a_deadline)
{
	live_each(be_slow);
}

/* Who asks for much and takes nothing: the server has less than that in flight, and gives up. */
static void never_read(const char *core)
{
	struct live live = live_start(core, short_patience);
	int fd = live_connect(&live);
	static const char request[] = "GET /big.bin HTTP/1.1\r\nHost: h\r\n\r\n";
	bool ends = false;

	for (int i = 0; i < 20; i++)
		CHECK(live_say(fd, request));
	for (int64_t began = now_ms(); !ends && now_ms() - began < PATIENCE_MS;) {
		struct pollfd gone = { .fd = fd, .events = 0 }; /* reset, because it sends no more and closes */

		ends = poll(&gone, 1, 100) > 0 && (gone.revents & (POLLHUP | POLLERR));
		ends = ends || !live_send(fd, "x", 1);
	}
	CHECK(ends);
	CHECK_OK(close(fd));
	CHECK_EQ(live_ask(&live, "GET / HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	live_stop(&live);
}

TEST(who_takes_nothing_is_given_up)
{
	live_each(never_read);
}

/* ---- gone ---- */

static void reset_now(int fd)
{
	struct linger none = { 1, 0 };

	CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none));
	CHECK_OK(close(fd));
}

static void go_away(const char *core)
{
	struct live live = live_start(core, NULL);

	for (int i = 0; i < 20; i++) {
		int fd = live_connect(&live);

		CHECK(live_say(fd, "GET /big.bin HTTP/1.1\r\nHost: h\r\n\r\n"));
		CHECK(recv(fd, text, i % 2 ? 1 : sizeof text, 0) > 0);
		reset_now(fd);
		fd = live_connect(&live);
		CHECK(live_say(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nsome"));
		reset_now(fd);
		fd = live_connect(&live);
		CHECK(live_say(fd, "GET / HT"));
		reset_now(fd);
	}
	CHECK_EQ(live_ask(&live, "GET / HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	live_stop(&live);
}

TEST(a_reset_ends_one_connection)
{
	live_each(go_away);
}

/* The client has said all, and listens on. */
static void half_close(const char *core)
{
	struct live live = live_start(core, NULL);
	int fd = live_connect(&live);
	size_t n;

	CHECK(live_say(fd, "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\nGET /big.bin HTTP/1.1\r\nHost: h\r\n\r\n"));
	CHECK_OK(shutdown(fd, SHUT_WR));
	CHECK_EQ(live_status(fd, true), 200);
	CHECK_EQ(live_status(fd, true), 200);
	CHECK(live_is_closed(fd));
	CHECK_OK(close(fd));
	fd = live_connect(&live); /* within a request */
	CHECK(live_say(fd, "GET /small.txt HTTP/1.1\r\nHo"));
	CHECK_OK(shutdown(fd, SHUT_WR));
	n = live_read_all(fd, text, sizeof text - 1);
	text[n] = 0;
	CHECK(strncmp(text, "HTTP/1.1 400", 12) == 0);
	CHECK_OK(close(fd));
	live_stop(&live);
}

TEST(a_half_close_does_not_cut_off_answers)
{
	live_each(half_close);
}

/* ---- no descriptors ---- */

static int64_t cpu_ms(pid_t process)
{
	char path[64], line[512] = "", *at;
	long long user, system;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, line, sizeof line - 1) > 0);
	CHECK_OK(close(fd));
	at = strrchr(line, ')');
	CHECK(at && sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld", &user, &system) == 2);
	return (user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

enum { DESCRIPTORS = 48, GREEDY = 60, LET_IN = 24, BURNT_MS = 200 };

static int64_t own_cpu_ms(void)
{
	struct timespec now;

	CHECK_OK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now));
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* So much of a processor: on a busy machine another one that spins gets about as much meanwhile. */
static void burn(int64_t ms)
{
	int64_t end = own_cpu_ms() + ms;

	while (own_cpu_ms() < end)
		;
}

/* Until so many have their answers: what is counted from then on is waiting. */
static void wait_for_answers(const int fds[GREEDY])
{
	for (int i = 0; i < LET_IN; i++)
		CHECK_EQ(poll(&(struct pollfd){ .fd = fds[i], .events = POLLIN }, 1, 20000 * test_slowness()), 1);
}

static void run_out(const char *core)
{
	struct live live = live_start_with(core, (const char *const[]){ "--workers", "1", NULL }, DESCRIPTORS);
	int fds[GREEDY];
	int64_t before;

	CHECK_EQ(live_ask(&live, "GET /small.txt HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	for (int i = 0; i < GREEDY; i++)
		fds[i] = live_connect(&live); /* the system lets them in, the server cannot */
	for (int i = 0; i < GREEDY; i++)
		CHECK(live_say(fds[i], "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n"));
	wait_for_answers(fds);
	before = cpu_ms(live.process);
	burn(BURNT_MS);
	CHECK(cpu_ms(live.process) - before < BURNT_MS / 3); /* who waits takes 10 at most, with sanitizers too */
	for (int i = 0; i < GREEDY; i++) {                   /* each that goes makes room for another */
		int status = live_status(fds[i], true);

		CHECK_EQ(status, 200);
		CHECK_OK(close(fds[i]));
	}
	CHECK_EQ(live_ask(&live, "GET /small.txt HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	live_stop(&live);
}

TEST(without_descriptors_it_waits_and_does_not_spin)
{
	live_each(run_out);
}
