// SPDX-License-Identifier: MIT
// What the programs in C++ share: the flags and the output of `hive bench`.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

struct peer_options {
	std::string scenario;
	int threads = 1, producers = 1, consumers = 1;
	std::int64_t n = 0;
};

enum { PEER_USAGE = 2, PEER_TIMEOUT = 3, PEER_WRONG = 4, PEER_UNKNOWN = 10 };

inline peer_options peer_parse(int argc, char **argv)
{
	peer_options options;
	if (argc % 2 == 0) {
		std::fprintf(stderr, "usage: %s --scenario NAME [--threads T] [--producers P] [--consumers C] [--n N]\n", argv[0]);
		std::exit(PEER_USAGE);
	}
	for (int i = 1; i + 1 < argc; i += 2) {
		std::string flag = argv[i];
		if (flag == "--scenario")
			options.scenario = argv[i + 1];
		else if (flag == "--threads")
			options.threads = std::atoi(argv[i + 1]);
		else if (flag == "--producers")
			options.producers = std::atoi(argv[i + 1]);
		else if (flag == "--consumers")
			options.consumers = std::atoi(argv[i + 1]);
		else if (flag == "--n")
			options.n = std::atoll(argv[i + 1]);
		else
			std::exit(PEER_USAGE);
	}
	return options;
}

inline void peer_check(const char *what, std::uint64_t expected, std::uint64_t seen)
{
	if (expected == seen)
		return;
	std::fprintf(stderr, "wrong count of %s: %llu instead of %llu\n", what, (unsigned long long)seen,
	             (unsigned long long)expected);
	std::_Exit(PEER_WRONG);
}

// A line of /proc/self/status, in KiB.
inline long peer_memory(const char *key)
{
	char line[256];
	long value = 0;
	std::FILE *file = std::fopen("/proc/self/status", "r");
	while (file && std::fgets(line, sizeof line, file))
		if (std::strncmp(line, key, std::strlen(key)) == 0)
			value = std::atol(line + std::strlen(key) + 1);
	if (file)
		std::fclose(file);
	return value;
}

using peer_clock = std::chrono::steady_clock;

inline double peer_seconds(peer_clock::duration time)
{
	return std::chrono::duration<double>(time).count();
}

// One line; `more` holds further fields, each with a comma in front.
inline void peer_print(const char *peer, const peer_options &o, double operations, double seconds,
                       const std::string &more = "")
{
	std::printf("{\"peer\":\"%s\",\"scenario\":\"%s\",\"threads\":%d,\"producers\":%d,\"consumers\":%d,\"n\":%lld,"
	            "\"ops_per_s\":%.0f%s,\"rss_kb\":%ld}\n",
	            peer, o.scenario.c_str(), o.threads, o.producers, o.consumers, (long long)o.n, operations / seconds,
	            more.c_str(), peer_memory("VmHWM"));
	std::fflush(stdout);
}

inline std::string peer_field(const char *name, double value)
{
	return std::string(",\"") + name + "\":" + std::to_string(value);
}
