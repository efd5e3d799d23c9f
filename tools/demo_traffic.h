/* SPDX-License-Identifier: MIT */
#pragma once
#include "stats.h"
#include "sync.h"
#include <stdbool.h>
#include <pthread.h>

/* The clients' half of the echo traffic: one plain thread, 16 connections, each asks again 1 ms after its answer. So
 * the demand is bounded: what a slow server does not answer is not asked again.                                   */
#define TRAFFIC_CONNECTIONS 16
#define TRAFFIC_MESSAGE 64 /* bytes */

struct traffic_connection {
	int fd;
	int64_t next_ns, sent_ns; /* sent_ns 0: thinking */
	uint64_t sequence;
	size_t got;
	char answer[TRAFFIC_MESSAGE];
};

struct traffic {
	uint16_t port;
	pthread_t thread;
	atomic_bool ending;
	_Atomic int64_t answers;
	_Atomic int failure;  /* -errno: the traffic broke off */
	struct stats latency; /* the thread's until traffic_stop() */
	struct traffic_connection connections[TRAFFIC_CONNECTIONS];
};

/* Connects and begins. 0 or -errno. */
int traffic_start(struct traffic *traffic, uint16_t port);
/* The server is about to go: connections that close are no failure from here on. */
void traffic_end(struct traffic *traffic);
/* Ends and joins. */
void traffic_stop(struct traffic *traffic);
