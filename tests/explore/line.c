/* SPDX-License-Identifier: MIT */
#include "line.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/invariants.h"

struct line line;

bool line_open(struct range io)
{
	static const int cores[] = { CORE_EPOLL, CORE_EPOLL, CORE_POLL, CORE_DOES_OPS };
	int core = cores[explore_draw(4)], fds[2];

	memset(&line, 0, sizeof line);
	crew_clear();
	explore_wire(explore_draw(2), fds);
	line.in = fds[0];
	line.out = fds[1];
	if (open_hive(io, (struct range){ 0, 0 }, core))
		return true;
	close(line.in);
	close(line.out);
	return false;
}

static int64_t take(int flags)
{
	char bytes[1500];
	ssize_t n;

	do
		n = recv(line.in, bytes, sizeof bytes, MSG_DONTWAIT | flags);
	while (n < 0 && errno == EINTR);
	return n;
}

void line_close(void)
{
	int64_t n;

	explore_hold();
	while ((n = take(0)) > 0)
		line.got += n;
	close(line.in);
	close(line.out);
	explore_go_on();
	EXPECT(line.got == line.sent);
}

/* -1: there is no room. */
static int64_t put(size_t bytes)
{
	static const char zeros[1 << 12];
	int64_t n;

	do
		n = send(line.out, zeros, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	line.sent += n > 0 ? n : 0;
	return n;
}

void line_fill(void)
{
	explore_hold();
	while (put(1 << 12) > 0)
		;
	explore_go_on();
}

/* When all sleep nobody waits for what is there, nor for nothing. */
static void check_waiting(void)
{
	const char *wrong;

	explore_wait_quiet();
	explore_hold();
	wrong = crew.stopping ? NULL : invariants_quiet(ledger.hive);
	if (wrong)
		explore_fail("while all sleep: %s", wrong);
	if (line.waiting > 0 && take(MSG_PEEK) > 0)
		explore_fail("all sleep, and somebody waits for bytes that have come");
	if (line.owed > 0)
		explore_fail("all sleep, and somebody waits whose end was asked for");
	explore_go_on();
}

void line_end(void)
{
	line.ended = true;
	EXPECT(shutdown(line.out, SHUT_WR) == 0);
}

void line_writer(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0 && put(1 + explore_draw(4)) > 0; n--)
		if (explore_draw(3) == 0)
			check_waiting();
	line_end();
}

void line_reader(void *arg)
{
	(void)arg;
	for (;;) {
		int64_t n = take(0);

		line.got += n > 0 ? n : 0;
		if (n <= 0 && line.ended)
			return;
		if (n <= 0)
			explore_wait_fd_event();
	}
}

void line_check(int self, int64_t r, int64_t deadline)
{
	EXPECT(r != 0 || line.ended);
	if (r < 0 && r != -ENOMEM)
		crew_check_wait(self, (int)r, deadline);
}
