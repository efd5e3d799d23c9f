/* SPDX-License-Identifier: MIT */
/* Each allocation of ours is refused in turn, and then some of OpenSSL's: an error is told, nothing is left, and the next try works. */
#include <openssl/crypto.h>

#include "faults/swept.h"
#include "faults/wrap.h"
#include "base/memory.h"
#include "meet.h"

/* ---- OpenSSL's memory ---- */

static ATOMIC(int64_t) theirs, fails_at; /* how many it has asked for; 0: none is refused */

static bool refuses(void)
{
	int64_t at = load_relaxed(&fails_at);

	return at > 0 && add_relaxed(&theirs, 1) + 1 == at;
}

static void *their_new(size_t bytes, const char *file, int line)
{
	(void)file;
	(void)line;
	return bytes == 0 || refuses() ? NULL : __real_malloc(bytes);
}

static void *their_again(void *old, size_t bytes, const char *file, int line)
{
	(void)file;
	(void)line;
	return refuses() ? NULL : __real_realloc(old, bytes);
}

static void their_free(void *block, const char *file, int line)
{
	(void)file;
	(void)line;
	__real_free(block);
}

/* Before it has asked for any. */
__attribute__((constructor)) static void watch_openssl(void)
{
	if (CRYPTO_set_mem_functions(their_new, their_again, their_free) != 1)
		abort();
}

/* ---- ours ---- */

static int context_once(void)
{
	struct hive_tls_options options = { .server = true,
		                            .certificate_file = certs_path("server.pem"),
		                            .key_file = certs_path("server.key"),
		                            .ca_file = certs_path("ca.pem"),
		                            .verify = HIVE_TLS_IF_GIVEN,
		                            .alpn = "h2" };
	struct hive_tls_context *context = NULL;
	int r = SWEPT(hive_tls_context_create)(&options, &context);

	CHECK_EQ(r == 0, context != NULL);
	if (r == 0)
		r = SWEPT(hive_tls_context_add)(context, certs_path("second.pem"), certs_path("second.key"));
	SWEPT(hive_tls_context_destroy)(context);
	return r;
}

static int connection_once(void)
{
	struct hive_tls_context *context = context_client();
	struct hive_tls *tls = NULL;
	int fds[2], r;

	net_pair(fds);
	wrap.on = true;
	r = SWEPT(hive_tls_create)(context, fds[0], &tls);
	wrap.on = false;
	CHECK_EQ(r == 0, tls != NULL);
	if (r == 0)
		CHECK_OK(SWEPT(hive_tls_destroy)(tls, HIVE_NOWAIT));
	else
		CHECK_OK(close(fds[0])); /* it was still ours */
	CHECK_OK(close(fds[1]));
	SWEPT(hive_tls_context_destroy)(context);
	return r;
}

static void sweep(int (*fn)(void), bool inside)
{
	certs_make();
	for (int sticky = 0; sticky < 2; sticky++)
		for (int nth = 1;; nth++) {
			int64_t before = wrap.balance;
			int r;

			wrap = (struct wrap){ .on = !inside, .fail_at = nth, .sticky = sticky, .balance = before };
			r = fn();
			wrap.on = false;
			CHECK_EQ(wrap.balance, before);
			if (wrap.allocations < nth) {
				CHECK_OK(r);
				CHECK(nth > 1); /* it does allocate */
				break;
			}
			CHECK_EQ(r, -ENOMEM);
		}
}

TEST(each_allocation_of_a_context)
{
	sweep(context_once, false);
}

TEST(each_allocation_of_a_connection)
{
	sweep(connection_once, true);
}

/* ---- OpenSSL's, one by one: contexts and whole conversations between two threads' worth of calls on one ---- */

static bool is_an_error_of(int r)
{
	return r == -ENOMEM || r == -EPROTO || r == -EBADMSG || r == -EKEYREJECTED || r == -EACCES || r == -ENODATA;
}

static int64_t count_theirs(int (*fn)(void))
{
	store_relaxed(&theirs, 0);
	store_relaxed(&fails_at, INT64_MAX);
	CHECK_OK(fn());
	store_relaxed(&fails_at, 0);
	return load_relaxed(&theirs);
}

