/* SPDX-License-Identifier: MIT */
/* usage: ui-guest-sdl [--headless [--frames N]] [--screenshot FILE.bmp]
 *
 * --headless: plays N frames (120) by itself, looks at the last one, and ends: 0; 1 if it could not be seen, was blank or could not be written, or if
 * there were fewer frames or no answers.
 *
 * A game owns its loop: events, a picture, wait for the next frame. The hive is its guest: the wait is in poll(), at the hive's descriptor, and
 * hive_guest_step() runs what has come for the main worker. Sparks are moved by compute workers, a part each; the answers come
 * to this thread, so nothing here needs a lock.                                                                       */
#include <SDL.h>
#include <math.h>
#include <poll.h>
#include <rophive/hive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 800, HEIGHT = 500, PARTS = 8, SPARKS = 1500, FRAME_NS = 16666667 };

struct spark {
	float x, y, vx, vy;
};

/* A part of them. Belongs to the compute worker that moves it, from the post to the answer. */
struct part {
	struct game *game;
	struct spark sparks[SPARKS];
	float pull, pull_x, pull_y;
	bool away;
};

struct game {
	struct hive *hive;
	SDL_Window *window;
	SDL_Renderer *renderer;
	SDL_Rect points[PARTS][SPARKS]; /* where they were when their part last came home */
	struct part parts[PARTS];
	int mouse_x, mouse_y;
	long frames, frames_wanted, answers;
	const char *screenshot;
	bool running, blank, failed; /* blank: or nobody could see it */
};

static float noise(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) / (float)(1 << 24);
}

/* ---- on compute workers ---- */

static void move_sparks(void *arg)
{
	struct part *p = arg;

	for (int i = 0; i < SPARKS; i++) {
		struct spark *s = &p->sparks[i];
		float dx = p->pull_x - s->x, dy = p->pull_y - s->y, d = sqrtf(dx * dx + dy * dy) + 20;

		s->vx = s->vx * 0.985f + dx / d * p->pull - dy / d * 0.08f;
		s->vy = s->vy * 0.985f + dy / d * p->pull + dx / d * 0.08f;
		s->x += s->vx;
		s->y += s->vy;
	}
}

/* ---- on the main worker: this thread, inside hive_guest_step() ---- */

static void come_home(void *arg)
{
	struct part *p = arg;
	SDL_Rect *points = p->game->points[p - p->game->parts];

	for (int i = 0; i < SPARKS; i++)
		points[i] = (SDL_Rect){ (int)p->sparks[i].x, (int)p->sparks[i].y, 2, 2 };
	p->away = false;
	p->game->answers++;
}

/* ---- the game's own loop ---- */

static void send_out(struct game *g)
{
	for (int i = 0; i < PARTS; i++) {
		struct part *p = &g->parts[i];

		if (p->away)
			continue; /* a machine that is too slow moves them less often; the frame does not wait */
		p->pull_x = (float)g->mouse_x;
		p->pull_y = (float)g->mouse_y;
		p->away = hive_post_compute_then(g->hive, move_sparks, HIVE_WORKER_MAIN, come_home, p) == 0;
	}
}

static void handle_events(struct game *g)
{
	SDL_Event event;

	while (SDL_PollEvent(&event)) {
		if (event.type == SDL_QUIT || (event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_q))
			g->running = false;
		if (event.type == SDL_MOUSEMOTION) {
			g->mouse_x = event.motion.x;
			g->mouse_y = event.motion.y;
		}
	}
	if (g->frames_wanted) { /* nobody is there */
		g->mouse_x = (int)(WIDTH / 2 + 220 * cos((double)g->frames * 0.03));
		g->mouse_y = (int)(HEIGHT / 2 + 130 * sin((double)g->frames * 0.05));
	}
}

static void draw(struct game *g)
{
	static const Uint8 colours[PARTS][3] = { { 255, 196, 84 }, { 255, 140, 66 },  { 240, 90, 90 },
		                                 { 196, 90, 200 }, { 120, 110, 240 }, { 80, 170, 250 },
		                                 { 90, 220, 200 }, { 190, 230, 120 } };

	SDL_SetRenderDrawColor(g->renderer, 12, 14, 26, 255);
	SDL_RenderClear(g->renderer);
	for (int i = 0; i < PARTS; i++) {
		SDL_SetRenderDrawColor(g->renderer, colours[i][0], colours[i][1], colours[i][2], 255);
		SDL_RenderFillRects(g->renderer, g->points[i], SPARKS);
	}
}

