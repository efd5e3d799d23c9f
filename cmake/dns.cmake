# SPDX-License-Identifier: MIT
# librophive-dns on c-ares: targets rophive_dns and rophive_dns_static, or none and why. See ROPHIVE_DNS.
rophive_edge_wanted(dns dns_wanted)
if(NOT dns_wanted)
	return()
endif()
find_path(ROPHIVE_DNS_INCLUDE ares.h)
find_library(ROPHIVE_DNS_CARES cares)
mark_as_advanced(ROPHIVE_DNS_INCLUDE ROPHIVE_DNS_CARES)
if(ROPHIVE_DNS_INCLUDE AND ROPHIVE_DNS_CARES)
	file(STRINGS ${ROPHIVE_DNS_INCLUDE}/ares.h dns_is_new REGEX "ares_getaddrinfo")
endif()
if(NOT dns_is_new)
	rophive_edge_missing(dns "c-ares 1.16 or newer is not there (Debian: libc-ares-dev)")
	return()
endif()
set(dns_libraries cares) # install.cmake as well
rophive_edge(dns ${ROPHIVE_DNS_INCLUDE} ${dns_libraries})
