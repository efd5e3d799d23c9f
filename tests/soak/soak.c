/* SPDX-License-Identifier: MIT */
/* For as long as one likes (ROPHIVE_SOAK_SECONDS), on each core in turn: clients and servers by fibers, clients by callbacks with lent buffers,
 * over IPv4, IPv6 and unix sockets; files, processes, datagrams, signals, addresses; sessions that are cut and cancelled. In rounds: at the end of each nobody is inside, the books balance, and no descriptor is left; after some of them the
 * memory of the process stays as it is. ROPHIVE_SOAK_SEED replays the choices, though not the order of events.             */
#include <dirent.h>

#include "soak/callbacks.h"
#include "soak/chores.h"

enum { CLIENTS = 24, JOBS = 25, ROOM = 16, LISTENERS = 3 };

struct soak {
	struct hive *hive;
	uint64_t seed;
	struct books books;
	struct hive_buffers *buffers;
	int doors; /* listeners: the last one is there if IPv6 is */
	int listeners[LISTENERS];
	char names[LISTENERS][40]; /* of TCP, of a unix socket, of TCP over IPv6 */
	uint16_t ports[LISTENERS];
	struct hive_fiber *servers[LISTENERS];
};

struct client {
	struct soak *soak;
	uint64_t random;
	struct session session;
};

/* ---- clients ---- */

static int dial(struct client *c)
{
	int which = (int)(rng_next(&c->random) % (uint32_t)c->soak->doors), fd;

	do
		fd = hive_dial(c->soak->names[which], c->soak->ports[which], NULL, HIVE_FOREVER);
	while (fd == -EADDRNOTAVAIL && hive_sleep(HIVE_MS(10)) == 0); /* what was closed keeps its ports for a while */
	return fd;
}

static void plan(struct client *c)
{
	uint32_t scale = 1u << rng_below(rng_next(&c->random), 17);

	c->session = (struct session){ .seed = rng_next(&c->random),
		                       .there = rng_below(rng_next(&c->random), scale + 1),
		                       .back = rng_below(rng_next(&c->random), scale + 1),
		                       .mode = rng_below(rng_next(&c->random), MODES) };
}

/* 0, or -ECANCELED; it is over either way. */
static int talk(void *arg)
{
	struct client *c = arg;
	struct books *books = &c->soak->books;
	bool cuts = rng_next(&c->random) % 8 == 0, half_closes = rng_next(&c->random) % 2;
	int r, fd = dial(c);

	if (fd < 0) {
		CHECK_EQ(fd, -ECANCELED);
		add_relaxed(&books->given_up, 1u); /* the server may see it all the same */
		return fd;
	}
	r = hive_send_all(fd, &c->session, sizeof c->session, HIVE_FOREVER);
	if (r == 0 && cuts)
		part_of_session(books, fd, &c->session, &c->random);
	else if (r == 0)
		r = whole_session(books, fd, &c->session, half_closes, &c->random);
	if (r != 0 && r != -ECANCELED)
		test_fail(__FILE__, __LINE__, "a session of mode %u, %u there, %u back, ended with %s", c->session.mode,
		          c->session.there, c->session.back, test_error(r));
	add_relaxed(r < 0 || cuts ? &books->given_up : &books->sessions, 1u);
	hive_close(fd, HIVE_FOREVER);
	return r;
}

/* A fiber of its own, which is cancelled somewhere on its way. */
static void talk_and_cancel(struct client *c)
{
	struct hive_fiber *fiber = net_spawn(talk, c);
	int64_t delay = (int64_t)rng_below(rng_mix(c->session.seed), 1000000);
	int r;

	CHECK_OK(hive_sleep(delay));
	CHECK_OK(hive_fiber_cancel(fiber));
	r = net_join(fiber);
	CHECK(r == 0 || r == -ECANCELED);
}

