// SPDX-License-Identifier: MIT
// The parts of a program that holds more than one family of scenarios, a file each. False: the name is none of theirs.
#pragma once
#include "peer.hpp"

bool bus_scenarios(peer_options options);
bool group_scenarios(peer_options options);
bool pool_scenarios(peer_options options);
bool timer_scenarios(peer_options options);
