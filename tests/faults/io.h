/* SPDX-License-Identifier: MIT */
#pragma once
/* One fiber that uses all of io.h and process.h, for worlds in which something fails. Whatever a call says is right, if it says it in
 * time, and the next part goes on; at the end no descriptor, process or file is left. Where nothing fails, nothing may fail.   */
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>

#include "io_ops.h"

/* ---- names ---- */

/* In place of the system's: nothing leaves this machine, and what the C library does for a name is not ours to make fail. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list)
{
	struct io_answer {
		struct addrinfo info;
		struct sockaddr_in at;
	} *answer = malloc(sizeof *answer);

	(void)name, (void)service, (void)hints;
	if (!answer)
		return EAI_MEMORY;
	answer->at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	answer->info = (struct addrinfo){ .ai_family = AF_INET,
		                          .ai_addr = (struct sockaddr *)(void *)&answer->at,
		                          .ai_addrlen = sizeof answer->at };
	*ret_list = &answer->info;
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	free(list);
}

static inline void io_names(struct io_scenario *s)
{
	struct hive_address addresses[2];
	int r = hive_resolve("somebody.test", 80, addresses, 2, io_soon());

	if (FINE(s, r))
		CHECK_EQ(r, 1);
	r = hive_address_parse("fe80::1%lo", 80, &addresses[0]); /* the system knows the numbers of such names */
	CHECK(r == 0 || r == -EINVAL || r == -ENODEV || !s->strict);
}

/* ---- connections, streams ---- */

static inline void io_serve(struct io_scenario *s, int fd)
{
	struct hive_stream *stream;
	const char *line;
	const void *frame;

	if (!FINE(s, hive_stream_create(fd, NULL, &stream))) {
		io_close(s, fd);
		return;
	}
	if (FINE(s, hive_stream_read_line(stream, &line, io_soon())) &&
	    FINE(s, hive_stream_read_frame(stream, &frame, io_soon())))
		FINE(s, hive_stream_write(stream, "thanks\n", 7, io_soon()));
	FINE(s, hive_stream_destroy(stream, io_soon()));
}

static inline int io_accept(void *arg)
{
	struct io_scenario *s = arg;
	int fd = hive_accept(s->listener, io_soon());

	if (FINE(s, fd))
		io_serve(s, fd);
	return 0;
}

static inline void io_ask(struct io_scenario *s, int fd)
{
	char frame[IO_BYTES] = "", text[8];
	struct hive_address peer;
	struct hive_stream *stream;

	FINE(s, hive_address_of(fd, true, &peer));
	if (!FINE(s, hive_stream_create(fd, NULL, &stream))) {
		io_close(s, fd);
		return;
	}
	if (FINE(s, hive_stream_write(stream, "please\n", 7, io_soon())) &&
	    FINE(s, hive_stream_write_frame(stream, frame, sizeof frame, io_soon())) &&
	    FINE(s, hive_stream_flush(stream, io_soon())) && FINE(s, hive_shutdown(fd, SHUT_WR, io_soon())))
		FINE(s, hive_stream_read(stream, text, sizeof text, io_soon()));
	FINE(s, hive_stream_destroy(stream, io_soon()));
}

static inline void io_streams(struct io_scenario *s)
{
	struct hive_net_options options = { .keepalive_s = 10, .reuse_port = true };
	struct hive_address at = { 0 };
	struct hive_fiber *server;
	int fd;

	s->listener = hive_listen("127.0.0.1", 0, &options);
	if (!FINE(s, s->listener))
		return;
	if (FINE(s, hive_address_of(s->listener, false, &at)) && io_spawn(s, io_accept, &server)) {
		fd = hive_dial("127.0.0.1", hive_address_port(&at), &options, io_soon());
		if (FINE(s, fd))
			io_ask(s, fd);
		CHECK_EQ(io_join(server), 0);
	}
	io_close(s, s->listener);
}

static inline int io_serve_one(int fd, void *arg)
{
	io_serve(arg, fd);
	return 0;
}

