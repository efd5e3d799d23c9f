/* SPDX-License-Identifier: MIT */
/* Every public function, one row or several. A row that allocates is called with its first, second, … allocation failing,
 * once and from there on, each time in a new world; a row that does not is shown not to. A function of the headers that
 * has no row fails the test.                                                                                            */
#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>

#include "bus.h"
#include "calls.h"
#include "cancel.h"
#include "fibers.h"
#include "flow.h"
#include "groups.h"
#include "net.h"
#include "process.h"
#include "strands.h"
#include "swept.h"
#include "ui.h"
#include "wrap.h"

enum state { NO_HIVE, CREATED, RUNNING, INSIDE };
enum law {
	SILENT,   /* does not allocate */
	FAILS,    /* a refused allocation is -ENOMEM, and nothing was done */
	SURVIVES, /* finds another way: returns 0 all the same */
	EITHER    /* finds another way for some of them: 0 or -ENOMEM */
};

struct row {
	const char *name;
	enum state state;
	enum law law;
	int (*call)(struct world *w);
	void (*before)(struct world *w); /* without faults */
};

static int injected;

/* Several names share a row where one call would be too little to look at. */
static const struct row rows[] = {
	{ "hive_create", CREATED, FAILS, create, NULL },
	{ "hive_destroy", CREATED, SILENT, destroy, make_extra },
	{ "hive_start", CREATED, FAILS, start, NULL },
	{ "hive_run", CREATED, FAILS, run, post_stop },
	{ "hive_stop", RUNNING, SILENT, stop_drain, load_second },
	{ "hive_stop", RUNNING, SILENT, stop_now, load_second },
	{ "hive_stop", CREATED, SILENT, stop_now, load_second },
	{ "hive_join", RUNNING, SURVIVES, join, load_and_stop },
	{ "hive_attach", CREATED, FAILS, attach, NULL },
	{ "hive_attach", RUNNING, FAILS, attach, NULL },
	{ "hive_attach", INSIDE, FAILS, attach, NULL },
	{ "hive_attach", RUNNING, FAILS, attach_compute, NULL },
	{ "hive_attach", CREATED, FAILS, attach_wheel, NULL },
	{ "hive_attach", RUNNING, FAILS, attach_wheel, NULL },
	{ "hive_detach", RUNNING, SURVIVES, detach, load_second },
	{ "hive_detach", CREATED, SURVIVES, detach, load_second },
	{ "hive_resize", CREATED, EITHER, resize_up, NULL },
	{ "hive_resize", RUNNING, EITHER, resize_up, NULL },
	{ "hive_resize", RUNNING, SURVIVES, resize_down, load_second },
	{ "hive_resize", CREATED, SURVIVES, resize_down, load_second },
	{ "hive_post", CREATED, FAILS, to_pool, NULL },
	{ "hive_post", RUNNING, FAILS, to_pool, fill_pool },
	{ "hive_post", INSIDE, SILENT, to_pool, NULL },
	{ "hive_post", INSIDE, SURVIVES, to_pool, fill_outbox },
	{ "hive_post", INSIDE, FAILS, to_pool, fill_outbox_and_local },
	{ "hive_post_placed", CREATED, SILENT, placed, NULL },
	{ "hive_post_placed", RUNNING, FAILS, placed, NULL }, /* all are asleep: to the pool */
	{ "hive_post_many", CREATED, FAILS, many_few, NULL },
	{ "hive_post_many", RUNNING, FAILS, many_few, fill_pool },
	{ "hive_post_many", RUNNING, FAILS, many_lots, NULL },
	{ "hive_post_many", INSIDE, FAILS, many_lots, NULL },
	{ "hive_post_to", RUNNING, FAILS, to_worker, NULL },
	{ "hive_post_to", INSIDE, FAILS, to_worker, fill_parcels },
	{ "hive_post_to", INSIDE, EITHER, to_second, NULL }, /* without a lane by the inbox */
	{ "hive_post_keyed", RUNNING, FAILS, keyed, NULL },
	{ "hive_keyed_worker", RUNNING, SILENT, keyed_worker, NULL },
	{ "hive_post_after", CREATED, FAILS, after, NULL },
	{ "hive_post_after", RUNNING, FAILS, after, fill_delayed },
	{ "hive_post_cancel", RUNNING, SILENT, cancel, post_far },
	{ "hive_post_cancel", INSIDE, SILENT, cancel, post_far },
	{ "hive_post_compute", RUNNING, FAILS, to_compute, NULL },
	{ "hive_post_compute", RUNNING, FAILS, to_compute, fill_compute },
	{ "hive_post_compute_many", RUNNING, FAILS, compute_few, NULL },
	{ "hive_post_compute_many", INSIDE, FAILS, compute_lots, NULL },
	{ "hive_post_compute_at", RUNNING, FAILS, to_high, NULL },
	{ "hive_post_compute_at", RUNNING, FAILS, to_low, fill_low },
	{ "hive_post_compute_at_many", RUNNING, FAILS, high_few, NULL },
	{ "hive_post_compute_at_many", INSIDE, FAILS, high_lots, NULL },
	{ "hive_post_compute_then", RUNNING, FAILS, then, NULL },
	{ "hive_post_compute_then", INSIDE, FAILS, then, fill_compute },
	{ "hive_post_kind", RUNNING, FAILS, kind_now, NULL },
	{ "hive_post_kind", RUNNING, FAILS, kind_later, NULL },
	{ "hive_post_kind", RUNNING, FAILS, kind_compute, NULL },
	{ "hive_post_local", INSIDE, SILENT, local, NULL },
	{ "hive_post_local", INSIDE, FAILS, local, fill_local },
	{ "hive_post_self", INSIDE, FAILS, self, fill_self },
	{ "hive_post_self_after", INSIDE, FAILS, self_after, NULL },
	{ "hive_post_self_after", INSIDE, FAILS, self_after, fill_self_after },
	{ "hive_guest_start", NO_HIVE, FAILS, guest_start, make_guest },
	{ "hive_guest_step", NO_HIVE, SILENT, guest_step, start_guest },
	{ "hive_update_init", CREATED, SILENT, update_init, NULL },
	{ "hive_update_post", RUNNING, FAILS, update_post, NULL },
	{ "hive_update_post", INSIDE, FAILS, update_post, fill_parcels },
	{ "hive_update_stop", INSIDE, SILENT, update_stop, make_update },
	{ "hive_frames_init", CREATED, SILENT, frames_init, NULL },
	{ "hive_frames_start", INSIDE, FAILS, frames_start, make_frames },
	{ "hive_frames_stop", INSIDE, SILENT, frames_stop, start_frames },
	{ "hive_frames_align", INSIDE, SILENT, frames_align, start_frames },
	{ "hive_frames_read", CREATED, SILENT, frames_read, make_frames },
	{ "hive_timer_init", CREATED, SILENT, timer_init, NULL },
	{ "hive_timer_start", INSIDE, FAILS, timer_start, make_timer },
	{ "hive_timer_start", INSIDE, SILENT, timer_start, arm_timer },
	{ "hive_timer_stop", INSIDE, SILENT, timer_stop, arm_timer },
	{ "hive_source_init", CREATED, SILENT, source_init, NULL },
	{ "hive_source_start", INSIDE, FAILS, source_start, start_others },
	{ "hive_source_modify", INSIDE, SILENT, source_modify, start_source },
	{ "hive_source_stop", INSIDE, SILENT, source_stop, start_source },
	{ "hive_source_deliver", INSIDE, SILENT, deliver, start_source },
	{ "hive_core_enter hive_core_leave hive_core_beat", INSIDE, SILENT, foreign_core, NULL },
	{ "hive_stats_read", RUNNING, SILENT, stats, load_second },
	{ "hive_worker_stats_read", RUNNING, SILENT, worker_stats, NULL },
	{ "hive_dump", RUNNING, SILENT, dump, load_second },
	{ "hive_stats_write", RUNNING, SILENT, stats_write, load_second },
	{ "hive_report_read", RUNNING, SILENT, report, NULL },
	{ "hive_workers", RUNNING, SILENT, workers, NULL },
	{ "hive_worker_current hive_current hive_should_yield", INSIDE, SILENT, whoami, NULL },
	{ "hive_core_find", NO_HIVE, SILENT, core_find, NULL },
	{ "hive_version hive_error_name hive_error_text hive_sizeof", NO_HIVE, SILENT, words, NULL },
	{ "hive_cpus", NO_HIVE, SILENT, machine, NULL },
	{ "hive_tune_options", NO_HIVE, SILENT, tune_options, name_parameters },
	{ "hive_now hive_deadline hive_poll_ms", RUNNING, SILENT, clocks, NULL },
	{ "hive_channel_create", NO_HIVE, FAILS, channel_create, NULL },
	{ "hive_channel_destroy hive_channel_send hive_channel_recv hive_channel_close", NO_HIVE, SILENT, channel_use,
	  make_channel },
	{ "hive_mutex_init hive_mutex_lock hive_mutex_unlock hive_cond_init hive_cond_wait hive_cond_signal "
	  "hive_cond_broadcast hive_semaphore_init hive_semaphore_acquire hive_semaphore_release",
	  NO_HIVE, SILENT, lock_all, NULL },
	{ "hive_rwlock_init hive_rwlock_lock_read hive_rwlock_lock_write hive_rwlock_unlock_read "
	  "hive_rwlock_unlock_write hive_rwlock_downgrade hive_barrier_init hive_barrier_wait hive_once_init "
	  "hive_once_run",
	  NO_HIVE, SILENT, lock_more, NULL },
	{ "hive_select", NO_HIVE, SILENT, select_few, NULL },
	{ "hive_select", NO_HIVE, FAILS, select_many, NULL },
	{ "hive_oneshot_create", NO_HIVE, FAILS, oneshot_create, NULL },
	{ "hive_watch_create", NO_HIVE, FAILS, watch_create, NULL },
	{ "hive_broadcast_create", NO_HIVE, FAILS, broadcast_create, NULL },
	{ "hive_oneshot_send hive_oneshot_drop hive_oneshot_recv hive_oneshot_close hive_watch_destroy hive_watch_send "
	  "hive_watch_read hive_watch_wait hive_watch_close hive_broadcast_destroy hive_broadcast_send "
	  "hive_broadcast_close hive_broadcast_subscribe hive_broadcast_unsubscribe hive_broadcast_recv",
	  NO_HIVE, SILENT, flow_all, make_flow },
	{ "hive_rate_init hive_rate_acquire hive_limiter_init hive_limiter_enter hive_limiter_leave "
	  "hive_limiter_resize hive_limiter_read",
	  NO_HIVE, SILENT, limit_all, NULL },
	{ "hive_strand_create", RUNNING, FAILS, strand_create, NULL },
	{ "hive_strand_post", CREATED, EITHER, to_strand, make_strand }, /* the way to a worker may be another one */
	{ "hive_strand_post", RUNNING, EITHER, to_strand, make_strand },
	{ "hive_strand_post", RUNNING, FAILS, to_strand, fill_strand },
	{ "hive_strand_post", INSIDE, FAILS, to_strand, make_strand },
	{ "hive_strand_barrier", RUNNING, EITHER, to_strand_alone, make_strand },
	{ "hive_strand_barrier", INSIDE, SILENT, to_strand_alone, use_strand },
	{ "hive_strand_join hive_strand_destroy", RUNNING, SILENT, strand_join, use_strand },
	{ "hive_graph_create", NO_HIVE, FAILS, graph_create, make_runtime },
	{ "hive_graph_add", NO_HIVE, FAILS, graph_add, make_graph },
	{ "hive_graph_edge", NO_HIVE, FAILS, graph_edge, make_nodes },
	{ "hive_graph_run", NO_HIVE, SURVIVES, graph_run, build_graph },
	{ "hive_graph_run hive_graph_check", NO_HIVE, SILENT, graph_run, run_graph },
	{ "hive_graph_start", NO_HIVE, SILENT, graph_start, run_graph },
	{ "hive_graph_destroy", NO_HIVE, SILENT, graph_destroy, run_graph },
	{ "hive_bus_create", NO_HIVE, FAILS, bus_create, NULL },
	{ "hive_bus_bytes hive_bus_start hive_bus_stop hive_bus_pause hive_bus_resume hive_bus_destroy hive_bus_submit "
	  "hive_bus_call hive_bus_request hive_bus_reply hive_bus_subscribe hive_bus_unsubscribe hive_bus_level "
	  "hive_bus_name hive_bus_type_name hive_bus_stats_read hive_bus_worker_stats_read",
	  NO_HIVE, SILENT, bus_all, NULL },
	{ "hive_bus_start", NO_HIVE, EITHER, bus_on_hive, make_runtime },
	{ "hive_runtime_start", NO_HIVE, FAILS, runtime_start, NULL },
	{ "hive_runtime_stop", NO_HIVE, SILENT, runtime_stop, load_runtime },
	{ "hive_spawn", NO_HIVE, EITHER, spawn, make_runtime },
	{ "hive_spawn", NO_HIVE, SILENT, spawn, warm_runtime },
	{ "hive_spawn", NO_HIVE, EITHER, spawn_big, warm_runtime },
	{ "hive_spawn", NO_HIVE, EITHER, spawn_inside, warm_runtime },
	{ "hive_fiber_join", NO_HIVE, SILENT, join_fiber, make_fiber },
	{ "hive_fiber_detach", NO_HIVE, SILENT, detach_fiber, make_fiber },
	{ "hive_fiber_cancel hive_fiber_name", NO_HIVE, SILENT, cancel_fiber, make_fiber },
	{ "hive_wait_all", NO_HIVE, SILENT, wait_all_fibers, make_fiber },
	{ "hive_wait_any", NO_HIVE, SILENT, wait_any_few, make_fiber },
	{ "hive_wait_any", NO_HIVE, FAILS, wait_any_many, make_fiber },
	{ "hive_block_on", NO_HIVE, EITHER, block_on, make_runtime },
	{ "hive_block_on", NO_HIVE, SILENT, block_on, warm_runtime },
	{ "hive_offload", NO_HIVE, FAILS, offload, warm_runtime },
	{ "hive_sleep", NO_HIVE, FAILS, sleep_in_fiber, warm_runtime },
	{ "hive_sleep", NO_HIVE, SILENT, sleep_outside, warm_runtime },
	{ "hive_yield hive_yield_if_due hive_fiber_current hive_fiber_get", NO_HIVE, SILENT, yield_in_fiber,
	  warm_runtime },
	{ "hive_fiber_set", NO_HIVE, FAILS, set_value, warm_runtime },
	{ "hive_cancel_init hive_cancel_fire hive_cancel_fire_with hive_cancel_check hive_cancelled hive_cancel_join "
	  "hive_cancel_watch_init hive_cancel_watch_start hive_cancel_watch_stop",
	  NO_HIVE, SILENT, cancel_all, NULL },
	{ "hive_cancel_arm", NO_HIVE, FAILS, cancel_arm, make_runtime },
	{ "hive_cancel_watch_start", NO_HIVE, FAILS, cancel_watch, make_runtime },
	{ "hive_spawn", NO_HIVE, EITHER, cancel_spawn, warm_runtime },
	{ "hive_post_under", NO_HIVE, EITHER, cancel_post, make_runtime },
	{ "hive_post_under", NO_HIVE, EITHER, cancel_post_with_deadline, make_runtime },
	{ "hive_post_after_under", NO_HIVE, EITHER, cancel_post_after, make_runtime },
	{ "hive_timer_start_under", NO_HIVE, EITHER, cancel_timer, warm_runtime },
	{ "hive_op_under", NO_HIVE, EITHER, cancel_op, warm_runtime },
	{ "hive_group_init hive_group_init_with hive_group_enter hive_group_leave hive_group_fail hive_group_error",
	  NO_HIVE, SILENT, group_words, make_runtime },
	{ "hive_group_run hive_group_run_on hive_group_wait hive_group_raise", NO_HIVE, SURVIVES, group_run_compute,
	  make_runtime },
	{ "hive_group_run hive_group_wait", NO_HIVE, SURVIVES, group_run_micro, warm_runtime },
	{ "hive_group_run hive_group_wait", INSIDE, SURVIVES, group_fork, NULL },
	{ "hive_group_spawn", NO_HIVE, EITHER, group_spawn, make_runtime },
	{ "hive_group_then", NO_HIVE, FAILS, group_then, warm_runtime },
	{ "hive_parallel_for hive_parallel_for_on hive_parallel_for_2d hive_parallel_invoke", NO_HIVE, SURVIVES, loops,
	  make_runtime },
	{ "hive_parallel_reduce", NO_HIVE, EITHER, reduce, make_runtime },
	{ "hive_parallel_sort", NO_HIVE, FAILS, sort_some, make_runtime },
	{ "hive_parallel_sort", NO_HIVE, FAILS, sort_known, make_runtime },
	{ "hive_compare_i32 hive_compare_u32 hive_compare_i64 hive_compare_u64 hive_compare_double", NO_HIVE, SILENT,
	  compare_all, NULL },
	{ "hive_op_init hive_op_cancel hive_op_wait", NO_HIVE, EITHER, op_read, warm_runtime },
	{ "hive_op_deliver", NO_HIVE, EITHER, deliver_op, warm_runtime },
	{ "hive_op_process_start", NO_HIVE, SILENT, op_process_start, warm_runtime },
	{ "hive_op_process_start", NO_HIVE, EITHER, op_process_start, make_runtime },
	{ "hive_op_recv_many hive_buffers_create hive_buffers_destroy hive_buffer_return", NO_HIVE, EITHER,
	  op_recv_many, warm_runtime },
	/* clang-format off */
	OP_ROWS(accept) OP_ROWS(connect) OP_ROWS(recv) OP_ROWS(send) OP_ROWS(recvmsg)
	OP_ROWS(sendmsg) OP_ROWS(read) OP_ROWS(write) OP_ROWS(readv) OP_ROWS(writev)
	OP_ROWS(splice) OP_ROWS(poll) OP_ROWS(shutdown) OP_ROWS(open) OP_ROWS(close)
	OP_ROWS(fsync) OP_ROWS(statx) OP_ROWS(unlink) OP_ROWS(rename) OP_ROWS(mkdir)
	OP_ROWS(resolve) OP_ROWS(dial) SERVED_ROWS(process_wait) SERVED_ROWS(signal_wait)
	IO_ROW(accept) IO_ROW(connect) IO_ROW(recv) IO_ROW(send) IO_ROW(recvfrom) IO_ROW(sendto)
	IO_ROW(recvmsg) IO_ROW(sendmsg) IO_ROW(read) IO_ROW(write) IO_ROW(readv) IO_ROW(writev)
	IO_ROW(splice) IO_ROW(poll_fd) IO_ROW(shutdown) IO_ROW(open) IO_ROW(close) IO_ROW(fsync)
	IO_ROW(statx) IO_ROW(unlink) IO_ROW(rename) IO_ROW(mkdir) IO_ROW(recv_all) IO_ROW(send_all) IO_ROW(serve)
	/* clang-format on */
	{ "hive_address_parse hive_address_format hive_address_port", NO_HIVE, SILENT, use_addresses, NULL },
	{ "hive_listen hive_address_of", NO_HIVE, SILENT, listen_here, NULL },
	{ "hive_socket_pair hive_pipe", NO_HIVE, SILENT, make_pairs, NULL },
	{ "hive_resolve", NO_HIVE, EITHER, resolve, warm_runtime },
	{ "hive_resolve", NO_HIVE, SILENT, resolve_numeric, NULL },
	{ "hive_dial", NO_HIVE, EITHER, dial, warm_runtime },
	{ "hive_send_fd hive_recv_fd", NO_HIVE, EITHER, pass_fd, warm_runtime },
	{ "hive_stream_create", NO_HIVE, FAILS, create_stream, NULL },
	{ "hive_stream_write hive_stream_write_frame hive_stream_flush hive_stream_fd", NO_HIVE, EITHER, stream_write,
	  make_stream },
	{ "hive_stream_read hive_stream_read_line hive_stream_read_frame", NO_HIVE, EITHER, stream_read, fill_stream },
	{ "hive_stream_destroy", NO_HIVE, SILENT, stream_destroy, make_stream },
	{ "hive_op_deliver", NO_HIVE, EITHER, lone_read, make_lone_runtime },
	{ "hive_signal_watch hive_signal_unwatch", NO_HIVE, FAILS, watch, NULL },
	{ "hive_signal_wait", NO_HIVE, FAILS, wait_for_signal, NULL },
	{ "hive_process_start hive_process_wait hive_process_signal", NO_HIVE, FAILS, start_and_wait, NULL },
	{ "hive_process_start hive_signal_watch", NO_HIVE, SILENT, refused_in_simulation, warm_runtime },
	{ "hive_tty_raw hive_tty_restore hive_tty_size hive_tty_open", NO_HIVE, SILENT, use_tty, NULL },
	{ "hive_sim_create", NO_HIVE, FAILS, sim_create, NULL },
	{ "hive_sim_host", NO_HIVE, SILENT, sim_host, NULL },
	{ "hive_sim_advance", RUNNING, SURVIVES, sim_advance, load_second },
	{ "hive_sim_spend", INSIDE, SILENT, sim_spend, NULL },
	{ "hive_sim_hash", RUNNING, SILENT, sim_hash, NULL },
	{ "hive_sim_destroy", NO_HIVE, SILENT, sim_destroy, make_sim },
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- one run of one row ---- */

struct attempt {
	const struct row *row;
	struct world *w;
	int nth, result, again;
	bool sticky;
	int repeats; /* of the call that fails */
	int allocations;
	int late; /* allocations of the call that succeeds at last */
};

/* The call with its fault; if that made it fail, the same call once more without. */
static void make_call(struct attempt *a)
{
	if (a->row->before)
		a->row->before(a->w);
	wrap.allocations = 0;
	wrap.fail_at = a->nth;
	wrap.sticky = a->sticky;
	wrap.on = true;
	a->result = a->row->call(a->w);
	for (int i = 1; i < a->repeats && a->result < 0; i++)
		CHECK_EQ(a->row->call(a->w), a->result);
	a->allocations = wrap.allocations;
	wrap.fail_at = wrap.allocations = 0;
	a->again = a->result < 0 ? a->row->call(a->w) : 0;
	a->late = wrap.allocations;
	wrap.on = false;
}

static struct attempt *inside;

static void call_inside(void *arg)
{
	(void)arg;
	make_call(inside);
}

static void call_in_a_task(struct attempt *a)
{
	struct entry *e = ledger_open(&ledger, false);

	inside = a;
	e->body = call_inside;
	CHECK_OK(hive_post_to(a->w->hive, a->w->main, ledger_run, e));
	ledger_answered(e, 0);
	hive_sim_advance(a->w->sim, 0);
}

static void make_world(struct world *w, enum state state)
{
	struct hive_options o;
	uint32_t ids[3];

	ledger_clear(&ledger, w);
	for (int i = 0; i < 19; i++)
		CHECK((w->fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) >= 0);
	CHECK((w->fds[19] = open("/dev/null", O_WRONLY | O_CLOEXEC)) >= 0);
	CHECK_OK(hive_sim_create(&(struct hive_sim_options){ .seed = 1 }, &w->sim));
	if (state == NO_HIVE)
		return;
	o = options_of(w);
	CHECK_OK(hive_create(&o, &w->hive));
	CHECK_EQ(hive_workers(w->hive, ids, 3), 3);
	w->main = ids[0];
	w->second = ids[1];
	if (state != CREATED) {
		CHECK_OK(hive_start(w->hive));
		hive_sim_advance(w->sim, HIVE_MS(1));
	}
}

/* The hive works: a task of each kind runs, and everything before it has. Unless it was the row that stopped it. */
static void use_world(struct world *w)
{
	int r = hive_start(w->hive);

	CHECK(r == 0 || r == -EALREADY || r == -ESHUTDOWN);
	if (r != -ESHUTDOWN) {
		faultless(w, to_pool_how, 1);
		faultless(w, after_how, 1);
		faultless(w, then_how, 1);
		hive_sim_advance(w->sim, HIVE_MS(10));
		CHECK_EQ(load_seq(&ledger.open), 0);
		CHECK_OK(hive_stop(w->hive, HIVE_NOW, HIVE_FOREVER));
	}
	CHECK_OK(hive_join(w->hive, HIVE_FOREVER));
}

static void end_world(struct world *w)
{
	struct hive_report books;

	if (w->hive) {
		use_world(w);
		CHECK_OK(hive_report_read(w->hive, &books));
		ledger_check(&ledger, &books);
		CHECK_OK(hive_destroy(w->hive));
	}
	end_strands();
	end_stream();
	end_extra(w);
	CHECK_OK(hive_sim_destroy(w->extra_sim));
	CHECK_OK(hive_channel_destroy(w->channel));
	CHECK_OK(hive_sim_destroy(w->sim));
	for (int i = 0; i < 20; i++)
		CHECK_OK(close(w->fds[i]));
}

static bool is_lawful(const struct row *row, const struct attempt *a)
{
	bool reached = a->nth > 0 && a->allocations >= a->nth;

	if (row->law == EITHER)
		return a->result == 0 || (a->result == -ENOMEM && reached);
	return a->result == (row->law == FAILS && reached ? -ENOMEM : 0);
}

static struct attempt try_row(const struct row *row, int nth, bool sticky, int repeats)
{
	struct world w = { 0 };
	struct attempt a = { .row = row, .w = &w, .nth = nth, .sticky = sticky, .repeats = repeats };
	int64_t balance = load_relaxed(&wrap.balance);

	make_world(&w, row->state);
	a.result = INT32_MAX; /* never called */
	if (row->state == INSIDE)
		call_in_a_task(&a);
	else
		make_call(&a);
	if (a.again != 0 || !is_lawful(row, &a))
		test_fail(__FILE__, __LINE__, "%s (row %d), allocation %d%s: %s, then %s", row->name, (int)(row - rows),
		          nth, sticky ? " and all after it" : "", test_error(a.result), test_error(a.again));
	end_world(&w);
	CHECK_EQ(load_relaxed(&wrap.balance), balance);
	return a;
}

/* Places come in pieces of 64: a call that fails must give back the place that it had already taken, or the next piece is
 * needed too soon.                                                                                                       */
static void try_again_and_again(const struct row *row, int nth)
{
	int once, often;

	if (row->call == many_lots || row->call == compute_lots ||
	    row->call == high_lots) /* more entries than the ledger has */
		return;
	once = try_row(row, nth, true, 1).late;
	often = try_row(row, nth, true, 70).late;

	if (once != often)
		test_fail(__FILE__, __LINE__, "%s (row %d), allocation %d: after 70 failures it needs %d, after one %d",
		          row->name, (int)(row - rows), nth, often, once);
}

static void sweep_row(const struct row *row)
{
	int count = try_row(row, 0, false, 1).allocations;

	if ((count > 0) != (row->law != SILENT))
		test_fail(__FILE__, __LINE__, "%s (row %d) makes %d allocations", row->name, (int)(row - rows), count);
	for (int sticky = 0; sticky < 2; sticky++) {
		for (int nth = 1; try_row(row, nth, sticky, 1).allocations >= nth; nth += LONELY_STRIDE, injected++) {
			CHECK(nth < 10000);
			if (row->law == FAILS && nth <= 2 && sticky)
				try_again_and_again(row, nth);
		}
	}
}

/* Without the page that stays nothing is done, and the next call gets it. */
TEST(what_is_made_once_may_be_refused)
{
	wrap.allocations = 0;
	wrap.fail_at = 1;
	wrap.sticky = false;
	wrap.on = true;
	CHECK_ERR(hive_signal_watch(awaited, 2), -ENOMEM);
	wrap.allocations = 0;
	CHECK_ERR(hive_process_wait(1, HIVE_NOWAIT), -ENOMEM);
	wrap.on = false;
	CHECK(is_untouched(SIGUSR1));
	make_what_stays();
}

TEST(every_function_survives_each_failing_allocation)
{
	make_what_stays();
	for (int i = 0; i < ROWS; i++)
		sweep_row(&rows[i]);
	printf("faults injected: %d\n", injected);
}

/* ---- is the table complete? ---- */

static bool is_in_table(const char *name, size_t length)
{
	for (int i = 0; i < ROWS; i++) {
		const char *at = rows[i].name;

		while (*at) {
			size_t n = strcspn(at, " ");

			if (n == length && strncmp(at, name, n) == 0)
				return true;
			at += n + (at[n] == ' ');
		}
	}
	return false;
}

TEST(every_function_of_the_headers_has_a_row)
{
	int found = 0;
	struct dirent *entry;
	DIR *directory = opendir(swept_folder());

	if (!directory)
		test_fail(__FILE__, __LINE__, "no headers in %s: set ROPHIVE_SOURCE to the root of the tree",
		          swept_folder());
	while ((entry = readdir(directory)) != NULL)
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "tls.h") != 0 &&
		    strcmp(entry->d_name, "dns.h") != 0 && /* tests/tls/faults.c, tests/dns/faults.c */
		    strcmp(entry->d_name, "glib.h") != 0)  /* GLib ends the program */
			found += swept_header(entry->d_name, is_in_table);
	closedir(directory);
	CHECK(found >= 45); /* the reader reads */
}
