/* SPDX-License-Identifier: MIT */
#pragma once
/* examples/httpd as a process of its own, at a port that the system chose, and clients that are plain sockets. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "support/corelist.h"
#include "test.h"

enum { ARGUMENTS = 40, PATIENCE_MS = 30000, SMALL = 1024, BIG = 3 << 20 };

struct live {
	pid_t process;
	uint16_t port;
	int errors; /* what it says at its end */
};

static char live_root[] = "/tmp/rophive-httpd-XXXXXX";
static bool live_has_root;
static unsigned char live_big[BIG];

/* ---- files ---- */

static inline void live_write(const char *name, const void *bytes, size_t count)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/%s", live_root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, bytes, count), count);
	CHECK_OK(close(fd));
}

/* Called once: index.html, small.txt, big.bin, sub/, out (a link that leads out). */
static inline void live_make_root(void)
{
	uint32_t x = 1;
	char path[128];

	if (live_has_root)
		return;
	CHECK(mkdtemp(live_root) != NULL);
	live_has_root = true;
	for (size_t i = 0; i < BIG; i++) {
		x = x * 1103515245u + 12345u;
		live_big[i] = (unsigned char)(x >> 16);
	}
	live_write("big.bin", live_big, BIG);
	live_write("small.txt", live_big, SMALL);
	live_write("index.html", "<p>index</p>\n", 13);
	snprintf(path, sizeof path, "%s/sub", live_root);
	CHECK_OK(mkdir(path, 0755));
	live_write("sub/index.html", "<p>sub</p>\n", 11);
	snprintf(path, sizeof path, "%s/out", live_root);
	CHECK_OK(symlink("/etc/passwd", path));
}

static inline void live_remove_root(void)
{
	char command[128];

	if (!live_has_root)
		return;
	live_has_root = false;
	snprintf(command, sizeof command, "rm -rf %s", live_root);
	CHECK_OK(system(command));
	strcpy(live_root + strlen(live_root) - 6, "XXXXXX");
}

/* ---- the server ---- */

static inline void live_exec(const char *core, const char *const *more, int descriptors)
{
	char program[512], *slash;
	const char *arguments[ARGUMENTS] = { "httpd", "--port", "0", "--root", live_root, "--core", core };
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 32);
	int count = 7;

	CHECK(n > 0);
	program[n] = 0;
	slash = strrchr(program, '/'); /* build/tests/x: build/examples/httpd */
	strcpy(slash, "/../examples/httpd");
	while (more && *more && count < ARGUMENTS - 1)
		arguments[count++] = *more++;
	if (descriptors > 0) {
		struct rlimit limit = { (rlim_t)descriptors, (rlim_t)descriptors };

		setrlimit(RLIMIT_NOFILE, &limit);
	}
	execv(program, (char *const *)(uintptr_t)arguments);
	_exit(127);
}

static inline struct live live_start_with(const char *core, const char *const *more, int descriptors)
{
	struct live live = { 0 };
	int out[2], errors[2];
	char text[128] = "";
	size_t have = 0;
	ssize_t n;

	live_make_root();
	CHECK_OK(pipe2(out, O_CLOEXEC));
	CHECK_OK(pipe2(errors, O_CLOEXEC));
	fflush(NULL);
	live.process = fork();
	CHECK(live.process >= 0);
	if (live.process == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a check that fails leaves nothing behind */
		dup2(out[1], 1);
		dup2(errors[1], 2);
		live_exec(core, more, descriptors);
	}
	CHECK_OK(close(out[1]));
	CHECK_OK(close(errors[1]));
	do {
		n = read(out[0], text + have, sizeof text - 1 - have);
		have += n > 0 ? (size_t)n : 0;
	} while (n > 0 && !strchr(text, '\n'));
	CHECK(strrchr(text, ':') != NULL);
	live.port = (uint16_t)atoi(strrchr(text, ':') + 1);
	CHECK_OK(close(out[0]));
	live.errors = errors[0];
	return live;
}

static inline struct live live_start(const char *core, const char *const *more)
{
	return live_start_with(core, more, 0);
}

