/* SPDX-License-Identifier: MIT */
/* The server of echo_server for bare io_uring: prints PORT n, echoes until its input ends. No library beyond liburing, which writes the entries: a
 * floor. One thread; one multishot accept into the ring's own table of files, a multishot receive for each connection, buffers from a ring that
 * the kernel takes them from; an answer is sent out of the buffer in which the question came, and the kernel does deferred work only
 * when the loop waits. One system call for all that has come and all that is to be sent.                             */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
	ENTRIES = 4096,
	BUFFERS = 2048, /* a power of two */
	BYTES = 4096,
	STRIDE = BYTES + 64, /* so that their heads do not share the same sets of the cache */
	GROUP = 1,
	FILES_MOST = 65536,
	NOBODY = -1
};
enum kind { ACCEPT, RECEIVE, SEND, END, INPUT };

struct connection {
	int first, last; /* buffers that wait to be sent, the first one under way; NOBODY: none */
	int next_starved;
	bool ended; /* nothing will be received any more */
};

struct piece { /* of what came: a buffer in use */
	unsigned length, sent;
	int next;
};

static struct io_uring ring;
static struct io_uring_buf_ring *buffer_ring;
static char *bytes;
static struct piece pieces[BUFFERS];
static struct connection connections[FILES_MOST];
static int starved = NOBODY; /* connections that found no buffer */

static void fail(const char *what)
{
	fprintf(stderr, "echo_uring: no %s\n", what);
	exit(1);
}

static struct io_uring_sqe *entry(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	if (!sqe) {
		io_uring_submit(&ring);
		sqe = io_uring_get_sqe(&ring);
	}
	if (!sqe)
		fail("room for an entry");
	return sqe;
}

/* After it was prepared, which clears both. */
static void address(struct io_uring_sqe *sqe, enum kind kind, int connection)
{
	sqe->user_data = (uint64_t)(unsigned)connection << 8 | kind;
	if (kind == RECEIVE || kind == SEND)
		sqe->flags |= IOSQE_FIXED_FILE;
}

static void accept_all(int listener)
{
	struct io_uring_sqe *sqe = entry();
	io_uring_prep_multishot_accept_direct(sqe, listener, NULL, NULL, 0);
	address(sqe, ACCEPT, listener);
}

static void receive(int connection)
{
	struct io_uring_sqe *sqe = entry();
	io_uring_prep_recv_multishot(sqe, connection, NULL, 0, 0);
	address(sqe, RECEIVE, connection);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
}

static void send_first(int connection)
{
	int buffer = connections[connection].first;
	struct piece *piece = &pieces[buffer];
	struct io_uring_sqe *sqe = entry();
	io_uring_prep_send(sqe, connection, bytes + (size_t)buffer * STRIDE + piece->sent, piece->length - piece->sent,
	                   MSG_NOSIGNAL | MSG_WAITALL);
	address(sqe, SEND, connection);
}

static void watch_input(void)
{
	static char unused;
	struct io_uring_sqe *sqe = entry();
	io_uring_prep_read(sqe, 0, &unused, 1, 0);
	address(sqe, INPUT, 0);
}

static void give_back(int buffer)
{
	io_uring_buf_ring_add(buffer_ring, bytes + (size_t)buffer * STRIDE, BYTES, (unsigned short)buffer,
	                      io_uring_buf_ring_mask(BUFFERS), 0);
	io_uring_buf_ring_advance(buffer_ring, 1);
	if (starved == NOBODY)
		return;
	int connection = starved;
	starved = connections[connection].next_starved;
	receive(connection);
}

static void close_if_done(int connection)
{
	if (!connections[connection].ended || connections[connection].first != NOBODY)
		return;
	struct io_uring_sqe *sqe = entry();
	io_uring_prep_close_direct(sqe, (unsigned)connection);
	address(sqe, END, connection);
}

static void on_accepted(const struct io_uring_cqe *cqe, int listener)
{
	if (cqe->res < 0 || cqe->res >= FILES_MOST)
		fail("room for a connection");
	connections[cqe->res] = (struct connection){ NOBODY, NOBODY, NOBODY, false };
	receive(cqe->res);
	if (!(cqe->flags & IORING_CQE_F_MORE))
		accept_all(listener);
}

