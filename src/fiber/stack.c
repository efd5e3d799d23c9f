/* SPDX-License-Identifier: MIT */
#include "fiber/stack.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/check.h"
#include "base/fault.h"
#include "base/lock.h"
#include "fiber/annotate.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#define PIDFD_SELF_PROCESS (-10001) /* PIDFD_SELF_THREAD_GROUP, in place of a descriptor */

enum {
	REGION_FIRST_BYTES = 4 << 20, /* a class begins with this much address space and doubles it */
	CACHE_STACKS = 64, /* a worker keeps so many stacks of a class, or CACHE_BYTES of them, but at least two */
	CACHE_BYTES = 16 << 20,
	SHARED_STACKS =
		1024, /* so many of the shared free stacks of a class keep their pages, or SHARED_BYTES of them */
	SHARED_BYTES = 64 << 20
};
#if defined(FIBER_TSAN) || defined(FIBER_ASAN)
enum { DEFAULT_CLASS = STACK_SHIFT_DEFAULT + 2 - STACK_SHIFT_FIRST }; /* frames are several times larger */
#define REGION_MOST_BYTES ((size_t)256 << 20)                         /* every unmapping clears their shadow */
#else
enum { DEFAULT_CLASS = STACK_SHIFT_DEFAULT - STACK_SHIFT_FIRST };
#define REGION_MOST_BYTES ((size_t)4 << 30)
#endif

struct region {
	struct region *next;   /* I  older ones of the class */
	char *base;            /* I */
	uint32_t slots;        /* I */
	ATOMIC(uint32_t) used; /* stored under the class's lock, loaded by anyone: slots handed out at least once */
};

/* In a free stack, right below the user's bytes at its top. */
struct stack_link {
	struct stack_link *next;
};

struct class {
	struct lock lock;
	struct stack_link *warm;         /* L  free, with their pages, newest first */
	struct stack_link *cold;         /* L  free, with the top page alone */
	struct stack_link *bare;         /* L  their guard was refused; tried again before a fresh slot is */
	uint32_t warm_count;             /* L */
	ATOMIC(struct region *) regions; /* stored under the lock, loaded by anyone; newest first */
	size_t total_slots;              /* L */
};

struct stacks {
	struct memory memory;         /* I */
	size_t page;                  /* I */
	bool marks_guards;            /* I  the kernel knows guards that are no mappings */
	unsigned default_class;       /* I */
	size_t usable[STACK_CLASSES]; /* I  bytes above the guard; 0: too small a class for the pages here */
	struct class classes[STACK_CLASSES];
};

static size_t slot_bytes(unsigned class)
{
	return (size_t)1 << (STACK_SHIFT_FIRST + class);
}

/* A sixteenth, at most 64 KiB, whole pages. Never more than a half, so that the class of a stack can be told from its
 * size. */
static size_t guard_bytes(const struct stacks *s, unsigned class)
{
	size_t guard = slot_bytes(class) / 16;

	if (guard > (64 << 10))
		guard = 64 << 10;
	return guard < s->page ? s->page : guard;
}

static unsigned class_of_bytes(size_t bytes)
{
	unsigned shift = 64 - (unsigned)__builtin_clzll((unsigned long long)(bytes - 1) | 1);

	return shift < STACK_SHIFT_FIRST ? 0 : shift - STACK_SHIFT_FIRST;
}

/* The smallest class with so much room above its guard; STACK_CLASSES: there is none. */
static unsigned class_for(const struct stacks *s, size_t bytes)
{
	unsigned class;

	if (bytes == 0)
		return s->default_class;
	if (bytes > s->usable[STACK_CLASSES - 1])
		return STACK_CLASSES;
	class = class_of_bytes(bytes);
	while (s->usable[class] < bytes)
		class ++;
	return class;
}

static struct stack_link *link_of(struct stack stack)
{
	return (struct stack_link *)(void *)((char *)stack.low + stack.bytes - STACK_TOP - sizeof(struct stack_link));
}

/* A link's stack ends STACK_TOP above it. */
static struct stack stack_of(const struct stacks *s, unsigned class, struct stack_link *link)
{
	size_t bytes = s->usable[class];

