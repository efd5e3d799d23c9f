# SPDX-License-Identifier: MIT
# librophive-glib on GLib 2: targets rophive_glib and rophive_glib_static, or none and why. See ROPHIVE_GLIB. GTK 4 and SDL 2 are for tests and examples alone.
rophive_edge_wanted(glib glib_wanted)
if(NOT glib_wanted)
	return()
endif()
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND AND NOT CMAKE_CROSSCOMPILING)
	pkg_check_modules(ROPHIVE_GLIB2 QUIET glib-2.0>=2.70)
endif()
if(NOT ROPHIVE_GLIB2_FOUND)
	rophive_edge_missing(glib "GLib 2.70 or newer is not there (Debian: libglib2.0-dev, pkg-config)")
	return()
endif()
set(glib_libraries glib-2.0) # install.cmake as well
rophive_edge(glib "${ROPHIVE_GLIB2_INCLUDE_DIRS}" ${glib_libraries})

if(ROPHIVE_TESTS OR ROPHIVE_TOOLS)
	pkg_check_modules(ROPHIVE_GIO2 QUIET IMPORTED_TARGET gio-2.0)
	pkg_check_modules(ROPHIVE_GTK4 QUIET IMPORTED_TARGET gtk4)
	pkg_check_modules(ROPHIVE_SDL2 QUIET IMPORTED_TARGET sdl2)
endif()

# Frames on time, beside plain GLib: docs/ui.md. With a window: cmake/ui.cmake.
if(ROPHIVE_TOOLS)
	set(bench_ui bench/edge/ui.c bench/edge/ui_hive.c bench/edge/ui_glib.c bench/halts.c bench/sync.c)
	add_executable(hive-bench-ui ${bench_ui} bench/edge/ui_memory.c)
	rophive_flags(hive-bench-ui)
	target_include_directories(hive-bench-ui PRIVATE bench)
	target_include_directories(hive-bench-ui SYSTEM PRIVATE ${ROPHIVE_GLIB2_INCLUDE_DIRS})
	target_link_libraries(hive-bench-ui PRIVATE rophive_glib_static)
	set_target_properties(hive-bench-ui PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endif()
