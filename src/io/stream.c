/* SPDX-License-Identifier: MIT */
/* Streams: their beginning, their end, and who may use them. */
#include <string.h>
#include <sys/stat.h>

#include "io/number.h"
#include "io/stream.h"

enum {
	STREAM_MAGIC = 0x73747265,
	READ_BYTES = 16 << 10,
	FRAME_LIMIT = 64 << 10,
	HIGH_WATER = 64 << 10,
	SPAN_LEAST = 1024
};

const struct memory hive__stream_memory = { hive__memory_system, NULL };

void hive__span_free(struct span *span)
{
	hive__memory_free(&hive__stream_memory, span->data);
	*span = (struct span){ 0 };
}

bool hive__span_grow(struct span *span, size_t bytes)
{
	size_t has = span_has(span), capacity;
	char *data;

	if (span->capacity - span->to >= bytes)
		return true;
	if (span->capacity - has >= bytes) {
		memmove(span->data, span->data + span->from, has);
		span->from = 0;
		span->to = has;
		return true;
	}
	if (bytes > SIZE_MAX / 4 || has > SIZE_MAX / 4)
		return false;
	capacity = span->capacity * 2 > has + bytes ? span->capacity * 2 : has + bytes;
	capacity = capacity > SPAN_LEAST ? capacity : SPAN_LEAST;
	data = (char *)hive__memory_new(&hive__stream_memory, capacity);
	if (!data)
		return false;
	if (has > 0)
		memcpy(data, span->data + span->from, has);
	hive__memory_free(&hive__stream_memory, span->data);
	*span = (struct span){ data, capacity, 0, has };
	return true;
}

static int check(const struct hive_stream_options *options, struct hive_stream_options *ret)
{
	*ret = options ? *options : (struct hive_stream_options){ 0 };
	for (size_t i = 0; i < sizeof ret->reserved / sizeof *ret->reserved; i++)
		if (ret->reserved[i] != 0)
			return -EINVAL;
	ret->read_bytes = ret->read_bytes ? ret->read_bytes : READ_BYTES;
	ret->frame_limit = ret->frame_limit ? ret->frame_limit : FRAME_LIMIT;
	ret->high_water = ret->high_water ? ret->high_water : HIGH_WATER;
	ret->low_water = ret->low_water ? ret->low_water : ret->high_water / 4;
	return ret->low_water < ret->high_water && ret->frame_limit < SIZE_MAX / 8 && ret->read_bytes < SIZE_MAX / 8
	               ? 0
	               : -EINVAL;
}

int hive_stream_create(int fd, const struct hive_stream_options *options, struct hive_stream **ret_stream)
{
	struct hive_stream_options how;
	struct hive_stream *stream;
	struct stat about;
	int r = check(options, &how);

	if (r < 0 || fd < 0 || !ret_stream)
		return -EINVAL;
	if (fstat(fd, &about) < 0)
		return -errno;
	if (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode) || S_ISBLK(about.st_mode))
		return -EINVAL;
	stream = (struct hive_stream *)hive__memory_new(&hive__stream_memory, sizeof *stream);
	if (!stream)
		return -ENOMEM;
	stream->fd = fd;
	stream->is_socket = S_ISSOCK(about.st_mode);
	stream->options = how;
	lock_init(&stream->lock);
	stream->magic = STREAM_MAGIC;
	*ret_stream = stream;
	return 0;
}

int hive_stream_fd(const struct hive_stream *stream)
{
	return stream && stream->magic == STREAM_MAGIC ? stream->fd : -EINVAL;
}

int hive__stream_enter(struct hive_stream *stream, ATOMIC(uint32_t) *role)
{
	if (stream->magic != STREAM_MAGIC)
		return -EINVAL;
	return role_enter(role) ? 0 : -EBUSY;
}

void hive__stream_free(struct hive_stream *stream)
{
	hive__number_close(stream->fd);
	hive__span_free(&stream->in);
	hive__span_free(&stream->sending);
	hive__span_free(&stream->filling);
	stream->magic = 0;
	hive__memory_free(&hive__stream_memory, stream);
}

int hive_stream_destroy(struct hive_stream *stream, int64_t deadline_ns)
{
	int r;

	if (!stream)
		return 0;
	r = hive__stream_enter(stream, &stream->reading);
	if (r < 0)
		return r;
	r = hive__stream_enter(stream, &stream->writing);
	if (r < 0) {
		stream_leave(&stream->reading);
		return r;
	}
	r = hive__stream_drain(stream, 0, deadline_ns);
	if (hive__stream_end_drain(stream))
		hive__stream_free(stream);
	return r;
}
