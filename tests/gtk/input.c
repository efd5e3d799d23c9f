/* SPDX-License-Identifier: MIT */
/* Keys, wheel and mouse in examples/ui-mandelbrot, as somebody would use them: sent by another client of the X server (its extension XTEST), so that they
 * come by the way that real ones take.                                                                                    */
#include <gtk/gtk.h>
#include <poll.h>
#include <sys/wait.h>
#include <xcb/xcb.h>
#include <xcb/xcbext.h>

#include "support/real.h"
#include "test.h"

/* ---- somebody at the keyboard ---- */

enum { SYMBOLS = 4096, FAKE_INPUT = 2, LEFT = 1, WHEEL_DOWN = 5 };

struct user {
	xcb_connection_t *x;
	xcb_window_t root, window; /* window: what is looked at */
	int width, height;         /* of that */
	xcb_keycode_t first;
	int codes, each; /* each: symbols of a code */
	xcb_keysym_t symbols[SYMBOLS];
};

/* XTEST's only request that we need, as its protocol has it. */
struct fake_input {
	uint8_t major_opcode, minor_opcode;
	uint16_t length;
	uint8_t type, detail;
	uint8_t pad0[2];
	uint32_t time;
	xcb_window_t root;
	uint8_t pad1[8];
	int16_t x, y;
	uint8_t pad2[7], device;
};
_Static_assert(sizeof(struct fake_input) == 36, "so says the protocol");

static xcb_extension_t xtest = { "XTEST", 0 };

static void fake(struct user *u, uint8_t type, uint8_t detail, int x, int y)
{
	struct fake_input request = {
		.type = type, .detail = detail, .root = u->root, .x = (int16_t)x, .y = (int16_t)y
	};
	xcb_protocol_request_t protocol = { .count = 1, .ext = &xtest, .opcode = FAKE_INPUT, .isvoid = 1 };
	struct iovec parts[3] = { [2] = { &request, sizeof request } }; /* xcb uses the two before it */

	CHECK(xcb_send_request(u->x, 0, parts + 2, &protocol) > 0);
	CHECK(xcb_flush(u->x) > 0);
}

static void come(struct user *u)
{
	xcb_get_keyboard_mapping_reply_t *map;
	const xcb_setup_t *setup;

	u->x = xcb_connect(NULL, NULL);
	CHECK_EQ(xcb_connection_has_error(u->x), 0);
	CHECK(xcb_get_extension_data(u->x, &xtest)->present);
	setup = xcb_get_setup(u->x);
	u->root = xcb_setup_roots_iterator(setup).data->root;
	u->first = setup->min_keycode;
	u->codes = setup->max_keycode - setup->min_keycode + 1;
	map = xcb_get_keyboard_mapping_reply(u->x, xcb_get_keyboard_mapping(u->x, u->first, (uint8_t)u->codes), NULL);
	CHECK(map);
	u->each = map->keysyms_per_keycode;
	CHECK(u->codes * u->each <= SYMBOLS);
	memcpy(u->symbols, xcb_get_keyboard_mapping_keysyms(map), sizeof(xcb_keysym_t) * (size_t)(u->codes * u->each));
	free(map);
}

static void go(struct user *u)
{
	xcb_disconnect(u->x);
}

/* Its code, and whether it needs the shift key. */
static xcb_keycode_t find_key(const struct user *u, xcb_keysym_t symbol, bool *ret_shift)
{
	for (int column = 0; column < 2; column++)
		for (int i = 0; i < u->codes; i++)
			if (column < u->each && u->symbols[i * u->each + column] == symbol) {
				*ret_shift = column == 1;
				return (xcb_keycode_t)(u->first + i);
			}
	test_fail(__FILE__, __LINE__, "no key for %d", (int)symbol);
}

static void press(struct user *u, xcb_keysym_t symbol)
{
	bool shift, none;
	xcb_keycode_t code = find_key(u, symbol, &shift), shift_code = find_key(u, GDK_KEY_Shift_L, &none);

	if (shift)
		fake(u, XCB_KEY_PRESS, shift_code, 0, 0);
	fake(u, XCB_KEY_PRESS, code, 0, 0);
	fake(u, XCB_KEY_RELEASE, code, 0, 0);
	if (shift)
		fake(u, XCB_KEY_RELEASE, shift_code, 0, 0);
}

static void point(struct user *u, int x, int y)
{
	fake(u, XCB_MOTION_NOTIFY, 0, x, y);
}

static void button(struct user *u, uint8_t number, bool down)
{
	fake(u, down ? XCB_BUTTON_PRESS : XCB_BUTTON_RELEASE, number, 0, 0);
}

static void click(struct user *u, uint8_t number)
{
	button(u, number, true);
	button(u, number, false);
}

