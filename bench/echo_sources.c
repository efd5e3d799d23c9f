/* SPDX-License-Identifier: MIT */
/* Our echo server once more: a worker's sources say who can be read, and the program does the rest by itself. As near to the raw loop as a
 * hive gets: what is between the two is the beat. */
#include "echo_link.h"
#include <rophive/source.h>

struct source_link {
	struct hive_source source;
	struct echo_link link;
};

static void on_ready(struct hive_source *source, uint32_t events)
{
	struct source_link *own = source->arg;
	char buffer[ECHO_BUFFER];
	enum echo_next next = echo_link_answer(&own->link, buffer);
	(void)events;
	if (next == ECHO_AS_BEFORE)
		return;
	if (next != ECHO_END && hive_source_modify(source, next == ECHO_READ ? HIVE_EVENT_IN : HIVE_EVENT_OUT) == 0)
		return;
	hive_source_stop(source);
	echo_link_close(&own->link);
	free(own);
}

void echo_begin_source(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct source_link *own = calloc(1, sizeof *own);
	if (own) {
		own->link.fd = fd;
		hive_source_init(&own->source, HIVE_SOURCE_FD, fd, HIVE_EVENT_IN, on_ready, own);
		if (hive_source_start(&own->source) == 0)
			return;
	}
	close(fd);
	free(own);
}
