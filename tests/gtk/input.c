/* SPDX-License-Identifier: MIT */
/* Keys, wheel and mouse in examples/ui-mandelbrot, as somebody would use them: sent by another client of the X server (its extension XTEST), so that they
 * come by the way that real ones take.                                                                                    */
#include <gtk/gtk.h>
#include <sys/wait.h>

#include "gtk/x_user.h"
#include "test.h"

/* A point so far from the middle of the window: black is the set itself; what is not computed yet is dark blue, all else is outside. */
enum look { INSIDE, OUTSIDE, UNKNOWN };

static enum look look_at(struct user *u, int dx, int dy)
{
	uint32_t colour = user_sees(u, dx, dy);

	if (colour == 0)
		return INSIDE;
	return (colour & 0xff) < 0x30 && (colour >> 8 & 0xff) < 0x18 && colour >> 16 < 0x18 ? UNKNOWN : OUTSIDE;
}

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
	user_button(u, LEFT, true);
	user_point(u, u->width / 2 + dx / 2, u->height / 2);
	user_point(u, u->width / 2 + dx, u->height / 2);
	user_button(u, LEFT, false);
	user_point(u, u->width / 2, u->height / 2);
}

/* While a hundred thousand posts a second come from another thread. Each step is seen before the next one is done. */
TEST(a_picture_follows_keys_wheel_and_mouse_and_q_quits)
{
	static struct user user;
	pid_t child;
	int status;

	user_come(&user);
	child = start_example();
	USER_WAITS_UNTIL(user_sees_window(&user));
	USER_WAITS_UNTIL(shows_all(&user));
	for (int i = 0; i < 6; i++)
		user_press(&user, GDK_KEY_minus);
	USER_WAITS_UNTIL(shows_another_part(&user));
	user_press(&user, GDK_KEY_Home);
	USER_WAITS_UNTIL(shows_all(&user));
	for (int i = 0; i < 6; i++)
		user_click(&user, WHEEL_DOWN);
	USER_WAITS_UNTIL(shows_another_part(&user));
	user_press(&user, GDK_KEY_Home);
	USER_WAITS_UNTIL(shows_all(&user));
	drag(&user, -300);
	USER_WAITS_UNTIL(shows_another_part(&user));
	for (int i = 0; i < 3; i++)
		user_press(&user, GDK_KEY_plus);
	user_press(&user, GDK_KEY_q);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	user_go(&user);
}
