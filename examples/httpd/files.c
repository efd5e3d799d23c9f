/* SPDX-License-Identifier: MIT */
/* The open-file cache of a worker. A path is looked at on a compute worker, all in one go: opened, asked for its size and time, read if it
 * is small. That holds for a second; then the first who wants it has it looked at again, and others get meanwhile what there is.
 *
 * No path leads out of the root: components were looked at before (path.c), and links are followed by the kernel only as long as they
 * stay below (openat2), or not at all where there is no such call.                                                             */
#include "httpd.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TRIES = 3 };
#define FRESH_NS HIVE_S(1)

/* ---- on a compute worker ---- */

struct load {
	const struct cache *cache;
	const char *path;
	const struct file *known; /* if it is still so, nothing is read */
	struct file *file;        /* NULL: no memory, or known is still so */
};

static int open_beneath(const struct cache *cache, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	long fd = -1;

	for (int i = 0; i < TRIES; i++) { /* EAGAIN: something was renamed on its way */
		fd = syscall(SYS_openat2, cache->root, path, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

/* Component by component, no links. */
static int open_by_steps(const struct cache *cache, const char *path, int flags)
{
	char step[PATH_BYTES];
	int folder = cache->root, fd;

	for (;;) {
		const char *slash = strchr(path, '/');
		size_t bytes = slash ? (size_t)(slash - path) : strlen(path);

		memcpy(step, path, bytes);
		step[bytes] = 0;
		fd = openat(folder, step, slash ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags | O_NOFOLLOW);
		fd = fd < 0 ? -errno : fd;
		if (folder != cache->root)
			close(folder);
		if (fd < 0 || !slash)
			return fd;
		folder = fd;
		path = slash + 1;
	}
}

static int status_of(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
	case -ENAMETOOLONG:
	case -EXDEV: /* out of the root */
	case -ELOOP:
	case -ENXIO:
		return 404;
	case -EACCES:
	case -EPERM:
		return 403;
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -EAGAIN:
		return 503;
	default:
		return 500;
	}
}

static struct file *new_file(const char *path)
{
	size_t bytes = strlen(path) + 1;
	struct file *file = calloc(1, sizeof *file + bytes);

	if (!file)
		return NULL;
	memcpy(file->path, path, bytes);
	file->refs = 1;
	file->fd = -1;
	return file;
}

static void prepare_head(struct file *file, const struct stat *about)
{
	file->inode = about->st_ino;
	file->mtime_ns = (int64_t)about->st_mtim.tv_sec * HIVE_S(1) + about->st_mtim.tv_nsec;
	file->version.modified_s = about->st_mtim.tv_sec;
	file->version.size = about->st_size;
	file->version.etag = file->etag;
	file->version.etag_bytes = (uint32_t)snprintf(file->etag, sizeof file->etag, "\"%llx-%llx-%llx\"",
	                                              (long long)about->st_ino, (long long)file->mtime_ns,
	                                              (long long)about->st_size);
	http_date_format(file->version.modified_s, file->modified);
	file->type = type_of_path(file->path);
	file->head_bytes = (uint32_t)snprintf(file->head, sizeof file->head,
	                                      "HTTP/1.1 200 OK\r\nServer: rophive-httpd\r\nContent-Type: %s\r\n"
	                                      "Content-Length: %lld\r\nLast-Modified: %.*s\r\nETag: %s\r\n"
	                                      "Accept-Ranges: bytes\r\n",
	                                      file->type, (long long)about->st_size, HTTP_DATE_BYTES, file->modified,
	                                      file->etag);
}

static bool is_same(const struct file *file, const struct stat *about)
{
	return file->status == 200 && file->inode == about->st_ino && file->version.size == about->st_size &&
	       file->mtime_ns == (int64_t)about->st_mtim.tv_sec * HIVE_S(1) + about->st_mtim.tv_nsec;
}

/* All of it, as long as it is the length that was told. */
static bool read_body(struct file *file, int fd)
{
	size_t size = (size_t)file->version.size, have = 0;
	ssize_t n = 1;

	file->body = malloc(size ? size : 1);
	while (file->body && have < size && n > 0) {
		n = pread(fd, file->body + have, size - have, (off_t)have);
		have += n > 0 ? (size_t)n : 0;
	}
	if (file->body && have == size)
		return true;
	free(file->body);
	file->body = NULL;
	return false;
}

/* Small ones are read, and looked at again: it has to be one version of it. Else it is sent from the descriptor. */
static void look_inside(struct file *file, int fd, struct stat *about)
{
	prepare_head(file, about);
	file->status = 200;
	for (int i = 0; i < TRIES && about->st_size <= SMALL_FILE; i++) {
		if (read_body(file, fd) && fstat(fd, about) == 0 && is_same(file, about)) {
			close(fd);
			return;
		}
		free(file->body);
		file->body = NULL;
		if (fstat(fd, about) == 0)
			prepare_head(file, about);
	}
	file->fd = fd;
}

/* An answer without a file. */
static struct file *refusal(const char *path, int status)
{
	struct file *file = new_file(path);

	if (file)
		file->status = status;
	return file;
}

static int load(void *arg)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	struct load *l = arg;
	struct stat about = { 0 };
	int fd = l->cache->beneath ? open_beneath(l->cache, l->path, (uint64_t)flags)
	                           : open_by_steps(l->cache, l->path, flags);

	if (fd < 0) {
		l->file = refusal(l->path, status_of(fd));
		return 0;
	}
	if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
		if (l->known && is_same(l->known, &about))
			close(fd);
		else if ((l->file = new_file(l->path)) != NULL)
			look_inside(l->file, fd, &about);
		else
			close(fd);
		return 0;
	}
	l->file = refusal(l->path, S_ISDIR(about.st_mode) ? 301 : 404);
	close(fd);
	return 0;
}

