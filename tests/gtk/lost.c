/* SPDX-License-Identifier: MIT */
/* The display goes away under a running program: GTK ends the process, as it does without us. It must not hang, nor spin. */
#include <gtk/gtk.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <rophive/glib.h>

#include "support/real.h"
#include "test.h"

static pid_t server;

static void kill_display(void *arg)
{
	(void)arg;
	CHECK_OK(kill(server, SIGKILL));
}

static void be_the_program(void)
{
	struct hive_worker_options ui = { .name = "ui", .core = hive_core_glib() };
	struct hive_options options = { .io_workers = 1, .compute_workers = 1, .io = &ui };
	struct hive *hive;
	GtkWidget *window;

	gtk_init();
	window = gtk_window_new();
	gtk_window_set_child(GTK_WINDOW(window), gtk_label_new("not for long"));
	gtk_window_present(GTK_WINDOW(window));
	if (hive_create(&options, &hive) < 0 || hive_post_to(hive, HIVE_WORKER_MAIN, kill_display, NULL) < 0)
		_exit(99);
	_exit(hive_run(hive) < 0 ? 98 : 97);
}

TEST(a_program_ends_when_its_display_is_lost)
{
	const char *text = getenv("TEST_XVFB_PID");
	int status = 0;
	pid_t child;

	if (!text) {
		test_skip("not in tests/gtk/display");
		return;
	}
	server = (pid_t)atoi(text);
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		be_the_program();
	CHECK_EQ(waitpid(child, &status, 0), child); /* the watchdog of the test is for one that hangs */
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 1);
}
