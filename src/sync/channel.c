/* SPDX-License-Identifier: MIT */
/* The channel: a ring, and those who wait because it is full or empty. A send or a receive with nobody waiting is one latch, one
 * copy, one store. Where somebody waits, the item goes straight from or to its buffer: it need not come back for it.
 *
 * What is true under the latch: receivers wait only while there is no item, senders only while there is no room; so never both,
 * but for one who selects (arm.h) and waits for either: it does not meet itself.
 * A waiter is claimed before its item is copied: one that was late leaves with its buffer untouched. */
#include "channel.h"

#include <string.h>

int hive_channel_create(size_t item_bytes, size_t capacity, struct hive_channel **ret_channel)
{
	struct hive_channel *channel;

	if (!ret_channel || item_bytes == 0 || capacity > (SIZE_MAX - sizeof *channel) / item_bytes)
		return -EINVAL;
	channel = (struct hive_channel *)object_new(sizeof *channel + capacity * item_bytes);
	if (!channel)
		return -ENOMEM;
	channel->capacity = capacity;
	channel->bytes = item_bytes;
	channel->ring = (char *)(channel + 1);
	channel->magic = CHANNEL_MAGIC;
	*ret_channel = channel;
	return 0;
}

int hive_channel_destroy(struct hive_channel *channel)
{
	uint64_t word;

	if (!channel)
		return 0;
	if (channel->magic != CHANNEL_MAGIC)
		return -EINVAL;
	word = latch_take(&channel->word);
	latch_give(&channel->word, word);
	if (word & (CHANNEL_SENDERS | CHANNEL_RECEIVERS))
		return -EBUSY;
	channel->magic = 0;
	object_free(channel);
	return 0;
}

static inline void copy(void *to, const void *from, size_t bytes)
{
	if (bytes == 8)
		memcpy(to, from, 8);
	else
		memcpy(to, from, bytes);
}

static inline size_t next_place(const struct hive_channel *channel, size_t place)
{
	return place + 1 == channel->capacity ? 0 : place + 1;
}

/* All of these under the latch. */
static inline void put_into_ring(struct hive_channel *channel, const void *item)
{
	copy(channel->ring + channel->tail * channel->bytes, item, channel->bytes);
	channel->tail = next_place(channel, channel->tail);
	bump(&channel->count, 1);
}

static inline void take_from_ring(struct hive_channel *channel, void *ret_item)
{
	copy(ret_item, channel->ring + channel->head * channel->bytes, channel->bytes);
	channel->head = next_place(channel, channel->head);
	bump(&channel->count, (size_t)-1);
}

/* The first one whose wait is still on, claimed; NULL: nobody, and the word does not say so any more. */
static struct channel_node *claim(struct wait_list *list, uint64_t bit, uint64_t *word, struct wakes *wakes)
{
	struct channel_node *found = NULL;
	struct wait_node *node;

	while (!found && (node = node_take(list)))
		if (wakes_claim(wakes, node))
			found = (struct channel_node *)node;
	if (found)
		found->claimed = true;
	if (!list->first)
		*word &= ~bit;
	return found;
}

int hive__channel_put(struct hive_channel *channel, uint64_t *word, const void *item, struct wakes *wakes)
{
	struct channel_node *receiver;

	if (*word & (CHANNEL_CLOSED | CHANNEL_RECEIVERS)) {
		if (*word & CHANNEL_CLOSED)
			return -EPIPE;
		receiver = claim(&channel->receivers, CHANNEL_RECEIVERS, word, wakes);
		if (receiver) {
			copy(receiver->ret_item, item, channel->bytes);
			return 0;
		}
	}
	if (load_relaxed(&channel->count) == channel->capacity)
		return -EAGAIN;
	put_into_ring(channel, item);
	return 0;
}

int hive__channel_take(struct hive_channel *channel, uint64_t *word, void *ret_item, struct wakes *wakes)
{
	bool found = load_relaxed(&channel->count) > 0;
	struct channel_node *sender;

	if (found)
		take_from_ring(channel, ret_item);
	if (*word & CHANNEL_SENDERS) {
		sender = claim(&channel->senders, CHANNEL_SENDERS, word, wakes);
		if (sender && found)
			put_into_ring(channel, sender->item);
		else if (sender)
			copy(ret_item, sender->item, channel->bytes);
		found = found || sender;
	}
	if (found)
		return 0;
	return *word & CHANNEL_CLOSED ? -EPIPE : -EAGAIN;
}

static int try_send(struct hive_channel *channel, const void *item)
{
	uint64_t word = latch_take(&channel->word);
	struct wakes wakes;
	int r;

	wakes_init(&wakes);
	r = hive__channel_put(channel, &word, item, &wakes);
	latch_give(&channel->word, word);
	wakes_deliver(&wakes);
	return r;
}

static int try_recv(struct hive_channel *channel, void *ret_item)
{
	uint64_t word = latch_take(&channel->word);
	struct wakes wakes;
	int r;

	wakes_init(&wakes);
	r = hive__channel_take(channel, &word, ret_item, &wakes);
	latch_give(&channel->word, word);
	wakes_deliver(&wakes);
	return r;
}

