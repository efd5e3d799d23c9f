# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2054
# Shared by scripts/test and scripts/test-long; sourced in the root of the tree.

passed=0 failed=0
this_run=$$.$EPOCHSECONDS
go_on= # not empty: a stage that fails does not keep the others from running
test_timeout= # seconds for one ctest test; empty: as cmake/tests.cmake has it
# Lines are what a report needs; the build that users get has more.
lines=("-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG")
debug=(-DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O1 -g1" -DROPHIVE_TOOLS=OFF)
asan_build=("${debug[@]}" -DROPHIVE_DEBUG=ON -DROPHIVE_SANITIZE=address,undefined)
# With one thread, or with threads that others test as well, and slow: ThreadSanitizer sees them in test-long.
slow_with_tsan='sched.memory|sched.timer_rules|fiber.memory|fiber.waiting|tls.handshake'
tsan_build=("${debug[@]}" -DROPHIVE_SANITIZE=thread)
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

# configure FOLDER COMPILER OPTION...: configures and builds build/FOLDER, once in a run; who comes meanwhile waits. Quiet unless it fails.
configure() {
	local folder=build/$1 log=build/$1.log made=build/run/$1.built what="$this_run $test_timeout ${*:2}"
	[ "$1" = . ] && log=build/gcc.log made=build/run/gcc.built
	mkdir -p "$folder" build/run
	(
		flock 9
		[ "$(cat "$made" 2>/dev/null)" = "$what" ] && exit
		cmake -S . -B "$folder" -G Ninja -DCMAKE_C_COMPILER="$2" -DROPHIVE_WERROR=ON \
			-DROPHIVE_TEST_TIMEOUT="$test_timeout" "${@:3}" >"$log" 2>&1 &&
			cmake --build "$folder" >>"$log" 2>&1 && echo "$what" >"$made" && exit
		grep -v '^\[[0-9]*/[0-9]*\] \(Building\|Linking\)' "$log" | tail -n 200
		echo "rophive: the build in $folder failed"
		exit 1
	) 9>"$made.lock"
}

# configure_for ARCHITECTURE: a build for another processor.
configure_for() {
	configure "$1" "$1-linux-gnu-gcc" --toolchain "cmake/$1.cmake" -DROPHIVE_TOOLS=OFF -DROPHIVE_INSTALL=OFF "${lines[@]}"
}

build_gcc() { configure . gcc; }
build_clang() { configure clang clang "${lines[@]}" -DROPHIVE_WINDOWS=OFF; }
build_asan() { configure asan gcc "${asan_build[@]}"; }
build_tsan() { configure tsan gcc "${tsan_build[@]}"; }
build_aarch64() { configure_for aarch64; }
build_riscv64() { configure_for riscv64; }

# Programs that ask how much memory or which pages the process has (in an emulator it is the emulator's), need children as the system
# makes them, or look at memory that may be gone (process_vm_readv: who waits for whom).
not_emulated='^(fiber.standstill|io.cold|io.served|io.served_ends|sched.resize|sync.deadlock)$'

# other_processors: all that is built for them, in an emulator. What that cannot do is skipped, and counted.
other_processors() {
	local architecture
	for architecture in aarch64 riscv64; do
		build_$architecture && run_ctest $architecture -LE '^(check|httpd|tool)$' -E "$not_emulated" || return 1
		figure "skipped on $architecture (qemu)" \
			"$(grep -c '^skipped' build/$architecture/Testing/Temporary/LastTest.log)"
	done
}

# bus_alone FOLDER: the message bus without the rest, built and tested in a folder that is configured, or for armhf.
bus_alone() {
	local program runner=()
	[ "$1" = . ] || runner=(tests/arch/emulate "${1/armhf/arm}")
	mkdir -p "build/$1"
	[ "$1" != armhf ] || cmake -S . -B build/armhf -G Ninja --toolchain cmake/armhf.cmake -DROPHIVE_WERROR=ON -DROPHIVE_TOOLS=OFF \
		-DROPHIVE_INSTALL=OFF >"build/alone-armhf.log" 2>&1 || { cat build/alone-armhf.log; return 1; }
	cmake --build "build/$1" --target alone >"build/alone-$1.log" 2>&1 || { tail -n 50 "build/alone-$1.log"; return 1; }
	for program in "build/$1"/alone/alone.*; do
		if "${runner[@]}" "$program" >"build/alone-$1.log" 2>&1; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1)) && cat "build/alone-$1.log" && return 1
		fi
	done
	figure "bus alone, code for $1 (-Os)" "$(bus_size "$1") bytes"
}

