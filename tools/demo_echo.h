/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The server's half of the echo traffic: sockets and bytes, no event loop. The hive and the plain loop both drive it. */
#define ECHO_PEERS 64

struct echo_peer {
	bool open; /* false: free place */
	int fd;
	size_t held, sent;
	char buffer[1024];
};

enum echo_need { ECHO_TO_READ, ECHO_TO_WRITE, ECHO_CLOSED };

/* A listening socket on 127.0.0.1, port chosen by the system; -errno. */
int echo_listen(uint16_t *ret_port);
/* Takes the next connection that waits into a free place, non-blocking; NULL: none waits, or no place is left (then the
 * connection is closed). ret_error: 0 or -errno of something worse than that.                                       */
struct echo_peer *echo_accept(int listener, struct echo_peer peers[ECHO_PEERS], int *ret_error);
/* Reads once and sends it back. What the connection waits for next. */
enum echo_need echo_serve(struct echo_peer *peer);
void echo_close(struct echo_peer *peer);

/* What a server does besides: one small job for each message (checksums, logs, counters), some 5 µs. They are done in
 * bursts of ECHO_BURST, and nobody waits for them.                                                                 */
#define ECHO_BURST 16
uint64_t echo_chore(uint64_t seed);
