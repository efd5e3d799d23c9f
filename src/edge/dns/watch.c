/* SPDX-License-Identifier: MIT */
/* The sockets of c-ares: each is polled, one event at a time, as long as it wants to know. */
#include "edge/dns/dns.h"

struct watch {
	struct hive_op op;
	struct hive_dns *dns; /* I */
	struct watch *next;   /* L */
	int fd;               /* I */
	uint32_t events;      /* L */
	bool under_way;       /* L  the operation has it */
	bool told;            /* L  c-ares is told of it right now */
	bool closed;          /* L  in no list any more */
};

static void on_event(struct hive_op *op, int64_t result);

static void free_watch(struct watch *watch)
{
	hive__memory_free(&watch->dns->memory, watch);
}

/* What cannot be watched is noticed by time-outs: whoever waits for an answer sees to those. */
static void start(struct watch *watch)
{
	hive_op_init(&watch->op, watch->dns->hive, on_event, watch);
	watch->under_way = hive_op_poll(&watch->op, watch->fd, watch->events, 0, HIVE_FOREVER) == 0;
	watch->dns->refs += watch->under_way;
}

/* The number may be another's as soon as we return: the operation was asked to end before. */
static void close_watch(struct watch *watch)
{
	struct watch **at = &watch->dns->watches;

	while (*at != watch)
		at = &(*at)->next;
	*at = watch->next;
	watch->closed = true;
	if (watch->under_way)
		hive_op_cancel(&watch->op);
	else if (!watch->told)
		free_watch(watch);
}

static struct watch *open_watch(struct hive_dns *dns, int fd)
{
	struct watch *watch = (struct watch *)hive__memory_new(&dns->memory, sizeof *watch);

	if (!watch)
		return NULL;
	watch->dns = dns;
	watch->fd = fd;
	watch->next = dns->watches;
	dns->watches = watch;
	return watch;
}

void hive__dns_watch(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct hive_dns *dns = (struct hive_dns *)arg;
	uint32_t events = (readable ? HIVE_EVENT_IN : 0u) | (writable ? HIVE_EVENT_OUT : 0u);
	struct watch *watch = dns->watches;

	while (watch && watch->fd != fd)
		watch = watch->next;
	if (!watch && events)
		watch = open_watch(dns, fd);
	if (!watch)
		return;
	if (!events) {
		close_watch(watch);
	} else if (events != watch->events) {
		watch->events = events;
		if (watch->under_way)
			hive_op_cancel(&watch->op); /* it begins again with these */
		else if (!watch->told)
			start(watch);
	}
}

static void tell(struct watch *watch, uint32_t events)
{
	uint32_t final = events & (HIVE_EVENT_HUP | HIVE_EVENT_ERR);
	bool in = (events & HIVE_EVENT_IN) || final, out = (events & HIVE_EVENT_OUT) || final;

	watch->told = true;
	ares_process_fd(watch->dns->channel, in && (watch->events & HIVE_EVENT_IN) ? watch->fd : ARES_SOCKET_BAD,
	                out && (watch->events & HIVE_EVENT_OUT) ? watch->fd : ARES_SOCKET_BAD);
	watch->told = false;
}

static void on_event(struct hive_op *op, int64_t result)
{
	struct watch *watch = (struct watch *)op->arg;
	struct hive_dns *dns = watch->dns;

	lock_acquire(&dns->lock);
	watch->under_way = false;
	if (!watch->closed && result > 0)
		tell(watch, (uint32_t)result);
	if (watch->closed)
		free_watch(watch);
	else if (result > 0 || result == -ECANCELED)
		start(watch);
	hive__dns_leave(dns);
}

void hive__dns_leave(struct hive_dns *dns)
{
	struct memory memory = dns->memory;
	bool last = --dns->refs == 0;

	lock_release(&dns->lock);
	if (last)
		hive__memory_free(&memory, dns);
}
