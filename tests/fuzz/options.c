/* SPDX-License-Identifier: MIT */
/* Option structs and arguments with anything in them. The rules of the headers, written down once more, say which are
 * refused; what is accepted must work: its workers start, run what is posted, stop, and the books balance.           */
#include "world.h"

#include <rophive/sim.h>

enum { CPUS = UINT16_MAX + 1, PATCHES = 12, MEMORY_LIMIT = 1 << 19, PATIENCE = 10000 };

static struct {
	struct world world;
	struct input in;
	struct hive_host host;
	struct hive_core_ops cores[2];
	struct hive_worker_options io, compute, attached;
	struct hive_options options;
	char name[64];
	uint64_t ran, dropped, starts, stops;
} t;

static uint16_t cpus[CPUS];

/* ---- bytes become structs ---- */

/* A struct of zeros in which the input has written here and there. */
static void patch(void *object, size_t bytes)
{
	for (uint32_t n = input_below(&t.in, PATCHES); n > 0; n--) {
		size_t at = input_byte(&t.in) * 4u % bytes, width = (size_t)1 << input_below(&t.in, 4);
		uint64_t value = input_word(&t.in, (int)width);

		if (at + width <= bytes)
			memcpy((char *)object + at, &value, width);
	}
}

/* A bool cannot be anything: another byte than 0 and 1 is undefined before the library sees it. */
#define MASK_BOOL(flag) mask_bool(&(flag))

static void mask_bool(bool *flag)
{
	unsigned char byte;

	memcpy(&byte, flag, 1);
	*flag = byte & 1;
}

static void count_start(void *arg)
{
	(void)arg;
	t.starts++;
	t.world.progress++;
}

static void count_stop(void *arg)
{
	(void)arg;
	t.stops++;
	t.world.progress++;
}

static void count_run(void *arg)
{
	(void)arg;
	t.ran++;
	t.world.progress++;
}

static void count_drop(void *hook_arg, const struct hive_task *task)
{
	(void)hook_arg;
	EXPECT(task->fn == count_run);
	t.dropped++;
	t.world.progress++;
}

static void fill_core(struct hive_core_ops *core)
{
	uint32_t holes = input_byte(&t.in) < 160 ? 0 : input_byte(&t.in);

	*core = world_core;
	if (holes & 1)
		core->name = NULL;
	if (holes & 2)
		core->open = NULL;
	if (holes & 4)
		core->close = NULL;
	if (holes & 8)
		core->turn = NULL;
	if (holes & 16)
		core->wake = NULL;
	if (holes & 32)
		core->add = NULL;
	if (holes & 64)
		core->modify = NULL;
	if (holes & 128)
		core->remove = NULL;
}

static void fill_worker(struct hive_worker_options *o)
{
	uint32_t which;

	patch(o, sizeof *o);
	/* Pointers cannot be anything: NULL, or what is good there. */
	which = input_byte(&t.in);
	o->name = which & 1 ? t.name : NULL;
	o->core = which & 2 ? &t.cores[0] : NULL;
	o->core_arg = which & 4 ? (void *)&t : NULL;
	o->on_start = which & 8 ? count_start : NULL;
	o->on_stop = which & 16 ? count_stop : NULL;
	o->cpus = which & 32 ? cpus : NULL;
	o->on_park = o->on_unpark = NULL; /* a worker without a thread never parks */
	MASK_BOOL(o->batch);
	MASK_BOOL(o->no_outbox);
	MASK_BOOL(o->no_steal);
	MASK_BOOL(o->keep_signals);
	MASK_BOOL(o->ui);
}

static int no_thread(void *arg, hive_fn *main, void *main_arg, uint64_t *ret_thread)
{
	(void)arg, (void)main, (void)main_arg, (void)ret_thread;
	return -EAGAIN;
}

static void no_join(void *arg, uint64_t thread)
{
	(void)arg, (void)thread;
	EXPECT(!"there is no thread to join");
}