/* Of the last frame, before it is shown: afterwards nobody promises what there is. */
static void look_at_it(struct game *g)
{
	SDL_Surface *shot = SDL_CreateRGBSurfaceWithFormat(0, WIDTH, HEIGHT, 32, SDL_PIXELFORMAT_ARGB8888);
	const Uint32 *pixels;
	int lit = 0;

	g->failed = !shot ||
	            SDL_RenderReadPixels(g->renderer, NULL, SDL_PIXELFORMAT_ARGB8888, shot->pixels, shot->pitch) < 0;
	if (!g->failed) {
		pixels = shot->pixels;
		for (int i = 0; i < WIDTH * HEIGHT; i++)
			lit += pixels[i] != pixels[0];
		g->failed = g->screenshot && SDL_SaveBMP(shot, g->screenshot) < 0;
	}
	g->blank = lit < 100;
	if (g->failed)
		fprintf(stderr, "ui-guest-sdl: %s\n", SDL_GetError());
	SDL_FreeSurface(shot);
}

/* Sleeps until the next frame; what comes for the main worker meanwhile runs. -ESHUTDOWN: the hive has ended. */
static int wait_for_frame(struct game *g, int fd, int64_t until_ns)
{
	int64_t left_ns, wait_ns;
	int r;

	while ((r = hive_guest_step(g->hive, &wait_ns)) == 0) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };

		left_ns = until_ns - hive_now(g->hive);
		if (left_ns <= 0)
			return 0;
		poll(&ready, 1, hive_poll_ms(left_ns < wait_ns ? left_ns : wait_ns));
	}
	return r;
}

static void play(struct game *g, int fd)
{
	int64_t next_ns = hive_now(g->hive), wait_ns;

	g->running = true;
	while (g->running) {
		handle_events(g);
		send_out(g);
		draw(g);
		g->frames++;
		if (g->frames_wanted && g->frames >= g->frames_wanted) {
			look_at_it(g);
			g->running = false;
		}
		SDL_RenderPresent(g->renderer);
		next_ns += FRAME_NS;
		if (next_ns < hive_now(g->hive))
			next_ns = hive_now(g->hive);
		if (wait_for_frame(g, fd, next_ns) < 0)
			return;
	}
	hive_stop(g->hive, HIVE_NOW, HIVE_FOREVER);
	while (hive_guest_step(g->hive, &wait_ns) == 0)
		poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, hive_poll_ms(wait_ns));
}

static void light(struct game *g)
{
	uint32_t state = 1;

	for (int i = 0; i < PARTS; i++) {
		g->parts[i].game = g;
		g->parts[i].pull = 0.12f + 0.05f * (float)i;
		for (int j = 0; j < SPARKS; j++)
			g->parts[i].sparks[j] = (struct spark){ WIDTH * (0.3f + 0.4f * noise(&state)),
				                                HEIGHT * (0.3f + 0.4f * noise(&state)),
				                                noise(&state) * 4 - 2, noise(&state) * 4 - 2 };
	}
}

static bool open_window(struct game *g)
{
	if (SDL_Init(SDL_INIT_VIDEO) < 0)
		return false;
	g->window = SDL_CreateWindow("rophive, a guest in SDL", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, WIDTH,
	                             HEIGHT, 0);
	g->renderer = g->window ? SDL_CreateRenderer(g->window, -1, SDL_RENDERER_SOFTWARE) : NULL;
	return g->renderer;
}

static bool read_options(int argc, char **argv, struct game *g)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--headless") == 0)
			g->frames_wanted = g->frames_wanted ? g->frames_wanted : 120;
		else if (strcmp(argv[i], "--frames") == 0 && i + 1 < argc)
			g->frames_wanted = atol(argv[++i]);
		else if (strcmp(argv[i], "--screenshot") == 0 && i + 1 < argc)
			g->screenshot = argv[++i];
		else
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct game g;
	struct hive_worker_options ui = { .name = "ui", .ui = true };
	struct hive_options options = { .io_workers = 1, .compute_workers = HIVE_AUTO, .io = &ui };
	int fd, r;

	if (!read_options(argc, argv, &g)) {
		fputs("usage: ui-guest-sdl [--headless [--frames N]] [--screenshot FILE.bmp]\n", stderr);
		return 2;
	}
	if (!open_window(&g)) {
		fprintf(stderr, "ui-guest-sdl: %s\n", SDL_GetError());
		return 77;
	}
	g.blank = g.frames_wanted; /* until somebody has looked */
	light(&g);
	r = hive_create(&options, &g.hive);
	if (r == 0)
		r = hive_guest_start(g.hive, &fd);
	if (r == 0)
		play(&g, fd);
	else
		fprintf(stderr, "ui-guest-sdl: %s\n", hive_error_text(r));
	hive_destroy(g.hive);
	printf("{\"frames\": %ld, \"answers\": %ld, \"blank\": %s}\n", g.frames, g.answers, g.blank ? "true" : "false");
	SDL_DestroyRenderer(g.renderer);
	SDL_DestroyWindow(g.window);
	SDL_Quit();
	return r < 0 || (g.frames_wanted && (g.failed || g.blank || g.frames < g.frames_wanted || g.answers == 0));
}
