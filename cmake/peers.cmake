# SPDX-License-Identifier: MIT
# What the bench compares us with.
enable_language(CXX)

find_path(boost_context_headers boost/context/detail/fcontext.hpp)
find_library(boost_context_library boost_context)
if(boost_context_headers AND boost_context_library)
	add_executable(peer_context bench/peer_context.cpp)
	target_compile_features(peer_context PRIVATE cxx_std_17)
	target_include_directories(peer_context PRIVATE ${boost_context_headers})
	target_link_libraries(peer_context PRIVATE ${boost_context_library})
	set_target_properties(peer_context PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endif()
