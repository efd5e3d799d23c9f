/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/op.h>
#include <rophive/time.h>

/* For fibers. Everything else may call them too: a compute task or a foreign thread blocks, a task on an IO worker may ask with
 * HIVE_NOWAIT, for all but files, and else gets -EDEADLK. Results: count, descriptor or 0; else -errno. Descriptors are plain, non-blocking, close-on-exec.
 *
 * A deadline that passes: -ETIMEDOUT. A fiber that is cancelled: -ECANCELED. A receive, send, read or write that says so has moved nothing: what
 * came until then is there for the next call. Not so those that are made of several: recv_all and send_all may have moved some bytes,
 * and do not tell how many.                                                                                                */
HIVE_BEGIN
struct hive;
struct iovec;
struct msghdr;
struct statx;

/* Any thread. Numeric only ("127.0.0.1", "::1", "fe80::1%eth0", "fe80::1%2", "unix:/run/x", "unix:@name"); never asks a resolver. The
 * port is not used for unix. 0; -EINVAL: it is none of these; -ENODEV: no interface of that name; -ENAMETOOLONG: a path of more
 * than 107 bytes.                                                                                                         */
int hive_address_parse(const char *text, uint16_t port, struct hive_address *ret_address);
/* Any thread. "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/run/x", "unix:@name"; "unix:" for a socket without a name; a 0
 * in an abstract name is shown as @. How many bytes it takes without the final 0, as snprintf(). -EINVAL: it is no address.
 * -EAFNOSUPPORT: of another family.                                                                                       */
int hive_address_format(const struct hive_address *address, char *ret_text, size_t bytes);
/* Any thread. 0 for a family without ports. */
uint16_t hive_address_port(const struct hive_address *address);
/* May wait. Names too. How many there are (at most 64), of which at most capacity are stored, in the order in which they are to be
 * tried. Numeric addresses, localhost and what ends with .localhost never ask a resolver. A fiber has others asked on a compute worker,
 * and goes on at its deadline although the resolver does not (-ENOTSUP: there is no compute worker); a thread asks by itself, and
 * waits for the answer whatever its deadline. -ENOENT: no such name, or one without addresses. -EAGAIN: nobody knows now, later
 * maybe. -EIO: the resolver failed. -EINVAL: neither name nor address; a name does not end with a number. -ENAMETOOLONG.      */
int hive_resolve(const char *name, uint16_t port, struct hive_address *ret_addresses, size_t capacity,
                 int64_t deadline_ns);

struct hive_net_options {
	int32_t backlog; /* 0: SOMAXCONN */
	int32_t keepalive_s; /* TCP: asked after so much silence, given up after about as much again; 0: off; at most 32767 */
	bool delay;          /* TCP_NODELAY is the default here */
	bool reuse_port; /* listen: several share the port, and the system its connections among them */
	bool v6_only;    /* listen on "::": not for IPv4 too */
	bool datagram;
	uint64_t reserved[4]; /* must be zero */
};

/* Any thread. text as hive_address_parse() takes it. Port 0: the system chooses, ask hive_address_of(). Returns the descriptor.
 * Datagram: bound, not listening. What is accepted has TCP_NODELAY and keep-alive as the options said here. A unix path that exists is
 * -EADDRINUSE, even when nobody listens there any more: only who knows that it is his may unlink it, before or afterwards.     */
int hive_listen(const char *text, uint16_t port, const struct hive_net_options *options);
/* Any thread. Its own address, or that of its peer: -ENOTCONN. */
int hive_address_of(int fd, bool peer, struct hive_address *ret_address);
/* A connection, in a fiber of its own. The descriptor is his, to close it too; what he returns is not asked for. */
typedef int hive_serve_fn(int fd, void *arg);

struct hive_serve_options {
	uint32_t connections; /* at the same time; the next ones wait at the door. 0: as many as come */
	int64_t grace_ns;   /* at its end: so long they may go on, then they are cancelled; HIVE_FOREVER; 0: at once */
	size_t stack_bytes; /* of their fibers; 0: as hive_spawn() */
	const char *name;   /* of their fibers; copied */
	uint64_t reserved[4]; /* must be zero */
};

