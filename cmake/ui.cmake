# SPDX-License-Identifier: MIT
# Programs with a window: examples and tests, on GTK 4 and SDL 2 where they are, in a display of their own (tests/gtk/display). Once, in the build
# that users get: what is ours in them is in tests/glib, which all builds run.
if(NOT ROPHIVE_WINDOWS OR NOT TARGET rophive_glib OR ROPHIVE_SANITIZE OR ROPHIVE_COVERAGE OR CMAKE_CROSSCOMPILING)
	return()
endif()

set(display ${PROJECT_SOURCE_DIR}/tests/gtk/display)

# rophive_window_program(NAME LIBRARY FILE...)
function(rophive_window_program name library)
	add_executable(${name} ${ARGN})
	rophive_flags(${name})
	set_target_properties(${name} PROPERTIES C_EXTENSIONS ON RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
	target_link_libraries(${name} PRIVATE rophive_glib_static ${library} m)
endfunction()

# rophive_window_test(NAME LABEL COMMAND...): 77, the display is not to be had
function(rophive_window_test name label)
	rophive_test(${name} ${label} ${display} ${ARGN})
	set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

if(ROPHIVE_GIO2_FOUND)
	rophive_window_program(example.ui_guest_glib PkgConfig::ROPHIVE_GIO2 examples/ui_guest_glib.c)
	rophive_test(example.ui_guest_glib example example.ui_guest_glib)
endif()

if(ROPHIVE_SDL2_FOUND)
	rophive_window_program(ui-guest-sdl PkgConfig::ROPHIVE_SDL2 examples/ui-guest-sdl/main.c)
	rophive_window_test(example.ui-guest-sdl gtk $<TARGET_FILE:ui-guest-sdl> --headless --frames 60)
else()
	message(NOTICE "rophive: without examples/ui-guest-sdl: SDL 2 is not there (Debian: libsdl2-dev)")
endif()

if(NOT ROPHIVE_GTK4_FOUND)
	message(NOTICE "rophive: without tests in a window and examples/ui-mandelbrot: GTK 4 is not there (Debian: libgtk-4-dev)")
	return()
endif()
rophive_window_program(example.ui_window PkgConfig::ROPHIVE_GTK4 examples/ui_window.c)
rophive_window_test(example.ui_window gtk $<TARGET_FILE:example.ui_window> --click)
file(GLOB mandelbrot CONFIGURE_DEPENDS examples/ui-mandelbrot/*.c)
rophive_window_program(ui-mandelbrot PkgConfig::ROPHIVE_GTK4 ${mandelbrot})
rophive_window_test(example.ui-mandelbrot gtk $<TARGET_FILE:ui-mandelbrot> --headless --frames 90 --load bcd)

if(ROPHIVE_TOOLS) # the figures of docs/ui.md can be had
	rophive_window_program(hive-bench-gtk PkgConfig::ROPHIVE_GTK4 ${bench_ui} bench/edge/ui_window.c examples/ui-mandelbrot/fractal.c)
	target_include_directories(hive-bench-gtk PRIVATE bench ${PROJECT_SOURCE_DIR})
	set_target_properties(hive-bench-gtk PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
	rophive_window_test(gtk.bench gtk $<TARGET_FILE:hive-bench-gtk> 0.5 1 -,a,pb,pc,pd)
	set_tests_properties(gtk.bench PROPERTIES PROCESSORS 2 TIMEOUT 300 FAIL_REGULAR_EXPRESSION "\"(frames|shown)\": 0,")
endif()

file(GLOB gtk_tests CONFIGURE_DEPENDS tests/gtk/*.c)
pkg_check_modules(ROPHIVE_XCB QUIET IMPORTED_TARGET xcb) # comes with GTK 4
if(NOT ROPHIVE_XCB_FOUND)
	message(NOTICE "rophive: without tests/gtk/input.c and answers.c: xcb is not there (Debian: libxcb1-dev)")
	list(FILTER gtk_tests EXCLUDE REGEX "/(answers|input)\\.c$")
endif()
foreach(file ${gtk_tests})
	cmake_path(GET file STEM name)
	rophive_window_program(gtk.${name} PkgConfig::ROPHIVE_GTK4 ${file})
	target_link_libraries(gtk.${name} PRIVATE rophive_test_support)
	set_target_properties(gtk.${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
	rophive_window_test(gtk.${name} gtk $<TARGET_FILE:gtk.${name}>)
endforeach()
if(ROPHIVE_XCB_FOUND)
	target_link_libraries(gtk.input PRIVATE PkgConfig::ROPHIVE_XCB)
	target_link_libraries(gtk.answers PRIVATE PkgConfig::ROPHIVE_XCB)
	add_dependencies(gtk.input ui-mandelbrot)
	set_tests_properties(gtk.input gtk.answers PROPERTIES PROCESSORS 2) # they wait for what compute workers paint or answer
endif()
