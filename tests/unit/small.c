/* SPDX-License-Identifier: MIT */
/* Small words that objects share: references, roles, what is made once, errands, handlers. What threads do with them at the same time is
 * tests/model's business.                                                                                                    */
#include "base/first.h"
#include "base/forkmark.h"
#include "base/refs.h"
#include "base/role.h"
#include "fiber/errand.h"
#include "io/handlers.h"
#include "support/wipe.h"
#include "unit.h"

TEST(last_reference_says_so)
{
	ATOMIC(uint32_t) refs = 1;

	CHECK(refs_are(&refs, 1));
	refs_add(&refs);
	refs_add(&refs);
	CHECK(!refs_are(&refs, 1));
	CHECK(!refs_drop(&refs) && !refs_drop(&refs));
	CHECK(refs_are(&refs, 1));
	CHECK(refs_drop(&refs));
	CHECK(refs_are(&refs, 0));
}

TEST(role_is_one_s_at_a_time)
{
	ATOMIC(uint32_t) role = 0;

	for (int i = 0; i < 3; i++) {
		CHECK(role_enter(&role));
		CHECK(!role_enter(&role) && !role_enter(&role));
		role_leave(&role);
	}
}

TEST(first_one_is_kept)
{
	ATOMIC(void *) at = NULL;
	int one, two;

	CHECK(!first_seen(&at));
	CHECK(first_kept(&at, &one) == &one);
	CHECK(first_kept(&at, &two) == &one);
	CHECK(first_seen(&at) == &one);
}

static ATOMIC(void *) once, others[2];

TEST(memory_is_made_once)
{
	uint64_t *words = hive__forkmark_once(&once, sizeof *words), *again;

	CHECK(words && *words == 0);
	*words = 7;
	again = hive__forkmark_once(&once, sizeof *words);
	CHECK(again == words && *again == 7);
	CHECK(hive__forkmark_once(&others[0], 1) != hive__forkmark_once(&others[1], 1));
}

TEST(memory_that_is_made_once_is_zeros_in_a_child)
{
	uint64_t *words = hive__forkmark_once(&once, sizeof *words);
	int status = 0;
	pid_t child;

	if (!kernel_wipes_pages()) {
		test_skip(NO_WIPING);
		return;
	}
	*words = 7;
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(hive__forkmark_once(&once, sizeof *words) == words && *words == 0 ? 3 : 4);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(WEXITSTATUS(status), 3);
	CHECK_EQ(*words, 7);
}

TEST(errand_is_taken_or_abandoned)
{
	ATOMIC(uint32_t) taken = ERRAND_WANTED, abandoned = ERRAND_WANTED;

	CHECK(errand_is_wanted(&taken) && errand_take(&taken));
	CHECK(!errand_is_wanted(&taken) && !errand_abandon(&taken));
	CHECK(errand_abandon(&abandoned));
	CHECK(!errand_is_wanted(&abandoned) && !errand_take(&abandoned));
}

TEST(handlers_find_what_is_watched)
{
	struct handlers h = { 0 };

	handlers_begin(&h, 1);
	handlers_begin(&h, 64);
	handlers_enter(&h);
	CHECK(handlers_watch(&h, 1) && handlers_watch(&h, 64) && !handlers_watch(&h, 2));
	CHECK(!handlers_are_gone(&h));
	handlers_end(&h, 64);
	CHECK(handlers_watch(&h, 1) && !handlers_watch(&h, 64));
	handlers_leave(&h);
	CHECK(handlers_are_gone(&h));
	handlers_leave(&h); /* one of its parent's, in a child */
	CHECK(handlers_are_gone(&h));
}
