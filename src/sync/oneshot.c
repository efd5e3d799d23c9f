/* SPDX-License-Identifier: MIT */
/* The oneshot: a value and two sides. Each side says once that it is through; who is second frees the memory. So neither has to know of the
 * other whether it still lives.                                                                                           */
#include "bell.h"

#include <string.h>

#define ONESHOT_VALUE (UINT64_C(1) << BELL_BITS) /* it is there */
#define ONESHOT_NO_RECEIVER (UINT64_C(1) << (BELL_BITS + 1))

struct hive_oneshot {
	struct bell bell; /* first. Closed: the sender is through */
	size_t bytes;     /* I */
	uint32_t magic;   /* I */
	char value[];     /* L */
};

int hive_oneshot_create(size_t item_bytes, struct hive_oneshot **ret_oneshot)
{
	struct hive_oneshot *oneshot;

	if (!ret_oneshot || item_bytes == 0 || item_bytes > SIZE_MAX - sizeof *oneshot)
		return -EINVAL;
	oneshot = (struct hive_oneshot *)object_new(sizeof *oneshot + item_bytes);
	if (!oneshot)
		return -ENOMEM;
	oneshot->bytes = item_bytes;
	oneshot->magic = ONESHOT_MAGIC;
	*ret_oneshot = oneshot;
	return 0;
}

static void release(struct hive_oneshot *oneshot)
{
	oneshot->magic = 0;
	object_free(oneshot);
}

/* The sender is through, with a value or without. The last that it does with it is to give the latch back, or to free it. */
static int finish(struct hive_oneshot *oneshot, const void *item)
{
	uint64_t word = latch_take(&oneshot->bell.word);

	if (word & BELL_CLOSED) {
		latch_give(&oneshot->bell.word, word);
		return -EALREADY;
	}
	if (word & ONESHOT_NO_RECEIVER) {
		release(oneshot);
		return item ? -EPIPE : 0;
	}
	if (item)
		memcpy(oneshot->value, item, oneshot->bytes);
	bell_ring(&oneshot->bell, word | BELL_CLOSED | (item ? ONESHOT_VALUE : 0));
	return 0;
}

int hive_oneshot_send(struct hive_oneshot *oneshot, const void *item, size_t bytes)
{
	if (!oneshot || !item || oneshot->magic != ONESHOT_MAGIC)
		return -EINVAL;
	return bytes == oneshot->bytes ? finish(oneshot, item) : -EMSGSIZE;
}

int hive_oneshot_drop(struct hive_oneshot *oneshot)
{
	if (!oneshot)
		return 0;
	return oneshot->magic == ONESHOT_MAGIC ? finish(oneshot, NULL) : -EINVAL;
}

int hive_oneshot_close(struct hive_oneshot *oneshot)
{
	uint64_t word;

	if (!oneshot)
		return 0;
	if (oneshot->magic != ONESHOT_MAGIC)
		return -EINVAL;
	word = latch_take(&oneshot->bell.word);
	if (word & BELL_CLOSED) {
		release(oneshot);
		return 0;
	}
	if (word & (WORD_WAITERS | ONESHOT_NO_RECEIVER)) {
		latch_give(&oneshot->bell.word, word);
		return word & WORD_WAITERS ? -EBUSY : -EALREADY;
	}
	latch_give(&oneshot->bell.word, word | ONESHOT_NO_RECEIVER);
	return 0;
}

static int attempt_oneshot(struct arm *arm)
{
	struct hive_oneshot *oneshot = (struct hive_oneshot *)arm->object;
	uint64_t word = latch_take(&oneshot->bell.word);
	int r = -EAGAIN;

	if (word & ONESHOT_VALUE) {
		memcpy(arm->node.ret_item, oneshot->value, oneshot->bytes);
		r = 0;
	} else if (word & BELL_CLOSED) {
		r = -EPIPE;
	}
	latch_give(&oneshot->bell.word, word & ~ONESHOT_VALUE);
	return r;
}

static bool enlist_oneshot(struct arm *arm, struct wait wait)
{
	struct hive_oneshot *oneshot = (struct hive_oneshot *)arm->object;
	uint64_t word = latch_take(&oneshot->bell.word);

	return bell_enlist(&oneshot->bell, word, word & BELL_CLOSED, arm, wait);
}

static bool delist_oneshot(struct arm *arm, int *ret_result)
{
	(void)ret_result;
	return bell_delist(&((struct hive_oneshot *)arm->object)->bell, arm);
}

static const struct arm_ops oneshot_ops = { attempt_oneshot, enlist_oneshot, delist_oneshot };

int hive__oneshot_arm(struct hive_oneshot *oneshot, void *ret_item, size_t bytes, struct arm *ret_arm)
{
	if (!oneshot || !ret_item || oneshot->magic != ONESHOT_MAGIC)
		return -EINVAL;
	if (bytes != oneshot->bytes)
		return -EMSGSIZE;
	*ret_arm = (struct arm){ .ops = &oneshot_ops, .object = oneshot, .node = { .ret_item = ret_item } };
	return 0;
}

int hive_oneshot_recv(struct hive_oneshot *oneshot, void *ret_item, size_t bytes, int64_t deadline_ns)
{
	struct arm arm;
	int r = hive__oneshot_arm(oneshot, ret_item, bytes, &arm);

	return r < 0 ? r : arm_wait(&arm, "oneshot", deadline_ns);
}
