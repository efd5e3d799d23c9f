/* SPDX-License-Identifier: MIT */
/* examples/httpd and clients that behave: answers, keep-alive, pipelines, ranges, bodies, the end of the server. */
#include "live.h"

static char text[BIG + 4096];

static void answer_files(const char *core)
{
	struct live live = live_start(core, NULL);
	char *body;

	CHECK_EQ(live_ask(&live, "GET / HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	CHECK(strstr(text, "Content-Type: text/html") && strstr(text, "\r\n\r\n<p>index</p>\n"));
	CHECK_EQ(live_ask(&live, "GET /sub/ HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	CHECK_EQ(live_ask(&live, "GET /sub?x HTTP/1.0\r\n\r\n", text, sizeof text), 301);
	CHECK(strstr(text, "Location: /sub/?x\r\n") != NULL);
	CHECK_EQ(live_ask(&live, "GET /big.bin HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	body = strstr(text, "\r\n\r\n") + 4;
	CHECK(memcmp(body, live_big, BIG) == 0);
	CHECK_EQ(live_ask(&live, "GET /small.txt HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	body = strstr(text, "\r\n\r\n") + 4;
	CHECK(memcmp(body, live_big, SMALL) == 0);
	CHECK_EQ(live_ask(&live, "HEAD /big.bin HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	CHECK(strstr(text, "Content-Length: 3145728\r\n") != NULL);
	CHECK_STR(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	CHECK_EQ(live_ask(&live, "GET /none HTTP/1.0\r\n\r\n", text, sizeof text), 404);
	CHECK_EQ(live_ask(&live, "GET /none HTTP/1.0\r\n\r\n", text, sizeof text), 404);
	live_stop(&live);
}

TEST(files_are_answered)
{
	live_each(answer_files);
}

static void lead_nowhere(const char *core)
{
	static const char *const targets[] = { "/../etc/passwd", "/%2e%2e/etc/passwd", "/sub/../../etc/passwd", "/out",
		                               "/.hidden",       "//etc/passwd",       "/%2fetc/passwd" };
	struct live live = live_start(core, NULL);
	char request[128];

	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", targets[i]);
		CHECK_EQ(live_ask(&live, request, text, sizeof text), 404);
		CHECK(!strstr(text, "root:"));
	}
	live_stop(&live);
}

TEST(no_target_leads_out_of_the_root)
{
	live_each(lead_nowhere);
}

static void pipeline(const char *core)
{
	struct live live = live_start(core, NULL);
	int fd = live_connect(&live);
	static char requests[16384];
	size_t used = 0;

	for (int i = 0; i < 100; i++)
		used += (size_t)sprintf(requests + used, "%s /%s HTTP/1.1\r\nHost: h\r\nX-Number: %d\r\n\r\n",
		                        i % 10 == 3 ? "HEAD" : "GET", i % 7 == 5 ? "none" : "small.txt", i);
	CHECK(live_send(fd, requests, used));
	for (int i = 0; i < 100; i++)
		CHECK_EQ(live_status(fd, i % 10 != 3), i % 7 == 5 ? 404 : 200);
	/* bodies among them */
	CHECK(live_say(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
	                   "POST /none HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n"
	                   "\r\nGET /small.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
	CHECK_EQ(live_status(fd, true), 200);
	CHECK_EQ(live_status(fd, true), 405);
	CHECK_EQ(live_status(fd, true), 200);
	CHECK(live_is_closed(fd));
	CHECK_OK(close(fd));
	live_stop(&live);
}

TEST(a_hundred_requests_in_one_write_are_answered_in_order)
{
	live_each(pipeline);
}

/* The body at from, which came in as many chunks as the server liked, in ret_body. What follows it. */
static const char *join_chunks(const char *from, char *ret_body, size_t room)
{
	size_t have = 0;

	for (;;) {
		char *end;
		size_t bytes = strtoul(from, &end, 16);

		CHECK(end > from && memcmp(end, "\r\n", 2) == 0 && have + bytes < room && strlen(end) >= bytes + 4);
		memcpy(ret_body + have, end + 2, bytes);
		have += bytes;
		from = end + 2 + bytes;
		CHECK(memcmp(from, "\r\n", 2) == 0);
		from += 2;
		if (bytes == 0)
			break;
	}
	ret_body[have] = 0;
	return from;
}

static void send_bytewise(const char *core)
{
	const char *request = "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
			      "3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nT: t\r\n\r\nGET /small.txt HTTP/1.0\r\n\r\n";
	struct live live = live_start(core, NULL);
	int fd = live_connect(&live), one = 1;
	char body[64];
	const char *answer;
	size_t n;

	CHECK_OK(setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &one, sizeof one));
	for (const char *at = request; *at; at++)
		CHECK(live_send(fd, at, 1));
	n = live_read_all(fd, text, sizeof text - 1);
	text[n] = 0;
	CHECK(strstr(text, "HTTP/1.1 200 OK") && strstr(text, "Transfer-Encoding: chunked"));
	answer = strstr(text, "\r\n\r\n");
	CHECK(answer != NULL);
	answer = join_chunks(answer + 4, body, sizeof body);
	CHECK_STR(body, "abcd");
	CHECK(strncmp(answer, "HTTP/1.1 200 OK", 15) == 0);
	CHECK_OK(close(fd));
	live_stop(&live);
}

TEST(a_request_may_come_byte_by_byte)
{
	live_each(send_bytewise);
}

static void conditions(const char *core)
{
	struct live live = live_start(core, NULL);
	char request[256], etag[64], modified[64];

	CHECK_EQ(live_ask(&live, "HEAD /big.bin HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	CHECK_EQ(sscanf(strstr(text, "ETag: "), "ETag: %60[^\r]", etag), 1);
	CHECK_EQ(sscanf(strstr(text, "Last-Modified: "), "Last-Modified: %60[^\r]", modified), 1);
	snprintf(request, sizeof request, "GET /big.bin HTTP/1.0\r\nIf-None-Match: %s\r\n\r\n", etag);
	CHECK_EQ(live_ask(&live, request, text, sizeof text), 304);
	CHECK(strstr(text, etag) && !strstr(text, "Content-Length"));
	snprintf(request, sizeof request, "GET /big.bin HTTP/1.0\r\nIf-Modified-Since: %s\r\n\r\n", modified);
	CHECK_EQ(live_ask(&live, request, text, sizeof text), 304);
	CHECK_EQ(live_ask(&live, "GET /big.bin HTTP/1.0\r\nIf-Match: \"x\"\r\n\r\n", text, sizeof text), 412);
	snprintf(request, sizeof request, "GET /big.bin HTTP/1.0\r\nRange: bytes=5-9\r\nIf-Range: %s\r\n\r\n", etag);
	CHECK_EQ(live_ask(&live, request, text, sizeof text), 206);
	CHECK(strstr(text, "Content-Range: bytes 5-9/3145728\r\n") && strstr(text, "Content-Length: 5\r\n"));
	CHECK(memcmp(strstr(text, "\r\n\r\n") + 4, live_big + 5, 5) == 0);
	CHECK_EQ(live_ask(&live, "GET /small.txt HTTP/1.0\r\nRange: bytes=-4\r\n\r\n", text, sizeof text), 206);
	CHECK(memcmp(strstr(text, "\r\n\r\n") + 4, live_big + SMALL - 4, 4) == 0);
	CHECK_EQ(live_ask(&live, "GET /small.txt HTTP/1.0\r\nRange: bytes=1024-\r\n\r\n", text, sizeof text), 416);
	CHECK(strstr(text, "Content-Range: bytes */1024\r\n") != NULL);
	live_stop(&live);
}

TEST(conditions_and_ranges_are_kept)
{
	live_each(conditions);
}

/* Sooner or later, and within two seconds of its own clock: the cache may be a second behind. */
static void change_a_file(const char *core)
{
	struct live live = live_start(core, (const char *const[]){ "--workers", "1", NULL });
	int seen = 0;

	live_write("changes.txt", "old", 3);
	CHECK_EQ(live_ask(&live, "GET /changes.txt HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	CHECK(strstr(text, "\r\n\r\nold") != NULL);
	live_write("changes.txt", "newer", 5);
	for (int i = 0; i < 300 && !seen; i++) {
		CHECK_EQ(live_ask(&live, "GET /changes.txt HTTP/1.0\r\n\r\n", text, sizeof text), 200);
		seen = strstr(text, "\r\n\r\nnewer") != NULL;
		CHECK(seen || strstr(text, "\r\n\r\nold"));
		if (!seen)
			poll(NULL, 0, 20);
	}
	CHECK(seen);
	live_stop(&live);
}

TEST(a_file_that_changes_is_seen)
{
	live_each(change_a_file);
}

static void upload(const char *core)
{
	const char *const more[] = { "--upload", live_root, "--body-bytes", "4000000", NULL };
	struct live live;
	int fd;

	live_make_root();
	live = live_start(core, more);
	fd = live_connect(&live);
	CHECK(live_say(fd, "PUT /upload/new.bin HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
	                   "Content-Length: 3145728\r\n\r\n"));
	CHECK_EQ(live_status(fd, false), 100); /* nothing was sent before that */
	for (size_t at = 0; at < BIG;) {
		ssize_t n = send(fd, live_big + at, BIG - at, MSG_NOSIGNAL);

		CHECK(n > 0);
		at += (size_t)n;
	}
	CHECK_EQ(live_status(fd, true), 201);
	CHECK(live_say(fd, "PUT /upload/new.bin HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
	                   "5\r\nshort\r\n0\r\n\r\n"));
	CHECK_EQ(live_status(fd, true), 204);
	CHECK(live_say(fd, "PUT /upload/.x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"));
	CHECK_EQ(live_status(fd, true), 404);
	CHECK(live_say(fd, "PUT /upload/a%2fb HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"));
	CHECK_EQ(live_status(fd, true), 403);
	/* refused before it is sent, because the client waits */
	CHECK(live_say(fd,
	               "PUT /upload/y HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4000001\r\n\r\n"));
	CHECK_EQ(live_status(fd, true), 413);
	CHECK(live_is_closed(fd));
	CHECK_OK(close(fd));
	CHECK_EQ(live_ask(&live, "GET /new.bin HTTP/1.0\r\n\r\n", text, sizeof text), 200);
	CHECK(strstr(text, "\r\n\r\nshort") != NULL);
	live_stop(&live);
}

TEST(uploads_are_stored_or_refused)
{
	live_each(upload);
}

/* What is under way is completed, who is idle goes, nobody new comes in. */
static void stop_gracefully(const char *core)
{
	struct live live = live_start(core, NULL);
	int idle = live_connect(&live), busy = live_connect(&live);
	char said[2048];
	size_t left;

	CHECK(live_say(idle, "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n"));
	CHECK_EQ(live_status(idle, true), 200);
	CHECK(live_say(busy, "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"));
	CHECK_EQ(live_status(busy, false), 100);
	CHECK_OK(kill(live.process, SIGTERM));
	CHECK(live_is_closed(idle));
	CHECK(live_say(busy, "done"));
	CHECK_EQ(live_answer(busy, said, sizeof said, &left), 200);
	CHECK(strstr(said, "Connection: close") != NULL);
	CHECK_EQ(live_read_all(busy, said, sizeof said), 4);
	CHECK(memcmp(said, "done", 4) == 0);
	CHECK_OK(close(idle));
	CHECK_OK(close(busy));
	live_wait(&live, said, sizeof said);
	CHECK(strstr(said, "connections") != NULL);
}

TEST(a_stop_lets_what_is_under_way_end)
{
	live_each(stop_gracefully);
}

static void stop_at_once(const char *core)
{
	const char *const more[] = { "--stop-timeout", "0.05", NULL };
	struct live live = live_start(core, more);
	int busy = live_connect(&live);

	CHECK(live_say(busy, "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"));
	CHECK_EQ(live_status(busy, false), 100);
	live_stop(&live); /* although that request never ends */
	CHECK(live_is_closed(busy));
	CHECK_OK(close(busy));
}

TEST(a_stop_has_its_limit)
{
	live_each(stop_at_once);
}

static void listen_elsewhere(const char *core)
{
	const char *const more[] = { "--listen", "::1", "--workers", "2", "--shared-listener", NULL };
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct live live;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)(const void *)&to, sizeof to) < 0) {
		if (fd >= 0)
			close(fd);
		test_skip("no IPv6");
		return;
	}
	CHECK_OK(close(fd));
	live = live_start(core, more);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	to.sin6_port = htons(live.port);
	CHECK_OK(connect(fd, (const struct sockaddr *)(const void *)&to, sizeof to));
	CHECK(live_say(fd, "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n"));
	CHECK_EQ(live_status(fd, true), 200);
	CHECK_OK(close(fd));
	live_stop(&live);
}

TEST(it_listens_where_it_is_told)
{
	live_each(listen_elsewhere);
}