	return (struct stack){ (char *)(link + 1) + STACK_TOP - bytes, bytes };
}

/* ---- the system ---- */

static int set_guard(struct stacks *s, void *at, size_t bytes)
{
	if (!HIVE_FAULT("stack guard") && s->marks_guards && madvise(at, bytes, MADV_GUARD_INSTALL) == 0)
		return 0;
	/* Locked memory cannot be marked; this is also the way on older kernels. */
	if (HIVE_FAULT("stack mprotect"))
		return -ENOMEM;
	return mprotect(at, bytes, PROT_NONE) == 0 ? 0 : -ENOMEM;
}

static void *map(size_t bytes)
{
	void *at;

	if (HIVE_FAULT("stack mmap"))
		return NULL;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	madvise(at, bytes, MADV_NOHUGEPAGE); /* a sleeping fiber is to cost a page, not two megabytes; may fail */
	return at;
}

/* Some emulators answer 0 to advice that they do not know. So the kernel is asked to write there. */
static bool kernel_marks_guards(size_t page)
{
	char *at = (char *)map(page);
	bool works;

	if (!at)
		return false;
	works = madvise(at, page, MADV_GUARD_INSTALL) == 0 && getrusage(RUSAGE_SELF, (struct rusage *)(void *)at) < 0;
	munmap(at, page);
	return works;
}

int hive__stacks_create(const struct memory *memory, struct stacks **ret)
{
	struct stacks *s = (struct stacks *)hive__memory_new(memory, sizeof *s);
	int error = errno;

	if (!s)
		return -ENOMEM;
	s->memory = *memory;
	s->page = (size_t)sysconf(_SC_PAGESIZE);
	s->marks_guards = kernel_marks_guards(s->page);
	for (unsigned i = 0; i < STACK_CLASSES; i++) {
		lock_init(&s->classes[i].lock);
		s->usable[i] = slot_bytes(i) < 4 * s->page ? 0 : slot_bytes(i) - guard_bytes(s, i);
	}
	s->default_class = class_for(s, slot_bytes(DEFAULT_CLASS) - guard_bytes(s, DEFAULT_CLASS));
	errno = error;
	*ret = s;
	return 0;
}

void hive__stacks_destroy(struct stacks *s)
{
	for (unsigned i = 0; i < STACK_CLASSES; i++) {
		struct region *region = load_relaxed(&s->classes[i].regions), *next;

		for (; region; region = next) {
			next = region->next;
			munmap(region->base, region->slots * slot_bytes(i));
			hive__memory_free(&s->memory, region);
		}
	}
	hive__memory_free(&s->memory, s);
}

/* ---- fresh stacks ---- */

/* As many slots as the class has already, within bounds; fewer when so much address space is not to be had. */
static struct region *new_region(struct stacks *s, unsigned class, size_t total_slots)
{
	size_t slot = slot_bytes(class), slots = total_slots;
	struct region *region = (struct region *)hive__memory_new(&s->memory, sizeof *region);

	if (!region)
		return NULL;
	if (slots > REGION_MOST_BYTES / slot)
		slots = REGION_MOST_BYTES / slot;
	if (slots < REGION_FIRST_BYTES / slot)
		slots = REGION_FIRST_BYTES / slot;
	for (slots = slots ? slots : 1; slots && !region->base; slots /= 2) {
		region->slots = (uint32_t)slots;
		region->base = (char *)map(slots * slot);
	}
	if (region->base)
		return region;
	hive__memory_free(&s->memory, region);
	return NULL;
}

/* The next slot of the newest region that was never used, or of a new one. NULL: no memory. */
static struct stack_link *claim_locked(struct stacks *s, unsigned class)
{
	struct class *c = &s->classes[class];
	struct region *region = load_relaxed(&c->regions);
	uint32_t index;

	if (!region || load_relaxed(&region->used) == region->slots) {
		struct region *more = new_region(s, class, c->total_slots);

		if (!more)
			return NULL;
		more->next = region;
		region = more;
		c->total_slots += region->slots;
		store_release(&c->regions, region); /* STACK-1 (pairs with STACK-2) */
	}
	index = load_relaxed(&region->used);
	store_relaxed(&region->used, index + 1);
	return (struct stack_link *)(void *)(region->base + (index + 1) * slot_bytes(class) - STACK_TOP) - 1;
}

