# SPDX-License-Identifier: MIT
# Each tests/<folder>/<file>.c is a program and a ctest test "<folder>.<file>" with the folder as its label.

# A sanitizer costs a factor of 5 to 20, an emulator too; tests/test.h multiplies its own watchdog as well. That one says what hangs: it has to
# come long before ctest kills the program, which has several tests.
set(ROPHIVE_TEST_TIMEOUT "" CACHE STRING "Seconds for one program of tests; empty: 120, 600 with sanitizers and emulators")
set(timeout ${ROPHIVE_TEST_TIMEOUT})
if(NOT timeout AND (ROPHIVE_SANITIZE OR CMAKE_CROSSCOMPILING))
	set(timeout 600)
elseif(NOT timeout)
	set(timeout 120)
endif()

file(GLOB support CONFIGURE_DEPENDS tests/support/*.c)
add_library(rophive_test_support STATIC ${support})
rophive_flags(rophive_test_support)
target_compile_definitions(rophive_test_support PRIVATE $<$<BOOL:${ROPHIVE_COVERAGE}>:TEST_COVERAGE=1>)
target_include_directories(rophive_test_support PUBLIC tests src)
target_link_libraries(rophive_test_support PUBLIC rophive_static m)

# Half of the time of a build would be that of optimizing tests. Those in which queues and protocols are compiled as headers are optimized;
# the others, too, in the stage optimized of scripts/test-long.
option(ROPHIVE_QUICK_TESTS "Compile tests that only call the library without optimization" ON)
set(quick_folders api bus core dns faults fiber glib httpd io sched sync tls ui)

# The bigger example: all of it but main() is also there for its tests.
file(GLOB httpd_sources CONFIGURE_DEPENDS examples/httpd/*.c)
list(FILTER httpd_sources EXCLUDE REGEX "/main\\.c$")
add_library(httpd_parts STATIC ${httpd_sources})
add_executable(httpd examples/httpd/main.c)
target_link_libraries(httpd_parts PUBLIC rophive_static)
target_include_directories(httpd_parts PUBLIC examples/httpd)
target_link_libraries(httpd PRIVATE httpd_parts)
foreach(target httpd_parts httpd)
	rophive_flags(${target})
	set_target_properties(${target} PROPERTIES C_EXTENSIONS ON RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
endforeach()

function(rophive_test name label)
	add_test(NAME ${name} COMMAND ${ARGN})
	set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout})
endfunction()

file(GLOB tests RELATIVE ${PROJECT_SOURCE_DIR}/tests CONFIGURE_DEPENDS tests/*/*.c)
list(FILTER tests EXCLUDE REGEX "^(support|install|explore|fuzz|gdb|counts)/")
if(CMAKE_CROSSCOMPILING) # tests/arch/README.md says why
	list(FILTER tests EXCLUDE REGEX "^(faults|httpd|soak|tool)/")
endif()
if(NOT TARGET rophive_tls) # cmake/tls.cmake has said why
	list(FILTER tests EXCLUDE REGEX "^tls/")
endif()
if(NOT TARGET rophive_dns)
	list(FILTER tests EXCLUDE REGEX "^dns/")
endif()
if(NOT TARGET rophive_glib)
	list(FILTER tests EXCLUDE REGEX "^glib/")
endif()
if(ROPHIVE_SANITIZE MATCHES "thread") # it says why
	list(FILTER tests EXCLUDE REGEX "^glib/threads\\.c$")
