/* SPDX-License-Identifier: MIT */
#pragma once
/* A stream: a reader's half and a writer's half that share a descriptor, and nothing else.
 *
 * The reader's half is touched by whoever holds `reading`. What was written goes through two spans: `filling` takes it, `sending` is lent
 * to the operation under way; when that one is empty they change places. The drain is the chain of those operations, and there is one
 * at most: each completion starts the next, until nothing is left or something fails.
 *
 * Who may touch a field:   I  constant   R  who holds `reading`   L  under the lock   D  the drain, or under the lock while there is none
 *   A  any thread, atomic                                                                                                  */
#include <rophive/io.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/role.h"
#include "fiber/wait.h"

struct span { /* bytes from..to of a block */
	char *data;
	size_t capacity, from, to;
};

struct hive_stream {
	uint32_t magic;                     /* I */
	int fd;                             /* I */
	bool is_socket;                     /* I */
	struct hive_stream_options options; /* I; no zeros left */
	ATOMIC(uint32_t) reading, writing;  /* A: somebody is in such a call */
	struct span in;                     /* R */
	size_t viewed;                      /* R: bytes of `in` that the last call showed, gone with the next */
	size_t searched;                    /* R: bytes of `in` that have no newline */
	bool ended;                         /* R: the peer has */
	struct lock lock;
	struct span sending;    /* D */
	struct span filling;    /* L */
	size_t pending;         /* L: bytes in both */
	int error;              /* L: the connection is broken; 0: it is not */
	int stalled;            /* L: why the drain ended although there was more; 0: it did not */
	bool draining;          /* L */
	bool ending;            /* L: destroy wants the end of the drain, */
	bool doomed;            /* L: and the last one out frees it */
	uint32_t inside;        /* L: how many are starting or cancelling the operation */
	struct wait_list waits; /* L: the writer, */
	size_t wake_at;         /* L: until so much is pending */
	bool refused;           /* L: on_drain is to be called, */
	size_t refused_at;      /* L: when so much is pending */
	struct hive_op op;      /* D */
};

extern const struct memory hive__stream_memory;

/* Room for so many bytes more at the end of a span, which begins at 0 afterwards. */
bool hive__span_grow(struct span *span, size_t bytes);
void hive__span_free(struct span *span);

static inline size_t span_has(const struct span *span)
{
	return span->to - span->from;
}

/* 0, -EINVAL: no stream; -EBUSY: somebody is in such a call. stream_leave() has to follow. */
int hive__stream_enter(struct hive_stream *stream, ATOMIC(uint32_t) *role);

static inline void stream_leave(ATOMIC(uint32_t) *role)
{
	role_leave(role);
}

/* The writer. Until at most so much is pending. 0; -ETIMEDOUT, -ECANCELED, -EDEADLK; why the drain stalled; what the connection said. */
int hive__stream_drain(struct hive_stream *stream, size_t level, int64_t deadline_ns);
/* Nobody is in a call, and no writer or reader comes any more: ends the drain. False: it ends a moment later, and frees the stream. */
bool hive__stream_end_drain(struct hive_stream *stream);
/* The descriptor, and all memory. */
void hive__stream_free(struct hive_stream *stream);
