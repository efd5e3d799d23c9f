/* SPDX-License-Identifier: MIT */
#pragma once
/* The server: what its files share.
 *
 * A fiber for each connection, and each fiber stays on the worker that accepted it. So a worker's connections, its cache of files and its
 * counters belong to one thread, and nothing of them is locked; but after each call that may wait others have used them.         */
#include "http.h"

#include <stdatomic.h>
#include <sys/types.h>

#include <rophive/hive.h>

enum { WORKERS_MAX = 64, LISTEN_MAX = 4 };

struct settings {
	/* where */
	uint16_t port;
	const char *listen[LISTEN_MAX];
	uint32_t listen_count;
	const char *root, *upload, *access_log, *core;
	int32_t workers;
	bool shared_listener; /* one for all workers, in place of one each with SO_REUSEPORT */
	bool quiet;
	/* how much */
	struct head_limits head;
	int64_t body_bytes;
	uint32_t connections; /* of all workers */
	uint32_t requests;    /* of one connection */
	uint32_t cache_files; /* of one worker */
	/* how long */
	int64_t header_ns; /* from the first byte of a head to its last */
	int64_t idle_ns;   /* for the first byte of the next request */
	int64_t grace_ns;  /* bodies and answers: after that */
	int64_t rate;      /* so many bytes a second at least have gone */
	int64_t stop_ns;   /* what is under way may take so long when we stop */
};

/* Fills in defaults, and what the command line says. 0; 1: it was asked for help; -1: it said what is wrong. */
int settings_read(struct settings *settings, int argc, char **argv);

/* ---- the access log ---- */

struct connection;

struct access_log {
	struct hive_mutex mutex;
	int fd;        /* -1: none */
	uint64_t lost; /* lines that could not be written */
	size_t used;
	char buffer[64 << 10];
};

int log_open(struct access_log *log, const char *path);
/* Fiber. What became of a request; it may wait for those before it to be written. */
void log_request(struct access_log *log, const struct connection *c, int64_t now_s);
/* Fiber. What has gathered is written. */
void log_flush(struct access_log *log);

/* ---- files ---- */

enum { SMALL_FILE = 16 << 10, ETAG_BYTES = 64, FILE_HEAD_BYTES = 512, CACHE_BUCKETS = 256 };

struct file { /* what is known of a path; replaced when that changes, and there until nobody sends it any more */
	struct file *next; /* of its bucket */
	struct file *newer, *older;
	uint64_t hash;
	uint32_t refs; /* one of them is the cache's */
	int64_t checked_ns;
	bool checks; /* somebody looks whether it is still so */
	int status;  /* 200: it is there; 301: a folder; else why not */
	int fd;      /* -1 for small ones, which are in memory */
	ino_t inode; /* with size and mtime: is it still the same? */
	int64_t mtime_ns;
	struct version version;
	char etag[ETAG_BYTES];
	char modified[HTTP_DATE_BYTES];
	const char *type;
	uint32_t head_bytes; /* of the answer 200, without date and connection */
	char head[FILE_HEAD_BYTES];
	char *body;  /* NULL: in fd */
	char path[]; /* below the root */
};

struct cache {
	int root;
	bool beneath; /* the kernel has openat2() */
	uint32_t count, most;
	struct file *newest, *oldest;
	struct file *buckets[CACHE_BUCKETS];
};

int cache_open(struct cache *cache, const char *root, uint32_t most);
void cache_close(struct cache *cache);
/* Fiber. The file, looked at within the last second; NULL: no memory, or cancelled. */
struct file *cache_get(struct cache *cache, const char *path);
/* Fiber. */
void cache_put(struct file *file);

/* ---- connections ---- */

enum { OUT_BYTES = 24 << 10, IN_SPARE = 16 << 10, CLIENT_BYTES = 64 };

struct server;

struct worker { /* O */
	struct server *server;
	uint32_t id;
	struct connection *connections;
	uint32_t count;
	uint64_t accepted, refused, requests;
	struct cache cache;
	int64_t date_s;
	char date[HTTP_DATE_BYTES];
};