/* May wait. Lets in whoever comes to a listener, on each IO worker that the hive has now: fn begins where the connection was accepted, or, where
 * there are fewer, on another one. One connection wakes one worker (epoll, uring). Without descriptors or memory for one more it
 * pauses, and goes on. It ends by its deadline (-ETIMEDOUT), when the fiber that called is cancelled or the hive stops now
 * (-ECANCELED), or with an error of the listener (-EINVAL after shutdown(2)); then the connections end, and all fibers that
 * they have spawned: nothing of it is left when it returns. HIVE_DRAIN waits for it. The listener is still yours; nobody may close
 * it meanwhile. -EINVAL, -ESHUTDOWN; -ENOMEM, not even for a pause; -EDEADLK in a task of an IO worker.                                             */
int hive_serve(struct hive *hive, int fd, const struct hive_serve_options *options, hive_serve_fn *fn, void *arg,
               int64_t deadline_ns);
/* May wait. Resolves, tries the addresses one by one (the first 16), returns a connected descriptor. The deadline is for all of it, and
 * each address gets its share of what is left. The error is that of hive_resolve(), or of the last address.              */
int hive_dial(const char *name, uint16_t port, const struct hive_net_options *options, int64_t deadline_ns);
/* Any thread. Two ends: a pair of connected unix sockets; reading and writing end of a pipe. */
int hive_socket_pair(bool datagram, int ret_fds[2]);
int hive_pipe(int ret_fds[2]);

/* May wait. */
int hive_accept(int fd, int64_t deadline_ns);
int hive_connect(int fd, const struct hive_address *to, int64_t deadline_ns);
int64_t hive_recv(int fd, void *buffer, size_t bytes, int64_t deadline_ns);
int64_t hive_send(int fd, const void *buffer, size_t bytes, int64_t deadline_ns);
/* May wait. ret_from NULL: never mind; to NULL: the socket is connected. 0 is an empty datagram. -EMSGSIZE from recvfrom: it is longer
 * than bytes; its beginning is in the buffer, its sender in ret_from, the rest is lost. (hive_recv() would not tell, hive_recvmsg()
 * by MSG_TRUNC in msg_flags.) A connected socket tells what became of earlier datagrams by errors as -ECONNREFUSED.         */
int64_t hive_recvfrom(int fd, void *buffer, size_t bytes, struct hive_address *ret_from, int64_t deadline_ns);
int64_t hive_sendto(int fd, const void *buffer, size_t bytes, const struct hive_address *to, int64_t deadline_ns);
/* May wait. */
int64_t hive_recvmsg(int fd, struct msghdr *message, int flags, int64_t deadline_ns);
int64_t hive_sendmsg(int fd, const struct msghdr *message, int flags, int64_t deadline_ns);
int64_t hive_read(int fd, void *buffer, size_t bytes, int64_t offset, int64_t deadline_ns);
int64_t hive_write(int fd, const void *buffer, size_t bytes, int64_t offset, int64_t deadline_ns);
int64_t hive_readv(int fd, const struct iovec *parts, int count, int64_t offset, int64_t deadline_ns);
int64_t hive_writev(int fd, const struct iovec *parts, int count, int64_t offset, int64_t deadline_ns);
int64_t hive_splice(int from, int64_t from_offset, int to, int64_t to_offset, size_t bytes, int64_t deadline_ns);
int hive_poll_fd(int fd, uint32_t events, int64_t deadline_ns);
int hive_shutdown(int fd, int how, int64_t deadline_ns);
int hive_open(int dir, const char *path, int flags, uint32_t mode, int64_t deadline_ns);
int hive_close(int fd, int64_t deadline_ns);
int hive_fsync(int fd, bool data_only, int64_t deadline_ns);
int hive_statx(int dir, const char *path, int flags, struct statx *ret, int64_t deadline_ns);
int hive_unlink(int dir, const char *path, int flags, int64_t deadline_ns);
int hive_rename(int from, const char *old_path, int to, const char *new_path, int64_t deadline_ns);
int hive_mkdir(int dir, const char *path, uint32_t mode, int64_t deadline_ns);
/* May wait. All bytes or an error; recv_all: -ENODATA if the peer ended early. After an error some may have been moved: who wants to go on after a
 * deadline uses hive_recv() and hive_send(), or a stream.                                                                */
