/* SPDX-License-Identifier: MIT */
/* The switch for x86-64, System V ABI. The frame of a context that is not running, from its stack pointer upwards:
 *
 *    0 MXCSR (4 bytes)   4 x87 control word (2 bytes)   8 r15  16 r14  24 r13  32 r12  40 rbx  48 rbp  56 return address
 *
 * In a new context r12 is the function, r13 its argument, rbp 0, and the return address is hive__context_entry.
 *
 * The frame has the same shape before and after the stack pointer changes, so one set of unwind rules is right for both. */
#if defined(__x86_64__) && defined(__LP64__)
	.text

	.globl	hive__context_swap
	.hidden	hive__context_swap
	.type	hive__context_swap, @function
	.p2align 4
/* void hive__context_swap(void **ret_saved [rdi], void *go_on [rsi]) */
hive__context_swap:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r13, 0
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r14, 0
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r15, 0
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	.globl	hive__context_resume
	.hidden	hive__context_resume
hive__context_resume:
	ldmxcsr	(%rsp)
	fldcw	4(%rsp)
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore r15
	popq	%r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore r14
	popq	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore r13
	popq	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	.cfi_register rip, rcx
	jmp	*%rcx
	.cfi_endproc
	.size	hive__context_swap, . - hive__context_swap

	.globl	hive__context_entry
	.hidden	hive__context_entry
	.type	hive__context_entry, @function
	.p2align 4
/* The outermost frame of a context: nobody called it, so a backtrace ends here. The nop: unwinders look up the address before
 * the one that is returned to, and shall find these rules.                                                               */
	.cfi_startproc
	.cfi_undefined rip
	nop
hive__context_entry:
	movq	%r13, %rdi
	call	*%r12
	ud2
	.cfi_endproc
	.size	hive__context_entry, . - hive__context_entry

/* void hive__context_fp(void *ret_words [rdi]): the control words as the frame has them. */
	.globl	hive__context_fp
	.hidden	hive__context_fp
	.type	hive__context_fp, @function
	.p2align 4
hive__context_fp:
	.cfi_startproc
	stmxcsr	(%rdi)
	fnstcw	4(%rdi)
	ret
	.cfi_endproc
	.size	hive__context_fp, . - hive__context_fp
#endif
	.section .note.GNU-stack, "", %progbits
