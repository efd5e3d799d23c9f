# SPDX-License-Identifier: MIT
# Each tests/<folder>/<file>.c is a program and a ctest test "<folder>.<file>" with the folder as its label.

# A sanitizer costs a factor of 5 to 20; tests/test.h multiplies its own watchdog too.
set(ROPHIVE_TEST_TIMEOUT "" CACHE STRING "Seconds for one test; empty: 120, 600 with sanitizers")
set(timeout ${ROPHIVE_TEST_TIMEOUT})
if(NOT timeout AND ROPHIVE_SANITIZE)
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

function(rophive_test name label)
	add_test(NAME ${name} COMMAND ${ARGN})
	set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout})
endfunction()

file(GLOB tests RELATIVE ${PROJECT_SOURCE_DIR}/tests CONFIGURE_DEPENDS tests/*/*.c)
list(FILTER tests EXCLUDE REGEX "^(support|install|explore|fuzz|gdb)/")
foreach(file ${tests})
	cmake_path(GET file PARENT_PATH folder)
	cmake_path(GET file STEM name)
	set(name ${folder}.${name})
	add_executable(${name} tests/${file})
	rophive_flags(${name})
	target_link_libraries(${name} PRIVATE rophive_test_support)
	set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
	rophive_test(${name} ${folder} ${name})
	if(folder STREQUAL "stress")
		set_tests_properties(${name} PROPERTIES PROCESSORS 2) # they fill the machine by themselves
	elseif(folder STREQUAL "faults")
		set_tests_properties(${name} PROPERTIES ENVIRONMENT ROPHIVE_SOURCE=${PROJECT_SOURCE_DIR})
	endif()
	if(name STREQUAL "fiber.backtrace") # dumps lead through the frames of a user who has them
		target_compile_options(${name} PRIVATE -fno-omit-frame-pointer)
	endif()
	if(name STREQUAL "faults.functions") # tests/faults/wrap.h stands between the library and the system's memory
		foreach(call malloc realloc free mmap munmap)
			target_link_options(${name} PRIVATE -Wl,--wrap=${call})
		endforeach()
	endif()
endforeach()

# The switch that other machines get, with the same tests. Its own objects come before the library's.
set(name fiber.switch_ucontext)
add_executable(${name} tests/fiber/switch.c src/fiber/switch_ucontext.c)
rophive_flags(${name})
target_compile_definitions(${name} PRIVATE HIVE_SWITCH_UCONTEXT=1)
target_link_libraries(${name} PRIVATE rophive_test_support)
set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
rophive_test(${name} fiber ${name})

# The explorer: the whole library once more, with virtual threads in place of the system's and with small queues.
# Not where it would show nothing more: under ThreadSanitizer there is one thread, and emulators are slow.
if(NOT ROPHIVE_SANITIZE MATCHES "thread" AND NOT ROPHIVE_LOCKED_QUEUES AND NOT ROPHIVE_COVERAGE AND NOT CMAKE_CROSSCOMPILING)
	file(GLOB explorer CONFIGURE_DEPENDS tests/explore/*.c)
	set(explored ${sources} tests/support/invariants.c)
	list(FILTER explored EXCLUDE REGEX "src/base/(futex|thread|clock|cpus)\\.c$")
	add_executable(explore ${explorer} ${explored})
	rophive_flags(explore)
	target_include_directories(explore PRIVATE include src tests tests/explore)
	target_compile_definitions(explore PRIVATE HIVE_EXPLORE=1 LOCK_SPINS=1 LATCH_SPINS=1 LANE_CAPACITY=4 POOL_LANES=4 POOL_PROBES=2 CHUNK_TASKS=4
		LANE_START=0x7ffffffffffffffe DEQUE_START=0xfffffffffffffffe)
	set_target_properties(explore PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
	rophive_test(explore.programs explore explore --seeds 500 --jobs 1)
	# Frames that outlive their function are looked for on one stack; here are many.
	set_tests_properties(explore.programs PROPERTIES ENVIRONMENT "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=0")
endif()

# The driver of the peers can be read; the rest of it needs packages.
rophive_test(tool.peers tool ${PROJECT_SOURCE_DIR}/bench/peers/run --help)

# Examples are built as a reader would build them: GNU C by default, nothing of ours but the library.
file(GLOB examples CONFIGURE_DEPENDS examples/*.c)
foreach(file ${examples})
	cmake_path(GET file STEM name)
	add_executable(example.${name} ${file})
	rophive_flags(example.${name})
	set_target_properties(example.${name} PROPERTIES C_EXTENSIONS ON
		RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
	target_link_libraries(example.${name} PRIVATE rophive_static)
	rophive_test(example.${name} example example.${name})
endforeach()

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
if(ROPHIVE_INSTALL AND NOT ROPHIVE_SANITIZE)
	rophive_test(install.consumer install ${PROJECT_SOURCE_DIR}/tests/install/run ${PROJECT_BINARY_DIR})
	set_tests_properties(install.consumer PROPERTIES PROCESSORS 2)
endif()
