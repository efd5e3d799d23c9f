/* SPDX-License-Identifier: MIT */
#pragma once
/* A seat: what a desk knows about a descriptor number; shared by seat.c, seats.c and doubt.c. */
#include <errno.h>

#include "io/number.h"
#include "io/op.h"
#include "io/sitter.h"

enum stream { STREAM_UNKNOWN, STREAM_YES, STREAM_NO };

/* As what it is registered with the core, as far as we know. */
enum how {
	SEAT_OUT,   /* not at all */
	SEAT_LEVEL, /* armed for what is waited for, on a core that knows no edges */
	SEAT_EDGES,
	SEAT_ALONE, /* by edges; if others wait for this elsewhere, one of all is told */
};

struct seat { /* O; an event needs the first 128 bytes, a wait 64 more */
	struct hive_source source;
	struct desk *desk;
	struct hive_op *first; /* that wait, in order; linked by `behind` */
	uint32_t ready;        /* HIVE_EVENT_… */
	uint8_t how;           /* enum how */
	bool heard;            /* an event came since it was looked at: it was registered */
	uint8_t stream;        /* enum stream: a short read means that nothing is left */
	uint8_t strays;        /* events in a row that nobody waited for */
	struct sitter reader;  /* a fiber that waits to receive, while no operation waits here */
	struct sitter writer;  /* to send */

	uint32_t called; /* what a fiber was called for and has not tried yet, when operations waited too */
	uint32_t lost;   /* how often the number has become another's here */
	uint32_t life;   /* of the number, when it was registered */
	uint32_t since;  /* tick of the desk in which the last wait began */
	uint32_t due;    /* doubtful: tick in which it is looked at */
	bool doubtful;   /* in a list of those */
	uint8_t sure;    /* how often in a row there was no reason to doubt */

	struct hive_op *last;
	uint64_t event; /* how many there were that operations waited for */
	struct seat *next_doubtful, **doubtful_link;
};

enum { SEAT_CHUNK = 256 };
#define FINAL (HIVE_EVENT_HUP | HIVE_EVENT_ERR) /* nothing more will be told */
#define SEAT_ALL (HIVE_EVENT_IN | HIVE_EVENT_OUT | HIVE_EVENT_PRI)

/* NULL: there is none yet. */
static inline struct seat *seat_at(struct desk *desk, int fd)
{
	uint32_t chunk = (uint32_t)fd / SEAT_CHUNK;

	return chunk < desk->chunk_count && desk->chunks[chunk] ? desk->chunks[chunk][(uint32_t)fd % SEAT_CHUNK] : NULL;
}

/* It is made if there is none; NULL: no memory. */
struct seat *hive__seat_of(struct desk *desk, int fd, hive_source_fn *on_ready);
/* The core does not know it any more, and nothing is known of it. */
void hive__seat_take_out(struct seat *seat);
/* A wait relies on an old registration. */
void hive__seat_doubt(struct seat *seat);
/* The first tick in which its wait is old enough to be looked at. */
static inline uint32_t seat_due(const struct seat *seat)
{
	return seat->since + (1u << seat->sure) + 1;
}
/* The same, quick for one that is in doubt anyway, and early enough, as nearly all are. */
static inline void seat_doubt(struct seat *seat)
{
	seat->since = seat->desk->tick;
	if (!seat->doubtful || seat->desk->doubt_alarm == 0 || (int32_t)(seat_due(seat) - seat->due) < 0)
		hive__seat_doubt(seat);
}
/* Those that wait there are looked at: registered anew if they have to be. True: they were registered. */
bool hive__seat_verify(struct seat *seat);
/* Nobody waits before who wants these events, and nothing says that he would have to. */
bool hive__seat_is_free(struct seat *seat, uint32_t events);
/* A fiber that was called for these has tried: who waits behind it is next. */
void hive__seat_tried(struct seat *seat, uint32_t events);
/* A short read means that nothing is left. */
bool hive__seat_asks_stream(struct seat *seat);

static inline bool seat_used_up(struct seat *seat, uint32_t code, uint64_t asked, int64_t r)
{
	return (code == HIVE_OP_RECV || code == HIVE_OP_RECV_MANY || code == HIVE_OP_READ) && r > 0 &&
	       (uint64_t)r < asked && seat->how >= SEAT_EDGES && !(seat->ready & FINAL) &&
	       (seat->stream == STREAM_UNKNOWN ? hive__seat_asks_stream(seat) : seat->stream == STREAM_YES);
}

/* What an attempt, at so many bytes, says about the seat. */
static inline void seat_learn(struct seat *seat, uint32_t code, uint32_t events, uint64_t asked, int64_t r)
{
	seat->strays = 0; /* what it is told of goes on here */
	if (r == -EAGAIN)
		seat->ready &= ~events;
	else if (r <= 0)
		seat->sure = 0; /* it may be about to be closed */
	else if (seat_used_up(seat, code, asked, r))
		seat->ready &= ~(uint32_t)HIVE_EVENT_IN;
}

/* sit.c */
/* A fiber waits there itself. */
bool hive__seat_has_sitter(const struct seat *seat);
/* The fibers that wait for one of these events go on, with this result. What they wait for, 0: there was none. */
uint32_t hive__seat_call(struct seat *seat, uint32_t events, int result);
bool hive__seat_call_reader(struct seat *seat);
/* The desk's worker leaves: all of them try again elsewhere. */
void hive__seats_call_all(struct desk *desk);

/* Registered in this life of its number, and nobody waits there. */
static inline bool seat_is_quiet(const struct seat *seat)
{
	return seat->how != SEAT_OUT && !seat->first && !seat->reader.wait.who && !seat->writer.wait.who &&
	       seat->life == number_life((int)seat->source.handle);
}

static inline bool seat_is_waited_at(const struct seat *seat)
{
	return seat->first || hive__seat_has_sitter(seat);
}
