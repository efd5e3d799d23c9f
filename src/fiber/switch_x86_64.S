/* SPDX-License-Identifier: MIT */
/* Where a context begins on x86-64; the switch itself is in switch_x86_64.h. The stack holds the function and its
 * argument. */
#if defined(__x86_64__) && defined(__LP64__)
	.text
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
	popq	%rax
	popq	%rdi
	call	*%rax
	ud2
	.cfi_endproc
	.size	hive__context_entry, . - hive__context_entry
#endif
	.section .note.GNU-stack, "", %progbits
