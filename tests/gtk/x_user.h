/* SPDX-License-Identifier: MIT */
#pragma once
/* Somebody at the keyboard: another client of the X server, who sees what it shows, and whose keys and buttons (by its extension XTEST) come to the
 * program by the way that real ones take. In another process or on another thread than the window.                                   */
#include <gdk/gdk.h>
#include <poll.h>
#include <xcb/xcb.h>
#include <xcb/xcbext.h>

#include "support/real.h"
#include "test.h"

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

static inline void user_fake(struct user *u, uint8_t type, uint8_t detail, int x, int y)
{
	struct fake_input request = {
		.type = type, .detail = detail, .root = u->root, .x = (int16_t)x, .y = (int16_t)y
	};
	xcb_protocol_request_t protocol = { .count = 1, .ext = &xtest, .opcode = FAKE_INPUT, .isvoid = 1 };
	struct iovec parts[3] = { [2] = { &request, sizeof request } }; /* xcb uses the two before it */

	CHECK(xcb_send_request(u->x, 0, parts + 2, &protocol) > 0);
	CHECK(xcb_flush(u->x) > 0);
}

static inline void user_come(struct user *u)
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

static inline void user_go(struct user *u)
{
	xcb_disconnect(u->x);
}

/* What was sent before is with those whom it is for. The answer may be out before that is: the server sends what it has for its clients after each round
 * of requests, and to one that has requests in that round itself after the next one.                                           */
static inline void user_sync(struct user *u)
{
	for (int i = 0; i < 4; i++) {
		xcb_get_input_focus_reply_t *reply = xcb_get_input_focus_reply(u->x, xcb_get_input_focus(u->x), NULL);

		CHECK(reply);
		free(reply);
	}
}

/* Its code, and whether it needs the shift key. */
static inline xcb_keycode_t user_find_key(const struct user *u, xcb_keysym_t symbol, bool *ret_shift)
{
	for (int column = 0; column < 2; column++)
		for (int i = 0; i < u->codes; i++)
			if (column < u->each && u->symbols[i * u->each + column] == symbol) {
				*ret_shift = column == 1;
				return (xcb_keycode_t)(u->first + i);
			}
	test_fail(__FILE__, __LINE__, "no key for %d", (int)symbol);
}

static inline void user_press(struct user *u, xcb_keysym_t symbol)
{
	bool shift, none;
	xcb_keycode_t code = user_find_key(u, symbol, &shift), shift_code = user_find_key(u, GDK_KEY_Shift_L, &none);

	if (shift)
		user_fake(u, XCB_KEY_PRESS, shift_code, 0, 0);
	user_fake(u, XCB_KEY_PRESS, code, 0, 0);
	user_fake(u, XCB_KEY_RELEASE, code, 0, 0);
	if (shift)
		user_fake(u, XCB_KEY_RELEASE, shift_code, 0, 0);
}

static inline void user_point(struct user *u, int x, int y)
{
	user_fake(u, XCB_MOTION_NOTIFY, 0, x, y);
}

static inline void user_button(struct user *u, uint8_t number, bool down)
{
	user_fake(u, down ? XCB_BUTTON_PRESS : XCB_BUTTON_RELEASE, number, 0, 0);
}

static inline void user_click(struct user *u, uint8_t number)
{
	user_button(u, number, true);
	user_button(u, number, false);
}

static inline bool user_is_it(struct user *u, xcb_window_t window)
{
	xcb_get_window_attributes_reply_t *a = xcb_get_window_attributes_reply(
		u->x, xcb_get_window_attributes(u->x, window), NULL);
	xcb_get_geometry_reply_t *g = xcb_get_geometry_reply(u->x, xcb_get_geometry(u->x, window), NULL);
	bool found = a && g && a->map_state == XCB_MAP_STATE_VIEWABLE && g->width >= 200;

	if (found) {
		u->window = window;
		u->width = g->width;
		u->height = g->height;
		user_point(u, g->x + g->width / 2, g->y + g->height / 2);
	}
	free(a);
	free(g);
	return found;
}

/* There is one, and the pointer is put into its middle. What is sent from now on, the server has for it. */
static inline bool user_sees_window(struct user *u)
{
	xcb_query_tree_reply_t *tree = xcb_query_tree_reply(u->x, xcb_query_tree(u->x, u->root), NULL);
	bool found = false;

	CHECK(tree);
	for (int i = 0; i < xcb_query_tree_children_length(tree) && !found; i++)
		found = user_is_it(u, xcb_query_tree_children(tree)[i]);
	free(tree);
	return found;
}

/* The colour so far from the middle of the window, as 0xrrggbb. */
static inline uint32_t user_sees(struct user *u, int dx, int dy)
{
	xcb_get_image_cookie_t cookie = xcb_get_image(u->x, XCB_IMAGE_FORMAT_Z_PIXMAP, u->window,
	                                              (int16_t)(u->width / 2 + dx), (int16_t)(u->height / 2 + dy), 1, 1,
	                                              UINT32_MAX);
	xcb_get_image_reply_t *image = xcb_get_image_reply(u->x, cookie, NULL);
	const uint8_t *p;
	uint32_t colour;

	CHECK(image && xcb_get_image_data_length(image) >= 4);
	p = xcb_get_image_data(image);
	colour = (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
	free(image);
	return colour;
}

#define USER_WAITS_UNTIL(condition) STEP_UNTIL(condition, poll(NULL, 0, 5))