static int get_fresh(struct stacks *s, unsigned class, struct stack *ret)
{
	struct class *c = &s->classes[class];
	size_t guard = guard_bytes(s, class);
	struct stack_link *link;
	struct stack stack;

	lock_acquire(&c->lock);
	link = c->bare;
	if (link)
		c->bare = link->next;
	else
		link = claim_locked(s, class);
	lock_release(&c->lock);
	if (!link)
		return -ENOMEM;
	stack = stack_of(s, class, link);
	if (set_guard(s, (char *)stack.low - guard, guard) == 0) {
		*ret = stack;
		return 0;
	}
	lock_acquire(&c->lock);
	link->next = c->bare;
	c->bare = link;
	lock_release(&c->lock);
	return -ENOMEM;
}

/* ---- free stacks ---- */

static uint32_t at_most(size_t count, size_t bytes, unsigned class)
{
	size_t fit = bytes >> (STACK_SHIFT_FIRST + class);

	return (uint32_t)(fit > count ? count : fit < 2 ? 2 : fit);
}

/* Many ranges by one call, and one message to the other processors; kernels from 6.14 on know it for the caller's own memory. */
static bool advise_at_once(const struct iovec *ranges, size_t n, size_t bytes)
{
	if (n < 2)
		return false;
	return syscall(SYS_process_madvise, PIDFD_SELF_PROCESS, ranges, n, MADV_DONTNEED, 0) == (long)bytes;
}

static void advise(const struct iovec *ranges, size_t n, size_t bytes)
{
	if (advise_at_once(ranges, n, bytes))
		return;
	for (size_t i = 0; i < n; i++)
		madvise(ranges[i].iov_base, ranges[i].iov_len, MADV_DONTNEED);
}

/* All pages but the one with the top: a generation count there must not begin again. */
static void give_pages_back(struct stacks *s, unsigned class, struct stack_link *link)
{
	size_t bytes = s->usable[class] - s->page, n = 0;
	struct iovec ranges[CACHE_STACKS];
	int error = errno;

	for (; link; link = link->next) {
		ranges[n++] = (struct iovec){ stack_of(s, class, link).low, bytes };
		if (n == CACHE_STACKS || !link->next) {
			advise(ranges, n, n * bytes);
			n = 0;
		}
	}
	errno = error;
}

static void put_shared(struct stacks *s, unsigned class, struct stack_link *first, struct stack_link *last,
                       uint32_t count)
{
	struct class *c = &s->classes[class];

	lock_acquire(&c->lock);
	if (c->warm_count + count <= at_most(SHARED_STACKS, SHARED_BYTES, class)) {
		last->next = c->warm;
		c->warm = first;
		c->warm_count += count;
		lock_release(&c->lock);
		return;
	}
	lock_release(&c->lock);
	last->next = NULL;
	give_pages_back(s, class, first); /* while they are still ours */
	lock_acquire(&c->lock);
	last->next = c->cold;
	c->cold = first;
	lock_release(&c->lock);
}

/* Up to `most` stacks, as a chain, warm ones if there are any. Returns how many. */
static uint32_t take_shared(struct stacks *s, unsigned class, uint32_t most, struct stack_link **ret_first)
{
	struct class *c = &s->classes[class];
	struct stack_link **list, *last = NULL;
	uint32_t count = 0;

	lock_acquire(&c->lock);
	list = c->warm ? &c->warm : &c->cold;
	*ret_first = *list;
	while (count < most && *list) {
		last = *list;
		*list = last->next;
		count++;
	}
	if (list == &c->warm)
		c->warm_count -= count;
	lock_release(&c->lock);
	if (last)
		last->next = NULL;
	return count;
}

/* The newer half stays. */
static void spill(struct stacks *s, struct stack_cache *cache, unsigned class, uint32_t keep)
{
	struct stack_link *kept = NULL, *first = cache->classes[class].first, *last;
	uint32_t count = cache->classes[class].count - keep;

	for (uint32_t i = 0; i < keep; i++) {
		kept = first;
		first = first->next;
	}
	if (count == 0)
		return;
	if (kept)
		kept->next = NULL;
	else
		cache->classes[class].first = NULL;
	cache->classes[class].count = keep;
	for (last = first; last->next;)
		last = last->next;
	put_shared(s, class, first, last, count);
}