/* Both ends at once, in turn. */
static int answer(struct hive_tls *from, struct hive_tls *to)
{
	char buffer[8], text[64];
	int64_t n = SWEPT(hive_tls_write)(from, "thanks", 6, HIVE_NOWAIT);
	int r = n == 6 ? SWEPT(hive_tls_flush)(from, HIVE_NOWAIT) : (int)n;

	CHECK(SWEPT(hive_tls_fd)(to) >= 0);
	if (r == 0 && (n = SWEPT(hive_tls_read)(to, buffer, sizeof buffer, HIVE_NOWAIT)) != 6)
		r = (int)n;
	if (r == 0)
		r = SWEPT(hive_tls_shutdown)(from, HIVE_NOWAIT);
	if (r == 0)
		r = (int)SWEPT(hive_tls_read)(to, buffer, sizeof buffer, HIVE_NOWAIT);
	CHECK(SWEPT(hive_tls_reason)(to, text, sizeof text) >= 0);
	return r;
}

/* The handshake by turns, without a hive: what both sides can do without waiting, until both are through or one has failed. */
static int talk_once(void)
{
	struct hive_tls_context *contexts[2] = { NULL, NULL };
	struct hive_tls *tls[2] = { NULL, NULL };
	int fds[2], r = 0, results[2] = { -ETIMEDOUT, -ETIMEDOUT };
	struct hive_tls_info info;
	char buffer[8];

	net_pair(fds);
	r = SWEPT(hive_tls_context_create)(&(struct hive_tls_options){ .server = true,
	                                                               .certificate_file = certs_path("server.pem"),
	                                                               .key_file = certs_path("server.key") },
	                                   &contexts[0]);
	if (r == 0)
		r = SWEPT(hive_tls_context_create)(&(struct hive_tls_options){ .ca_file = certs_path("ca.pem") },
		                                   &contexts[1]);
	for (int i = 0; i < 2; i++) {
		int made = r == 0 ? SWEPT(hive_tls_create)(contexts[i], fds[i], &tls[i]) : r;

		if (made < 0)
			CHECK_OK(close(fds[i]));
		r = made;
	}
	for (int turn = 0; r == 0 && turn < 20 && (results[0] != 0 || results[1] != 0); turn++) {
		int i = (turn + 1) % 2;

		if (results[i] != 0)
			results[i] = i == 0 ? SWEPT(hive_tls_accept)(tls[0], HIVE_NOWAIT)
			                    : SWEPT(hive_tls_connect)(tls[1], "localhost", HIVE_NOWAIT);
		r = results[i] == -ETIMEDOUT ? 0 : results[i];
	}
	if (r == 0)
		r = SWEPT(hive_tls_write_all)(tls[1], "hello", 5, HIVE_NOWAIT);
	if (r == 0)
		r = SWEPT(hive_tls_read_all)(tls[0], buffer, 5, HIVE_NOWAIT);
	if (r == 0)
		r = SWEPT(hive_tls_info_read)(tls[1], &info);
	if (r == 0)
		r = answer(tls[0], tls[1]);
	for (int i = 0; i < 2; i++) {
		SWEPT(hive_tls_destroy)(tls[i], HIVE_NOWAIT);
		SWEPT(hive_tls_context_destroy)(contexts[i]);
	}
	return r;
}

/* What OpenSSL does without memory is its own affair, and where it can do without it does; but it is never a crash or a hang, and the
 * next one works.                                                                                                          */
TEST(openssl_runs_out_of_memory)
{
	int64_t count, step, told = 0;

	certs_make();
	CHECK_OK(talk_once()); /* what it keeps for ever */
	count = count_theirs(talk_once);
	step = 1 + count / 300;
	for (int64_t nth = 1; nth <= count; nth += step) {
		int r;

		store_relaxed(&theirs, 0);
		store_relaxed(&fails_at, nth);
		r = talk_once();
		store_relaxed(&fails_at, 0);
		if (r != 0 && !is_an_error_of(r))
			test_fail(__FILE__, __LINE__, "allocation %lld: %s", (long long)nth, test_error(r));
		told += r != 0;
	}
	CHECK_OK(talk_once());
	CHECK(told > 20);
	printf("faults injected: %lld, %lld told\n", (long long)(count / step), (long long)told);
}