# bus_size FOLDER: bytes of code and constants of the message bus and what it needs, optimized for size, for that folder's processor.
bus_size() {
	local prefix= work file
	case $1 in aarch64) prefix=aarch64-linux-gnu- ;; armhf) prefix=arm-linux-gnueabihf- ;; esac
	work=$(mktemp -d)
	for file in src/bus/*.c src/base/{clock,futex,latch,memory,quiet,thread}.c; do
		[ "$file" = src/bus/home_hive.c ] ||
			"${prefix}gcc" -std=c11 -Os -D_GNU_SOURCE= -DHIVE_BUS_ALONE=1 -Iinclude -Isrc -c "$file" -o "$work/${file//\//_}.o"
	done
	"${prefix}size" "$work"/*.o | awk 'NR > 1 { n += $1 } END { print n }'
	rm -rf "$work"
}

# run_ctest FOLDER ARGUMENT...: adds to passed and failed. Only failures are shown.
run_ctest() {
	local log=build/$1.ctest fixed=() status=0
	[ "$1" = . ] && log=build/gcc.ctest
	# ThreadSanitizer of gcc 12 does not bear the wide address randomisation of newer kernels.
	setarch -R true 2>/dev/null && fixed=(setarch -R)
	# Twice as many as there are processors: many tests wait more than they compute.
	"${fixed[@]}" ctest --test-dir "build/$1" -j "$(($(nproc) * 2))" --output-on-failure --no-tests=error "${@:2}" \
		>"$log" 2>&1 || status=1
	[ $status -eq 0 ] || cat "$log"
	# "97% tests passed, 1 tests failed out of 37"
	local bad all
	read -r bad all < <(sed -n 's/^.*tests passed, \([0-9]*\) tests failed out of \([0-9]*\)$/\1 \2/p' "$log") || true
	failed=$((failed + ${bad:-0})) passed=$((passed + ${all:-0} - ${bad:-0}))
	return $status
}

# run_counted NAME COMMAND...: a program of our own that ends with "N passed, M failed". Shown when it fails. Its status.
run_counted() {
	local log=build/$1.log status=0 good bad
	mkdir -p build # the first stage may be one that builds nothing
	"${@:2}" >"$log" 2>&1 || status=$?
	[ $status -eq 0 ] || cat "$log"
	read -r good bad < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log") || true
	failed=$((failed + ${bad:-0})) passed=$((passed + ${good:-0}))
	return $status
}

# run_conditions short|full: tests/conditions in all builds that it uses.
run_conditions() {
	[ "$1" = short ] || configure tsan-clang clang "${tsan_build[@]}" || return 1
	build_gcc && build_tsan && build_asan && run_counted conditions tests/conditions/run "$1" || return 1
	figure 'hard conditions (build x condition x program)' "$(grep -c '^ok' build/conditions.log), \
$(grep '^[0-9]* skipped' build/conditions.log)"
}

# figure NAME TEXT: what a stage has measured ("model scenarios" "42"). Printed at the end of the run.
figures=()
figure() { figures+=("$(printf '%-36s %s' "$1" "$2")"); }

# Which lines and branches the tests execute; fails below a bar.
stage_coverage() {
	run_counted coverage.report scripts/coverage || return 1
	figure 'coverage lines' "$(sed -n 's/^coverage lines //p' build/coverage.report.log)"
	figure 'coverage branches' "$(sed -n 's/^coverage branches //p' build/coverage.report.log)"
}

# count_faults LOG...: the sum of the lines "faults injected: 12" in the logs of fault sweeps.
count_faults() { awk '/^faults injected: / { n += $3 } END { print n + 0 }' "$@"; }

# models: the scenarios of the model checker.
models() {
	run_counted models tests/model/run || return 1
	figure 'model scenarios (Relacy)' "$(grep -c '^ok' build/models.log)"
	figure 'model schedules (Relacy)' "$(awk '$1 == "ok" { n += $3 } END { print n }' build/models.log)"
}

# fuzz SECONDS: the fuzz targets, so long each.
fuzz() {
	run_counted fuzz tests/fuzz/run "$1" || return 1
	figure 'fuzz targets' "$(grep -c '^ok' build/fuzz.log)"
	figure 'fuzz executions' "$(awk '$1 == "ok" { n += $6 } END { print n }' build/fuzz.log)"
}

# found_of LOG: "21 of 21", of planted mistakes.
found_of() { sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$1" | { read -r good bad && echo "$good of $((good + bad))"; }; }

# programs NAME BEFORE: how many tests of ctest came since passed + failed was BEFORE.
programs() { figure "programs ($1)" "$((passed + failed - $2))"; }

# What the explorer has done (build/explore*.log), and what it has found (build/canaries.log).
explored_figures() {
	figure 'explored steps' "$(cat build/explore.log build/explore-each.log | awk '$1 == "steps" { n += $2 } END { printf "%.0f", n }')"
	figure 'explored switches' "$(cat build/explore.log build/explore-each.log | awk '$1 == "switches" { n += $2 } END { printf "%.0f", n }')"
}
canary_figures() {
	figure 'planted bugs found (explorer)' "$(grep -c '^found' build/canaries.log) of $(grep -cE '^(found|ALIVE|LATE|STALE|BROKEN) ' build/canaries.log)"
	figure 'shrunk and replayed (explorer)' "$(sed -n 's/^replayed: \(.*\) are enough:.*/\1/p' build/canaries.log)"
}