/* Bits choose what the host takes over; reserved words come from the patches. */
static void fill_host(void)
{
	const struct hive_host *good = &t.world.host;
	struct hive_host *h = &t.host;
	uint32_t missing = input_byte(&t.in) < 192 ? 0 : (uint32_t)input_word(&t.in, 2);

	patch(h->reserved, sizeof h->reserved);
	h->arg = good->arg;
	h->now = missing & 1 ? NULL : good->now;
	h->random = missing & 2 ? NULL : good->random;
	h->allocate = good->allocate; /* else a reservation may take the machine's memory */
	h->core = missing & 8 ? &t.cores[1] : good->core;
	if (missing & 8)
		fill_core(&t.cores[1]);
	h->step_start = missing & 16 ? NULL : good->step_start;
	h->step_stop = missing & 32 ? NULL : good->step_stop;
	h->step_wait = missing & 64 ? NULL : good->step_wait;
	/* Without it nobody would tell the host that a worker wants a beat. */
	h->wake = missing & 4 && !h->step_start ? NULL : good->wake;
	h->thread_start = missing & 128 ? no_thread : NULL;
	h->thread_join = missing & 256 ? no_join : NULL;
	if (!h->step_start && !h->thread_start && !h->thread_join) { /* a thousand real threads for each input: no */
		h->thread_start = no_thread;
		h->thread_join = no_join;
	}
}

static void fill_options(void)
{
	struct hive_options *o = &t.options;
	uint32_t which = input_byte(&t.in);

	patch(o, sizeof *o);
	MASK_BOOL(o->pin);
	o->io = which & 1 ? &t.io : NULL;
	o->compute = which & 2 ? &t.compute : NULL;
	o->host = &t.host;
	o->hook_arg = &t.world;
	o->on_drop = count_drop;
	o->on_warn = world_warn;
	if (o->io_workers == HIVE_AUTO || o->io_workers > 0)
		return;
	if (o->io_workers == 0 && input_below(&t.in, 4))
		o->io_workers = 1;
}

/* ---- the rules, once more ---- */

static bool words_are_zero(const void *words, size_t bytes)
{
	static const char zeros[sizeof(struct hive_options)];

	return memcmp(words, zeros, bytes) == 0;
}

static bool core_is_good(const struct hive_core_ops *c)
{
	return !c || (c->name && c->open && c->close && c->turn && c->wake && c->add && c->modify && c->remove);
}

static bool worker_is_good(const struct hive_worker_options *o)
{
	int64_t c = o->local_capacity;
	bool power = c == 0;

	for (int64_t p = 4; p <= 65536; p *= 2)
		power = power || c == p;
	if (!words_are_zero(o->reserved, sizeof o->reserved) || (uint32_t)o->kind > 1 || !power)
		return false;
	if (o->core && (o->kind == HIVE_WORKER_COMPUTE || !core_is_good(o->core)))
		return false;
	if (o->local_budget < -1 || o->private_budget < 0 || o->timer_budget < 0 || o->pool_probe_interval < 0)
		return false;
	if ((uint32_t)o->timers > 2 || (o->kind == HIVE_WORKER_COMPUTE && o->timers))
		return false;
	if (o->ring_entries != 0 && (o->ring_entries < 4 || o->ring_entries > 32768))
		return false;
	if (o->kind == HIVE_WORKER_COMPUTE && (o->ui || o->pool_share != 0 || o->frame_ns != 0))
		return false;
	if (o->pool_share < -1 || o->pool_share > 256 || o->frame_ns < -1)
		return false;
	if ((uint32_t)o->order > 2 || (uint32_t)o->victim > 3 || o->io_interval < 0)
		return false;
	if (o->pool_batch < 0 || o->pool_batch > 256 || o->steal_attempts < -1 || o->slice_ns < 0 || o->spin_ns < -1)
		return false;
	return o->nice >= -20 && o->nice <= 19 && o->realtime >= HIVE_OFF && o->realtime <= 99 &&
	       !(o->realtime > 0 && o->batch) && (o->cpu_count == 0 || (o->cpus && o->cpu_count <= UINT16_MAX));
}

