/* SPDX-License-Identifier: MIT */
#pragma once
/* What a channel is made of. Its word is a latch (base/latch.h) with what everybody asks first: does somebody wait, is it closed. */
#include "base/latch.h"
#include "fiber/wakes.h"
#include "inside.h"

#define CHANNEL_SENDERS UINT64_C(2)   /* somebody waits to send */
#define CHANNEL_RECEIVERS UINT64_C(4) /* somebody waits to receive */
#define CHANNEL_CLOSED UINT64_C(8)

struct hive_channel {
	/* I  on a line of their own: nobody who only looks at them shall fetch the other line twice */
	size_t capacity, bytes;
	char *ring;
	uint32_t magic;

	alignas(CACHE_LINE) ATOMIC(uint64_t) word; /* A */
	ATOMIC(size_t) count;                      /* L the word's latch; anyone looks. Items inside */
	size_t head;                               /* L place of the oldest */
	size_t tail;                               /* L place of the next */
	struct wait_list senders, receivers;       /* L */
};

struct channel_node {
	struct wait_node node; /* first */
	union {
		const void *item; /* of a sender */
		void *ret_item;   /* of a receiver */
	};
	bool claimed; /* woken by one who came here: he has given or taken the item, */
	bool closed;  /* or he has closed it, and has not */
};

static inline int channel_refuse(const struct hive_channel *channel, const void *item, size_t bytes)
{
	if (!channel || !item || channel->magic != CHANNEL_MAGIC)
		return -EINVAL;
	return bytes == channel->bytes ? 0 : -EMSGSIZE;
}

/* Under the latch, of which this is the word. -EPIPE: closed. -EAGAIN: no room, and nobody waits to receive; nothing there, and nobody waits to send. */
int hive__channel_put(struct hive_channel *channel, uint64_t *word, const void *item, struct wakes *wakes);
int hive__channel_take(struct hive_channel *channel, uint64_t *word, void *ret_item, struct wakes *wakes);
