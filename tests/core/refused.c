/* SPDX-License-Identifier: MIT */
/* What a core does when the system or the allocator says no: it reports the reason and leaves nothing behind. */

#include "base/core_setup.h"
#include "support/child.h"
#include "support/cores.h"

static const struct hive_core_ops *core_named(const char *name)
{
	const struct hive_core_ops *ops = NULL;

	CHECK_OK(hive_core_find(name, &ops));
	return ops;
}

/* The lowest free descriptor: the same as before when nothing was left open. */
static int next_descriptor(void)
{
	int fd = dup(2);

	CHECK(fd >= 0);
	CHECK_OK(close(fd));
	return fd;
}

TEST(a_core_of_nobody_takes_its_memory_from_the_system)
{
	for (int i = 0; i < core_count(); i++) {
		const struct hive_core_ops *ops = core_named(core_names[i]);
		struct hive_core *core = NULL;
		int free_fd = next_descriptor();

		CHECK_OK(ops->open(NULL, &core));
		CHECK(core->ops == ops);
		ops->wake(core);
		CHECK_OK(ops->turn(core, HIVE_FOREVER)); /* returns for the wake */
		ops->close(core);
		CHECK_EQ(next_descriptor(), free_fd);
	}
}

/* Memory that ends after so many blocks. */
struct scarce {
	int left, live;
};

static void *allocate_scarce(void *arg, void *old, size_t bytes)
{
	struct scarce *s = arg;

	if (bytes == 0) {
		s->live -= old != NULL;
		free(old);
		return NULL;
	}
	if (s->left-- <= 0)
		return NULL;
	s->live++;
	return realloc(old, bytes);
}

TEST(a_core_without_memory_is_not_opened_and_leaves_nothing)
{
	for (int i = 0; i < core_count(); i++) {
		const struct hive_core_ops *ops = core_named(core_names[i]);
		int free_fd = next_descriptor(), r = -ENOMEM;

		for (int blocks = 0; r < 0; blocks++) {
			struct scarce scarce = { blocks, 0 };
			struct core_setup setup = { { allocate_scarce, &scarce }, 0 };
			struct hive_core *core = NULL;

			CHECK(blocks < 10);
			r = ops->open(&setup, &core);
			CHECK(blocks > 0 || r < 0);
			if (r == 0) {
				ops->close(core);
			} else {
				CHECK_ERR(r, -ENOMEM);
				CHECK(!core);
			}
			CHECK_EQ(scarce.live, 0);
			CHECK_EQ(next_descriptor(), free_fd);
		}
	}
}

static void open_epoll_in_vain(void)
{
	const struct hive_core_ops *ops = core_named("epoll");
	struct hive_core *core = NULL;
	int free_fd = next_descriptor();

	CHECK_ERR(ops->open(NULL, &core), -ENOSPC);
	CHECK(!core);
	CHECK_EQ(next_descriptor(), free_fd);
}

/* The limit of /proc/sys/fs/epoll/max_user_watches, for example. */
TEST(a_core_that_cannot_watch_its_wake_up_descriptor_is_not_opened)
{
	child_without_calls(ENOSPC, open_epoll_in_vain, SYS_epoll_ctl);
}

static void hear_nothing(struct hive_source *source, uint32_t events)
{
	CHECK(!source && events);
}

static void turn_in_vain(void)
{
	for (int i = 0; i < core_count(); i++) {
		const struct hive_core_ops *ops = core_named(core_names[i]);
		struct hive_core *core = NULL;
		struct hive_source source;
		int fds[2];

		if (strcmp(ops->name, "uring") == 0)
			continue; /* cannot even be opened: core/uring.c */
		make_pipe(fds);
		hive_source_init(&source, HIVE_SOURCE_FD, fds[0], HIVE_EVENT_IN, hear_nothing, NULL);
		CHECK_OK(ops->open(NULL, &core));
		CHECK_OK(ops->add(core, &source)); /* who has nothing to hear may wait elsewhere */
		CHECK_ERR(ops->turn(core, HIVE_FOREVER), -EINVAL);
		CHECK_ERR(ops->turn(core, HIVE_MS(1)), -EINVAL);
		ops->remove(core, &source);
		CHECK_OK(ops->turn(core, 0)); /* nothing to look at: no system call */
		ops->close(core);
		close_both(fds);
	}
}

TEST(a_turn_that_fails_says_why)
{
	child_without_calls(EINVAL, turn_in_vain, SYS_ppoll, SYS_epoll_pwait, SYS_epoll_pwait2,
#if defined(SYS_epoll_wait)
	                    SYS_epoll_wait, SYS_poll
#else
	                    SYS_ppoll
#endif
	);
}
