// SPDX-License-Identifier: MIT
// The scenarios fib, skynet and loop of `hive bench` for OpenMP, as gcc has it and as clang has it: same flags, same output, same checks.
//
// Comparable: what is done, how often, and on how many threads. One half is a task, the other one called. Not comparable: libgomp makes no task
// at all where there are 64 for each thread already, but calls the function, which flatters it; it has one lock for all tasks of a team.
// libomp, which comes with clang, has a deque with a lock for each thread, and calls the function where 256 tasks are in it.
#include "tasks.hpp"

#if defined(__clang__)
static const char *const name = "openmp_clang";
#else
static const char *const name = "openmp";
#endif

static std::int64_t fib_task(int n)
{
	if (n < 2)
		return n;
	std::int64_t left, right;
#pragma omp task shared(left) firstprivate(n)
	left = fib_task(n - 1);
	right = fib_task(n - 2);
#pragma omp taskwait
	return left + right;
}

static std::int64_t skynet_task(std::int64_t first, std::int64_t leaves)
{
	if (leaves == 1)
		return first;
	std::int64_t each = leaves / branches, sums[branches], sum = 0;
	for (int i = 0; i < branches - 1; i++) {
#pragma omp task shared(sums) firstprivate(i, first, each)
		sums[i] = skynet_task(first + i * each, each);
	}
	sums[branches - 1] = skynet_task(first + (branches - 1) * each, each);
#pragma omp taskwait
	for (std::int64_t one : sums)
		sum += one;
	return sum;
}

int main(int argc, char **argv)
{
	peer_options o = peer_parse(argc, argv);
	auto fib = [&](int n) {
		std::int64_t result = 0;
#pragma omp parallel num_threads(o.threads)
#pragma omp single
		result = fib_task(n);
		return result;
	};
	auto skynet = [&](std::int64_t first, std::int64_t leaves) {
		std::int64_t result = 0;
#pragma omp parallel num_threads(o.threads)
#pragma omp single
		result = skynet_task(first, leaves);
		return result;
	};
	auto loop = [&](std::uint32_t *numbers, std::int64_t n) {
#pragma omp parallel for num_threads(o.threads)
		for (std::int64_t i = 0; i < n; i++)
			numbers[i] = numbers[i] * loop_factor + loop_plus;
	};
	if (o.scenario == "fib")
		fib_and_print(name, o, fib);
	else if (o.scenario == "skynet")
		skynet_and_print(name, o, skynet);
	else if (o.scenario == "loop")
		loop_and_print(name, o, loop);
	else
		return PEER_UNKNOWN;
	return 0;
}