int hive_recv_all(int fd, void *buffer, size_t bytes, int64_t deadline_ns);
int hive_send_all(int fd, const void *buffer, size_t bytes, int64_t deadline_ns);
/* May wait. A descriptor through a unix socket, with one byte. send: 0; the descriptor is still yours. recv: the descriptor, close-on-exec;
 * one is taken, others that came with it are closed. -EBADMSG: a byte without a descriptor. -EMFILE: there was one, but no room
 * for it in this process, and it is lost. -ENODATA: the peer has ended.                                                     */
int hive_send_fd(int socket, int fd, int64_t deadline_ns);
int hive_recv_fd(int socket, int64_t deadline_ns);

/* Buffered, framed, with back-pressure. Owns the descriptor: a socket, a pipe or a terminal, non-blocking.
 *
 * One reader and one writer at a time, which may be different fibers or threads; a second one is told: -EBUSY. A call that ends by
 * its deadline or by a cancel has lost nothing: what was read stays, and the next call goes on.
 *
 * What is written is taken at once, as long as less than high_water waits to be sent; else the writer waits until it is low_water or less. All
 * of it is taken or nothing, so that high_water and one write limit the memory. An operation of the hive that the writer works for
 * sends it in the background. A foreign thread has no hive: it sends by itself, before its call returns; what its deadline leaves
 * over is taken all the same (0), and is sent by the next call.
 *
 * An error of the connection is told by each later write and flush. -ENOMEM and -ECANCELED are not of the connection: the next call
 * goes on.
 *
 * With callbacks: HIVE_NOWAIT everywhere. Read until -ETIMEDOUT, then hive_op_poll() on hive_stream_fd() says when to read on. When a write or a
 * flush was -ETIMEDOUT, on_drain says when to try again: on the IO worker that sends, once for each refusal.               */
struct hive_stream;
typedef void hive_stream_fn(struct hive_stream *stream, void *hook_arg);

struct hive_stream_options {
	size_t read_bytes;  /* how much is read at once; 0: 16 KiB */
	size_t frame_limit; /* longest line, with its newline, and longest frame; 0: 64 KiB */
	size_t high_water;  /* 0: 64 KiB */
	size_t low_water;   /* below high_water; 0: a quarter of it */
	void *hook_arg;
	hive_stream_fn *on_drain; /* NULL: nobody is told. It may write, and destroy with HIVE_NOWAIT */
	uint64_t reserved[4];     /* must be zero */
};

/* Any thread. On failure the descriptor is still yours. -EINVAL, -EBADF, -ENOMEM. */
HIVE_CHECKED int hive_stream_create(int fd, const struct hive_stream_options *options, struct hive_stream **ret_stream);
/* Any thread. Its descriptor, to poll, to shut down one half of, to ask for its address. Not to close. */
int hive_stream_fd(const struct hive_stream *stream);
/* May wait. A line with its newline; the last one may have none. It is a view into the stream, valid until its next read, and not
 * followed by a 0. How long it is; 0: end. -EMSGSIZE: beyond frame_limit, and still there for hive_stream_read().           */
int64_t hive_stream_read_line(struct hive_stream *stream, const char **ret_line, int64_t deadline_ns);
/* May wait. A frame: its length in 4 bytes, big endian, and so many bytes. A view as above. How long it is; 0 with *ret_frame not
 * NULL: an empty one; 0 with NULL: end. -EMSGSIZE as above, its length too. -ENODATA: the peer ended within a frame.        */
int64_t hive_stream_read_frame(struct hive_stream *stream, const void **ret_frame, int64_t deadline_ns);
/* May wait. As hive_recv(): what there is, at most bytes; 0: end. */
int64_t hive_stream_read(struct hive_stream *stream, void *buffer, size_t bytes, int64_t deadline_ns);
/* May wait, until there is room for it. 0: taken. -EMSGSIZE: a frame beyond frame_limit. */
int hive_stream_write(struct hive_stream *stream, const void *buffer, size_t bytes, int64_t deadline_ns);
int hive_stream_write_frame(struct hive_stream *stream, const void *frame, size_t bytes, int64_t deadline_ns);
/* May wait. Until the system has all that was written. */
int hive_stream_flush(struct hive_stream *stream, int64_t deadline_ns);
/* May wait. Flushes by the deadline, closes the descriptor, frees: always gone afterwards; the result is that of the flush. In a task of an
 * IO worker the descriptor may be closed a moment later. NULL is fine. -EBUSY: somebody is in a call with it; it is not gone. */
int hive_stream_destroy(struct hive_stream *stream, int64_t deadline_ns);
HIVE_END