/* Until it is cancelled; or it has no worker, or the listener fails. */
static inline int io_let_in(void *arg)
{
	struct io_scenario *s = arg;
	int r = hive_serve(s->hive, s->listener, NULL, io_serve_one, s, hive_deadline(NULL, HIVE_S(2)));

	CHECK(r < 0);
	if (r != -ECANCELED)
		FINE(s, r);
	return 0;
}

static inline void io_server(struct io_scenario *s)
{
	struct hive_address at = { 0 };
	struct hive_fiber *server;
	int fd;

	s->listener = hive_listen("127.0.0.1", 0, NULL);
	if (!FINE(s, s->listener))
		return;
	if (FINE(s, hive_address_of(s->listener, false, &at)) && io_spawn(s, io_let_in, &server)) {
		fd = hive_dial("127.0.0.1", hive_address_port(&at), NULL, io_soon());
		if (FINE(s, fd))
			io_ask(s, fd);
		CHECK_OK(hive_fiber_cancel(server));
		CHECK_EQ(io_join(server), 0);
	}
	io_close(s, s->listener);
}

static inline void io_datagrams(struct io_scenario *s)
{
	struct hive_net_options options = { .datagram = true };
	struct hive_address at = { 0 }, from;
	int fd = hive_listen("127.0.0.1", 0, &options);
	char text[8];

	if (!FINE(s, fd))
		return;
	if (FINE(s, hive_address_of(fd, false, &at)) && FINE(s, hive_sendto(fd, "hello", 5, &at, io_soon())))
		FINE(s, hive_recvfrom(fd, text, sizeof text, &from, io_soon()));
	io_close(s, fd);
}

static inline int io_receive(void *arg)
{
	struct io_scenario *s = arg;
	char text[64];

	FINE(s, hive_recv_all(s->listener, text, sizeof text, io_soon()));
	return 0;
}

static inline void io_pairs(struct io_scenario *s)
{
	char text[64] = "";
	struct hive_fiber *other;
	int pair[2], fd;

	if (!FINE(s, hive_socket_pair(false, pair)))
		return;
	s->listener = pair[1];
	if (io_spawn(s, io_receive, &other)) {
		FINE(s, hive_yield()); /* who waits is woken */
		FINE(s, hive_send_all(pair[0], text, sizeof text, io_soon()));
		CHECK_EQ(io_join(other), 0);
	}
	if (FINE(s, hive_send_fd(pair[0], pair[1], io_soon()))) {
		fd = hive_recv_fd(pair[1], io_soon());
		if (FINE(s, fd))
			io_close(s, fd);
	}
	io_close_both(s, pair);
}

/* ---- pipes, files ---- */

static inline void io_pipes(struct io_scenario *s)
{
	char text[8] = "";
	struct iovec parts[2] = { { text, 4 }, { text + 4, 4 } };
	int fds[2];

	if (!FINE(s, hive_pipe(fds)))
		return;
	if (FINE(s, hive_writev(fds[1], parts, 2, -1, io_soon())) &&
	    FINE(s, hive_poll_fd(fds[0], HIVE_EVENT_IN, io_soon())))
		FINE(s, hive_readv(fds[0], parts, 2, -1, io_soon()));
	if (hive_read(fds[0], text, sizeof text, -1, hive_deadline(NULL, HIVE_MS(1))) != -ETIMEDOUT)
		add_seq(&s->errors, 1u);
	io_close_both(s, fds);
}

static inline void io_send_file(struct io_scenario *s, int file)
{
	int fds[2], ends[2];

	if (!FINE(s, hive_socket_pair(false, fds)))
		return;
	FINE(s, hive_splice(file, 0, fds[0], -1, IO_BYTES, io_soon()));
	if (FINE(s, hive_pipe(ends))) {
		if (FINE(s, hive_splice(file, 0, ends[1], -1, IO_BYTES, io_soon())))
			FINE(s, hive_splice(ends[0], -1, fds[0], -1, IO_BYTES, io_soon()));
		if (FINE(s, hive_splice(file, -1, ends[1], -1, IO_BYTES, io_soon()))) /* where it stands */
			FINE(s, hive_splice(ends[0], -1, file, 0, IO_BYTES, io_soon()));
		io_close_both(s, ends);
	}
	io_close_both(s, fds);
}

