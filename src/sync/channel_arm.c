/* SPDX-License-Identifier: MIT */
/* Channels as arms. */
#include "arm.h"

/* Under the latch. Somebody else waits there; maybe in vain, as he has got what he wanted elsewhere: who looks again finds out. */
static bool others_wait(const struct wait_list *list, struct wait wait)
{
	const struct wait_node *node = list->first;

	while (node && node->wait.who == wait.who)
		node = node->next;
	return node;
}

static int attempt(struct arm *arm, bool sends)
{
	struct hive_channel *channel = (struct hive_channel *)arm->object;
	uint64_t word = latch_take(&channel->word);
	struct wakes wakes;
	int r;

	wakes_init(&wakes);
	r = sends ? hive__channel_put(channel, &word, arm->node.item, &wakes)
	          : hive__channel_take(channel, &word, arm->node.ret_item, &wakes);
	latch_give(&channel->word, word);
	wakes_deliver(&wakes);
	return r;
}

static bool enlist(struct arm *arm, struct wait wait, bool sends)
{
	struct hive_channel *channel = (struct hive_channel *)arm->object;
	uint64_t word = latch_take(&channel->word);
	size_t count = load_relaxed(&channel->count);
	bool ready = (word & CHANNEL_CLOSED) || (sends ? count < channel->capacity : count > 0) ||
	             others_wait(sends ? &channel->receivers : &channel->senders, wait);

	if (!ready) {
		arm->node.claimed = arm->node.closed = false;
		node_add(sends ? &channel->senders : &channel->receivers, &arm->node.node, wait);
		word |= sends ? CHANNEL_SENDERS : CHANNEL_RECEIVERS;
	}
	latch_give(&channel->word, word);
	return !ready;
}

static bool delist(struct arm *arm, int *ret_result, bool sends)
{
	struct hive_channel *channel = (struct hive_channel *)arm->object;
	struct wait_list *list = sends ? &channel->senders : &channel->receivers;
	uint64_t word = latch_take(&channel->word);

	node_remove(list, &arm->node.node);
	if (!list->first)
		word &= ~(sends ? CHANNEL_SENDERS : CHANNEL_RECEIVERS);
	latch_give(&channel->word, word);
	if (arm->node.claimed)
		*ret_result = arm->node.closed ? -EPIPE : 0;
	return arm->node.claimed;
}

static int attempt_send(struct arm *arm)
{
	return attempt(arm, true);
}

static int attempt_recv(struct arm *arm)
{
	return attempt(arm, false);
}

static bool enlist_send(struct arm *arm, struct wait wait)
{
	return enlist(arm, wait, true);
}

static bool enlist_recv(struct arm *arm, struct wait wait)
{
	return enlist(arm, wait, false);
}

static bool delist_send(struct arm *arm, int *ret_result)
{
	return delist(arm, ret_result, true);
}

static bool delist_recv(struct arm *arm, int *ret_result)
{
	return delist(arm, ret_result, false);
}

static const struct arm_ops sends = { attempt_send, enlist_send, delist_send };
static const struct arm_ops receives = { attempt_recv, enlist_recv, delist_recv };

int hive__channel_arm(struct hive_channel *channel, const void *item, void *ret_item, size_t bytes, struct arm *ret_arm)
{
	int r = channel_refuse(channel, item ? item : ret_item, bytes);

	if (r < 0 || (item && ret_item))
		return r < 0 ? r : -EINVAL;
	*ret_arm = (struct arm){ .ops = item ? &sends : &receives, .object = channel };
	if (item)
		ret_arm->node.item = item;
	else
		ret_arm->node.ret_item = ret_item;
	return 0;
}
