/* SPDX-License-Identifier: MIT */
/* Counts the words of many files at once: a fiber for each file; reading blocks, so it is offloaded to a compute worker, and the
 * fiber waits. Without arguments it makes small files of its own, counts them and removes them.                           */
#include <ctype.h>
#include <errno.h>
#include <rophive/hive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OWN_FILES = 8 };

struct job {
	char path[256];
	long words;
	int error;
};

struct jobs {
	struct job *job;
	int count;
};

/* On a compute worker: may block and take its time. errno is taken at once, here, where the call was made. */
static int count_words(void *arg)
{
	struct job *job = arg;
	FILE *file = fopen(job->path, "r");
	int c, inside = 0;

	if (!file)
		return -errno;
	while ((c = getc(file)) != EOF) {
		job->words += !isspace(c) && !inside;
		inside = !isspace(c);
	}
	int r = ferror(file) ? -EIO : 0;
	fclose(file);
	return r;
}

static int look_at(void *arg)
{
	struct job *job = arg;
	int r = hive_offload(count_words, job, HIVE_FOREVER, &job->error);

	if (r < 0) /* it was not even begun */
		job->error = r;
	return 0;
}

/* Nobody joins the children: hive_block_on() waits for them too. */
static int root(void *arg)
{
	struct jobs *jobs = arg;
	int r = 0;

	for (int i = 0; i < jobs->count && r == 0; i++)
		r = hive_spawn(hive_current(), look_at, &jobs->job[i], NULL, NULL);
	return r;
}

/* File i has 100 * (i + 1) words. */
static int make_files(struct job *job, const char *folder)
{
	for (int i = 0; i < OWN_FILES; i++) {
		snprintf(job[i].path, sizeof job[i].path, "%s/text-%d", folder, i);
		FILE *file = fopen(job[i].path, "w");
		if (!file)
			return -errno;
		for (int word = 0; word < 100 * (i + 1); word++)
			fprintf(file, "word%d%s", word, word % 10 == 9 ? "\n" : "  ");
		if (fclose(file) != 0)
			return -errno;
	}
	return 0;
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/rophive-words-XXXXXX";
	struct jobs jobs = { .count = argc > 1 ? argc - 1 : OWN_FILES };
	struct hive *hive;
	long total = 0;
	int result = 0, bad = 0;

	jobs.job = calloc((size_t)jobs.count, sizeof *jobs.job);
	if (!jobs.job || (argc == 1 && (!mkdtemp(folder) || make_files(jobs.job, folder) < 0)))
		return 1;
	for (int i = 1; i < argc; i++)
		snprintf(jobs.job[i - 1].path, sizeof jobs.job->path, "%s", argv[i]);
	if (hive_runtime_start(NULL, &hive) < 0 || hive_block_on(hive, root, &jobs, HIVE_FOREVER, &result) < 0)
		return 1;
	for (int i = 0; i < jobs.count; i++) {
		struct job *job = &jobs.job[i];

		if (job->error < 0)
			printf("%8s %s: %s\n", "-", job->path, strerror(-job->error));
		else
			printf("%8ld %s\n", job->words, job->path);
		bad += job->error < 0;
		total += job->words;
		if (argc == 1)
			unlink(job->path);
	}
	printf("%8ld in all\n", total);
	free(jobs.job);
	if (argc == 1 && (rmdir(folder) < 0 || total != 100 * OWN_FILES * (OWN_FILES + 1) / 2))
		return 1;
	return hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || result < 0 || bad > 0;
}