/* In the list, with nothing to be had. What became of it. */
static int wait_in(struct hive_channel *channel, struct wait_list *list, uint64_t bit, struct channel_node *mine,
                   struct wait wait, int64_t deadline_ns)
{
	int r = hive__wait_end(wait, deadline_ns);
	uint64_t word;

	if (r == 0) {
		latch_pass(&channel->word);
		return mine->closed ? -EPIPE : 0;
	}
	word = latch_take(&channel->word);
	node_remove(list, &mine->node);
	latch_give(&channel->word, list->first ? word : word & ~bit);
	return r;
}

static int send_slowly(struct hive_channel *channel, const void *item, int64_t deadline_ns)
{
	struct channel_node mine = { .item = item };
	struct wakes wakes;
	struct wait wait;
	uint64_t word;
	int r = hive__wait_begin(&wait, "channel: send");

	if (r < 0)
		return r;
	wakes_init(&wakes);
	word = latch_take(&channel->word);
	r = hive__channel_put(channel, &word, item, &wakes);
	if (r == -EAGAIN) {
		node_add(&channel->senders, &mine.node, wait);
		word |= CHANNEL_SENDERS;
	}
	latch_give(&channel->word, word);
	wakes_deliver(&wakes);
	if (r == -EAGAIN)
		return wait_in(channel, &channel->senders, CHANNEL_SENDERS, &mine, wait, deadline_ns);
	hive__wait_give_up(wait);
	return r;
}

static int recv_slowly(struct hive_channel *channel, void *ret_item, int64_t deadline_ns)
{
	struct channel_node mine = { .ret_item = ret_item };
	struct wakes wakes;
	struct wait wait;
	uint64_t word;
	int r = hive__wait_begin(&wait, "channel: receive");

	if (r < 0)
		return r;
	wakes_init(&wakes);
	word = latch_take(&channel->word);
	r = hive__channel_take(channel, &word, ret_item, &wakes);
	if (r == -EAGAIN) {
		node_add(&channel->receivers, &mine.node, wait);
		word |= CHANNEL_RECEIVERS;
	}
	latch_give(&channel->word, word);
	wakes_deliver(&wakes);
	if (r == -EAGAIN)
		return wait_in(channel, &channel->receivers, CHANNEL_RECEIVERS, &mine, wait, deadline_ns);
	hive__wait_give_up(wait);
	return r;
}

static __attribute__((noinline)) int send_otherwise(struct hive_channel *channel, const void *item, int64_t deadline_ns)
{
	int r = try_send(channel, item);

	if (r != -EAGAIN)
		return r;
	return is_past(deadline_ns) ? -ETIMEDOUT : send_slowly(channel, item, deadline_ns);
}

static __attribute__((noinline)) int recv_otherwise(struct hive_channel *channel, void *ret_item, int64_t deadline_ns)
{
	int r = try_recv(channel, ret_item);

	if (r != -EAGAIN)
		return r;
	return is_past(deadline_ns) ? -ETIMEDOUT : recv_slowly(channel, ret_item, deadline_ns);
}

/* Nobody waits, it is not closed, there is room or an item: the few steps that an item costs. */
static inline bool send_quickly(struct hive_channel *channel, const void *item)
{
	bool room;

	if (!latch_take_zero(&channel->word))
		return false;
	room = load_relaxed(&channel->count) < channel->capacity;
	if (room)
		put_into_ring(channel, item);
	latch_give(&channel->word, 0);
	return room;
}

static inline bool recv_quickly(struct hive_channel *channel, void *ret_item)
{
	bool found;

	if (!latch_take_zero(&channel->word))
		return false;
	found = load_relaxed(&channel->count) > 0;
	if (found)
		take_from_ring(channel, ret_item);
	latch_give(&channel->word, 0);
	return found;
}

int hive_channel_send(struct hive_channel *channel, const void *item, size_t bytes, int64_t deadline_ns)
{
	int r = channel_refuse(channel, item, bytes);

	if (r < 0)
		return r;
	checkpoint(deadline_ns);
	if (send_quickly(channel, item))
		return 0;
	return send_otherwise(channel, item, deadline_ns);
}

int hive_channel_recv(struct hive_channel *channel, void *ret_item, size_t bytes, int64_t deadline_ns)
{
	int r = channel_refuse(channel, ret_item, bytes);

	if (r < 0)
		return r;
	checkpoint(deadline_ns);
	if (recv_quickly(channel, ret_item))
		return 0;
	return recv_otherwise(channel, ret_item, deadline_ns);
}

int hive_channel_close(struct hive_channel *channel)
{
	struct channel_node *node;
	struct wakes wakes;
	uint64_t word;

	if (!channel || channel->magic != CHANNEL_MAGIC)
		return -EINVAL;
	wakes_init(&wakes);
	word = latch_take(&channel->word);
	if (word & CHANNEL_CLOSED) {
		latch_give(&channel->word, word);
		return -EALREADY;
	}
	while ((node = claim(&channel->senders, CHANNEL_SENDERS, &word, &wakes)))
		node->closed = true;
	while ((node = claim(&channel->receivers, CHANNEL_RECEIVERS, &word, &wakes)))
		node->closed = true;
	latch_give(&channel->word, word | CHANNEL_CLOSED);
	wakes_deliver(&wakes);
	return 0;
}
