# SPDX-License-Identifier: MIT
# Sets switch_sources: src/fiber/switch_<machine>.S with its frame, or switch_ucontext.c. See ROPHIVE_SWITCH.
include(CheckCSourceCompiles)
check_c_source_compiles("
#if defined(__x86_64__) && defined(__LP64__)
#elif defined(__aarch64__) && defined(__LP64__)
#elif defined(__riscv) && __riscv_xlen == 64 && defined(__riscv_float_abi_double)
#else
#error none
#endif
int main(void) { return 0; }" ROPHIVE_HAS_SWITCH_ASM)

if(NOT ROPHIVE_SWITCH MATCHES "^(auto|asm|ucontext)$")
	message(FATAL_ERROR "ROPHIVE_SWITCH is auto, asm or ucontext, not ${ROPHIVE_SWITCH}")
elseif(ROPHIVE_SWITCH STREQUAL "asm" AND NOT ROPHIVE_HAS_SWITCH_ASM)
	message(FATAL_ERROR "ROPHIVE_SWITCH=asm: there is no assembly for this machine; ucontext works everywhere")
endif()

if(ROPHIVE_SWITCH STREQUAL "ucontext" OR NOT ROPHIVE_HAS_SWITCH_ASM)
	set(switch_sources ${PROJECT_SOURCE_DIR}/src/fiber/switch_ucontext.c)
	set(switch_definition HIVE_SWITCH_UCONTEXT=1)
else()
	enable_language(ASM)
	# Each file is empty on the other machines.
	file(GLOB switch_sources CONFIGURE_DEPENDS src/fiber/switch_*.S)
	list(APPEND switch_sources ${PROJECT_SOURCE_DIR}/src/fiber/switch_frame.c)
endif()