endif()
list(FILTER tests EXCLUDE REGEX "^gtk/") # cmake/ui.cmake
foreach(file ${tests})
	cmake_path(GET file PARENT_PATH folder)
	cmake_path(GET file STEM name)
	set(name ${folder}.${name})
	add_executable(${name} tests/${file})
	rophive_flags(${name})
	target_link_libraries(${name} PRIVATE rophive_test_support)
	set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
	rophive_test(${name} ${folder} ${name})
	if(ROPHIVE_QUICK_TESTS AND folder IN_LIST quick_folders)
		target_compile_options(${name} PRIVATE -O0)
	endif()
	if(folder MATCHES "^(tls|dns)$")
		target_link_libraries(${name} PRIVATE rophive_${folder}_static)
	endif()
	if(folder STREQUAL "glib")
		target_link_libraries(${name} PRIVATE rophive_glib_static)
		target_compile_definitions(${name} PRIVATE TEST_GLIB=1)
		target_include_directories(${name} SYSTEM PRIVATE ${ROPHIVE_GLIB2_INCLUDE_DIRS})
	endif()
	if(folder MATCHES "^(stress|soak)$")
		set_tests_properties(${name} PROPERTIES PROCESSORS 2) # they fill the machine by themselves
	elseif(folder STREQUAL "httpd")
		target_link_libraries(${name} PRIVATE httpd_parts)
		add_dependencies(${name} httpd)
	elseif(folder STREQUAL "faults" OR file MATCHES "/faults\\.c$")
		set_tests_properties(${name} PROPERTIES ENVIRONMENT ROPHIVE_SOURCE=${PROJECT_SOURCE_DIR})
	endif()
	if(name STREQUAL "fiber.backtrace") # dumps lead through the frames of a user who has them
		target_compile_options(${name} PRIVATE -fno-omit-frame-pointer)
	endif()
	if(name MATCHES "^(dns|glib).faults$")
		target_link_options(${name} PRIVATE -Wl,--wrap=realloc)
	endif()
	if(name STREQUAL "bus.memory") # an allocator that aborts
		foreach(call malloc calloc realloc)
			target_link_options(${name} PRIVATE -Wl,--wrap=${call})
		endforeach()
	endif()
	if(name MATCHES "^core.uring_(famine|failing)$")
		foreach(call submit submit_and_get_events submit_and_wait_timeout)
			target_link_options(${name} PRIVATE -Wl,--wrap=io_uring_${call})
		endforeach()
	elseif(name STREQUAL "core.uring_odd")
		foreach(call queue_init_params register_probe register_buf_ring setup submit_and_get_events submit_and_wait_timeout)
			target_link_options(${name} PRIVATE -Wl,--wrap=io_uring_${call})
		endforeach()
		target_link_options(${name} PRIVATE -Wl,--wrap=uname)
	endif()
	if(name MATCHES "^(faults.functions|faults.victim|tls.faults)$") # tests/faults/wrap.h stands between the library and the system's memory
		foreach(call malloc realloc free mmap munmap pthread_getattr_np pthread_attr_destroy)
			target_link_options(${name} PRIVATE -Wl,--wrap=${call})
		endforeach()
	endif()
endforeach()

