/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/core.h>

/* GLib, and with it GTK: in librophive-glib, which the core does not link. Two ways, docs/ui.md says which is for whom: the worker waits in
 * a GMainContext, so that windows are served in step 1 of its beat; or the context is run by somebody else, and makes the beats.
 * GLib ends the program when there is no memory; nothing here can change that.                                              */
HIVE_BEGIN
struct hive;
struct _GSource; /* GSource */

/* Any thread. A core that is a GMainContext. core_arg: the context, which is the default of this thread as long as it runs the worker; NULL: the
 * default as it is, which in the first thread is that of GTK. The worker owns it from its start to its end; -EBUSY from run, start or attach: another thread
 * does. A loop that a callback of GLib's runs inside (a modal dialog) makes the beats meanwhile: tasks, timers, sources and posts go on.
 * One that a task, a timer, a source or a fiber of the worker runs does not: what is GLib's goes on, what it posts goes out, sources are
 * delivered inside tasks and timers, and all else waits until it returns.                                                   */
const struct hive_core_ops *hive_core_glib(void);
/* Foreign thread. The reverse: hive_guest_start(), and a source that makes the beats of its main worker in whatever context it is attached to, in
 * turns with the sources of the others. Attach it on this thread, before the context runs; unref it as any other. It removes itself when
 * the hive has stopped; one that is destroyed before leaves the steps to you. Errors are those of hive_guest_start(), -EINVAL. */
HIVE_CHECKED int hive_glib_guest(struct hive *hive, struct _GSource **ret_source);
HIVE_END
