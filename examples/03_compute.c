/* SPDX-License-Identifier: MIT */
/* Compute and come back: work on a compute worker, the result on the main worker; the way back is reserved when the post is
 * accepted.                                                                                                               */
#include <rophive/hive.h>
#include <stdio.h>

struct job {
	struct hive *hive;
	unsigned limit, primes;
};

/* A compute worker. */
static void count_primes(void *arg)
{
	struct job *job = arg;

	for (unsigned n = 2; n < job->limit; n++) {
		unsigned d = 2;

		while (d * d <= n && n % d)
			d++;
		job->primes += d * d > n;
	}
}

/* The main worker; the job is ours again, no lock needed. */
static void show(void *arg)
{
	struct job *job = arg;

	printf("%u primes below %u\n", job->primes, job->limit);
	hive_stop(job->hive, HIVE_DRAIN, HIVE_FOREVER);
}

int main(void)
{
	struct hive_options options = { .io_workers = 1, .compute_workers = HIVE_AUTO };
	struct job job = { .limit = 1000000 };

	if (hive_create(&options, &job.hive) < 0 ||
	    hive_post_compute_then(job.hive, count_primes, HIVE_WORKER_MAIN, show, &job) < 0)
		return 1;
	hive_run(job.hive);
	return hive_destroy(job.hive) < 0;
}