static bool host_is_good(const struct hive_host *h)
{
	bool all = h->step_start && h->step_stop && h->step_wait,
	     none = !h->step_start && !h->step_stop && !h->step_wait;

	return words_are_zero(h->reserved, sizeof h->reserved) && (all || none) &&
	       !h->thread_start == !h->thread_join && core_is_good(h->core);
}

static bool options_are_good(void)
{
	const struct hive_options *o = &t.options;
	struct hive_worker_options compute = t.compute;

	compute.kind = HIVE_WORKER_COMPUTE; /* that much is clear from the field's name */
	return words_are_zero(o->reserved, sizeof o->reserved) && (uint32_t)o->preset <= 3 &&
	       (uint32_t)o->placement <= 2 && (uint32_t)o->mesh <= 2 && o->io_workers >= -1 &&
	       o->io_workers <= HIVE_WORKERS_MAX && o->compute_workers >= -1 &&
	       o->compute_workers <= HIVE_WORKERS_MAX && o->reserve_tasks <= 64 * UINT16_MAX &&
	       o->stall_ns >= HIVE_OFF && host_is_good(o->host) &&
	       (!o->io || (o->io->kind == HIVE_WORKER_IO && worker_is_good(o->io))) &&
	       (!o->compute || worker_is_good(&compute));
}

/* ---- what was accepted must work ---- */

static bool stepped(void)
{
	return t.host.step_start != NULL;
}

/* Arguments that are numbers: anything may be in them. Whatever is accepted is posted. */
static uint64_t post_with_anything(struct hive *hive, bool has_io)
{
	uint64_t posted = 0, id = 0;
	long failed = t.world.memory.failed;
	uint32_t worker = (uint32_t)input_word(&t.in, 4);
	int kind = (int8_t)input_byte(&t.in), r;

	r = hive_post_to(hive, worker, count_run, NULL);
	EXPECT(r == 0 || r == -ESRCH || r == -EINVAL || excused(&t.world.memory, failed, r));
	EXPECT(worker != HIVE_WORKER_NONE || r == -EINVAL);
	posted += r == 0;
	r = hive_post_after(hive, input_time(&t.in), count_run, NULL, &id);
	EXPECT(r == (has_io ? 0 : -ESRCH) || excused(&t.world.memory, failed, r));
	EXPECT_EQ(id != 0, r == 0);
	posted += r == 0;
	r = hive_post_cancel(hive, id ^ input_byte(&t.in));
	EXPECT(r == 0 || r == -ESRCH);
	posted -= r == 0; /* the books below leave it out */
	r = hive_post_kind(hive, (enum hive_kind)kind, 0, count_run, NULL);
	EXPECT(r == (kind == HIVE_MICRO || kind == HIVE_COMPUTE ? 0 : -EINVAL) || excused(&t.world.memory, failed, r));
	posted += r == 0;
	r = hive_post(hive, count_run, NULL);
	EXPECT(r == 0 || excused(&t.world.memory, failed, r));
	return posted + (r == 0);
}

/* Starts it if that can be; true: there is an IO worker. */
static bool use(struct hive *hive)
{
	uint32_t ids[8];
	size_t all = hive_workers(hive, ids, 8);
	struct hive_stats stats;
	bool has_io;
	int r;

	EXPECT_EQ(hive_stats_read(hive, &stats), 0);
	EXPECT_EQ(all, stats.io_workers + stats.compute_workers);
	has_io = stats.io_workers > 0;
	r = hive_start(hive);
	if (!has_io)
		EXPECT_EQ(r, -EINVAL);
	else if (!stepped())
		EXPECT_EQ(r, -EAGAIN);
	else
		EXPECT(r == 0 || (r == -EAGAIN && all > WORLD_WORKERS));
	for (size_t i = 0; i < all && i < 8; i++) {
		struct hive_worker_stats worker;

		EXPECT_EQ(hive_worker_stats_read(hive, ids[i], &worker), 0);
		EXPECT(strlen(worker.name) < sizeof worker.name && strlen(worker.core) < sizeof worker.core);
	}
	EXPECT_EQ(hive_stats_write(hive, -1, (enum hive_format)9), -EINVAL);
	EXPECT_EQ(hive_stats_write(hive, -1, HIVE_FORMAT_JSON), -EBADF);
	return has_io;
}