/* Where it stands. */
static inline void io_go_on(struct io_scenario *s, int file)
{
	char bytes[64] = "";
	struct iovec parts[2] = { { bytes, 32 }, { bytes + 32, 32 } };

	FINE(s, hive_read(file, bytes, sizeof bytes, -1, io_soon()));
	FINE(s, hive_readv(file, parts, 2, -1, io_soon()));
	FINE(s, hive_write(file, bytes, sizeof bytes, -1, io_soon()));
	FINE(s, hive_writev(file, parts, 2, -1, io_soon()));
}

static inline void io_copy_file(struct io_scenario *s, int dir, int file)
{
	int copy = hive_open(dir, "three", O_RDWR | O_CREAT, 0600, io_soon());

	if (!FINE(s, copy))
		return;
	FINE(s, hive_splice(file, 0, copy, 0, IO_BYTES, io_soon()));
	FINE(s, hive_splice(file, -1, copy, -1, IO_BYTES, io_soon()));
	io_close(s, copy);
	FINE(s, hive_unlink(dir, "three", 0, io_soon()));
}

static inline void io_files(struct io_scenario *s)
{
	char bytes[IO_BYTES] = "";
	struct statx about;
	int dir, file;

	if (!FINE(s, hive_mkdir(AT_FDCWD, s->folder, 0700, io_soon())))
		return;
	dir = hive_open(AT_FDCWD, s->folder, O_RDONLY | O_DIRECTORY, 0, io_soon());
	if (!FINE(s, dir))
		return;
	file = hive_open(dir, "one", O_RDWR | O_CREAT, 0600, io_soon());
	if (FINE(s, file)) {
		FINE(s, hive_write(file, bytes, sizeof bytes, 0, io_soon()));
		FINE(s, hive_read(file, bytes, sizeof bytes, 0, io_soon()));
		FINE(s, hive_fsync(file, true, io_soon()));
		FINE(s, hive_fsync(file, false, io_soon()));
		io_go_on(s, file);
		io_send_file(s, file);
		io_copy_file(s, dir, file);
		io_close(s, file);
	}
	FINE(s, hive_rename(dir, "one", dir, "two", io_soon()));
	FINE(s, hive_statx(dir, "two", 0, &about, io_soon()));
	FINE(s, hive_unlink(dir, "two", 0, io_soon()));
	io_close(s, dir);
}

/* By calls that the library does not make. */
static inline void io_remove_folder(struct io_scenario *s)
{
	static const char *const names[] = { "one", "two", "three" };
	char path[80];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", s->folder, names[i]);
		unlink(path);
	}
	rmdir(s->folder);
}

/* ---- the process ---- */

static inline void io_children(struct io_scenario *s)
{
	const char *const argv[] = { "/bin/echo", "hello", NULL };
	int fds[3], r;
	struct hive_process_options options = { .redirect = { false, true, false },
		                                .fds = { HIVE_OFF, 0, 0 },
		                                .ret_fds = fds };
	char text[64];

	if (!FINE(s, hive_process_start(argv, &options, &s->process)))
		return;
	FINE(s, hive_read(fds[1], text, sizeof text, -1, hive_deadline(NULL, HIVE_S(5))));
	FINE(s, hive_process_signal(s->process, SIGTERM));
	r = hive_process_wait(s->process, hive_deadline(NULL, HIVE_S(5)));
	if (FINE(s, r) || r == -ECHILD)
		s->process = 0;
	io_close(s, fds[1]);
}

