/* SPDX-License-Identifier: MIT */
/* The server of echo_server for libuv: prints PORT n, echoes until its input ends. One loop, as libuv programs are: it has no
 * way to hand a connection of one loop to another, so several threads are left out. Best idiomatic form: uv_try_write() first, a
 * buffer for the whole loop.                                                                                              */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { BUFFER = 4096 };

static char buffer[BUFFER];
static uv_pipe_t input;

struct rest { /* what could not be written at once */
	uv_write_t write;
	char bytes[BUFFER];
};

static void on_closed(uv_handle_t *handle)
{
	free(handle);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	(void)handle;
	(void)suggested;
	*ret = uv_buf_init(buffer, sizeof buffer);
}

static void on_written(uv_write_t *write, int status)
{
	(void)status;
	free(write);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *data)
{
	uv_buf_t out = uv_buf_init(data->base, n > 0 ? (unsigned)n : 0);
	int sent;
	if (n < 0) {
		uv_close((uv_handle_t *)stream, on_closed);
		return;
	}
	if (n == 0)
		return;
	sent = uv_try_write(stream, &out, 1);
	if (sent == n)
		return;
	struct rest *rest = malloc(sizeof *rest);
	sent = sent < 0 ? 0 : sent;
	memcpy(rest->bytes, data->base + sent, (size_t)(n - sent));
	out = uv_buf_init(rest->bytes, (unsigned)(n - sent));
	uv_write(&rest->write, stream, &out, 1, on_written);
}

static void on_connection(uv_stream_t *listener, int status)
{
	uv_tcp_t *link = malloc(sizeof *link);
	if (status < 0 || !link)
		exit(1);
	uv_tcp_init(listener->loop, link);
	if (uv_accept(listener, (uv_stream_t *)link) < 0)
		exit(1);
	uv_tcp_nodelay(link, 1);
	uv_read_start((uv_stream_t *)link, on_alloc, on_read);
}

static void on_input(uv_stream_t *stream, ssize_t n, const uv_buf_t *data)
{
	(void)data;
	if (n < 0)
		uv_stop(stream->loop);
}

int main(void)
{
	struct sockaddr_in at;
	int bytes = sizeof at;
	uv_tcp_t listener;
	uv_loop_t *loop = uv_default_loop();
	uv_ip4_addr("127.0.0.1", 0, &at);
	uv_tcp_init(loop, &listener);
	if (uv_tcp_bind(&listener, (struct sockaddr *)&at, 0) < 0 ||
	    uv_listen((uv_stream_t *)&listener, 4096, on_connection) < 0)
		return 1;
	uv_tcp_getsockname(&listener, (struct sockaddr *)&at, &bytes);
	printf("PORT %d\n", ntohs(at.sin_port));
	fflush(stdout);
	uv_pipe_init(loop, &input, 0);
	uv_pipe_open(&input, 0);
	uv_read_start((uv_stream_t *)&input, on_alloc, on_input);
	uv_run(loop, UV_RUN_DEFAULT);
	return 0;
}
