/* SPDX-License-Identifier: MIT */
#pragma once
/* A resolver: the state of c-ares under a lock, which nobody holds while he waits; and its sockets, each watched by an operation.
 *
 *   a question    belongs to who asks; given up, it belongs to c-ares, which answers all of them some time
 *   a watch       belongs to its operation while that is under way, else to the resolver
 *   the resolver  goes with the last of: its handle, operations under way                                                    */
#include <ares.h>
#include <rophive/dns.h>
#include <rophive/hive.h>

#include "base/lock.h"
#include "base/memory.h"

struct watch;

struct hive_dns {
	struct hive *hive;    /* I */
	struct memory memory; /* I */
	struct lock lock;
	ares_channel channel;  /* L */
	struct watch *watches; /* L  of sockets that are open */
	uint32_t refs;         /* L  its handle, and operations under way */
	uint32_t inside;       /* L  calls */
};

/* sockets.c */
extern const struct ares_socket_functions hive__dns_sockets;

/* watch.c */
/* Under the lock, by c-ares: what it waits for at that socket; nothing: it is about to close it. */
void hive__dns_watch(void *dns, ares_socket_t fd, int readable, int writable);
/* Unlocks. Somebody has gone; with the last one the memory goes. */
void hive__dns_leave(struct hive_dns *dns);
