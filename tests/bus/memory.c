/* SPDX-License-Identifier: MIT */
/* Fixed memory: in a buffer of the caller, and never a byte beside it. This program has an allocator that aborts. */
#include "bus.h"

#include <dirent.h>

static _Atomic(bool) forbidden;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	if (atomic_load(&forbidden))
		abort();
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	if (atomic_load(&forbidden))
		abort();
	return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	if (atomic_load(&forbidden))
		abort();
	return __real_realloc(old, bytes);
}

/* W-2, W-49: threads are there from start to stop, so many and no more. By name: sanitizers and emulators have threads of their own. */
static int threads_named(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	int count = 0;

	CHECK(tasks);
	while ((task = readdir(tasks)) != NULL) {
		char path[300], line[64] = "";
		FILE *file;

		snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
		file = fopen(path, "r"); /* none: it has just ended, or is no thread */
		if (file && fgets(line, sizeof line, file))
			line[strcspn(line, "\n")] = '\0';
		if (file)
			fclose(file);
		count += strcmp(line, name) == 0;
	}
	closedir(tasks);
	return count;
}

TEST(so_many_threads_as_workers_and_one_for_the_dispatcher)
{
	for (int dispatcher = 0; dispatcher < 2; dispatcher++) {
		struct notes n = { 0 };
		struct hive_bus_options options = { .name = "counted", .workers = 3, .dispatcher = dispatcher };
		struct hive_bus *bus = bus_begin(options, &n);

		CHECK_EQ(threads_named("counted"), 3 + dispatcher);
		for (uint64_t i = 0; i < 1000; i++)
			CHECK_OK(small_submit(bus, &(struct small){ i }, HIVE_BUS_HIGH, HIVE_FOREVER));
		CHECK_EQ(threads_named("counted"), 3 + dispatcher);
		bus_end(bus);
		while (threads_named("counted") > 0) /* the system still knows one for a moment after it was joined */
			sched_yield();
	}
}

enum { BYTES = 1 << 20, EDGE = 64 };
static _Alignas(64) unsigned char memory[BYTES];

static void *submit_some(void *arg)
{
	for (uint64_t i = 0; i < 500; i++) {
		struct large message = large_make(i);

		CHECK_OK(large_submit_key(arg, &message, HIVE_BUS_HIGH, i, HIVE_FOREVER));
	}
	return NULL;
}

/* Programs for an emulator are linked statically: then what the system needs for a thread comes through these doors as well. */
static bool system_allocates_by_us(void)
{
	return getenv("ROPHIVE_EMULATOR") != NULL;
}

