/* SPDX-License-Identifier: MIT */
/* Questions and answers. Whoever waits for an answer also wakes for the time-outs of c-ares, so that nobody else has to. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/time.h>

#include "edge/dns/dns.h"

enum { ADDRESSES = 64 };

struct question {
	struct hive_dns *dns;       /* I */
	struct hive_semaphore done; /* the answer is there */
	bool answered, given_up;    /* L */
	uint16_t port;              /* I */
	int count;                  /* L  or -errno */
	struct hive_address addresses[ADDRESSES];
};

/* ---- answers, under the lock ---- */

static int error_of(int status)
{
	switch (status) {
	case ARES_ENOTFOUND:
	case ARES_ENODATA:
		return -ENOENT;
	case ARES_EBADNAME:
	case ARES_EBADQUERY:
		return -EINVAL;
	case ARES_ENOMEM:
		return -ENOMEM;
	case ARES_ETIMEOUT:
	case ARES_ECONNREFUSED:
	case ARES_ESERVFAIL:
	case ARES_EREFUSED:
		return -EAGAIN;
	case ARES_ECANCELLED:
	case ARES_EDESTRUCTION:
		return -ECANCELED;
	default:
		return -EIO;
	}
}

static void take(struct question *q, const struct ares_addrinfo_node *node)
{
	struct hive_address *to = &q->addresses[q->count];
	struct sockaddr *at = (struct sockaddr *)(void *)to->storage;
	uint8_t digits[2] = { (uint8_t)(q->port >> 8), (uint8_t)q->port };

	if (q->count == ADDRESSES || (node->ai_family != AF_INET && node->ai_family != AF_INET6))
		return;
	*to = (struct hive_address){ .bytes = (uint32_t)node->ai_addrlen };
	memcpy(to->storage, node->ai_addr, (size_t)node->ai_addrlen);
	memcpy(at->sa_data, digits, sizeof digits); /* it stands at the same place in both */
	q->count++;
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *result)
{
	struct question *q = (struct question *)arg;

	(void)timeouts;
	q->count = status == ARES_SUCCESS ? 0 : error_of(status);
	for (const struct ares_addrinfo_node *at = result ? result->nodes : NULL; at && q->count >= 0; at = at->ai_next)
		take(q, at);
	if (q->count == 0)
		q->count = -ENOENT;
	ares_freeaddrinfo(result);
	if (q->given_up) {
		hive__memory_free(&q->dns->memory, q);
		return;
	}
	q->answered = true;
	hive_semaphore_release(&q->done, 1); /* who waits frees it, but not before he has the lock */
}

/* ---- questions ---- */

/* When c-ares wants to be asked again. */
static int64_t next_look(struct hive_dns *dns)
{
	struct timeval most = { .tv_sec = 1 }, room, *wait = ares_timeout(dns->channel, &most, &room);

	return hive_deadline(NULL, HIVE_S(wait->tv_sec) + HIVE_US(wait->tv_usec + 1));
}

