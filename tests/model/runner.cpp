/* SPDX-License-Identifier: MIT */
/* Relacy's part of each program: schedules, memory, histories. Optimized, for it is what takes long when a scenario runs. */
#include "model_relacy.h"

static const model_scene *playing;
static void *suite; /* memory for it, the same for each schedule */

template <int THREADS> struct stage : rl::test_suite<stage<THREADS>, THREADS> {
	stage()
	{
		playing->construct(suite);
	}
	~stage()
	{
		playing->destroy(suite);
	}
	void before()
	{
		playing->before(suite);
	}
	void invariant()
	{
		playing->invariant(suite);
	}
	void thread(unsigned number)
	{
		playing->thread(suite, number);
	}
	void after()
	{
		playing->after(suite);
	}
};

bool model_play(const model_scene *scene, rl::scheduler_type_e search, unsigned iterations, unsigned preemptions)
{
	rl::test_params params;
	bool holds;

	params.search_type = search;
	params.iteration_count = iterations;
	params.context_bound = preemptions;
	params.execution_depth_limit = 5000;
	playing = scene;
	suite = malloc(scene->bytes);
	if (!suite)
		abort();
	switch (scene->threads) {
	case 2:
		holds = rl::simulate<stage<2>>(params);
		break;
	case 3:
		holds = rl::simulate<stage<3>>(params);
		break;
	case 4:
		holds = rl::simulate<stage<4>>(params);
		break;
	default:
		fprintf(stderr, "no stage for %u threads\n", scene->threads);
		abort();
	}
	free(suite);
	return holds;
}
