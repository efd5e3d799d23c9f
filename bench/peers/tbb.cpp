// SPDX-License-Identifier: MIT
// The program of oneTBB: what its scenarios are and how they compare is said in tbb_pool.cpp, tbb_tasks.cpp and bus.cpp.
#include "scenarios.hpp"

int main(int argc, char **argv)
{
	peer_options o = peer_parse(argc, argv);
	return pool_scenarios(o) || group_scenarios(o) || bus_scenarios(o) ? 0 : PEER_UNKNOWN;
}