static __attribute__((noinline)) int get_slowly(struct stacks *s, struct stack_cache *cache, unsigned class,
                                                struct stack *ret)
{
	uint32_t most = cache ? at_most(CACHE_STACKS, CACHE_BYTES, class) / 2 : 1, count;
	struct stack_link *link;

	count = take_shared(s, class, most, &link);
	if (count == 0)
		return get_fresh(s, class, ret);
	if (cache) {
		cache->classes[class].first = link->next;
		cache->classes[class].count = count - 1;
	}
	*ret = stack_of(s, class, link);
	return 0;
}

int hive__stack_get(struct stacks *s, struct stack_cache *cache, size_t bytes, struct stack *ret)
{
	unsigned class = class_for(s, bytes);
	struct stack_link *link;

	if (class >= STACK_CLASSES)
		return -EINVAL;
	if (!cache || !cache->classes[class].first) {
		int error = errno, r = get_slowly(s, cache, class, ret);

		errno = error;
		return r;
	}
	link = cache->classes[class].first;
	cache->classes[class].first = link->next;
	cache->classes[class].count--;
	*ret = stack_of(s, class, link);
	return 0;
}

void hive__stack_put(struct stacks *s, struct stack_cache *cache, struct stack stack)
{
	unsigned class = class_of_bytes(stack.bytes);
	struct stack_link *link = link_of(stack);
	uint32_t most = at_most(CACHE_STACKS, CACHE_BYTES, class);

	CHECK(stack.bytes == s->usable[class]);
	if (!cache) {
		put_shared(s, class, link, link, 1);
		return;
	}
	link->next = cache->classes[class].first;
	cache->classes[class].first = link;
	if (++cache->classes[class].count > most)
		spill(s, cache, class, most / 2);
}

void hive__stack_cache_empty(struct stacks *s, struct stack_cache *cache)
{
	for (unsigned class = 0; class < STACK_CLASSES; class ++)
		spill(s, cache, class, 0);
}

/* ---- looking at them ---- */

void hive__stacks_visit(struct stacks *s, void (*visit)(void *arg, struct stack stack), void *arg)
{
	for (unsigned class = 0; class < STACK_CLASSES; class ++) {
		struct region *region = load_acquire(&s->classes[class].regions); /* STACK-2 (pairs with STACK-1) */
		size_t slot = slot_bytes(class), guard = guard_bytes(s, class);

		for (; region; region = region->next) {
			uint32_t used = load_relaxed(&region->used);

			for (uint32_t i = 0; i < used; i++)
				visit(arg, (struct stack){ region->base + i * slot + guard, slot - guard });
		}
	}
}

size_t hive__stack_used(struct stack stack)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = stack.bytes / page;
	unsigned char resident[1024];
	int error = errno;

	for (size_t at = 0; at < pages; at += sizeof resident) {
		size_t some = pages - at < sizeof resident ? pages - at : sizeof resident;

		if (mincore((char *)stack.low + at * page, some * page, resident) < 0)
			break;
		for (size_t i = 0; i < some; i++)
			if (resident[i] & 1)
				return stack.bytes - (at + i) * page;
	}
	errno = error;
	return 0;
}

bool hive__stack_owns_guard(struct stacks *s, const void *address, struct stack *ret)
{
	for (unsigned class = 0; class < STACK_CLASSES; class ++) {
		struct region *region = load_acquire(&s->classes[class].regions); /* STACK-2 (pairs with STACK-1) */
		size_t slot = slot_bytes(class), guard = guard_bytes(s, class);

		for (; region; region = region->next) {
			size_t offset = (uintptr_t)address - (uintptr_t)region->base;

			if (offset < slot * load_relaxed(&region->used)) {
				*ret = (struct stack){ region->base + offset / slot * slot + guard, slot - guard };
				return offset % slot < guard;
			}
		}
	}
	return false;
}
