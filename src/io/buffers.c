/* SPDX-License-Identifier: MIT */
#include "io/buffers.h"

#include <rophive/hive.h>

#include "base/refs.h"

enum { NEXT, PREV }; /* spare[…] of a hungry operation */
enum { ROUND = 64 }; /* of them go on at once */

struct hive_buffers {
	struct hive *hive;             /* I */
	struct memory memory;          /* I */
	uint32_t count, bytes;         /* I  of a share */
	struct lock lock;              /* who changes shares */
	ATOMIC(struct share *) shares; /* A  ever more; stored under the lock */
	ATOMIC(uint32_t) users;        /* A  operations */
	ATOMIC(uint32_t) over;         /* A  destroyed, as far as its user knows */
	ATOMIC(uint32_t) refs;         /* A  its user, shares that have a desk, letters */
};

/* ---- pools ---- */

static void unref(struct hive_buffers *pool)
{
	struct memory memory = pool->memory;
	struct share *share, *next;

	if (!refs_drop(&pool->refs))
		return;
	for (share = load_relaxed(&pool->shares); share; share = next) {
		next = share->next;
		hive__buffers_close(&share->set, &memory);
		hive__memory_free(&memory, share);
	}
	hive__memory_free(&memory, pool);
}

int hive_buffers_create(struct hive *hive, uint32_t count, size_t bytes, struct hive_buffers **ret_buffers)
{
	const struct memory *memory;
	struct hive_buffers *pool;

	if (!hive || !ret_buffers || count == 0 || count > BUFFERS_MOST || bytes == 0 || bytes > HIVE_BUFFER_MOST)
		return -EINVAL;
	memory = hive__guest_memory(hive);
	pool = (struct hive_buffers *)hive__memory_new(memory, sizeof *pool);
	if (!pool)
		return -ENOMEM;
	pool->hive = hive;
	pool->memory = *memory;
	pool->count = count;
	pool->bytes = (uint32_t)bytes;
	lock_init(&pool->lock);
	store_relaxed(&pool->refs, 1u);
	*ret_buffers = pool;
	return 0;
}

static bool is_lent(struct hive_buffers *pool)
{
	struct share *share = load_acquire(&pool->shares); /* BUFFERS-3 (pairs with BUFFERS-2) */
	bool lent = false;

	for (; share && !lent; share = share->next) {
		lock_acquire(&share->set.lock); /* who returns the last one is through */
		lent = buffers_any_lent(&share->set);
		lock_release(&share->set.lock);
	}
	return lent;
}

/* Shares whose desk still knows them are let go of there, when somebody looks. */
int hive_buffers_destroy(struct hive_buffers *pool)
{
	if (!pool)
		return 0;
	if (!refs_are(&pool->users, 0) || is_lent(pool))
		return -EBUSY;
	store_relaxed(&pool->over, 1u);
	unref(pool);
	return 0;
}

int hive__buffers_use(struct hive_buffers *pool, const struct hive *hive)
{
	if (!pool || pool->hive != hive)
		return -EINVAL;
	refs_add(&pool->users);
	return 0;
}

void hive__buffers_unuse(struct hive_buffers *pool)
{
	(void)refs_drop(&pool->users); /* who destroys it asks whether there are any */
}

uint32_t hive__buffers_bytes(const struct hive_buffers *pool)
{
	return pool->bytes;
}

/* ---- shares ---- */

/* Pool locked. */
static struct share *new_share(struct hive_buffers *pool)
{
	struct share *share = (struct share *)hive__memory_new(&pool->memory, sizeof *share);

	if (!share)
		return NULL;
	if (hive__buffers_open(&share->set, &pool->memory, pool->count, pool->bytes) < 0) {
		hive__memory_free(&pool->memory, share);
		return NULL;
	}
	share->pool = pool;
	share->next = load_relaxed(&pool->shares);
	store_release(&pool->shares, share); /* BUFFERS-2 (pairs with BUFFERS-3) */
	return share;
}

/* Pool locked. One that nobody has, or a fresh one. */
static struct share *find_share(struct hive_buffers *pool)
{
	for (struct share *share = load_relaxed(&pool->shares); share; share = share->next)
		if (!share->desk)
			return share;
	return new_share(pool);
}

static void set_desk(struct share *share, struct desk *desk)
{
	lock_acquire(&share->set.lock);
	share->desk = desk;
	share->worker = desk ? desk->worker : HIVE_WORKER_NONE;
	share->wanted = false;
	lock_release(&share->set.lock);
}

/* No operation has anything to do with it. */
static void part(struct share *share)
{
	struct hive_buffers *pool = share->pool;

	if (share->set.let_go)
		share->set.let_go(&share->set);
	lock_acquire(&pool->lock);
	set_desk(share, NULL);
	lock_release(&pool->lock);
	unref(pool);
}

/* All, or those whose pool is over. */
static void part_with(struct desk *desk, bool all)
{
	struct share **link = &desk->shares, *share;

	while ((share = *link) != NULL)
		if (all || load_relaxed(&share->pool->over)) {
			*link = share->next_here;
			part(share);
		} else {
			link = &share->next_here;
		}
}

void hive__shares_close(struct desk *desk)
{
	part_with(desk, true);
}