# What every core owes its worker, for the one of GLib.
if(TARGET rophive_glib)
	foreach(name contract wait)
		add_executable(glib.${name} tests/core/${name}.c)
		rophive_flags(glib.${name})
		target_compile_definitions(glib.${name} PRIVATE TEST_GLIB=1)
		target_include_directories(glib.${name} SYSTEM PRIVATE ${ROPHIVE_GLIB2_INCLUDE_DIRS})
		target_compile_options(glib.${name} PRIVATE $<$<BOOL:${ROPHIVE_QUICK_TESTS}>:-O0>)
		target_link_libraries(glib.${name} PRIVATE rophive_test_support rophive_glib_static)
		set_target_properties(glib.${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
		rophive_test(glib.${name} glib glib.${name})
	endforeach()
endif()

# Clients that others have written. 77: they are not installed.
rophive_test(httpd.clients httpd ${PROJECT_SOURCE_DIR}/tests/httpd/clients $<TARGET_FILE:httpd>)
set_tests_properties(httpd.clients PROPERTIES SKIP_RETURN_CODE 77 PROCESSORS 2)

# The switch that other machines get, with the same tests. Its own objects come before the library's.
set(name fiber.switch_ucontext)
add_executable(${name} tests/fiber/switch.c src/fiber/switch_ucontext.c)
rophive_flags(${name})
target_compile_definitions(${name} PRIVATE HIVE_SWITCH_UCONTEXT=1)
target_link_libraries(${name} PRIVATE rophive_test_support)
set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
rophive_test(${name} fiber ${name})

# The explorer: the whole library once more, with virtual threads in place of the system's and with small queues.
# Not where it would show nothing more: under ThreadSanitizer there is one thread, and emulators are slow. With AddressSanitizer if asked for.
option(ROPHIVE_EXPLORER "Build the explorer with sanitizers too" OFF)
if((NOT ROPHIVE_SANITIZE OR ROPHIVE_EXPLORER) AND NOT ROPHIVE_LOCKED_QUEUES AND NOT ROPHIVE_COVERAGE AND NOT CMAKE_CROSSCOMPILING)
	file(GLOB explorer CONFIGURE_DEPENDS tests/explore/*.c)
	set(explored ${sources} tests/support/invariants.c)
	list(FILTER explored EXCLUDE REGEX "src/base/(futex|thread|clock|cpus|topology)\\.c$")
	add_executable(explore ${explorer} ${explored})
	rophive_flags(explore)
	target_include_directories(explore PRIVATE include src tests tests/explore)
	target_include_directories(explore SYSTEM PRIVATE ${uring_include})
	target_link_libraries(explore PRIVATE ${uring_library})
	target_compile_options(explore PRIVATE "$<$<COMPILE_LANGUAGE:C>:SHELL:-include ${PROJECT_SOURCE_DIR}/tests/explore/small.h>")
	set_target_properties(explore PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
	rophive_test(explore.programs explore explore --seeds 500 --jobs 1)
	# Frames that outlive their function are looked for on one stack; here are many.
	set_tests_properties(explore.programs PROPERTIES ENVIRONMENT "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=0")
endif()

# The hot paths, one by one on one thread: here that they do what they shall; tests/counts/run says what they cost.
file(GLOB counted CONFIGURE_DEPENDS tests/counts/*.c)
add_executable(counts ${counted})
rophive_flags(counts)
target_link_libraries(counts PRIVATE rophive_static)
target_include_directories(counts PRIVATE src) # the bare switch of stacks has no public face
set_target_properties(counts PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
rophive_test(counts.paths counts counts)

# The figures of docs/tls.md can be had.
if(TARGET hive-bench-tls AND NOT ROPHIVE_SANITIZE AND NOT ROPHIVE_COVERAGE)
	rophive_test(tls.bench tls hive-bench-tls 0.1 1 2)
endif()

# And those of docs/ui.md.
if(TARGET hive-bench-ui AND NOT ROPHIVE_SANITIZE AND NOT ROPHIVE_COVERAGE)
	rophive_test(glib.bench glib hive-bench-ui 0.5 1 -pabcsdu)
endif()

# The drivers of the peers can be read; the rest of them needs packages.
rophive_test(tool.peers tool ${PROJECT_SOURCE_DIR}/bench/peers/run --help)
rophive_test(tool.peers_httpd tool ${PROJECT_SOURCE_DIR}/bench/peers/httpd --help)
rophive_test(tool.suite tool ${PROJECT_SOURCE_DIR}/bench/suite/selftest)
rophive_test(tool.compare tool ${PROJECT_SOURCE_DIR}/tests/tool/compare)
# 77: there is no git, or nothing to build with.
rophive_test(tool.bench_check tool ${PROJECT_SOURCE_DIR}/tests/tool/bench_check)
set_tests_properties(tool.bench_check PROPERTIES SKIP_RETURN_CODE 77)
# Those that take a C compiler alone are built and run; once is enough. 77: there is none.
if(NOT ROPHIVE_SANITIZE AND NOT ROPHIVE_COVERAGE AND NOT CMAKE_CROSSCOMPILING)
	rophive_test(tool.floors tool ${PROJECT_SOURCE_DIR}/tests/tool/floors)
	set_tests_properties(tool.floors PROPERTIES SKIP_RETURN_CODE 77 PROCESSORS 2)
endif()

# Examples are built as a reader would build them: GNU C by default, nothing of ours but the library.
file(GLOB examples CONFIGURE_DEPENDS examples/*.c)
if(CMAKE_CROSSCOMPILING)
	set(examples "")
endif()
if(NOT TARGET rophive_tls)
	list(FILTER examples EXCLUDE REGEX "_tls_[a-z_]*\\.c$")
endif()
list(FILTER examples EXCLUDE REGEX "/ui_(guest_glib|window)\\.c$") # cmake/ui.cmake
foreach(file ${examples})
	cmake_path(GET file STEM name)
	add_executable(example.${name} ${file})
	rophive_flags(example.${name})
	set_target_properties(example.${name} PROPERTIES C_EXTENSIONS ON
		RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
	target_link_libraries(example.${name} PRIVATE rophive_static)
	if(name MATCHES "_tls_")
		target_link_libraries(example.${name} PRIVATE rophive_tls_static)
	endif()
	rophive_test(example.${name} example example.${name})
	if(uring_library AND NOT ROPHIVE_SANITIZE AND NOT ROPHIVE_COVERAGE) # those who name no core may be given that one
		rophive_test(example.uring.${name} example ${PROJECT_SOURCE_DIR}/tests/core/on_uring $<TARGET_FILE:example.${name}>)
		set_tests_properties(example.uring.${name} PROPERTIES SKIP_RETURN_CODE 77)
	endif()
endforeach()

include(cmake/ui.cmake) # windows

# What gdb sees of fibers: not with emulators or sanitizers, which it would see instead, nor without debug information.
if(CMAKE_BUILD_TYPE MATCHES "^(Debug|RelWithDebInfo)$" AND NOT ROPHIVE_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
	add_executable(gdb.sleepers tests/gdb/sleepers.c)
	rophive_flags(gdb.sleepers)
	target_compile_options(gdb.sleepers PRIVATE -g)
	target_link_libraries(gdb.sleepers PRIVATE rophive_static)
	set_target_properties(gdb.sleepers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
	rophive_test(gdb.fibers gdb ${PROJECT_SOURCE_DIR}/tests/gdb/run $<TARGET_FILE:gdb.sleepers>)
endif()

rophive_test(check.selftest check ${PROJECT_SOURCE_DIR}/tools/check/selftest)
rophive_test(check.report check ${PROJECT_SOURCE_DIR}/bench/suite/selftest_report) # its plots only where there is matplotlib
if(ROPHIVE_INSTALL AND NOT ROPHIVE_SANITIZE)
	rophive_test(install.consumer install ${PROJECT_SOURCE_DIR}/tests/install/run ${PROJECT_BINARY_DIR})
	set_tests_properties(install.consumer PROPERTIES PROCESSORS 2)
endif()
