# SPDX-License-Identifier: MIT
include(CMakePackageConfigHelpers)

install(TARGETS rophive rophive_static EXPORT rophive-targets)
install(DIRECTORY include/rophive DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET hive)
	install(TARGETS hive)
	install(FILES docs/man/hive.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

# Man pages of the calls: a file for each group, and for each further name in it a file that leads there.
file(GLOB pages CONFIGURE_DEPENDS docs/man/*.3)
set(aliases ${PROJECT_BINARY_DIR}/man3)
file(REMOVE_RECURSE ${aliases})
foreach(page ${pages})
	cmake_path(GET page FILENAME file)
	cmake_path(GET page STEM first)
	file(STRINGS ${page} names REGEX "^\\.Nm hive_")
	foreach(name ${names})
		string(REGEX REPLACE "^\\.Nm ([a-z0-9_]+).*" "\\1" name ${name})
		if(NOT name STREQUAL first)
			file(WRITE ${aliases}/${name}.3 ".so man3/${file}\n")
		endif()
	endforeach()
endforeach()
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
install(DIRECTORY ${aliases}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
install(FILES tools/gdb/rophive.py DESTINATION ${CMAKE_INSTALL_DATADIR}/rophive/gdb)

# find_package(rophive): rophive::rophive (shared) and rophive::static.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rophive)
install(EXPORT rophive-targets NAMESPACE rophive:: DESTINATION ${package_dir})
file(WRITE ${PROJECT_BINARY_DIR}/rophive-config.cmake
	"include(\"\${CMAKE_CURRENT_LIST_DIR}/rophive-targets.cmake\")\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rophive-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rophive-config.cmake ${PROJECT_BINARY_DIR}/rophive-config-version.cmake
	DESTINATION ${package_dir})

# pkg-config. The prefix is found from where the file lies, so that it is right below any PREFIX and DESTDIR,
# also one given to "cmake --install --prefix" after this ran.
set(pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${pc_dir} OUTPUT_VARIABLE pc_prefix)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${pc_dir} OUTPUT_VARIABLE pc_includedir)
configure_file(cmake/rophive.pc.in rophive.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rophive.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