/* Its last words are in ret_text (may be NULL): all it was asked for is done, and its status is 0. */
static inline void live_wait(struct live *live, char *ret_text, size_t bytes)
{
	char text[2048];
	size_t have = 0;
	ssize_t n;
	int status;

	while ((n = read(live->errors, text + have, sizeof text - 1 - have)) > 0)
		have += (size_t)n;
	text[have] = 0;
	CHECK_OK(close(live->errors));
	CHECK_EQ(waitpid(live->process, &status, 0), live->process);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		test_fail(__FILE__, __LINE__, "httpd ended with 0x%x: %s", (unsigned)status, text);
	if (ret_text)
		snprintf(ret_text, bytes, "%s", text);
}

static inline void live_stop(struct live *live)
{
	CHECK_OK(kill(live->process, SIGTERM));
	live_wait(live, NULL, 0);
}

/* ---- clients ---- */

static inline int live_connect(const struct live *live)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_port = htons(live->port),
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval patience = { PATIENCE_MS / 1000, 0 };

	CHECK(fd >= 0);
	CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience));
	CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience));
	CHECK_OK(connect(fd, (const struct sockaddr *)(const void *)&to, sizeof to));
	return fd;
}

/* False: the server does not listen any more. */
static inline bool live_send(int fd, const void *bytes, size_t count)
{
	return send(fd, bytes, count, MSG_NOSIGNAL) == (ssize_t)count;
}

static inline bool live_say(int fd, const char *text)
{
	return live_send(fd, text, strlen(text));
}

/* Until the end or until it is full. How much; a reset is an end too. */
static inline size_t live_read_all(int fd, void *buffer, size_t bytes)
{
	size_t have = 0;
	ssize_t n;

	do {
		n = recv(fd, (char *)buffer + have, bytes - have, 0);
		if (n < 0 && errno != ECONNRESET)
			test_fail(__FILE__, __LINE__, "recv: %s", strerror(errno));
		have += n > 0 ? (size_t)n : 0;
	} while (n > 0 && have < bytes);
	return have;
}

/* One answer with a Content-Length, or none. Its status; body in ret_body if there is room. -1: the end, before all of it was there. */
static inline int live_answer(int fd, char *ret_head, size_t head_bytes, size_t *ret_body_bytes)
{
	size_t have = 0;
	const char *length;

	while (have < head_bytes - 1) {
		if (recv(fd, ret_head + have, 1, 0) != 1)
			return -1;
		ret_head[++have] = 0;
		if (have >= 4 && memcmp(ret_head + have - 4, "\r\n\r\n", 4) == 0)
			break;
	}
	length = strstr(ret_head, "Content-Length: ");
	*ret_body_bytes = length ? (size_t)atoll(length + 16) : 0;
	return atoi(ret_head + 9);
}

/* All of it is read over, but for the body of an answer to HEAD. */
static inline int live_status(int fd, bool has_body)
{
	char head[1024], body[4096];
	size_t left;
	int status = live_answer(fd, head, sizeof head, &left);

	while (status >= 0 && has_body && left > 0) {
		ssize_t n = recv(fd, body, left < sizeof body ? left : sizeof body, 0);

		if (n <= 0)
			return -1;
		left -= (size_t)n;
	}
	return status;
}

static inline bool live_is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) <= 0 && errno != EAGAIN;
}

/* The whole answer to a request on a connection of its own that ends with it. Its status. */
static inline int live_ask(const struct live *live, const char *request, char *ret_text, size_t bytes)
{
	int fd = live_connect(live);
	size_t n;

	CHECK(live_say(fd, request));
	n = live_read_all(fd, ret_text, bytes - 1);
	ret_text[n] = 0;
	CHECK_OK(close(fd));
	return n > 12 ? atoi(ret_text + 9) : -1;
}

/* ---- for each core ---- */

static inline void live_each(void (*test)(const char *core))
{
	for (int i = 0; i < core_count(); i++) {
		test(core_names[i]);
		live_remove_root();
	}
}
