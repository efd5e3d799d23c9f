/* SPDX-License-Identifier: MIT */
#include "base/forkmark.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/first.h"

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void *new_memory(size_t bytes)
{
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	madvise(page, bytes, MADV_WIPEONFORK);
	return page;
}

void *hive__forkmark_once(ATOMIC(void *) *at, size_t bytes)
{
	void *kept = first_seen(at), *made = kept ? NULL : new_memory(bytes);

	if (!made)
		return kept;
	kept = first_kept(at, made);
	if (kept != made)
		munmap(made, bytes);
	return kept;
}

forkmark *hive__forkmark_new(void)
{
	forkmark *mark = (forkmark *)new_memory(page_bytes());

	if (mark)
		store_relaxed(mark, 1);
	return mark;
}

void hive__forkmark_free(forkmark *mark)
{
	if (mark)
		munmap(mark, page_bytes());
}