/* ---- the hive's, while two fibers talk: what needs memory for a timer or for its wait says so, and the next call goes on ---- */

static struct heap {
	ATOMIC(int64_t) asked;
	int64_t fails_at;
	bool sticky;
} heap;

static void *hive_memory(void *arg, void *old, size_t bytes)
{
	int64_t nth = bytes > 0 ? add_relaxed(&heap.asked, 1) + 1 : 0;

	(void)arg;
	if (bytes > 0 && heap.fails_at > 0 && nth >= heap.fails_at && nth < heap.fails_at + (heap.sticky ? 3 : 1))
		return NULL;
	return hive__memory_system(NULL, old, bytes);
}

enum { TRIES = 10, LONG = 100000 };
static ATOMIC(int64_t) refused;

/* Again as long as there is no memory, which is not for ever. */
#define AGAIN(r, expression)                                                           \
	for (int again = 0; ((r) = (expression)) == -ENOMEM && again < TRIES; again++) \
	add_relaxed(&refused, 1)

static int64_t soon(void)
{
	return real_patience();
}

static void read_exactly(struct hive_tls *tls, size_t bytes)
{
	char buffer[1000];
	int64_t r;

	for (size_t have = 0; have < bytes; have += (size_t)r) {
		AGAIN(r,
		      hive_tls_read(tls, buffer, bytes - have < sizeof buffer ? bytes - have : sizeof buffer, soon()));
		CHECK(r > 0);
		pattern_check(buffer, (size_t)r, have);
	}
}

static void write_exactly(struct hive_tls *tls, size_t bytes)
{
	char buffer[1000];
	int64_t r;

	for (size_t sent = 0; sent < bytes; sent += (size_t)r) {
		size_t some = bytes - sent < sizeof buffer ? bytes - sent : sizeof buffer;

		pattern_fill(buffer, some, sent);
		AGAIN(r, hive_tls_write(tls, buffer, some, soon()));
		CHECK(r > 0);
	}
	AGAIN(r, hive_tls_flush(tls, soon()));
	CHECK_OK(r);
}

/* arg: its side, of the handshake. */
static int talk(void *arg)
{
	struct side *s = arg;
	char byte;
	int64_t r;

	s->deadline_ns = soon();
	AGAIN(r, side_shake(s));
	CHECK_OK(r);
	if (s->host) {
		write_exactly(s->tls, LONG);
		read_exactly(s->tls, LONG);
	} else {
		read_exactly(s->tls, LONG);
		write_exactly(s->tls, LONG);
	}
	AGAIN(r, hive_tls_shutdown(s->tls, soon()));
	CHECK_OK(r);
	AGAIN(r, hive_tls_read(s->tls, &byte, 1, soon()));
	CHECK_EQ(r, 0);
	return 0;
}

static int talk_both(void *arg)
{
	struct side *sides = arg;
	struct hive_fiber *fiber;
	int r;

	AGAIN(r, hive_spawn(hive_current(), talk, &sides[0], NULL, &fiber));
	CHECK_OK(r);
	CHECK_EQ(talk(&sides[1]), 0);
	return net_join(fiber);
}

/* How much it asked for. */
static int64_t talk_in_hive(struct hive_tls_context *contexts[2], int64_t nth, bool sticky)
{
	struct hive_host host = { .allocate = hive_memory };
	struct side sides[2] = { { .host = NULL }, { .host = "localhost" } };
	struct hive *hive;
	int fds[2], r, result = -1;

	heap.fails_at = 0;
	hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1, .host = &host });
	net_pair(fds);
	for (int i = 0; i < 2; i++)
		CHECK_OK(hive_tls_create(contexts[i], fds[i], &sides[i].tls));
	store_relaxed(&heap.asked, (int64_t)0);
	heap.sticky = sticky;
	heap.fails_at = nth;
	AGAIN(r, hive_block_on(hive, talk_both, sides, HIVE_FOREVER, &result));
	CHECK_OK(r);
	CHECK_EQ(result, 0);
	for (int i = 0; i < 2; i++)
		CHECK_OK(hive_tls_destroy(sides[i].tls, HIVE_NOWAIT));
	real_end(hive, HIVE_DRAIN);
	return load_relaxed(&heap.asked);
}

