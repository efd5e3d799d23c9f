# SPDX-License-Identifier: MIT
# Sets uring_definition, uring_include and uring_library; all empty: without the core on io_uring. See ROPHIVE_URING.
if(NOT ROPHIVE_URING MATCHES "^(auto|on|off|ON|OFF)$")
	message(FATAL_ERROR "ROPHIVE_URING is auto, on or off, not ${ROPHIVE_URING}")
endif()

set(uring_definition)
set(uring_include)
set(uring_library)
if(NOT ROPHIVE_URING MATCHES "^(off|OFF)$")
	find_path(ROPHIVE_URING_INCLUDE liburing.h)
	find_library(ROPHIVE_URING_LIBRARY uring)
	mark_as_advanced(ROPHIVE_URING_INCLUDE ROPHIVE_URING_LIBRARY)
	# 2.3: io_uring_submit_and_get_events(), and what it needs to know about kernel 6.1
	if(ROPHIVE_URING_INCLUDE AND ROPHIVE_URING_LIBRARY)
		file(STRINGS ${ROPHIVE_URING_INCLUDE}/liburing.h uring_is_new REGEX "io_uring_submit_and_get_events")
	endif()
	if(uring_is_new)
		set(uring_definition HIVE_URING=1)
		# By name: a file's path would end up in what we install, for machines where it lies elsewhere.
		set(uring_library uring)
		if(NOT ROPHIVE_URING_INCLUDE STREQUAL "/usr/include")
			set(uring_include ${ROPHIVE_URING_INCLUDE})
		endif()
	elseif(NOT ROPHIVE_URING STREQUAL "auto")
		message(FATAL_ERROR "ROPHIVE_URING=on: liburing 2.3 or newer is not there (Debian: liburing-dev)")
	endif()
endif()