/* ---- the table ---- */

static uint64_t hash_of(const char *path)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

static struct file *find(const struct cache *cache, uint64_t hash, const char *path)
{
	struct file *file = cache->buckets[hash % CACHE_BUCKETS];

	while (file && (file->hash != hash || strcmp(file->path, path) != 0))
		file = file->next;
	return file;
}

static void unlink_age(struct cache *cache, struct file *file)
{
	if (file->newer)
		file->newer->older = file->older;
	else
		cache->newest = file->older;
	if (file->older)
		file->older->newer = file->newer;
	else
		cache->oldest = file->newer;
}

static void link_newest(struct cache *cache, struct file *file)
{
	file->newer = NULL;
	file->older = cache->newest;
	if (file->older)
		file->older->newer = file;
	else
		cache->oldest = file;
	cache->newest = file;
}

static void take_out(struct cache *cache, struct file *file)
{
	struct file **at = &cache->buckets[file->hash % CACHE_BUCKETS];

	while (*at != file)
		at = &(*at)->next;
	*at = file->next;
	unlink_age(cache, file);
	cache->count--;
}

static void put_in(struct cache *cache, struct file *file)
{
	file->next = cache->buckets[file->hash % CACHE_BUCKETS];
	cache->buckets[file->hash % CACHE_BUCKETS] = file;
	link_newest(cache, file);
	cache->count++;
	file->refs++;
}

/* ---- for fibers ---- */

void cache_put(struct file *file)
{
	if (--file->refs > 0)
		return;
	if (file->fd >= 0)
		hive_close(file->fd, HIVE_FOREVER);
	free(file->body);
	free(file);
}

/* In the place of what is known of that path by now, which somebody else may have brought meanwhile. */
static void replace(struct cache *cache, struct file *file)
{
	struct file *old = find(cache, file->hash, file->path), *oldest = NULL;

	if (old)
		take_out(cache, old);
	put_in(cache, file);
	if (cache->count > cache->most) {
		oldest = cache->oldest;
		take_out(cache, oldest);
	}
	if (old)
		cache_put(old);
	if (oldest)
		cache_put(oldest);
}

/* `known`, which is the caller's, or NULL. What came out; both are the caller's then. NULL: it is as it was, or there is no answer. */
static struct file *look(struct cache *cache, const char *path, uint64_t hash, struct file *known)
{
	struct load l = { .cache = cache, .path = path, .known = known };
	int r = hive_offload(load, &l, HIVE_FOREVER, NULL);

	if (r < 0 || !l.file) {
		if (r == 0 && known)
			known->checked_ns = hive_now(NULL);
		return NULL;
	}
	l.file->hash = hash;
	l.file->checked_ns = hive_now(NULL);
	if (l.file->status != 503) {
		replace(cache, l.file);
	} else if (known) { /* that says something about us, and nothing about the file */
		cache_put(l.file);
		return NULL;
	}
	return l.file;
}

struct file *cache_get(struct cache *cache, const char *path)
{
	uint64_t hash = hash_of(path);
	struct file *file = find(cache, hash, path), *fresh;

	if (!file)
		return look(cache, path, hash, NULL);
	file->refs++;
	if (cache->newest != file) {
		unlink_age(cache, file);
		link_newest(cache, file);
	}
	if (file->checks || hive_now(NULL) - file->checked_ns < FRESH_NS)
		return file;
	file->checks = true;
	fresh = look(cache, path, hash, file);
	file->checks = false;
	if (!fresh)
		return file;
	cache_put(file);
	return fresh;
}

int cache_open(struct cache *cache, const char *root, uint32_t most)
{
	int fd;

	*cache = (struct cache){ .most = most ? most : 1 };
	cache->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cache->root < 0)
		return -errno;
	fd = open_beneath(cache, ".", O_PATH | O_CLOEXEC);
	cache->beneath = fd >= 0;
	if (fd >= 0)
		close(fd);
	return 0;
}

void cache_close(struct cache *cache)
{
	while (cache->newest) {
		struct file *file = cache->newest;

		take_out(cache, file);
		cache_put(file);
	}
	close(cache->root);
}
