/* SPDX-License-Identifier: MIT */
/* The broadcast: a ring of the last values, which have numbers. A subscription is the number of the value that comes next; what the ring has no longer is
 * missed. So who sends never waits, and who is slow holds up nobody.                                                      */
#include "bell.h"

#include <string.h>

struct hive_broadcast {
	struct bell bell;       /* first */
	uint64_t next;          /* L  number of the value that is sent next */
	size_t subscriptions;   /* L */
	size_t capacity, bytes; /* I */
	uint32_t magic;         /* I */
	char ring[];            /* L */
};

int hive_broadcast_create(size_t item_bytes, size_t capacity, struct hive_broadcast **ret_broadcast)
{
	struct hive_broadcast *broadcast;

	if (!ret_broadcast || item_bytes == 0 || capacity == 0 ||
	    capacity > (SIZE_MAX - sizeof *broadcast) / item_bytes)
		return -EINVAL;
	broadcast = (struct hive_broadcast *)object_new(sizeof *broadcast + capacity * item_bytes);
	if (!broadcast)
		return -ENOMEM;
	broadcast->capacity = capacity;
	broadcast->bytes = item_bytes;
	broadcast->magic = BROADCAST_MAGIC;
	*ret_broadcast = broadcast;
	return 0;
}

int hive_broadcast_destroy(struct hive_broadcast *broadcast)
{
	size_t subscriptions;
	uint64_t word;

	if (!broadcast)
		return 0;
	if (broadcast->magic != BROADCAST_MAGIC)
		return -EINVAL;
	word = latch_take(&broadcast->bell.word);
	subscriptions = broadcast->subscriptions;
	latch_give(&broadcast->bell.word, word);
	if (subscriptions > 0)
		return -EBUSY;
	broadcast->magic = 0;
	object_free(broadcast);
	return 0;
}

int hive_broadcast_send(struct hive_broadcast *broadcast, const void *item, size_t bytes)
{
	uint64_t word;

	if (!broadcast || !item || broadcast->magic != BROADCAST_MAGIC)
		return -EINVAL;
	if (bytes != broadcast->bytes)
		return -EMSGSIZE;
	word = latch_take(&broadcast->bell.word);
	if (word & BELL_CLOSED) {
		latch_give(&broadcast->bell.word, word);
		return -EPIPE;
	}
	memcpy(broadcast->ring + broadcast->next % broadcast->capacity * bytes, item, bytes);
	broadcast->next++;
	bell_ring(&broadcast->bell, word);
	return 0;
}

int hive_broadcast_close(struct hive_broadcast *broadcast)
{
	return broadcast && broadcast->magic == BROADCAST_MAGIC ? bell_close(&broadcast->bell) : -EINVAL;
}

int hive_broadcast_subscribe(struct hive_broadcast *broadcast, struct hive_subscription *ret_subscription)
{
	uint64_t word;

	if (!broadcast || !ret_subscription || broadcast->magic != BROADCAST_MAGIC)
		return -EINVAL;
	word = latch_take(&broadcast->bell.word);
	broadcast->subscriptions++;
	*ret_subscription = (struct hive_subscription){ .broadcast = broadcast,
		                                        .next = broadcast->next,
		                                        .magic = SUBSCRIPTION_MAGIC };
	latch_give(&broadcast->bell.word, word);
	return 0;
}

int hive_broadcast_unsubscribe(struct hive_subscription *subscription)
{
	struct hive_broadcast *broadcast;
	uint64_t word;

	if (!subscription || subscription->magic != SUBSCRIPTION_MAGIC)
		return -EINVAL;
	broadcast = subscription->broadcast;
	word = latch_take(&broadcast->bell.word);
	subscription->magic = 0;
	broadcast->subscriptions--;
	latch_give(&broadcast->bell.word, word);
	return 0;
}

/* Under the latch. The oldest value that is still there and was not received yet; ret_missed: how many are not. */
static const char *find(struct hive_subscription *subscription, uint64_t *ret_missed)
{
	struct hive_broadcast *broadcast = subscription->broadcast;
	uint64_t behind = broadcast->next - subscription->next;

	*ret_missed = behind > broadcast->capacity ? behind - broadcast->capacity : 0;
	subscription->next += *ret_missed;
	return broadcast->ring + subscription->next % broadcast->capacity * broadcast->bytes;
}

static int attempt_subscription(struct arm *arm)
{
	struct hive_subscription *subscription = (struct hive_subscription *)arm->object;
	struct hive_broadcast *broadcast = subscription->broadcast;
	uint64_t word = latch_take(&broadcast->bell.word), missed;
	int r = -EAGAIN;

	if (subscription->next != broadcast->next) {
		memcpy(arm->node.ret_item, find(subscription, &missed), broadcast->bytes);
		subscription->next++;
		if (arm->number)
			*arm->number = missed;
		r = 0;
	} else if (word & BELL_CLOSED) {
		r = -EPIPE;
	}
	latch_give(&broadcast->bell.word, word);
	return r;
}

static bool enlist_subscription(struct arm *arm, struct wait wait)
{
	struct hive_subscription *subscription = (struct hive_subscription *)arm->object;
	struct hive_broadcast *broadcast = subscription->broadcast;
	uint64_t word = latch_take(&broadcast->bell.word);

	return bell_enlist(&broadcast->bell, word, subscription->next != broadcast->next || word & BELL_CLOSED, arm,
	                   wait);
}

static bool delist_subscription(struct arm *arm, int *ret_result)
{
	(void)ret_result;
	return bell_delist(&((struct hive_subscription *)arm->object)->broadcast->bell, arm);
}

static const struct arm_ops subscription_ops = { attempt_subscription, enlist_subscription, delist_subscription };

int hive__subscription_arm(struct hive_subscription *subscription, void *ret_item, size_t bytes, uint64_t *ret_missed,
                           struct arm *ret_arm)
{
	if (!subscription || !ret_item || subscription->magic != SUBSCRIPTION_MAGIC)
		return -EINVAL;
	if (bytes != subscription->broadcast->bytes)
		return -EMSGSIZE;
	*ret_arm = (struct arm){
		.ops = &subscription_ops, .object = subscription, .node = { .ret_item = ret_item }, .number = ret_missed
	};
	return 0;
}

int hive_broadcast_recv(struct hive_subscription *subscription, void *ret_item, size_t bytes, uint64_t *ret_missed,
                        int64_t deadline_ns)
{
	struct arm arm;
	int r = hive__subscription_arm(subscription, ret_item, bytes, ret_missed, &arm);

	return r < 0 ? r : arm_wait(&arm, "broadcast", deadline_ns);
}
