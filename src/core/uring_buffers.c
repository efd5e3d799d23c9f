/* SPDX-License-Identifier: MIT */
/* Buffers in a ring that the kernel takes them from when something has come. It has all that are idle; which of them it has taken it tells
 * with each answer. With no request under way all that were not told of are idle again.                                       */
#if defined(HIVE_URING)
#include "core/uring.h"

enum { PAGE = 4096, GROUPS = 1 << 16 };

struct buffer_ring {
	struct uring_core *core;
	struct buffers *buffers;
	struct buffer_ring *next;
	struct io_uring_buf_ring *shared; /* with the kernel */
	void *block;                      /* where it lies, on a page of its own */
	uint32_t entries;
	uint16_t group;
};

static struct buffer_ring *ring_of(const struct buffers *buffers)
{
	return (struct buffer_ring *)buffers->ring;
}

uint16_t hive__uring_group(const struct buffers *buffers)
{
	return ring_of(buffers)->group;
}

static bool is_used(const struct uring_core *c, uint32_t group)
{
	for (const struct buffer_ring *r = c->buffer_rings; r; r = r->next)
		if (r->group == group)
			return true;
	return false;
}

static void free_ring(struct uring_core *c, struct buffer_ring *r)
{
	hive__memory_free(&c->memory, r->block);
	hive__memory_free(&c->memory, r);
}

static struct buffer_ring *new_ring(struct uring_core *c, uint32_t count)
{
	struct buffer_ring *r = (struct buffer_ring *)hive__memory_new(&c->memory, sizeof *r);

	if (!r)
		return NULL;
	for (r->entries = 1; r->entries < count; r->entries *= 2)
		;
	r->block = hive__memory_new(&c->memory, r->entries * sizeof(struct io_uring_buf) + PAGE);
	if (!r->block) {
		free_ring(c, r);
		return NULL;
	}
	r->shared = (struct io_uring_buf_ring *)(((uintptr_t)r->block + PAGE - 1) / PAGE * PAGE);
	r->core = c;
	return r;
}

static int enter_kernel(struct uring_core *c, struct buffer_ring *r)
{
	struct io_uring_buf_reg about = { .ring_addr = (uintptr_t)r->shared, .ring_entries = r->entries };
	uint32_t group = 0;

	while (group < GROUPS && is_used(c, group))
		group++;
	if (group == GROUPS)
		return -ENOMEM;
	r->group = about.bgid = (uint16_t)group;
	return io_uring_register_buf_ring(&c->ring, &about, 0);
}

/* No request uses them. */
static void let_go(struct buffers *buffers)
{
	struct buffer_ring *r = ring_of(buffers), **link = &r->core->buffer_rings;

	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
	io_uring_unregister_buf_ring(&r->core->ring, r->group);
	free_ring(r->core, r);
	buffers->ring = NULL;
	buffers->in_ring = 0;
	buffers->let_go = NULL;
}

void hive__uring_refill(struct buffers *buffers)
{
	struct buffer_ring *r = ring_of(buffers);
	uint32_t index, n = 0;

	while (buffers_take(buffers, &index))
		io_uring_buf_ring_add(r->shared, buffers_at(buffers, index), buffers->bytes, (uint16_t)index,
		                      io_uring_buf_ring_mask(r->entries), (int)n++);
	buffers->in_ring += n;
	if (n > 0)
		io_uring_buf_ring_advance(r->shared, (int)n);
}

void hive__uring_refill_all(struct uring_core *c)
{
	for (struct buffer_ring *r = c->buffer_rings; r; r = r->next)
		hive__uring_refill(r->buffers);
}

bool hive__uring_lend(struct uring_core *c, struct buffers *buffers)
{
	struct buffer_ring *r;

	if (buffers->ring)
		return true;
	r = new_ring(c, buffers->count);
	if (!r)
		return false;
	if (enter_kernel(c, r) < 0) {
		free_ring(c, r);
		return false;
	}
	r->buffers = buffers;
	r->next = c->buffer_rings;
	c->buffer_rings = r;
	buffers->ring = r;
	buffers->let_go = let_go;
	hive__uring_refill(buffers);
	return true;
}
#endif
