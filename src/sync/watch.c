/* SPDX-License-Identifier: MIT */
/* The watch: the latest value, and its number. Who has seen a number waits for another one. */
#include "bell.h"

#include <string.h>

struct hive_watch {
	struct bell bell; /* first */
	uint64_t version; /* L  of the value: 1 for the first */
	size_t bytes;     /* I */
	uint32_t magic;   /* I */
	char value[];     /* L */
};

int hive_watch_create(size_t item_bytes, const void *item, struct hive_watch **ret_watch)
{
	struct hive_watch *watch;

	if (!ret_watch || !item || item_bytes == 0 || item_bytes > SIZE_MAX - sizeof *watch)
		return -EINVAL;
	watch = (struct hive_watch *)object_new(sizeof *watch + item_bytes);
	if (!watch)
		return -ENOMEM;
	memcpy(watch->value, item, item_bytes);
	watch->version = 1;
	watch->bytes = item_bytes;
	watch->magic = WATCH_MAGIC;
	*ret_watch = watch;
	return 0;
}

int hive_watch_destroy(struct hive_watch *watch)
{
	if (!watch)
		return 0;
	if (watch->magic != WATCH_MAGIC)
		return -EINVAL;
	if (bell_is_used(&watch->bell))
		return -EBUSY;
	watch->magic = 0;
	object_free(watch);
	return 0;
}

static int refuse(const struct hive_watch *watch, const void *item, size_t bytes)
{
	if (!watch || !item || watch->magic != WATCH_MAGIC)
		return -EINVAL;
	return bytes == watch->bytes ? 0 : -EMSGSIZE;
}

int hive_watch_send(struct hive_watch *watch, const void *item, size_t bytes)
{
	int r = refuse(watch, item, bytes);
	uint64_t word;

	if (r < 0)
		return r;
	word = latch_take(&watch->bell.word);
	if (word & BELL_CLOSED) {
		latch_give(&watch->bell.word, word);
		return -EPIPE;
	}
	memcpy(watch->value, item, bytes);
	watch->version++;
	bell_ring(&watch->bell, word);
	return 0;
}

int hive_watch_close(struct hive_watch *watch)
{
	return watch && watch->magic == WATCH_MAGIC ? bell_close(&watch->bell) : -EINVAL;
}

int hive_watch_read(struct hive_watch *watch, void *ret_item, size_t bytes, uint64_t *ret_version)
{
	int r = refuse(watch, ret_item, bytes);
	uint64_t word;

	if (r < 0)
		return r;
	word = latch_take(&watch->bell.word);
	memcpy(ret_item, watch->value, bytes);
	if (ret_version)
		*ret_version = watch->version;
	latch_give(&watch->bell.word, word);
	return 0;
}

/* A value that was sent before the end is told before the end. */
static int attempt_watch(struct arm *arm)
{
	struct hive_watch *watch = (struct hive_watch *)arm->object;
	uint64_t word = latch_take(&watch->bell.word);
	int r = -EAGAIN;

	if (watch->version != *arm->number) {
		memcpy(arm->node.ret_item, watch->value, watch->bytes);
		*arm->number = watch->version;
		r = 0;
	} else if (word & BELL_CLOSED) {
		r = -EPIPE;
	}
	latch_give(&watch->bell.word, word);
	return r;
}

static bool enlist_watch(struct arm *arm, struct wait wait)
{
	struct hive_watch *watch = (struct hive_watch *)arm->object;
	uint64_t word = latch_take(&watch->bell.word);

	return bell_enlist(&watch->bell, word, watch->version != *arm->number || word & BELL_CLOSED, arm, wait);
}

static bool delist_watch(struct arm *arm, int *ret_result)
{
	(void)ret_result;
	return bell_delist(&((struct hive_watch *)arm->object)->bell, arm);
}

static const struct arm_ops watch_ops = { attempt_watch, enlist_watch, delist_watch };

int hive__watch_arm(struct hive_watch *watch, uint64_t *version, void *ret_item, size_t bytes, struct arm *ret_arm)
{
	int r = refuse(watch, ret_item, bytes);

	if (r < 0 || !version)
		return r < 0 ? r : -EINVAL;
	*ret_arm = (struct arm){
		.ops = &watch_ops, .object = watch, .node = { .ret_item = ret_item }, .number = version
	};
	return 0;
}

int hive_watch_wait(struct hive_watch *watch, uint64_t *version, void *ret_item, size_t bytes, int64_t deadline_ns)
{
	struct arm arm;
	int r = hive__watch_arm(watch, version, ret_item, bytes, &arm);

	return r < 0 ? r : arm_wait(&arm, "watch", deadline_ns);
}
