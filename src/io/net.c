/* SPDX-License-Identifier: MIT */
/* Sockets and pipes as this library makes them: non-blocking, close-on-exec, without delay.
 *
 * What a listener was told its connections are told too: the kernel copies TCP_NODELAY and the keep-alive options to what it
 * accepts, so that nobody has to set them again (tests/io/net.c holds it to that).
 *
 * A socket file in the way is never removed. That a probe finds nobody behind it does not make it stale: its owner may be between
 * bind() and listen(), and of two who find it stale at the same time the second would remove the socket of the first.
 *
 * A fiber may go on on another thread after each wait, and compilers remember where errno was: hence what looks at errno does not
 * wait, and is not inlined into what does.                                                                                   */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rophive/hive.h>
#include <rophive/io.h>

#include "io/number.h"
#include "io/op.h"

enum { KEEPALIVE_MAX = 32767, KEEPALIVE_PROBES = 3, DIAL_ADDRESSES = 16 };

#define NO_INLINE __attribute__((noinline))

static int check(const struct hive_net_options *options, struct hive_net_options *ret)
{
	*ret = options ? *options : (struct hive_net_options){ 0 };
	for (size_t i = 0; i < sizeof ret->reserved / sizeof *ret->reserved; i++)
		if (ret->reserved[i] != 0)
			return -EINVAL;
	return ret->backlog < 0 || ret->keepalive_s < 0 || ret->keepalive_s > KEEPALIVE_MAX ? -EINVAL : 0;
}

static bool set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

/* Asked after so many seconds of silence, given up after about as many again. */
static bool set_keepalive(int fd, int seconds)
{
	int interval = seconds / KEEPALIVE_PROBES;

	return set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) && set(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds) &&
	       set(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval > 0 ? interval : 1) &&
	       set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
}

static bool set_tcp(int fd, const struct hive_net_options *options)
{
	return (options->delay || set(fd, IPPROTO_TCP, TCP_NODELAY, 1)) &&
	       (options->keepalive_s == 0 || set_keepalive(fd, options->keepalive_s));
}

static const struct sockaddr *sockaddr_of(const struct hive_address *address)
{
	return (const struct sockaddr *)(const void *)address->storage;
}

static NO_INLINE int fail(int fd)
{
	if (fd >= 0)
		hive__number_close(fd);
	return -errno;
}

/* A socket for that address, with what holds for both ends. */
static NO_INLINE int open_socket(const struct hive_address *address, const struct hive_net_options *options)
{
	int family = sockaddr_of(address)->sa_family;
	int type = options->datagram ? SOCK_DGRAM : SOCK_STREAM;
	int fd = number_made(socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	if (fd < 0 || (family != AF_UNIX && !options->datagram && !set_tcp(fd, options)))
		return fail(fd);
	return fd;
}

/* ---- listening ---- */

/* SO_REUSEADDR: what is left of old connections is not in the way. For datagrams it would let a second one in. */
static bool set_listener(int fd, int family, const struct hive_net_options *options)
{
	if (family == AF_UNIX)
		return true;
	return (options->datagram || set(fd, SOL_SOCKET, SO_REUSEADDR, 1)) &&
	       (!options->reuse_port || set(fd, SOL_SOCKET, SO_REUSEPORT, 1)) &&
	       (family != AF_INET6 || set(fd, IPPROTO_IPV6, IPV6_V6ONLY, options->v6_only));
}

int hive__net_check(const struct hive_net_options *options)
{
	struct hive_net_options how;

	return check(options, &how);
}

int hive_listen(const char *text, uint16_t port, const struct hive_net_options *options)
{
	struct hive_net_options how;
	struct hive_address at;
	int fd, r = check(options, &how);

	if (r == 0)
		r = hive_address_parse(text, port, &at);
	fd = r < 0 ? r : open_socket(&at, &how);
	if (fd < 0)
		return fd;
	if (!set_listener(fd, sockaddr_of(&at)->sa_family, &how) || bind(fd, sockaddr_of(&at), at.bytes) < 0 ||
	    (!how.datagram && listen(fd, how.backlog ? how.backlog : SOMAXCONN) < 0))
		return fail(fd);
	return fd;
}

int hive_address_of(int fd, bool peer, struct hive_address *ret_address)
{
	struct hive_address address = { 0 };
	struct sockaddr *to = (struct sockaddr *)(void *)address.storage;
	socklen_t bytes = sizeof address.storage;

	if (fd < 0 || !ret_address)
		return -EINVAL;
	if ((peer ? getpeername(fd, to, &bytes) : getsockname(fd, to, &bytes)) < 0)
		return -errno;
	address.bytes = bytes;
	*ret_address = address;
	return 0;
}

/* ---- dialling ---- */

/* A fair share of what is left for each that is left: one address that never answers does not use it all up. */
static int64_t share(int64_t deadline_ns, int addresses)
{
	int64_t now;

	if (deadline_ns == HIVE_FOREVER || addresses == 1)
		return deadline_ns;
	now = hive_now(NULL);
	return deadline_ns <= now ? HIVE_NOWAIT : now + (deadline_ns - now) / addresses;
}

static int dial_one(const struct hive_address *to, const struct hive_net_options *options, int64_t deadline_ns)
{
	int r, fd = open_socket(to, options);

	if (fd < 0)
		return fd;
	r = hive_connect(fd, to, deadline_ns);
	if (r == 0)
		return fd;
	hive__number_close(fd);
	return r;
}

int hive_dial(const char *name, uint16_t port, const struct hive_net_options *options, int64_t deadline_ns)
{
	struct hive_address addresses[DIAL_ADDRESSES];
	struct hive_net_options how;
	int count, r = check(options, &how);

	if (r < 0)
		return r;
	count = hive_resolve(name, port, addresses, DIAL_ADDRESSES, deadline_ns);
	if (count > DIAL_ADDRESSES)
		count = DIAL_ADDRESSES;
	r = count < 0 ? count : -ENOENT;
	for (int i = 0; i < count && r < 0 && r != -EDEADLK && (i == 0 || hive__wait_reason() == 0); i++)
		r = dial_one(&addresses[i], &how, share(deadline_ns, count - i));
	return r;
}

/* ---- two ends ---- */

static int two_made(int r, const int fds[2])
{
	if (r < 0)
		return -errno;
	hive__number_begins(fds[0]);
	hive__number_begins(fds[1]);
	return 0;
}

int hive_socket_pair(bool datagram, int ret_fds[2])
{
	int type = (datagram ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;

	if (!ret_fds)
		return -EINVAL;
	return two_made(socketpair(AF_UNIX, type, 0, ret_fds), ret_fds);
}

int hive_pipe(int ret_fds[2])
{
	if (!ret_fds)
		return -EINVAL;
	return two_made(pipe2(ret_fds, O_NONBLOCK | O_CLOEXEC), ret_fds);
}
