/* SPDX-License-Identifier: MIT */
/* Memory that may be gone. */
#include "base/peek.h"

#include <errno.h>
#include <sys/mman.h>

#include "test.h"

TEST(what_is_there_is_copied)
{
	int numbers[3] = { 1, 2, 3 }, copy[3] = { 0 };

	if (!hive__peek(numbers, copy, sizeof copy)) {
		test_skip("the system does not let us read our own memory (process_vm_readv)");
		return;
	}
	CHECK(memcmp(numbers, copy, sizeof copy) == 0);
}

TEST(what_is_gone_is_not_there)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), copy[8];

	CHECK(pages != MAP_FAILED);
	CHECK_OK(munmap(pages + page, page));
	errno = EXDEV;
	CHECK(!hive__peek(pages + page, copy, sizeof copy));
	CHECK(!hive__peek(pages + page - 4, copy, sizeof copy)); /* half of it */
	CHECK(!hive__peek(NULL, copy, sizeof copy));
	CHECK_EQ(errno, EXDEV);
	CHECK_OK(munmap(pages, page));
}
