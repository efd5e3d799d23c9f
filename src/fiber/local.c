/* SPDX-License-Identifier: MIT */
/* Values of a fiber by key. A list whose nodes never change once they are shared: a child takes its parent's list as it is, and
 * whoever sets a value gets own nodes in front of what remains common. So the list is never longer than there are keys.    */
#include <rophive/fiber.h>

#include "base/memory.h"
#include "base/refs.h"
#include "fiber/fiber.h"

struct locals {
	struct locals *next;   /* I once shared */
	const void *key;       /* I */
	void *value;           /* I once shared */
	ATOMIC(uint32_t) refs; /* A  fibers and nodes that point here */
};

struct locals *hive__locals_share(struct locals *locals)
{
	if (locals)
		refs_add(&locals->refs);
	return locals;
}

void hive__locals_drop(const struct memory *memory, struct locals *locals)
{
	while (locals && refs_drop(&locals->refs)) {
		struct locals *next = locals->next;

		hive__memory_free(memory, locals);
		locals = next;
	}
}

static struct locals *find(struct locals *locals, const void *key)
{
	while (locals && locals->key != key)
		locals = locals->next;
	return locals;
}

/* Nobody else can see the list as far as this node: it may be changed. */
static bool is_own(struct locals *first, const struct locals *last)
{
	for (;; first = first->next) {
		if (!refs_are(&first->refs, 1))
			return false;
		if (first == last)
			return true;
	}
}

static struct locals *new_node(const struct memory *memory, const void *key, void *value, struct locals *next)
{
	struct locals *node = (struct locals *)hive__memory_new(memory, sizeof *node);

	if (!node)
		return NULL;
	node->key = key;
	node->value = value;
	node->next = next;
	store_relaxed(&node->refs, 1u);
	return node;
}

/* The list with another value at `old`: the nodes before it are copied, those behind it shared. NULL: no memory. */
static struct locals *copy_with(const struct memory *memory, struct locals *first, struct locals *old, void *value)
{
	struct locals *copy = new_node(memory, old->key, value, old->next);

	if (copy)
		hive__locals_share(old->next);
	for (; copy && first != old; first = first->next) {
		struct locals *node = new_node(memory, first->key, first->value, copy);

		if (!node)
			hive__locals_drop(memory, copy);
		copy = node;
	}
	return copy;
}

int hive_fiber_set(const void *key, void *value)
{
	struct hive_fiber *f = hive__fiber_here();
	const struct memory *memory;
	struct locals *old, *list;

	if (!f || !key)
		return f ? -EINVAL : -EPERM;
	memory = hive__guest_memory(f->hive);
	old = find(f->locals, key);
	if (old && is_own(f->locals, old)) {
		old->value = value;
		return 0;
	}
	list = old ? copy_with(memory, f->locals, old, value) : new_node(memory, key, value, f->locals);
	if (!list)
		return -ENOMEM;
	if (old)
		hive__locals_drop(memory, f->locals);
	f->locals = list;
	return 0;
}

void *hive_fiber_get(const void *key)
{
	struct hive_fiber *f = hive__fiber_here();
	struct locals *node = f ? find(f->locals, key) : NULL;

	return node ? node->value : NULL;
}
