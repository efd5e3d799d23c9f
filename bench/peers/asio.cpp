// SPDX-License-Identifier: MIT
// The program of Asio: what its scenarios are and how they compare is said in asio_pool.cpp, asio_timer.cpp and bus.cpp.
#include "scenarios.hpp"

int main(int argc, char **argv)
{
	peer_options o = peer_parse(argc, argv);
	return pool_scenarios(o) || timer_scenarios(o) || bus_scenarios(o) ? 0 : PEER_UNKNOWN;
}
