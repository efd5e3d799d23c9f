/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/io.h>

/* Names, asked of DNS servers by c-ares: in librophive-dns, which the core does not link. hive_resolve() asks the system, on a compute worker for
 * each question, and knows whatever the system knows: the hosts file, name services. This one asks DNS servers alone, and no worker or
 * thread waits for an answer: thousands of questions may be open.                                                                */
HIVE_BEGIN
struct hive;
struct hive_dns;

struct hive_dns_options {
	const char *servers;  /* "192.0.2.53,[2001:db8::53]:5353"; NULL: those of the system */
	int32_t timeout_ms;   /* until a server is asked again, or the next one; 0: as c-ares does */
	int32_t tries;        /* for each server; 0: as c-ares does */
	uint64_t reserved[4]; /* must be zero */
};

/* May wait, without a deadline. Reads the system's configuration, which is soon done, on a compute worker if a fiber calls: -ENOTSUP without one,
 * and -ECANCELED for who is cancelled before its turn. Its sockets are watched on IO workers
 * of this hive, as long as questions are open. -EINVAL, -ENOMEM, -EIO: the configuration is not to be had.                        */
HIVE_CHECKED int hive_dns_create(struct hive *hive, const struct hive_dns_options *options, struct hive_dns **ret_dns);
/* Any thread. -EBUSY: somebody is in a call with it. What was given up is dropped. NULL is fine. */
int hive_dns_destroy(struct hive_dns *dns);
/* May wait. As hive_resolve(), errors too; a thread's deadline counts as well. What needs no server asks none. */
int hive_dns_resolve(struct hive_dns *dns, const char *name, uint16_t port, struct hive_address *ret_addresses,
                     size_t capacity, int64_t deadline_ns);
HIVE_END