TEST(what_lacked_memory_goes_on)
{
	struct hive_tls_context *contexts[2] = { context_server("server"), context_client() };
	int64_t step = test_slowness() > 1 ? 3 : 1, count = talk_in_hive(contexts, 0, false);

	CHECK(count > 5);
	for (int sticky = 0; sticky < 2; sticky++)
		for (int64_t nth = 1 + sticky; nth <= count; nth += step)
			talk_in_hive(contexts, nth, sticky);
	CHECK(load_relaxed(&refused) > 0);
	printf("faults injected: %lld of %lld, %lld told\n", (long long)(2 * count / step), (long long)count,
	       (long long)load_relaxed(&refused));
	for (int i = 0; i < 2; i++)
		hive_tls_context_destroy(contexts[i]);
}

/* ---- the same for callbacks: what was refused is asked for once more ---- */

struct callers {
	struct side sides[2];
	struct gate done;
	int left;
};

static void shaken_then(struct hive_tls *tls, int result, void *arg);

static void shake_then(struct callers *c, struct side *s)
{
	int r;

	AGAIN(r, SWEPT(hive_tls_handshake_then)(s->tls, s->host, HIVE_FOREVER, NULL, shaken_then, c));
	CHECK_OK(r);
}

static void shaken_then(struct hive_tls *tls, int result, void *arg)
{
	struct callers *c = arg;

	if (result == -ENOMEM) {
		add_relaxed(&refused, 1);
		shake_then(c, &c->sides[tls == c->sides[1].tls]);
		return;
	}
	CHECK_OK(result);
	if (--c->left == 0)
		gate_open(&c->done);
}

static void begin_callers(void *arg)
{
	struct callers *c = arg;

	for (int i = 0; i < 2; i++)
		shake_then(c, &c->sides[i]);
}

/* How much it asked for. */
static int64_t shake_by_callbacks(struct hive_tls_context *contexts[2], int64_t nth, bool sticky)
{
	struct hive_host host = { .allocate = hive_memory };
	struct callers c = { .sides = { { .host = NULL }, { .host = "localhost" } }, .left = 2 };
	struct hive *hive;
	int fds[2], r;

	heap.fails_at = 0;
	gate_init(&c.done);
	hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = 1, .host = &host });
	net_pair(fds);
	for (int i = 0; i < 2; i++)
		CHECK_OK(hive_tls_create(contexts[i], fds[i], &c.sides[i].tls));
	store_relaxed(&heap.asked, (int64_t)0);
	heap.sticky = sticky;
	heap.fails_at = nth;
	AGAIN(r, hive_post(hive, begin_callers, &c));
	CHECK_OK(r);
	gate_pass(&c.done);
	part(&c.sides[0], &c.sides[1]);
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&c.done);
	return load_relaxed(&heap.asked);
}

TEST(callbacks_that_lacked_memory_ask_again)
{
	struct hive_tls_context *contexts[2] = { context_server("server"), context_client() };
	int64_t count = shake_by_callbacks(contexts, 0, false);

	CHECK(count > 2);
	store_relaxed(&refused, (int64_t)0);
	for (int sticky = 0; sticky < 2; sticky++)
		for (int64_t nth = 1; nth <= count; nth++)
			shake_by_callbacks(contexts, nth, sticky);
	CHECK(load_relaxed(&refused) > 0);
	printf("faults injected: %lld, %lld told\n", (long long)(2 * count), (long long)load_relaxed(&refused));
	for (int i = 0; i < 2; i++)
		hive_tls_context_destroy(contexts[i]);
}

TEST(every_function_of_the_header_is_in_a_sweep)
{
	CHECK(swept_header("tls.h", swept_is_noted) >= 16);
}
