/* SPDX-License-Identifier: MIT */
#pragma once
/* The switch for x86-64, System V ABI, as inline assembly: each place that switches has a jump of its own, so the
 * processor predicts where it leads, and returns stay in step with calls. All registers are clobbered; the compiler
 * keeps those that it needs, and they are few. A function that returns right after it was switched back to is predicted
 * wrongly all the same: 7 ns when both sides do so. So a worker's loop had better contain its context_enter() itself.
 *
 * The frame of a context that is not running, from its stack pointer upwards:
 *
 *    0 MXCSR (4 bytes)   4 x87 control word (2 bytes)   8 where to go on   16 rbp   24 … 152 the red zone of who switched
 *
 * where the stack pointer is 152 higher when it goes on. In a new context that is hive__context_entry (switch_x86_64.S),
 * which finds the function and its argument on the stack, and rbp is 0.
 *
 * The control words are kept. On AMD Zen that is most of the cost: a switch takes 5.6 ns, 2.0 without them; reading
 * MXCSR alone is 3. context_enter() need not read them: 4.5 ns on average, there and back.
 *
 * The unwind information is that of the function around, right before and after these instructions; a profiler that
 * interrupts in between sees a wrong caller. */
#include <stddef.h>
#include <stdint.h>

enum { CONTEXT_PC = 8, CONTEXT_FP = 16, CONTEXT_FRAME = 152 }; /* for debuggers: see context_place() */

#if defined(__AVX512F__)
#define CONTEXT_CLOBBERS_AVX512                                                                                       \
	, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", \
		"xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define CONTEXT_CLOBBERS_AVX512
#endif
/* All but rsp and rbp; rdi, rsi and rdx are operands. */
#define CONTEXT_CLOBBERS                                                                                              \
	"rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "st", "st(1)",     \
		"st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", \
		"xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",                          \
		"xmm15" CONTEXT_CLOBBERS_AVX512

#define CONTEXT_GO(SAVE_CONTROL, LOAD_CONTROL)                              \
	"leaq	1f(%%rip), %%rax\n"                                           \
	"leaq	-152(%%rsp), %%rsp\n"                                         \
	"movq	%%rax, 8(%%rsp)\n"                                            \
	"movq	%%rbp, 16(%%rsp)\n" SAVE_CONTROL "movq	%%rsp, (%%rdi)\n"    \
	"movq	%%rsi, %%rsp\n"                                               \
	"movq	8(%%rsp), %%rcx\n"                                            \
	"movq	16(%%rsp), %%rbp\n" LOAD_CONTROL "leaq	152(%%rsp), %%rsp\n" \
	"jmp	*%%rcx\n"                                                      \
	"1:\n"

static inline __attribute__((always_inline)) void context_swap(void **ret_saved, void *go_on)
{
	uint64_t scratch = 0;

	__asm__ volatile(CONTEXT_GO("stmxcsr	(%%rsp)\n"
	                            "fnstcw	4(%%rsp)\n",
	                            "ldmxcsr	(%%rsp)\n"
	                            "fldcw	4(%%rsp)\n")
	                 : "+D"(ret_saved), "+S"(go_on), "+d"(scratch)
	                 :
	                 : CONTEXT_CLOBBERS);
}

/* With the control words that this context is known to have: they are not read, and the same ones over there not loaded. (To
 * compare those that were just read takes longer than to load them.)                                                      */
static inline __attribute__((always_inline)) void context_swap_known(void **ret_saved, void *go_on, uint64_t control)
{
	__asm__ volatile(CONTEXT_GO("movq	%%rdx, (%%rsp)\n", "cmpl	%%edx, (%%rsp)\n"
	                                                           "jne	2f\n"
	                                                           "shrq	$32, %%rdx\n"
	                                                           "cmpw	%%dx, 4(%%rsp)\n"
	                                                           "je	3f\n"
	                                                           "2:	ldmxcsr	(%%rsp)\n"
	                                                           "fldcw	4(%%rsp)\n"
	                                                           "3:\n")
	                 : "+D"(ret_saved), "+S"(go_on), "+d"(control)
	                 :
	                 : CONTEXT_CLOBBERS);
}

static inline uint64_t context_control(void)
{
	uint32_t mxcsr;
	uint16_t x87;

	__asm__ volatile("stmxcsr %0\n fnstcw %1" : "=m"(mxcsr), "=m"(x87));
	return (uint64_t)x87 << 32 | mxcsr;
}
