/* SPDX-License-Identifier: MIT */
#include "base/forkmark.h"

#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

forkmark *hive__forkmark_new(void)
{
	void *page = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	forkmark *mark = page;

	if (page == MAP_FAILED)
		return NULL;
	madvise(page, page_bytes(), MADV_WIPEONFORK);
	store_relaxed(mark, 1);
	return mark;
}

void hive__forkmark_free(forkmark *mark)
{
	if (mark)
		munmap(mark, page_bytes());
}