static bool is_it(struct user *u, xcb_window_t window)
{
	xcb_get_window_attributes_reply_t *a = xcb_get_window_attributes_reply(
		u->x, xcb_get_window_attributes(u->x, window), NULL);
	xcb_get_geometry_reply_t *g = xcb_get_geometry_reply(u->x, xcb_get_geometry(u->x, window), NULL);
	bool found = a && g && a->map_state == XCB_MAP_STATE_VIEWABLE && g->width >= 200;

	if (found) {
		u->window = window;
		u->width = g->width;
		u->height = g->height;
		point(u, g->x + g->width / 2, g->y + g->height / 2);
	}
	free(a);
	free(g);
	return found;
}

/* There is one, and the pointer is put into its middle. What is sent from now on, the server has for it. */
static bool sees_window(struct user *u)
{
	xcb_query_tree_reply_t *tree = xcb_query_tree_reply(u->x, xcb_query_tree(u->x, u->root), NULL);
	bool found = false;

	CHECK(tree);
	for (int i = 0; i < xcb_query_tree_children_length(tree) && !found; i++)
		found = is_it(u, xcb_query_tree_children(tree)[i]);
	free(tree);
	return found;
}

/* A point so far from the middle of the window. Of a picture: black is the set itself; what is not computed yet is dark blue, all else is outside. */
enum look { INSIDE, OUTSIDE, UNKNOWN };

static enum look look_at(struct user *u, int dx, int dy)
{
	xcb_get_image_cookie_t cookie = xcb_get_image(u->x, XCB_IMAGE_FORMAT_Z_PIXMAP, u->window,
	                                              (int16_t)(u->width / 2 + dx), (int16_t)(u->height / 2 + dy), 1, 1,
	                                              UINT32_MAX);
	xcb_get_image_reply_t *image = xcb_get_image_reply(u->x, cookie, NULL);
	const uint8_t *p;
	enum look look;

	CHECK(image && xcb_get_image_data_length(image) >= 4);
	p = xcb_get_image_data(image);
	look = !p[0] && !p[1] && !p[2] ? INSIDE : p[0] < 0x30 && p[1] < 0x18 && p[2] < 0x18 ? UNKNOWN : OUTSIDE;
	free(image);
	return look;
}

#define USER_WAITS_UNTIL(condition) STEP_UNTIL(condition, poll(NULL, 0, 5))

/* ---- examples/ui-mandelbrot ---- */

static pid_t start_example(void)
{
	char path[2048];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
	pid_t child;

	CHECK(n > 0);
	path[n] = '\0';
	for (int i = 0; i < 2; i++) /* from build/tests/gtk.input to build */
		*strrchr(path, '/') = '\0';
	strcat(path, "/examples/ui-mandelbrot");
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		execl(path, path, "--load", "c", (char *)NULL);
		_exit(127);
	}
	return child;
}

/* All of the set fills the middle; above it is nothing of it. */
static bool shows_all(struct user *u)
{
	return look_at(u, 200, 0) == INSIDE && look_at(u, 0, -220) == OUTSIDE;
}

/* It was made smaller, or moved to the left. */
static bool shows_another_part(struct user *u)
{
	return look_at(u, 200, 0) == OUTSIDE;
}

static void drag(struct user *u, int dx)
{
	button(u, LEFT, true);
	point(u, u->width / 2 + dx / 2, u->height / 2);
	point(u, u->width / 2 + dx, u->height / 2);
	button(u, LEFT, false);
	point(u, u->width / 2, u->height / 2);
}

/* While a hundred thousand posts a second come from another thread. Each step is seen before the next one is done. */
TEST(a_picture_follows_keys_wheel_and_mouse_and_q_quits)
{
	static struct user user;
	pid_t child;
	int status;

	come(&user);
	child = start_example();
	USER_WAITS_UNTIL(sees_window(&user));
	USER_WAITS_UNTIL(shows_all(&user));
	for (int i = 0; i < 6; i++)
		press(&user, GDK_KEY_minus);
	USER_WAITS_UNTIL(shows_another_part(&user));
	press(&user, GDK_KEY_Home);
	USER_WAITS_UNTIL(shows_all(&user));
	for (int i = 0; i < 6; i++)
		click(&user, WHEEL_DOWN);
	USER_WAITS_UNTIL(shows_another_part(&user));
	press(&user, GDK_KEY_Home);
	USER_WAITS_UNTIL(shows_all(&user));
	drag(&user, -300);
	USER_WAITS_UNTIL(shows_another_part(&user));
	for (int i = 0; i < 3; i++)
		press(&user, GDK_KEY_plus);
	press(&user, GDK_KEY_q);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	go(&user);
}
