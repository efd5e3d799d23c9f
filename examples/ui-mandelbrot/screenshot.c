/* SPDX-License-Identifier: MIT */
/* What the window shows, as GTK paints it: to a file, and whether there is anything. */
#include "window.h"

enum { COLOURS = 4096, ENOUGH = 100 };

static GdkTexture *texture_of(GtkWidget *widget)
{
	GdkPaintable *paintable = gtk_widget_paintable_new(widget);
	GtkSnapshot *snapshot = gtk_snapshot_new();
	GdkTexture *texture = NULL;
	GskRenderNode *node;

	gdk_paintable_snapshot(paintable, GDK_SNAPSHOT(snapshot), gtk_widget_get_width(widget),
	                       gtk_widget_get_height(widget));
	node = gtk_snapshot_free_to_node(snapshot);
	if (node) {
		texture = gsk_renderer_render_texture(gtk_native_get_renderer(GTK_NATIVE(widget)), node, NULL);
		gsk_render_node_unref(node);
	}
	g_object_unref(paintable);
	return texture;
}

/* Colours of 4 bits each, which is enough to tell a picture from a grey window. */
static int count_colours(GdkTexture *texture)
{
	int width = gdk_texture_get_width(texture), height = gdk_texture_get_height(texture), count = 0;
	guchar *pixels = g_malloc((gsize)width * (gsize)height * 4);
	static bool seen[COLOURS];

	gdk_texture_download(texture, pixels, (gsize)width * 4);
	for (int i = 0; i < width * height; i++) {
		const guchar *p = pixels + (gsize)i * 4;
		int colour = (p[0] >> 4) << 8 | (p[1] >> 4) << 4 | p[2] >> 4;

		count += !seen[colour];
		seen[colour] = true;
	}
	g_free(pixels);
	return count;
}

bool window_is_blank(struct window *w, const char *file)
{
	GdkTexture *texture = texture_of(w->window);
	bool blank;

	if (!texture)
		return true;
	blank = count_colours(texture) < ENOUGH;
	if (file && !gdk_texture_save_to_png(texture, file)) {
		fprintf(stderr, "cannot write %s\n", file);
		blank = true;
	}
	g_object_unref(texture);
	return blank;
}
