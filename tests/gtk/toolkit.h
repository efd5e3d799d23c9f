/* SPDX-License-Identifier: MIT */
#pragma once
/* GTK in a test program. What it opens it keeps, so it is brought up before the first test: not inside one, which may leave nothing open. */
#include <gtk/gtk.h>

/* With a window, letters in it, and a question about icons: other threads read about fonts and icons, with a file open now and then, until somebody
 * needs one.                                                                                                                */
__attribute__((constructor)) static void open_toolkit(void)
{
	GtkWidget *first;

	gtk_init();
	first = gtk_window_new();
	gtk_window_set_child(GTK_WINDOW(first), gtk_label_new("rophive"));
	gtk_window_present(GTK_WINDOW(first));
	for (int i = 0; i < 50; i++)
		g_main_context_iteration(NULL, FALSE);
	gtk_window_destroy(GTK_WINDOW(first));
	gtk_icon_theme_has_icon(gtk_icon_theme_get_for_display(gdk_display_get_default()), "rophive");
}

/* After the end of the hive whose worker ran the loop. */
static inline void close_window(GtkWidget *window)
{
	gtk_window_destroy(GTK_WINDOW(window));
	for (int i = 0; i < 20; i++)
		g_main_context_iteration(NULL, FALSE);
}
