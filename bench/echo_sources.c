/* SPDX-License-Identifier: MIT */
/* Our echo server once more: a worker's sources say who can be read, and the program does the rest by itself. As near to the raw loop as a
 * hive gets: what is between the two is the beat. By level, as the raw loop has it, or by edges, which spare the kernel a second look at each. */
#include "echo_link.h"
#include <rophive/source.h>

struct source_link {
	struct hive_source source;
	struct echo_link link;
	uint32_t edge; /* 0: by level */
};

static void on_ready(struct hive_source *source, uint32_t events)
{
	struct source_link *own = source->arg;
	char buffer[ECHO_BUFFER];
	enum echo_next next;
	(void)events;
	do
		next = echo_link_answer(&own->link, buffer);
	while (next == ECHO_MORE && own->edge);
	if (next == ECHO_AS_BEFORE || next == ECHO_MORE)
		return;
	if (next != ECHO_END &&
	    hive_source_modify(source, own->edge | (next == ECHO_READ ? HIVE_EVENT_IN : HIVE_EVENT_OUT)) == 0)
		return;
	hive_source_stop(source);
	echo_link_close(&own->link);
	free(own);
}

static void begin(int fd, uint32_t edge)
{
	struct source_link *own = calloc(1, sizeof *own);
	if (own) {
		own->link.fd = fd;
		own->edge = edge;
		hive_source_init(&own->source, HIVE_SOURCE_FD, fd, HIVE_EVENT_IN | edge, on_ready, own);
		if (hive_source_start(&own->source) == 0)
			return;
	}
	close(fd);
	free(own);
}

void echo_begin_source(void *arg)
{
	begin((int)(intptr_t)arg, 0);
}

void echo_begin_edges(void *arg)
{
	begin((int)(intptr_t)arg, HIVE_EVENT_EDGE);
}
