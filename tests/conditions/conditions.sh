# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# One function for each condition: in_NAME COMMAND... runs the command there and returns its status, or 77 after a line
# "skipped: why" where this machine does not let us.

skip() { echo "skipped: $*" && return 77; }

# All threads on one processor, the last one that we may use; nothing runs at the same time as something else.
in_one_cpu() {
	local last
	last=$(taskset -cp $BASHPID | sed 's/.*[:,-] *//')
	taskset -c "$last" "$@"
}

# Eight processes for each processor, each with more threads than there are processors.
in_crowd() {
	local copies=$((8 * $(nproc))) i pids=() pid status=0
	for ((i = 0; i < copies; i++)); do
		ROPHIVE_STRESS_SEED=$((RANDOM + i)) "$@" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
	return $status
}

# A process that has ended stays in its group for a moment.
remove_group() {
	local i
	for ((i = 0; i < 100; i++)); do
		rmdir "$1" 2>/dev/null && return
		sleep 0.1
	done
}

# A fifth of a processor: 20 ms in each 100 ms, then everything stands still, with or without a lock in hand. A short program runs again until
# that has happened.
in_quota() {
	local group status=0 i
	if [ -e /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then # version 1
		group=/sys/fs/cgroup/cpu/rophive-$BASHPID
		mkdir $group 2>/dev/null || { skip "no cgroup can be made"; return; }
		{ echo 100000 >$group/cpu.cfs_period_us && echo 20000 >$group/cpu.cfs_quota_us; } 2>/dev/null || status=77
	else
		group=/sys/fs/cgroup/rophive-$BASHPID
		{ echo +cpu >/sys/fs/cgroup/cgroup.subtree_control && mkdir $group; } 2>/dev/null ||
			{ skip "no cgroup can be made"; return; }
		echo '20000 100000' 2>/dev/null >$group/cpu.max || status=77
	fi
	if [ $status -ne 0 ]; then
		skip "no quota can be set"
	else
		for ((i = 0; i < 20; i++)); do
			sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' $group "$@" || { status=$? && break; }
			! grep -q '^nr_throttled [1-9]' $group/cpu.stat || break
		done
		sed -n 's/^nr_throttled /throttled /p' $group/cpu.stat
	fi
	remove_group $group
	return $status
}

# The whole process stands still at random moments, or one of its threads while the others go on.
in_stopped() { timeout 1800 tests/conditions/pause process $RANDOM "$@"; }
in_threads() { timeout 1800 tests/conditions/pause threads $RANDOM "$@"; }

# across SECONDS COMMAND...: the monotonic clock passes this point one to three seconds from now. The command runs again
# and again until well after.
across() {
	local point=$1 offset clock='int(time.clock_gettime(time.CLOCK_MONOTONIC))'
	shift
	unshare -T --fork true 2>/dev/null || { skip "no time namespace can be made"; return; }
	offset=$(python3 -c "import time; print($point - 2 - $clock)")
	unshare -T --monotonic "$offset" --boottime "$offset" --fork bash -c '
		while "${@:2}" || exit; do
			python3 -c "import sys, time; sys.exit($1)" && break
		done' bash "not $clock > $point + 1" "$@"
}

# 2^31 and 2^32 milliseconds: where a time-out kept in 32 bits turns over.
in_days25() { across 2147483 "$@"; }
in_days50() { across 4294967 "$@"; }