static void call(struct client *c)
{
	struct soak *soak = c->soak;
	uint32_t which = (uint32_t)(rng_next(&c->random) % (uint32_t)soak->doors);
	const char *name = which == 0 && rng_next(&c->random) % 2 ? "localhost" : soak->names[which];

	callback_chore(&soak->books, soak->buffers, &c->session, name, soak->ports[which], &c->random);
}

static int client(void *arg)
{
	struct client *c = arg;

	for (int job = 0; job < JOBS; job++) {
		uint32_t what = rng_below(rng_next(&c->random), 100);

		plan(c);
		if (what < 1)
			process_chore(&c->soak->books, &c->random);
		else if (what < 8)
			file_chore(&c->soak->books, &c->random);
		else if (what < 12)
			datagram_chore(&c->soak->books, &c->random);
		else if (what < 14)
			signal_chore(&c->soak->books, &c->random);
		else if (what < 16)
			name_chore(&c->soak->books, &c->random);
		else if (what < 32)
			call(c);
		else if (what < 44)
			talk_and_cancel(c);
		else
			CHECK_OK(talk(c));
	}
	return 0;
}

/* ---- rounds ---- */

static int all_clients(void *arg)
{
	struct soak *soak = arg;
	struct hive_fiber *fibers[CLIENTS];
	struct client clients[CLIENTS];

	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){ .soak = soak, .random = rng_next(&soak->seed) };
		fibers[i] = net_spawn(client, &clients[i]);
	}
	for (int i = 0; i < CLIENTS; i++)
		CHECK_EQ(net_join(fibers[i]), 0);
	return 0;
}