/* The lock is held before and after. 0: it is answered. */
static int wait_for(struct question *q, int64_t deadline_ns)
{
	struct hive_dns *dns = q->dns;
	int r = 0;

	while (!q->answered && r == 0) {
		int64_t look = next_look(dns);
		bool is_last = deadline_ns <= look;

		lock_release(&dns->lock);
		r = hive_semaphore_acquire(&q->done, 1, is_last ? deadline_ns : look);
		lock_acquire(&dns->lock);
		if (r == -ETIMEDOUT && !is_last && !hive_cancelled()) {
			ares_process_fd(dns->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
			r = 0;
		}
	}
	return q->answered ? 0 : r;
}

static int ask(struct question *q, const char *name, struct hive_address *ret_addresses, size_t capacity,
               int64_t deadline_ns)
{
	struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	int r;

	ares_getaddrinfo(q->dns->channel, name, NULL, &hints, on_answer, q);
	r = wait_for(q, deadline_ns);
	if (r < 0) {
		q->given_up = true;
		return r;
	}
	r = q->count;
	for (int i = 0; i < r && (size_t)i < capacity; i++)
		ret_addresses[i] = q->addresses[i];
	hive__memory_free(&q->dns->memory, q);
	return r;
}

int hive_dns_resolve(struct hive_dns *dns, const char *name, uint16_t port, struct hive_address *ret_addresses,
                     size_t capacity, int64_t deadline_ns)
{
	int r = dns ? hive_resolve(name, port, ret_addresses, capacity, HIVE_NOWAIT) : -EINVAL;
	struct question *q;

	if (r != -ETIMEDOUT || deadline_ns <= HIVE_NOWAIT)
		return r; /* numbers, localhost, mistakes */
	q = (struct question *)hive__memory_new(&dns->memory, sizeof *q);
	if (!q)
		return -ENOMEM;
	q->dns = dns;
	q->port = port;
	hive_semaphore_init(&q->done, 0);
	lock_acquire(&dns->lock);
	dns->inside++;
	r = ask(q, name, ret_addresses, capacity, deadline_ns);
	dns->inside--;
	lock_release(&dns->lock);
	return r;
}

/* ---- beginning and end ---- */

struct opening {
	struct hive_dns *dns;
	const struct hive_dns_options *options;
};

/* Blocks: it reads files. "b": the hosts file would be read at each question. */
static int open_channel(void *arg)
{
	struct opening *opening = (struct opening *)arg;
	const struct hive_dns_options *o = opening->options;
	char lookups[] = "b";
	struct ares_options options = { .lookups = lookups,
		                        .timeout = o->timeout_ms,
		                        .tries = o->tries,
		                        .sock_state_cb = hive__dns_watch,
		                        .sock_state_cb_data = opening->dns };
	int mask = ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB | (o->timeout_ms > 0 ? ARES_OPT_TIMEOUTMS : 0) |
	           (o->tries > 0 ? ARES_OPT_TRIES : 0);
	int status = ares_init_options(&opening->dns->channel, &options, mask);

	if (status != ARES_SUCCESS)
		return status == ARES_ENOMEM ? -ENOMEM : -EIO;
	status = o->servers ? ares_set_servers_ports_csv(opening->dns->channel, o->servers) : ARES_SUCCESS;
	if (status == ARES_SUCCESS) {
		ares_set_socket_functions(opening->dns->channel, &hive__dns_sockets, NULL);
		return 0;
	}
	ares_destroy(opening->dns->channel);
	return status == ARES_ENOMEM ? -ENOMEM : -EINVAL;
}

static int check(const struct hive_dns_options *o)
{
	for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++)
		if (o->reserved[i] != 0)
			return -EINVAL;
	return o->timeout_ms < 0 || o->tries < 0 || (o->servers && !*o->servers) ? -EINVAL : 0;
}

int hive_dns_create(struct hive *hive, const struct hive_dns_options *options, struct hive_dns **ret_dns)
{
	struct hive_dns_options how = options ? *options : (struct hive_dns_options){ 0 };
	struct memory memory = { hive__memory_system, NULL };
	struct opening opening = { NULL, &how };
	int result = 0, r = hive && ret_dns ? check(&how) : -EINVAL;

	if (r < 0)
		return r;
	opening.dns = (struct hive_dns *)hive__memory_new(&memory, sizeof *opening.dns);
	if (!opening.dns)
		return -ENOMEM;
	opening.dns->hive = hive;
	opening.dns->memory = memory;
	opening.dns->refs = 1;
	lock_init(&opening.dns->lock);
	r = hive_offload(open_channel, &opening, HIVE_FOREVER, &result);
	if (r == 0)
		r = result;
	if (r < 0) {
		hive__memory_free(&memory, opening.dns);
		return r;
	}
	*ret_dns = opening.dns;
	return 0;
}

int hive_dns_destroy(struct hive_dns *dns)
{
	if (!dns)
		return 0;
	lock_acquire(&dns->lock);
	if (dns->inside > 0) {
		lock_release(&dns->lock);
		return -EBUSY;
	}
	ares_destroy(dns->channel);
	hive__dns_leave(dns);
	return 0;
}