static struct share *join(struct desk *desk, struct hive_buffers *pool)
{
	struct share *share;

	part_with(desk, false);
	lock_acquire(&pool->lock);
	share = find_share(pool);
	if (share) {
		buffers_adopt(&share->set);
		set_desk(share, desk);
		refs_add(&pool->refs);
	}
	lock_release(&pool->lock);
	if (!share)
		return NULL;
	share->next_here = desk->shares;
	desk->shares = share;
	return share;
}

int hive__share_begin(struct desk *desk, struct hive_op *op)
{
	struct hive_buffers *pool = (struct hive_buffers *)op->extra;
	struct share *share = desk->shares;

	while (share && share->pool != pool)
		share = share->next_here;
	if (!share)
		share = join(desk, pool);
	if (!share)
		return -ENOMEM;
	op->offset2 = (int64_t)(uintptr_t)&share->set;
	return 0;
}

/* ---- those for whom there is none ---- */

static struct share *share_of(const struct hive_op *op)
{
	return (struct share *)(void *)buffers_of(op->offset2); /* its first field */
}

static struct hive_op *neighbour(const struct hive_op *op, int which)
{
	return (struct hive_op *)(uintptr_t)op->spare[which];
}

static void enter_line(struct share *share, struct hive_op *op)
{
	op->hungry = true;
	op->spare[NEXT] = 0;
	op->spare[PREV] = (uintptr_t)share->last_hungry;
	if (share->last_hungry)
		share->last_hungry->spare[NEXT] = (uintptr_t)op;
	else
		share->hungry = op;
	share->last_hungry = op;
}

static void leave_line(struct share *share, struct hive_op *op)
{
	struct hive_op *next = neighbour(op, NEXT), *prev = neighbour(op, PREV);

	op->hungry = false;
	if (next)
		next->spare[PREV] = (uintptr_t)prev;
	else
		share->last_hungry = prev;
	if (prev)
		prev->spare[NEXT] = (uintptr_t)next;
	else
		share->hungry = next;
}

static void arrive(struct guest *letter);

/* Share locked. True: the caller sends the letter. Who is hungry holds the hive, and from here on the letter does. */
static bool begin_letter(struct share *share)
{
	if (!share->wanted || share->mail)
		return false;
	share->mail = true;
	share->sent_to = share->worker;
	share->letter.run = arrive;
	share->letter.drop = NULL;
	refs_add(&share->pool->refs);
	hive__hold(share->pool->hive);
	return true;
}

static void send(struct share *share, uint32_t worker)
{
	hive__guest_ready_at(share->pool->hive, &share->letter, worker);
}

/* Its desk. Who returns one knows from here on whether somebody waits; for what is there already the line goes on soon. */
static void settle(struct share *share)
{
	bool goes;

	lock_acquire(&share->set.lock);
	share->wanted = share->hungry != NULL;
	goes = buffers_are_there(&share->set) && begin_letter(share);
	lock_release(&share->set.lock);
	if (goes)
		send(share, share->desk->worker);
}

/* Those that find nothing to read after all leave what is there to the next ones. */
static void feed(struct share *share)
{
	for (int n = 0; n < ROUND && share->hungry && buffers_are_there(&share->set); n++) {
		struct hive_op *op = share->hungry;

		leave_line(share, op);
		hive__op_work(op, share->desk);
	}
	settle(share);
}

/* On its worker; or elsewhere, when that leaves: then its operations come along too, and only a share that is another's by now has to be told. */
static void arrive(struct guest *letter)
{
	struct share *share = (struct share *)(void *)((char *)letter - offsetof(struct share, letter));
	struct hive_buffers *pool = share->pool;
	struct hive *hive = pool->hive;
	void *here = hive__place()->cache[GUESTS_IO];
	bool at_home, goes;
	uint32_t worker;

	lock_acquire(&share->set.lock);
	share->mail = false;
	at_home = share->desk && share->desk == here;
	goes = !at_home && share->worker != share->sent_to && begin_letter(share);
	worker = share->worker;
	lock_release(&share->set.lock);
	if (goes)
		send(share, worker);
	if (at_home)
		feed(share);
	unref(pool);
	hive__unhold(hive);
}

void hive__share_starve(struct hive_op *op)
{
	struct share *share = share_of(op);

	enter_line(share, op);
	settle(share);
}

void hive__share_leave(struct hive_op *op)
{
	struct share *share = share_of(op);

	leave_line(share, op);
	if (!share->hungry)
		settle(share);
}

int hive_buffer_return(struct hive_buffers *pool, void *buffer)
{
	struct share *share = pool ? load_acquire(&pool->shares) : NULL; /* BUFFERS-3 (pairs with BUFFERS-2) */
	uint32_t worker;
	bool goes;
	int r;

	while (share && buffers_index(&share->set, buffer) == share->set.count)
		share = share->next;
	if (!share)
		return -EINVAL;
	lock_acquire(&share->set.lock);
	r = buffers_return(&share->set, buffers_index(&share->set, buffer));
	goes = r == 0 && begin_letter(share);
	worker = share->worker;
	lock_release(&share->set.lock);
	if (goes)
		send(share, worker);
	return r;
}