static void use(struct hive_bus_options options)
{
	struct notes n = { 0 };
	const struct hive_bus_type type = { LARGE, sizeof(struct large), "large", notes_large, &n };
	pthread_t thread;
	struct hive_bus *bus;
	size_t bytes;

	options.types = &type;
	options.type_count = 1;
	bytes = hive_bus_bytes(&options);
	CHECK(bytes > 0 && bytes % 64 == 0 && bytes + EDGE <= BYTES);
	memset(memory, 0xee, sizeof memory);
	options.memory = memory;
	options.memory_bytes = bytes - 1;
	CHECK_ERR(hive_bus_create(&options, &bus), -EINVAL);
	options.memory_bytes = bytes;
	options.memory = memory + 32;
	CHECK_ERR(hive_bus_create(&options, &bus), -EINVAL);
	options.memory = memory;
	atomic_store(&forbidden, true);
	CHECK_OK(hive_bus_create(&options, &bus));
	CHECK((unsigned char *)bus >= memory && (unsigned char *)bus < memory + bytes);
	atomic_store(&forbidden, !system_allocates_by_us());
	CHECK_OK(hive_bus_start(bus));
	CHECK_EQ(pthread_create(&thread, NULL, submit_some, bus), 0);
	atomic_store(&forbidden, true);
	submit_some(bus);
	pthread_join(thread, NULL);
	CHECK_OK(hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_EQ(n.count, 1000);
	bus_end(bus);
	atomic_store(&forbidden, false);
	for (size_t i = bytes; i < BYTES; i++)
		CHECK_EQ(memory[i], 0xee);
}

TEST(after_creation_nothing_is_allocated_and_nothing_beside_the_buffer_is_touched)
{
	for (int workers = 1; workers <= 3; workers += 2) {
		use((struct hive_bus_options){ .depth = 8, .workers = workers });
		use((struct hive_bus_options){ .depth = 8, .workers = workers, .dispatcher = true, .worker_depth = 2 });
		use((struct hive_bus_options){ .workers = workers, .route = HIVE_BUS_BY_KEY, .worker_depth = 8 });
		use((struct hive_bus_options){ .depth = 8,
		                               .workers = workers,
		                               .dispatcher = true,
		                               .route = HIVE_BUS_BY_KEY,
		                               .worker_depth = 8 });
		use((struct hive_bus_options){ .depth = 8, .workers = workers, .on_full = HIVE_BUS_DROP_OLDER_LOWER });
	}
}

/* The formula of docs/bus.md: a fixed part, and slots. */
TEST(memory_grows_by_a_slot_for_each_message_and_not_otherwise)
{
	struct hive_bus_type type = { 1, 64, "a", NULL, NULL };
	struct hive_bus_options o = {
		.types = &type, .type_count = 1, .depth = 1024, .worker_depth = 256, .workers = 2
	};
	size_t small, slot = 64 + 64;

	small = hive_bus_bytes(&o);
	o.depth = 2048;
	CHECK_EQ(hive_bus_bytes(&o) - small, 1024 * slot);
	o.depth = 1025; /* rounded up */
	CHECK_EQ(hive_bus_bytes(&o) - small, 1024 * slot);
	o.depth = 1024;
	o.dispatcher = true;
	CHECK_EQ(hive_bus_bytes(&o) - small, 2 * 256 * slot);
	o.dispatcher = false;
	type.size = 65; /* a slot is a multiple of 16 */
	CHECK_EQ(hive_bus_bytes(&o) - small, 1024 * 16 + 3 * 64);
	type.size = 64;
	o.route = HIVE_BUS_BY_KEY;
	CHECK_EQ(small - hive_bus_bytes(&o), 1024 * slot - 2 * 256 * slot);
}

TEST(cpus_and_class_of_the_threads)
{
	struct notes n = { 0 };
	cpu_set_t set;
	uint16_t cpu = 0;
	struct hive_bus *bus;
	int r;

	CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	bus = bus_begin((struct hive_bus_options){ .workers = 2, .cpus = &cpu, .cpu_count = 1, .dispatcher = true },
	                &n);
	CHECK_OK(put_small(bus, 1, HIVE_BUS_HIGH));
	bus_end(bus);
	CHECK_EQ(n.count, 1);
	cpu = 1023; /* there is no such CPU: nothing runs, and it may be tried again */
	bus = bus_make((struct hive_bus_options){ .workers = 2, .cpus = &cpu, .cpu_count = 1 }, &n);
	CHECK_ERR(hive_bus_start(bus), -EINVAL);
	CHECK_ERR(hive_bus_start(bus), -EINVAL);
	CHECK_ERR(put_small(bus, 1, HIVE_BUS_HIGH), -ESHUTDOWN);
	CHECK_OK(hive_bus_destroy(bus));
	bus = bus_make((struct hive_bus_options){ .realtime = 1 }, &n);
	r = hive_bus_start(bus);
	CHECK(r == 0 || r == -EPERM); /* whether it is allowed is the system's business */
	if (r == 0)
		CHECK_OK(hive_bus_stop(bus, HIVE_NOW, HIVE_FOREVER));
	CHECK_OK(hive_bus_destroy(bus));
}