static void attach_one_more(struct hive *hive)
{
	long failed = t.world.memory.failed;
	uint32_t id = 0;
	bool good = worker_is_good(&t.attached);
	int r = hive_attach(hive, &t.attached, &id);

	EXPECT(r == (good ? 0 : -EINVAL) || (good && excused(&t.world.memory, failed, r)) ||
	       (good && (r == -ENOSPC || r == -EAGAIN)));
	EXPECT_EQ(id != 0, r == 0);
}

static void stop_and_end(struct hive *hive, uint64_t posted)
{
	int mode = (int8_t)input_byte(&t.in), r;
	int64_t deadline_ns = input_time(&t.in);
	bool started = t.world.running > 0;
	struct hive_report report;

	r = hive_stop(hive, (enum hive_stop_mode)mode, deadline_ns);
	EXPECT_EQ(r, mode == HIVE_DRAIN || mode == HIVE_NOW ? 0 : -EINVAL);
	if (r < 0)
		EXPECT_EQ(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER), 0);
	if (started)
		EXPECT_EQ(hive_join(hive, HIVE_FOREVER), 0);
	EXPECT_EQ(hive_report_read(hive, &report), 0);
	EXPECT_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	EXPECT_EQ(report.posted - report.cancelled, posted);
	EXPECT_EQ(report.ran, t.ran);
	EXPECT_EQ(report.dropped, t.dropped);
	EXPECT_EQ(hive_destroy(hive), 0);
	EXPECT_EQ(t.world.running, 0);
	EXPECT_EQ(t.starts > 0, t.starts > 0 && started);
}

static void try_a_simulator(void)
{
	struct hive_sim_options o = { 0 };
	struct hive_sim *sim = NULL;
	bool good;
	int r;

	patch(&o, sizeof o);
	good = words_are_zero(o.reserved, sizeof o.reserved) && o.fail_percent <= 100 && o.spurious_percent <= 100 &&
	       o.beat_ns >= 0;
	r = hive_sim_create(&o, &sim);
	EXPECT_EQ(r, good ? 0 : -EINVAL);
	EXPECT_EQ(hive_sim_destroy(sim), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hive *hive = NULL;
	uint64_t posted;
	int r;

	memset(&t, 0, sizeof t);
	t.in = input_of(data, size);
	world_init(&t.world, size, HIVE_S(1000));
	t.world.memory.limit = MEMORY_LIMIT;
	t.world.patience = PATIENCE;
	fill_core(&t.cores[0]);
	for (size_t i = 0; i < sizeof t.name - 1; i++)
		t.name[i] = (char)(i < 40 ? 1 + (i * 37 + size) % 255 : 0);
	fill_worker(&t.io);
	fill_worker(&t.compute);
	fill_worker(&t.attached);
	fill_host();
	fill_options();
	t.world.memory.fail_in = input_below(&t.in, 4) ? 0 : input_byte(&t.in);
	if (input_below(&t.in, 16) == 15)
		try_a_simulator();
	r = hive_create(&t.options, &hive);
	if (options_are_good())
		EXPECT(r == 0 || excused(&t.world.memory, 0, r));
	else
		EXPECT_EQ(r, -EINVAL);
	EXPECT_EQ(hive != NULL, r == 0);
	if (r == 0) {
		attach_one_more(hive);
		t.world.memory.fail_in = 0;
		t.world.memory.limit = 0;
		posted = post_with_anything(hive, use(hive));
		if (t.world.running > 0) {
			world_settle(&t.world, 5000);
			attach_one_more(hive);
		}
		stop_and_end(hive, posted);
	}
	EXPECT_EQ(t.world.memory.live, 0);
	return 0;
}
