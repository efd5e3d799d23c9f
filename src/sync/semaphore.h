/* SPDX-License-Identifier: MIT */
#pragma once
/* Who waits in a semaphore. The first one wants more than there is, or it would not wait. */
#include "fiber/wait.h"

struct semaphore_node {
	struct wait_node node; /* first */
	uint32_t wants;
};
