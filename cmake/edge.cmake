# SPDX-License-Identifier: MIT
# Libraries beside the library: each is a target of its own, shared and static, that the core never links.

# rophive_edge_missing(NAME WORDS...): the library that it stands on was not found. Fails if it was asked for, else says why it is left out.
function(rophive_edge_missing name)
	string(TOUPPER ${name} upper)
	if(ROPHIVE_${upper} MATCHES "^(on|ON)$")
		message(FATAL_ERROR "ROPHIVE_${upper}=on: ${ARGN}")
	elseif(PROJECT_IS_TOP_LEVEL)
		message(NOTICE "rophive: without librophive-${name} and its tests: ${ARGN}")
	endif()
endfunction()

# rophive_edge_wanted(NAME RESULT): false if it was switched off.
function(rophive_edge_wanted name result)
	string(TOUPPER ${name} upper)
	if(NOT ROPHIVE_${upper} MATCHES "^(auto|on|off|ON|OFF)$")
		message(FATAL_ERROR "ROPHIVE_${upper} is auto, on or off, not ${ROPHIVE_${upper}}")
	endif()
	set(${result} TRUE PARENT_SCOPE)
	if(ROPHIVE_${upper} MATCHES "^(off|OFF)$")
		set(${result} FALSE PARENT_SCOPE)
		rophive_edge_missing(${name} "ROPHIVE_${upper}=off")
	endif()
endfunction()

# rophive_edge(NAME INCLUDE LIBRARY...): targets rophive_NAME and rophive_NAME_static from src/edge/NAME. Libraries by name: a file's path
# would end up in what we install, for machines where it lies elsewhere.
function(rophive_edge name include)
	# A copy of what it uses of src/base, hidden: it is linked to the core by public names alone.
	file(GLOB edge_sources CONFIGURE_DEPENDS src/edge/${name}/*.c)
	set(objects rophive_${name}_objects)
	add_library(${objects} OBJECT ${edge_sources} src/base/memory.c src/base/futex.c)
	rophive_flags(${objects})
	set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON)
	target_compile_options(${objects} PRIVATE -fno-semantic-interposition)
	target_include_directories(${objects} PRIVATE include src)
	if(NOT include STREQUAL "/usr/include")
		target_include_directories(${objects} SYSTEM PRIVATE ${include})
	endif()

	add_library(rophive_${name}_static STATIC $<TARGET_OBJECTS:${objects}>)
	add_library(rophive_${name} SHARED $<TARGET_OBJECTS:${objects}>)
	add_library(rophive::${name}_static ALIAS rophive_${name}_static)
	add_library(rophive::${name} ALIAS rophive_${name})
	set_target_properties(rophive_${name}_static rophive_${name} PROPERTIES OUTPUT_NAME rophive-${name} LINKER_LANGUAGE C)
	rophive_flags(rophive_${name})
	set_target_properties(rophive_${name}_static PROPERTIES EXPORT_NAME ${name}_static)
	target_link_libraries(rophive_${name}_static INTERFACE rophive_static ${ARGN})
	target_link_libraries(rophive_${name} PUBLIC rophive PRIVATE ${ARGN})

	set(map ${PROJECT_SOURCE_DIR}/src/edge/${name}/rophive-${name}.map)
	set_target_properties(rophive_${name} PROPERTIES EXPORT_NAME ${name}
		VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${map})
	target_link_options(rophive_${name} PRIVATE -Wl,--version-script=${map} -Wl,-Bsymbolic-functions)
endfunction()
