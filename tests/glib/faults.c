/* SPDX-License-Identifier: MIT */
/* Each allocation of the core is refused in turn, and descriptors run out: an error is told, nothing is left, and the next try works. GLib's own memory is
 * GLib's business: it ends the program.                                                                                   */
#include <glib-unix.h>
#include <sys/resource.h>

#include <rophive/glib.h>

#include "support/cores.h"

static int asked, fails_at; /* 0: none is refused */

void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

/* By the linker: the library's memory. */
void *__wrap_realloc(void *old, size_t bytes)
{
	return fails_at > 0 && ++asked == fails_at ? NULL : __real_realloc(old, bytes);
}

TEST(a_core_without_memory_is_not_opened)
{
	GMainContext *context = g_main_context_new();
	struct hive_core *core = NULL;
	int refused = 0, r;

	do {
		asked = 0;
		fails_at = refused + 1;
		r = hive_core_glib()->open(context, &core);
		fails_at = 0;
		if (r < 0) {
			CHECK_ERR(r, -ENOMEM);
			CHECK_EQ(core, NULL);
			CHECK_EQ(g_main_context_get_thread_default(), NULL);
			CHECK(++refused < 10);
		}
	} while (r < 0);
	CHECK_EQ(refused, 3); /* itself, the core of the sources, the array */
	core->ops->close(core);
	g_main_context_unref(context);
}

TEST(a_core_without_descriptors_is_not_opened)
{
	GMainContext *context = g_main_context_new();
	struct hive_core *core = NULL;
	struct rlimit usual, none;
	int first = dup(0);

	CHECK(first >= 0);
	CHECK_OK(close(first)); /* the lowest that is free */
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &usual));
	none = usual;
	for (int more = 0; more < 2; more++) { /* it needs two at least: epoll and the eventfd */
		none.rlim_cur = (rlim_t)(first + more);
		CHECK_OK(setrlimit(RLIMIT_NOFILE, &none));
		CHECK_ERR(hive_core_glib()->open(context, &core), -EMFILE);
	}
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &usual));
	CHECK_OK(hive_core_glib()->open(context, &core));
	core->ops->close(core);
	g_main_context_unref(context);
}

enum { MANY = 60 };
static int fds[MANY][2], told;

static gboolean take_and_count(gint fd, GIOCondition events, gpointer data)
{
	(void)events, (void)data;
	take_byte(fd);
	told++;
	return G_SOURCE_CONTINUE;
}

static void fill(void)
{
	for (int i = 0; i < MANY; i++)
		put_byte(fds[i][1]);
}

/* Some descriptors are left out of the poll then, so the wait is short. */
TEST(a_turn_that_gets_no_memory_says_so_does_not_wait_long_and_goes_on)
{
	GMainContext *context = g_main_context_new();
	GSource *watches[MANY];
	struct hive_core *core = NULL;
	int fewer;

	CHECK_OK(hive_core_glib()->open(context, &core));
	for (int i = 0; i < MANY; i++) {
		make_pipe(fds[i]);
		watches[i] = g_unix_fd_source_new(fds[i][0], G_IO_IN);
		g_source_set_callback(watches[i], G_SOURCE_FUNC(take_and_count), NULL, NULL);
		g_source_attach(watches[i], context);
	}
	for (int i = 0; i < 3; i++) {
		asked = 0;
		fails_at = 1;
		CHECK_ERR(core->ops->turn(core, HIVE_FOREVER), -ENOMEM); /* with nothing ready; else we stay here */
	}
	fill();
	asked = 0;
	fails_at = 1;
	CHECK_ERR(core->ops->turn(core, HIVE_FOREVER), -ENOMEM);
	fails_at = 0;
	fewer = told;
	CHECK(fewer < MANY);
	for (int i = 0; i < 10 && told < MANY; i++)
		CHECK_OK(core->ops->turn(core, 0));
	CHECK_EQ(told, MANY);
	for (int i = 0; i < MANY; i++) {
		g_source_destroy(watches[i]);
		g_source_unref(watches[i]);
		close_both(fds[i]);
	}
	core->ops->close(core);
	g_main_context_unref(context);
}
