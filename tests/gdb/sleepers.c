/* SPDX-License-Identifier: MIT */
/* Stands still with fibers in known places, for tests/gdb/run. Says "ready" when all are there; ends when its input does. */
#include <rophive/hive.h>
#include <rophive/io.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define OWN_FRAME __attribute__((noinline))

static struct hive_channel *letters;
static struct hive_mutex mutex;
static volatile int after; /* something to do after a wait, so that it is no tail call: such a caller leaves no frame */

static OWN_FRAME int wait_for_mail(int depth)
{
	int letter, r;

	r = depth > 0 ? wait_for_mail(depth - 1) : hive_channel_recv(letters, &letter, sizeof letter, HIVE_FOREVER);
	after++;
	return r;
}

static OWN_FRAME int reader(void *arg)
{
	int r = wait_for_mail(*(int *)arg);

	after++;
	return r == -EPIPE ? 0 : r;
}

static OWN_FRAME int wants_the_lock(void *arg)
{
	int r = hive_mutex_lock(&mutex, HIVE_FOREVER);

	(void)arg;
	after++;
	return r < 0 ? r : hive_mutex_unlock(&mutex);
}

static OWN_FRAME int take_a_nap(void *arg)
{
	int r = hive_sleep(HIVE_S(3600));

	(void)arg;
	after++;
	return r == -ECANCELED ? 0 : r;
}

/* A fiber that runs, and keeps its worker: it reads what main reads from. */
static OWN_FRAME int blocks_its_worker(void *arg)
{
	char byte;
	ssize_t n = read(*(int *)arg, &byte, 1);

	after++;
	return n < 0 ? -EIO : 0;
}

static OWN_FRAME int reads_a_pipe(void *arg)
{
	char byte;
	int r = (int)hive_read(*(int *)arg, &byte, 1, -1, HIVE_FOREVER);

	after++;
	return r;
}

/* As a person would find out: by reading a dump. */
static int count_in_dump(struct hive *hive, const char *words)
{
	static char text[1 << 16];
	FILE *file = tmpfile();
	size_t n;
	int count = 0;

	if (!file || hive_dump(hive, fileno(file)) < 0)
		return -1;
	rewind(file);
	n = fread(text, 1, sizeof text - 1, file);
	text[n] = 0;
	fclose(file);
	for (char *at = text; (at = strstr(at, words)) != NULL; at++)
		count++;
	return count;
}

int main(int argc, char **argv)
{
	struct hive_options options = { .io_workers = 2 };
	struct hive_fiber_options names[] = { { .name = "reader" },
		                              { .name = "locker" },
		                              { .name = "napper" },
		                              { .name = "plumber" },
		                              { .name = "blocker" } };
	hive_fiber_fn *fns[] = { reader, wants_the_lock, take_a_nap, reads_a_pipe, blocks_its_worker };
	struct hive_fiber *fibers[5];
	int depth = 3, in = STDIN_FILENO, pipe[2], bad = 0, result = 0;
	void *args[] = { &depth, NULL, NULL, pipe, &in };
	struct hive *hive;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* where only parents may look */
	hive_mutex_init(&mutex);
	if (hive_runtime_start(&options, &hive) < 0 || hive_pipe(pipe) < 0 ||
	    hive_channel_create(sizeof(int), 1, &letters) < 0 || hive_mutex_lock(&mutex, HIVE_FOREVER) < 0)
		return 1;
	for (int i = 0; i < 5; i++)
		if (hive_spawn(hive, fns[i], args[i], &names[i], &fibers[i]) < 0)
			return 1;
	while (count_in_dump(hive, ": waits") < 4 || count_in_dump(hive, "not begun") != 0)
		hive_sleep(HIVE_MS(1));
	puts("ready");
	fflush(stdout);
	if (argc > 1 && strcmp(argv[1], "dump") == 0)
		hive_dump(hive, STDOUT_FILENO);
	bad += hive_fiber_join(fibers[4], HIVE_FOREVER, &result) < 0 || result < 0;
	bad += hive_mutex_unlock(&mutex) < 0 || hive_channel_close(letters) < 0 || hive_fiber_cancel(fibers[2]) < 0 ||
	       close(pipe[1]) < 0;
	for (int i = 0; i < 4; i++)
		bad += hive_fiber_join(fibers[i], HIVE_FOREVER, &result) < 0 || result < 0;
	bad += hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0;
	return bad != 0 || hive_channel_destroy(letters) < 0;
}