struct server {
	struct settings settings;
	struct access_log log;
	struct worker workers[WORKERS_MAX];
	int upload; /* folder; -1: none */
	atomic_uint connections;
	atomic_uint part; /* names of what is being uploaded */
	atomic_bool stops;
};

struct pace {             /* how fast bytes go */
	int64_t began_ns; /* 0: not yet */
	int64_t bytes;
};

struct connection {
	struct worker *worker;
	struct connection *next, *prev;
	int fd;
	bool refused;     /* there are too many: it is told so */
	bool idle;        /* nothing of a request is there */
	bool closes;      /* after this answer */
	bool breaks;      /* at once: the answer cannot be completed */
	bool continued;   /* 100 was sent */
	bool begun;       /* the head of the answer is on its way */
	int status;       /* of the answer */
	int64_t answered; /* bytes of its body */
	uint32_t requests;
	/* the request: its head is at in[from], what comes next at in[at], all that was received ends at in[to] */
	uint32_t from, at, to, in_bytes;
	uint32_t head_bytes; /* 0: there is no complete one */
	struct head_parser parser;
	struct head head;
	struct chunks chunks;
	int64_t body_left, body_got;
	struct pace in_pace, out_pace;
	/* the answer */
	uint32_t out_used;
	char client[CLIENT_BYTES];
	char out[OUT_BYTES];
	char in[];
};

/* Fiber of that worker, from the first byte to the last. The descriptor is closed, the connection gone. */
int connection_serve(void *connection);
struct connection *connection_new(struct worker *worker, int fd);
void connection_free(struct connection *c);
/* Its worker. Those that wait for a request end now; all of them, if nothing of theirs is waited for any longer. */
void connections_end(struct worker *worker, bool all);

/* Fiber. What waits to be sent is sent, then bytes are received: how many, 0: the peer has ended, or -errno. */
int64_t connection_fill(struct connection *c, int64_t deadline_ns);
/* Fiber. 0, or -errno. more: the answer goes on, in another way. */
int connection_flush(struct connection *c, bool more);
int connection_write(struct connection *c, const char *bytes, size_t count);
int64_t pace_deadline(const struct settings *settings, struct pace *pace);

/* ---- bodies (body.c) ---- */

/* Fiber. The next piece of it. How many bytes there are at *ret_bytes, until the next call; 0: that was all. -400 -408 -413 or -errno. */
int64_t body_read(struct connection *c, const char **ret_bytes);
bool body_is_over(const struct connection *c);
/* It is worth while to read over the rest, so that the connection may go on. */
bool body_is_skippable(const struct connection *c);
/* Fiber. 0: the next request may come. */
int body_skip(struct connection *c);

/* ---- answers (answer.c) ---- */

struct answer {
	int status;
	const char *type;      /* NULL: none */
	int64_t body_bytes;    /* -1: chunked; -2: no body is possible (304) */
	const struct file *of; /* adds its validators */
	int64_t first, all;    /* 206: where the part begins, and how much there is; 416: how much */
	const char *location;  /* 301 */
	uint32_t location_bytes;
	const char *allow; /* 405, 204 */
};

/* Fiber. The head. 0, or -errno. */
int answer_begin(struct connection *c, const struct answer *answer);
/* Fiber. The prepared head of a file, which is all of it. */
int answer_file_begin(struct connection *c, const struct file *file);
/* Fiber. A line of text for people, with the head; status 413 and its like close the connection. */
int answer_plain(struct connection *c, int status);
int answer_allow(struct connection *c, int status, const char *allow);
const char *reason_of(int status);
/* Wall clock; the worker's date is that. */
int64_t worker_now_s(struct worker *worker);

/* Fiber. One request (serve.c, upload.c): 0, or the connection has to end. */
int serve_request(struct connection *c);
int serve_upload(struct connection *c, const char *name);