/* After a failure it is still there. A thread waits by other means. */
static inline void io_last_wait(struct io_scenario *s)
{
	if (s->process <= 0)
		return;
	sigqueue(s->process, SIGKILL, (union sigval){ 0 }); /* not the library's call */
	for (int tries = 1000; tries > 0 && s->process > 0; tries--) {
		int r = hive_process_wait(s->process, hive_deadline(NULL, HIVE_S(5)));

		if (r >= 0 || r == -ECHILD)
			s->process = 0;
		else
			usleep(1000); /* it may be about to end, and then nothing is needed to learn of it */
	}
	CHECK_EQ(s->process, 0);
}

static inline void io_signals(struct io_scenario *s)
{
	const int numbers[] = { SIGUSR1, SIGUSR2 };
	int r;

	if (!FINE(s, hive_signal_watch(numbers, 2)))
		return;
	CHECK_OK(sigqueue(getpid(), SIGUSR1, (union sigval){ 0 }));
	r = hive_signal_wait(numbers, 2, io_soon());
	if (FINE(s, r))
		CHECK_EQ(r, SIGUSR1);
	FINE(s, hive_signal_unwatch(numbers, 2));
}

static inline void io_terminals(struct io_scenario *s)
{
	struct hive_tty saved;
	int columns, rows, fd, slave, master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	const char *name = master >= 0 && unlockpt(master) == 0 ? ptsname(master) : NULL;

	slave = name ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
	if (slave >= 0) {
		if (FINE(s, hive_tty_raw(slave, &saved)))
			FINE(s, hive_tty_restore(slave, &saved));
		FINE(s, hive_tty_size(slave, &columns, &rows));
		fd = hive_tty_open(slave);
		if (FINE(s, fd)) {
			FINE(s, hive_write(fd, "hello", 5, -1, io_soon()));
			io_close(s, fd);
		}
		close(slave);
	}
	if (master >= 0)
		close(master);
}

/* ---- all of it ---- */

static inline int io_all(void *arg)
{
	static void (*const parts[])(struct io_scenario *) = { io_streams, io_datagrams, io_pairs,     io_pipes,
		                                               io_files,   io_children,  io_signals,   io_terminals,
		                                               io_server,  io_names,     io_callbacks, io_repeated,
		                                               io_lent,    io_served };

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		parts[i](arg);
	return 0;
}

/* ---- a dump ---- */

static inline void io_busy(void *arg)
{
	while (!load_seq(&((struct io_scenario *)arg)->free))
		sched_yield();
}

static inline void io_nop(void *arg)
{
	(void)arg;
}

/* Of a worker that does not come to its letters. */
static inline void io_dump(struct io_scenario *s)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	store_seq(&s->free, 0u);
	if (FINE(s, hive_post_to(s->hive, HIVE_WORKER_MAIN, io_busy, s)) &&
	    FINE(s, hive_post_to(s->hive, HIVE_WORKER_MAIN, io_nop, s)))
		FINE(s, hive_dump(s->hive, fd));
	store_seq(&s->free, 1u);
	close(fd);
}

static inline void io_run(struct io_scenario *s)
{
	struct hive_fiber *fiber;

	if (!FINE(s, hive_start(s->hive)))
		return;
	if (io_spawn(s, io_all, &fiber))
		CHECK_EQ(io_join(fiber), 0);
	io_outside(s);
	io_dump(s);
	CHECK_OK(hive_stop(s->hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(s->hive, HIVE_FOREVER));
}

/* How many calls failed. */
static inline uint32_t io_play(struct io_scenario *s)
{
	snprintf(s->folder, sizeof s->folder, "/tmp/rophive-faults-%d", (int)getpid());
	signal(SIGUSR1, SIG_IGN); /* where the wait fails, it may come when nobody watches it any more */
	s->options.io_workers = 1;
	s->options.compute_workers = 1;
	if (FINE(s, hive_create(&s->options, &s->hive))) {
		io_run(s);
		CHECK_OK(hive_destroy(s->hive));
	}
	signal(SIGUSR1, SIG_DFL);
	io_remove_folder(s);
	io_last_wait(s);
	while (waitpid(-1, NULL, 0) > 0)         /* not the library's call */
		CHECK(load_seq(&s->errors) > 0); /* no zombie where nothing failed */
	return load_seq(&s->errors);
}