static void append(struct connection *link, int buffer)
{
	if (link->first == NOBODY)
		link->first = buffer;
	else
		pieces[link->last].next = buffer;
	link->last = buffer;
}

static void on_received(const struct io_uring_cqe *cqe, int connection)
{
	struct connection *link = &connections[connection];
	if (cqe->res > 0) {
		int buffer = (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
		bool idle = link->first == NOBODY;
		pieces[buffer] = (struct piece){ (unsigned)cqe->res, 0, NOBODY };
		append(link, buffer);
		if (idle)
			send_first(connection);
	}
	if (cqe->flags & IORING_CQE_F_MORE)
		return;
	if (cqe->res > 0) {
		receive(connection);
	} else if (cqe->res == -ENOBUFS) {
		link->next_starved = starved;
		starved = connection;
	} else {
		link->ended = true;
		close_if_done(connection);
	}
}

/* One that cannot be sent to is shut down: the end of its receive closes it. */
static void on_failed(int connection)
{
	struct io_uring_sqe *sqe = entry();
	io_uring_prep_shutdown(sqe, connection, SHUT_RDWR);
	address(sqe, END, connection);
	sqe->flags |= IOSQE_FIXED_FILE;
}

static void on_sent(const struct io_uring_cqe *cqe, int connection)
{
	struct connection *link = &connections[connection];
	int buffer = link->first;
	struct piece *piece = &pieces[buffer];
	if (cqe->res < 0)
		on_failed(connection);
	else
		piece->sent += (unsigned)cqe->res;
	if (cqe->res >= 0 && piece->sent < piece->length) {
		send_first(connection);
		return;
	}
	link->first = piece->next;
	give_back(buffer);
	if (link->first != NOBODY)
		send_first(connection);
	else
		close_if_done(connection);
}

/* False: the input has ended. */
static bool on_completion(const struct io_uring_cqe *cqe)
{
	int connection = (int)(cqe->user_data >> 8);
	switch ((enum kind)(cqe->user_data & 255)) {
	case ACCEPT:
		on_accepted(cqe, connection);
		break;
	case RECEIVE:
		on_received(cqe, connection);
		break;
	case SEND:
		on_sent(cqe, connection);
		break;
	case INPUT:
		if (cqe->res <= 0)
			return false;
		watch_input();
		break;
	case END:
		break;
	}
	return true;
}

static void open_buffers(void)
{
	struct io_uring_buf_reg registration = { .ring_entries = BUFFERS, .bgid = GROUP };
	void *memory;
	if (posix_memalign(&memory, 4096, BUFFERS * sizeof(struct io_uring_buf)) != 0 ||
	    !(bytes = malloc((size_t)BUFFERS * STRIDE)))
		fail("memory");
	buffer_ring = memory;
	registration.ring_addr = (uint64_t)(uintptr_t)memory;
	if (io_uring_register_buf_ring(&ring, &registration, 0) < 0)
		fail("ring of buffers");
	io_uring_buf_ring_init(buffer_ring);
	for (int i = 0; i < BUFFERS; i++)
		give_back(i);
}

static void open_ring(void)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
		                                   IORING_SETUP_CQSIZE,
		                          .cq_entries = 4 * ENTRIES };
	struct rlimit files;
	if (io_uring_queue_init_params(ENTRIES, &ring, &params) < 0)
		fail("io_uring with deferred work");
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (io_uring_register_files_sparse(&ring, files.rlim_cur < FILES_MOST ? (unsigned)files.rlim_cur : FILES_MOST) <
	    0)
		fail("table of files");
	open_buffers();
}

static int listen_on_loopback(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 || /* its connections inherit it */
	    bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 4096) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &size) < 0)
		fail("socket to listen on");
	printf("PORT %d\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

int main(void)
{
	bool more = true;
	open_ring();
	accept_all(listen_on_loopback());
	watch_input();
	while (more) {
		struct io_uring_cqe *cqe;
		unsigned head, seen = 0;
		int error = io_uring_submit_and_wait(&ring, 1);
		if (error < 0 && error != -EINTR)
			fail("completions");
		io_uring_for_each_cqe(&ring, head, cqe)
		{
			more = on_completion(cqe) && more;
			seen++;
		}
		io_uring_cq_advance(&ring, seen);
	}
	return 0;
}
