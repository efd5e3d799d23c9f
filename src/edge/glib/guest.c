/* SPDX-License-Identifier: MIT */
/* A GSource that makes the beats of a hive's main worker. */
#include <glib.h>

#include <rophive/glib.h>
#include <rophive/hive.h>

struct guest_source {
	GSource source;
	struct hive *hive;
	GPollFD poll;
	int64_t due_ns;
	bool gives_way; /* the next iteration is for the others: it has more to do, and they may be less urgent */
};

static struct guest_source *of(GSource *source)
{
	return (struct guest_source *)(void *)source;
}

static int64_t time_left(const struct guest_source *g)
{
	int64_t now;

	if (g->due_ns == HIVE_FOREVER)
		return HIVE_FOREVER;
	now = hive_now(g->hive);
	return g->due_ns > now ? g->due_ns - now : 0;
}

static gboolean prepare_guest(GSource *source, gint *ret_timeout)
{
	struct guest_source *g = of(source);
	int64_t left = time_left(g);

	*ret_timeout = hive_poll_ms(left);
	return left == 0 && !g->gives_way;
}

static gboolean check_guest(GSource *source)
{
	struct guest_source *g = of(source);
	bool ready = !g->gives_way && (g->poll.revents || time_left(g) == 0);

	g->gives_way = false;
	return ready;
}

static gboolean dispatch_guest(GSource *source, GSourceFunc callback, gpointer data)
{
	struct guest_source *g = of(source);
	int64_t wait_ns = HIVE_FOREVER;

	(void)callback, (void)data;
	if (hive_guest_step(g->hive, &wait_ns) == -ESHUTDOWN)
		return G_SOURCE_REMOVE;
	g->due_ns = hive_deadline(g->hive, wait_ns);
	g->gives_way = wait_ns == 0;
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs guest_funcs = { prepare_guest, check_guest, dispatch_guest, NULL, NULL, NULL };

int hive_glib_guest(struct hive *hive, struct _GSource **ret_source)
{
	struct guest_source *g;
	GSource *source;
	int fd, r;

	if (!hive || !ret_source)
		return -EINVAL;
	r = hive_guest_start(hive, &fd);
	if (r < 0)
		return r;
	source = g_source_new(&guest_funcs, sizeof(struct guest_source));
	g = of(source);
	g->hive = hive;
	g->poll = (GPollFD){ .fd = fd, .events = G_IO_IN };
	g_source_add_poll(source, &g->poll);
	g_source_set_static_name(source, "rophive guest");
	*ret_source = source;
	return 0;
}
