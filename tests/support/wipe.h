/* SPDX-License-Identifier: MIT */
#pragma once
/* Whether the kernel wipes a page in the child of a fork when it has promised to. Emulators promise and do not. */
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define NO_WIPING "a child keeps the page that was to be wiped (MADV_WIPEONFORK)"

static inline bool kernel_wipes_pages(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	char *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t child;

	CHECK(page != MAP_FAILED);
	*page = 1;
	if (madvise(page, bytes, MADV_WIPEONFORK) == 0) {
		child = fork();
		CHECK(child >= 0);
		if (child == 0)
			_exit(*page);
		CHECK_EQ(waitpid(child, &status, 0), child);
	} else {
		status = 1;
	}
	munmap(page, bytes);
	return status == 0;
}
