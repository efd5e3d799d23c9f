/* SPDX-License-Identifier: MIT */
/* Dining philosophers. Everybody takes the left fork first, so a wait without end for the right one would end in a deadlock; a
 * deadline on it turns that into "put the fork back, think again".                                                          */
#include <rophive/hive.h>
#include <stdio.h>

enum { SEATS = 5, MEALS = 20 };

struct table {
	struct hive_mutex forks[SEATS];
	int users[SEATS]; /* of a fork; 1 at most, or the mutex is broken */
	struct philosopher {
		struct table *table;
		int seat, meals, retreats;
	} guests[SEATS];
};

static int eat(struct philosopher *p, int left, int right)
{
	struct table *t = p->table;
	int clash = t->users[left]++ + t->users[right]++;

	hive_yield(); /* others look for forks meanwhile */
	t->users[left]--;
	t->users[right]--;
	p->meals++;
	return clash ? -1 : 0;
}

static int dine(void *arg)
{
	struct philosopher *p = arg;
	int left = p->seat, right = (p->seat + 1) % SEATS;
	struct hive_mutex *forks = p->table->forks;

	while (p->meals < MEALS) {
		int r = hive_mutex_lock(&forks[left], HIVE_FOREVER);
		if (r < 0)
			return r; /* cancelled: come to an end */
		hive_yield();     /* time enough for all the others to take their left fork */
		r = hive_mutex_lock(&forks[right], hive_deadline(NULL, HIVE_US(500)));
		if (r == 0) {
			r = eat(p, left, right);
			hive_mutex_unlock(&forks[right]);
		}
		hive_mutex_unlock(&forks[left]);
		if (r == -ETIMEDOUT) {
			p->retreats++;
			r = hive_sleep(HIVE_US(100) * (1 + p->seat)); /* not all for the same time */
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int dinner(void *arg)
{
	struct table *t = arg;
	struct hive_fiber *fibers[SEATS];
	int n = 0, result, bad = 0;

	for (int i = 0; i < SEATS; i++) {
		hive_mutex_init(&t->forks[i]);
		t->guests[i] = (struct philosopher){ .table = t, .seat = i };
	}
	while (n < SEATS && hive_spawn(hive_current(), dine, &t->guests[n], NULL, &fibers[n]) == 0)
		n++;
	for (int i = 0; i < n; i++)
		bad += hive_fiber_join(fibers[i], HIVE_FOREVER, &result) < 0 || result < 0;
	return n == SEATS ? bad : -1;
}

int main(void)
{
	static struct table table;
	struct hive *hive;
	int bad = 0;

	if (hive_runtime_start(NULL, &hive) < 0 || hive_block_on(hive, dinner, &table, HIVE_FOREVER, &bad) < 0)
		return 1;
	for (int i = 0; i < SEATS; i++) {
		printf("philosopher %d: %d meals, %d retreats\n", i, table.guests[i].meals, table.guests[i].retreats);
		bad += table.guests[i].meals != MEALS;
	}
	return hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || bad != 0;
}
