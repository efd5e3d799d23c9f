/* SPDX-License-Identifier: MIT */
/* Not among the targets: any input hangs, with a hive that has something to do. run looks whether that explains itself. */
#include "world.h"

static struct world world;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hive_options options = {
		.io_workers = 1, .host = &world.host, .on_warn = world_warn, .hook_arg = &world
	};
	struct hive *hive;

	(void)data;
	if (size == 0) /* libFuzzer's own, at its start */
		return 0;
	world_init(&world, 1, 0);
	EXPECT_EQ(hive_create(&options, &hive), 0);
	EXPECT_EQ(hive_post(hive, fuzz_nop, NULL), 0);
	for (volatile bool stuck = true; stuck;)
		;
	return 0;
}