# spin_figures LOG: what tests/spin/run has looked at.
spin_figures() {
	figure 'Spin configurations' "$(grep -c '^ok .* states ' "$1")"
	figure 'Spin states' "$(awk '$1 == "ok" && $3 == "states" { n += $4 } END { print n }' "$1")"
	figure 'Spin mutants found' "$(grep -c '^found ' "$1")"
}

# run_stages NAME...: each is a function stage_NAME, or was given to start_chores.
run_stages() {
	local stage word status=0 summary=() took spent
	# shellcheck disable=SC2048 # the default comes as one word
	for stage in $*; do
		declare -F "stage_$stage" >/dev/null || { echo "rophive: no stage named $stage" >&2; exit 2; }
		echo "== $stage"
		word=ok
		if [[ " ${chores[*]} " = *" stage_$stage "* ]]; then await_chore "$stage"; else run_stage "$stage"; fi || word=FAILED status=1
		summary+=("$(printf '%-10s %-6s %5d s %5d s of processors %6d tests' "$stage" $word "${took[@]}")")
		[ $word = ok ] || [ -n "$go_on" ] || break
	done
	echo
	printf '%s\n' "${summary[@]}"
	[ ${#figures[@]} -eq 0 ] || printf '%s\n' '' "${figures[@]}"
	[ $status -eq 0 ] || [ $failed -gt 0 ] || failed=1 # a stage that broke without a test, a build for example
	echo "$passed passed, $failed failed"
	exit $status
}

# run_stage NAME: sets took: seconds, seconds of processors, tests.
run_stage() {
	local start=$SECONDS before=$((passed + failed)) used status=0
	processor_seconds && used=$spent
	"stage_$1" || status=1
	processor_seconds
	took=($((SECONDS - start)) $((spent - used)) $((passed + failed - before)))
	return $status
}

# Sets spent: by all that has ended below this shell.
processor_seconds() {
	local words
	read -ra words </proc/$BASHPID/stat
	spent=$(((words[15] + words[16]) / $(getconf CLK_TCK)))
}

# Chores go beside the stages, with less priority: what tests leave of the processors, which is much where they wait, makes the builds that
# come next and the stages that only compute. Not with the least: a stage waits for its build, whoever else is on the machine. Functions
# build_NAME and stage_NAME.
chores=()
start_chores() {
	chores=("$@")
	mkdir -p build/run && rm -f build/run/*.{said,end}
	set -m # a process group of their own
	(
		renice -n 5 -p $BASHPID
		for chore; do
			case $chore in
			build_*) "$chore" ;; # who needs it tries once more if it failed, and says why
			stage_*) run_chore "${chore#stage_}" ;;
			esac
		done
	) >build/run/chores.log 2>&1 </dev/null &
	group=$!
	set +m
	trap 'kill -- -$group 2>/dev/null' EXIT
}

# run_chore STAGE: what it says, what it comes to and what it has measured, for who awaits it.
run_chore() {
	local end=build/run/$1.end took status=0
	passed=0 failed=0 figures=()
	run_stage "$1" >"build/run/$1.said" 2>&1 || status=1
	printf '%s\n' "$status $passed $failed ${took[*]}" "${figures[@]}" >"$end.part"
	mv "$end.part" "$end"
}

# await_chore STAGE: as run_stage.
await_chore() {
	local end=build/run/$1.end status=1 good=0 bad=0 measured=()
	took=(0 0 0)
	while [ ! -e "$end" ] && kill -0 -- -$group 2>/dev/null; do sleep 0.2; done
	cat "build/run/$1.said"
	{ read -r status good bad took[0] took[1] took[2] && mapfile -t measured; } <"$end"
	passed=$((passed + good)) failed=$((failed + bad)) figures+=("${measured[@]}")
	return "$status"
}
