/* SPDX-License-Identifier: MIT */
#include "support/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/kind.h"
#include "test.h"

struct fake_core {
	struct hive_core core;
	struct fake_core_script *script;
};

static int core_open(void *arg, struct hive_core **ret_core)
{
	struct fake_core_script *script = arg;
	struct fake_core *c;

	if (script && script->fail_open) {
		int r = script->fail_open;

		script->fail_open = 0;
		return r;
	}
	c = calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	c->core.ops = &fake_core;
	c->script = script;
	if (script)
		script->opens++;
	*ret_core = &c->core;
	return 0;
}

static struct fake_core_script *script_of(struct hive_core *core)
{
	return ((struct fake_core *)(void *)core)->script;
}

static void core_close(struct hive_core *core)
{
	if (script_of(core))
		script_of(core)->closes++;
	free(core);
}

static int core_turn(struct hive_core *core, int64_t timeout_ns)
{
	struct fake_core_script *script = script_of(core);

	if (!script)
		return 0;
	if (script->turns < FAKE_TURNS)
		script->timeouts[script->turns] = timeout_ns;
	script->turns++;
	if (script->in_turn)
		script->in_turn(script, timeout_ns);
	return 0;
}

static void core_wake(struct hive_core *core)
{
	if (script_of(core))
		script_of(core)->wakes++;
}

static int core_add(struct hive_core *core, struct hive_source *source)
{
	struct fake_core_script *script = script_of(core);

	if (!script)
		return 0;
	if (script->fail_add) {
		int r = script->fail_add;

		script->fail_add = 0;
		return r;
	}
	source->index = (uint32_t)script->source_count;
	script->sources[script->source_count++] = source;
	return 0;
}

static int core_modify(struct hive_core *core, struct hive_source *source)
{
	(void)core, (void)source;
	return 0;
}

static void core_remove(struct hive_core *core, struct hive_source *source)
{
	if (script_of(core))
		script_of(core)->sources[source->index] = NULL;
}

const struct hive_core_ops fake_core = {
	.name = "fake",
	.kinds = 1u << HIVE_SOURCE_FD | 1u << HIVE_SOURCE_USER,
	.open = core_open,
	.close = core_close,
	.turn = core_turn,
	.wake = core_wake,
	.add = core_add,
	.modify = core_modify,
	.remove = core_remove,
};

static int64_t host_now(void *arg)
{
	return ((struct fake *)arg)->now_ns;
}

static uint64_t host_random(void *arg, uint32_t worker)
{
	struct fake *f = arg;

	(void)worker;
	return f->random_next < f->random_count ? f->randoms[f->random_next++] : 0;
}

static void *host_allocate(void *arg, void *old, size_t bytes)
{
	struct fake *f = arg;

	if (bytes == 0) {
		f->balance -= old != NULL;
		free(old);
		return NULL;
	}
	if (f->fail_at > 0 && ++f->allocations >= f->fail_at) {
		if (!f->sticky)
			f->fail_at = 0;
		return NULL;
	}
	f->balance += old == NULL;
	return realloc(old, bytes);
}

static void host_wake(void *arg, uint32_t worker)
{
	struct fake *f = arg;
	struct fake_worker *w = fake_worker(f, worker);

	f->wakes++;
	if (w) {
		w->wakes++;
		w->last_wake_ns = f->now_ns;
	}
}

static int host_step_start(void *arg, uint32_t worker, hive_step_fn *step, void *step_arg)
{
	struct fake *f = arg;

	if (f->worker_count == FAKE_WORKERS)
		return -EAGAIN;
	f->workers[f->worker_count++] = (struct fake_worker){
		.id = worker, .step = step, .step_arg = step_arg, .wait_ns = -1
	};
	return 0;
}

static void host_step_stop(void *arg, void *step_arg)
{
	struct fake *f = arg;

	for (int i = 0; i < f->worker_count; i++)
		if (f->workers[i].step_arg == step_arg)
			f->workers[i].left = true;
}

static int host_step_wait(void *arg, int64_t deadline_ns)
{
	struct fake *f = arg;

	if (fake_settle(f) > 0)
		return 0;
	if (deadline_ns == HIVE_FOREVER)
		return -EDEADLK;
	f->now_ns = deadline_ns;
	return -ETIMEDOUT;
}