static int count_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = -3; /* "." and "..", and that of the folder */

	CHECK(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static long resident_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long all, resident = 0;

	CHECK(file);
	CHECK_EQ(fscanf(file, "%ld %ld", &all, &resident), 2);
	fclose(file);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Who has given up may have been seen by the server, whole or cut, or never have come in. */
static void run_round(struct soak *soak)
{
	struct books *b = &soak->books;
	uint32_t served, cut;

	CHECK_OK(hive_block_on(soak->hive, all_clients, soak, HIVE_FOREVER, NULL));
	WAIT_UNTIL(load_relaxed(&b->served) + load_relaxed(&b->cut) >= load_relaxed(&b->sessions) &&
	           load_acquire(&b->inside) == 0);
	served = load_relaxed(&b->served);
	cut = load_relaxed(&b->cut);
	CHECK(served >= load_relaxed(&b->sessions));
	CHECK(served - load_relaxed(&b->sessions) + cut <= load_relaxed(&b->given_up));
}

struct service {
	struct soak *soak;
	int listener;
};

static int serve(void *arg)
{
	struct service *s = arg;
	struct hive_serve_options options = { .connections = ROOM, .grace_ns = HIVE_FOREVER };

	return hive_serve(hive_current(), s->listener, &options, serve_one, &s->soak->books, HIVE_FOREVER);
}

static void open_soak(struct soak *soak, struct service services[LISTENERS], const char *core)
{
	soak->hive = net_start(core, 2, 2);
	soak->doors = net_has_v6() ? LISTENERS : LISTENERS - 1;
	CHECK_OK(hive_buffers_create(soak->hive, LENT, LENT_BYTES, &soak->buffers));
	CHECK_OK(hive_block_on(soak->hive, watch_signals, NULL, HIVE_FOREVER, NULL));
	for (int i = 0; i < soak->doors; i++) {
		static const char *const texts[LISTENERS] = { "127.0.0.1", "unix:@rophive.soak.%d", "::1" };
		struct hive_address at;

		snprintf(soak->names[i], sizeof soak->names[i], texts[i], (int)getpid());
		soak->listeners[i] = hive_listen(soak->names[i], 0, NULL);
		CHECK(soak->listeners[i] >= 0);
		CHECK_OK(hive_address_of(soak->listeners[i], false, &at));
		soak->ports[i] = hive_address_port(&at);
		services[i] = (struct service){ soak, soak->listeners[i] };
		CHECK_OK(hive_spawn(soak->hive, serve, &services[i], NULL, &soak->servers[i]));
	}
}

static void close_soak(struct soak *soak)
{
	for (int i = 0; i < soak->doors; i++) {
		int result;

		CHECK_OK(hive_fiber_cancel(soak->servers[i]));
		CHECK_OK(hive_fiber_join(soak->servers[i], real_patience(), &result));
		CHECK_ERR(result, -ECANCELED);
		CHECK_OK(close(soak->listeners[i]));
	}
	CHECK_OK(hive_buffers_destroy(soak->buffers)); /* each came back */
	real_end(soak->hive, HIVE_DRAIN);
}

static void report(const struct soak *soak, const char *core, int rounds, long kib, long most_kib)
{
	const struct books *b = &soak->books;

	printf("%s: %d rounds, %u sessions, %u of them by callbacks, %u given up, %u of them by callbacks, %u deadlines"
	       " passed, %u files, %u processes, %u datagrams, %u signals, %u addresses, %llu MB checked; resident %ld KiB after the warm-up, at most %ld later\n",
	       core, rounds, load_relaxed(&b->sessions), load_relaxed(&b->called), load_relaxed(&b->given_up),
	       load_relaxed(&b->called_off), load_relaxed(&b->late), load_relaxed(&b->files),
	       load_relaxed(&b->processes), load_relaxed(&b->datagrams), load_relaxed(&b->signals),
	       load_relaxed(&b->names), (unsigned long long)load_relaxed(&b->bytes) / 1000000, kib, most_kib);
	fflush(stdout);
}

/* The first quarter of its time is the warm-up: caches fill, the allocator finds its size. */
static void soak_core(const char *core, int64_t time_ns, uint64_t seed)
{
	int64_t begin = hive_now(NULL), warm = begin + time_ns / 4;
	int before = count_open(), open = -1, rounds = 0;
	long kib = 0, most_kib = 0;
	struct service services[LISTENERS];
	struct soak soak;

	printf("%s at its beginning: resident %ld KiB, %d descriptors\n", core, resident_kib(), before);
	memset(&soak, 0, sizeof soak);
	soak.seed = seed;
	open_soak(&soak, services, core);
	do {
		run_round(&soak);
		rounds++;
		if (open < 0 || count_open() < open) /* who was cancelled while it dialled may still be at the door */
			open = count_open();
		WAIT_UNTIL(count_open() <= open);
		if (hive_now(NULL) < warm || kib == 0) {
			if (resident_kib() > kib)
				kib = resident_kib();
		} else if (resident_kib() > most_kib) {
			most_kib = resident_kib();
		}
	} while (hive_now(NULL) < begin + time_ns);
	close_soak(&soak);
	printf("%s at its end: resident %ld KiB, %d descriptors\n", core, resident_kib(), count_open());
	CHECK_EQ(count_open(), before);
	report(&soak, core, rounds, kib, most_kib);
	if (time_ns >= HIVE_S(10) && test_slowness() == 1) /* sanitizers keep what was freed */
		CHECK(most_kib <= kib + kib / 10 + 1024);
}

TEST(nothing_is_lost_and_nothing_is_left_behind)
{
	int64_t time_ns = HIVE_S(test_env("ROPHIVE_SOAK_SECONDS", 3)) / core_count();
	uint64_t seed = (uint64_t)test_env("ROPHIVE_SOAK_SEED", (long)(hive_now(NULL) % 1000000));

	printf("seed %llu\n", (unsigned long long)seed);
	CHECK(mkdtemp(soak_folder));
	prepare_signals();
	alarm((unsigned)(test_env("ROPHIVE_SOAK_SECONDS", 3) + test_env("ROPHIVE_TEST_TIMEOUT", 60) * test_slowness()));
	for (int i = 0; i < core_count(); i++)
		soak_core(core_names[i], time_ns, seed);
	CHECK_OK(rmdir(soak_folder));
}
