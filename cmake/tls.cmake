# SPDX-License-Identifier: MIT
# librophive-tls on OpenSSL 3: targets rophive_tls and rophive_tls_static, or none and why. See ROPHIVE_TLS.
rophive_edge_wanted(tls tls_wanted)
if(NOT tls_wanted)
	return()
endif()
find_path(ROPHIVE_TLS_INCLUDE openssl/ssl.h)
find_library(ROPHIVE_TLS_SSL ssl)
find_library(ROPHIVE_TLS_CRYPTO crypto)
mark_as_advanced(ROPHIVE_TLS_INCLUDE ROPHIVE_TLS_SSL ROPHIVE_TLS_CRYPTO)
if(ROPHIVE_TLS_INCLUDE AND ROPHIVE_TLS_SSL AND ROPHIVE_TLS_CRYPTO)
	file(STRINGS ${ROPHIVE_TLS_INCLUDE}/openssl/opensslv.h tls_is_new
		REGEX "define[ \t]+OPENSSL_VERSION_MAJOR[ \t]+([3-9]|[1-9][0-9])")
endif()
if(NOT tls_is_new)
	rophive_edge_missing(tls "OpenSSL 3 is not there (Debian: libssl-dev)")
	return()
endif()
set(tls_libraries ssl crypto) # install.cmake as well
rophive_edge(tls ${ROPHIVE_TLS_INCLUDE} ${tls_libraries})

# What it costs, beside plain OpenSSL: docs/tls.md.
if(ROPHIVE_TOOLS)
	add_executable(hive-bench-tls bench/edge/tls.c)
	rophive_flags(hive-bench-tls)
	target_link_libraries(hive-bench-tls PRIVATE rophive_tls_static)
	set_target_properties(hive-bench-tls PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endif()