static void hook_warn(void *arg, const char *text)
{
	struct fake *f = arg;

	f->warnings++;
	snprintf(f->last_warning, sizeof f->last_warning, "%s", text);
}

static void hook_drop(void *arg, const struct hive_task *task)
{
	struct fake *f = arg;

	if (f->drops < 256)
		f->dropped[f->drops] = *task;
	f->drops++;
}

void fake_create(struct fake *f, struct hive_options options)
{
	struct hive_worker_options io = options.io ? *options.io : (struct hive_worker_options){ 0 };

	if (!io.timers)
		io.timers = test_timers;
	options.io = &io;
	f->host = (struct hive_host){ .arg = f,
		                      .now = host_now,
		                      .random = host_random,
		                      .allocate = host_allocate,
		                      .wake = host_wake,
		                      .step_start = host_step_start,
		                      .step_stop = host_step_stop,
		                      .step_wait = host_step_wait,
		                      .core = &fake_core };
	if (f->now_ns == 0)
		f->now_ns = HIVE_S(1000);
	options.host = &f->host;
	options.hook_arg = f;
	options.on_drop = hook_drop;
	options.on_warn = hook_warn;
	CHECK_OK(hive_create(&options, &f->hive));
}

void fake_start(struct fake *f)
{
	CHECK_OK(hive_start(f->hive));
}

void fake_destroy(struct fake *f)
{
	struct hive_report report;
	int r = hive_stop(f->hive, HIVE_NOW, HIVE_FOREVER);

	CHECK(r == 0 || r == -EALREADY);
	CHECK_OK(hive_join(f->hive, HIVE_FOREVER));
	CHECK_OK(hive_report_read(f->hive, &report));
	CHECK_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	CHECK_EQ(report.dropped, f->drops);
	CHECK_OK(hive_destroy(f->hive));
	CHECK_EQ(f->balance, 0);
}

struct fake_worker *fake_worker(struct fake *f, uint32_t id)
{
	for (int i = f->worker_count; i-- > 0;)
		if (f->workers[i].id == id)
			return &f->workers[i];
	return NULL;
}

static int64_t step_worker(struct fake_worker *w)
{
	int64_t wait_ns = 0;
	int r = w->step(w->step_arg, &wait_ns);

	w->left = r < 0;
	w->wait_ns = r < 0 ? r : wait_ns;
	return w->wait_ns;
}

int64_t fake_step(struct fake *f, uint32_t id)
{
	struct fake_worker *w = fake_worker(f, id);

	CHECK(w && !w->left);
	return step_worker(w);
}

/* Each worker wants a beat when its last one said so, when it was woken since, or when its time has come. */
int fake_settle(struct fake *f)
{
	int beats = 0, before;

	do {
		before = beats;
		for (int i = 0; i < f->worker_count; i++) {
			struct fake_worker *w = &f->workers[i];
			int woken = w->wakes;

			if (w->left)
				continue;
			step_worker(w);
			beats += w->left || w->wait_ns == 0 || w->wakes != woken;
		}
		CHECK(beats < 1000000);
	} while (beats != before);
	return beats;
}

void fake_advance(struct fake *f, int64_t delay_ns)
{
	f->now_ns += delay_ns;
	fake_settle(f);
}

void fake_reset_wakes(struct fake *f)
{
	f->wakes = 0;
	for (int i = 0; i < f->worker_count; i++)
		f->workers[i].wakes = 0;
}

uint64_t fake_random(uint32_t k, uint32_t n)
{
	return (((uint64_t)k << 32) / n + 1) << 32;
}

void fake_push_random(struct fake *f, uint64_t number)
{
	CHECK(f->random_count < FAKE_RANDOMS);
	f->randoms[f->random_count++] = number;
}

static char log_text[8192];

void fake_note(void *number)
{
	size_t n = strlen(log_text);

	CHECK(n + 8 < sizeof log_text);
	snprintf(log_text + n, sizeof log_text - n, "%s%d", n ? " " : "", (int)(intptr_t)number);
}

void fake_log_clear(void)
{
	log_text[0] = '\0';
}

const char *fake_log(void)
{
	return log_text;
}
