/* SPDX-License-Identifier: MIT */
/* The switch for aarch64, AAPCS64. The frame of a context that is not running, from its stack pointer upwards:
 *
 *    0 x19 … x28   80 x29 (frame pointer)   88 x30 (where to go on)   96 d8 … d15   160 FPCR   168 unused
 *
 * In a new context x19 is the function, x20 its argument, x29 0, and x30 is hive__context_entry. x18 is the platform's.
 * FPCR is written only when it differs: a write waits for the pipeline on many cores.
 *
 * The frame has the same shape before and after the stack pointer changes, so one set of unwind rules is right for both. */
#if defined(__aarch64__) && defined(__LP64__)
	.text

	.globl	hive__context_swap
	.hidden	hive__context_swap
	.type	hive__context_swap, %function
	.p2align 4
/* void hive__context_swap(void **ret_saved [x0], void *go_on [x1]) */
hive__context_swap:
	.cfi_startproc
	sub	sp, sp, #176
	.cfi_adjust_cfa_offset 176
	stp	x19, x20, [sp, #0]
	stp	x21, x22, [sp, #16]
	stp	x23, x24, [sp, #32]
	stp	x25, x26, [sp, #48]
	stp	x27, x28, [sp, #64]
	stp	x29, x30, [sp, #80]
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	.cfi_rel_offset x19, 0
	.cfi_rel_offset x20, 8
	.cfi_rel_offset x21, 16
	.cfi_rel_offset x22, 24
	.cfi_rel_offset x23, 32
	.cfi_rel_offset x24, 40
	.cfi_rel_offset x25, 48
	.cfi_rel_offset x26, 56
	.cfi_rel_offset x27, 64
	.cfi_rel_offset x28, 72
	.cfi_rel_offset x29, 80
	.cfi_rel_offset x30, 88
	.cfi_rel_offset d8, 96
	.cfi_rel_offset d9, 104
	.cfi_rel_offset d10, 112
	.cfi_rel_offset d11, 120
	.cfi_rel_offset d12, 128
	.cfi_rel_offset d13, 136
	.cfi_rel_offset d14, 144
	.cfi_rel_offset d15, 152
	mrs	x9, fpcr
	str	x9, [sp, #160]
	mov	x10, sp
	str	x10, [x0]
	mov	sp, x1
	ldr	x10, [sp, #160]
	cmp	x9, x10
	b.eq	hive__context_resume
	msr	fpcr, x10
	.globl	hive__context_resume
	.hidden	hive__context_resume
hive__context_resume:
	ldp	x19, x20, [sp, #0]
	ldp	x21, x22, [sp, #16]
	ldp	x23, x24, [sp, #32]
	ldp	x25, x26, [sp, #48]
	ldp	x27, x28, [sp, #64]
	ldp	x29, x30, [sp, #80]
	ldp	d8, d9, [sp, #96]
	ldp	d10, d11, [sp, #112]
	ldp	d12, d13, [sp, #128]
	ldp	d14, d15, [sp, #144]
	add	sp, sp, #176
	.cfi_adjust_cfa_offset -176
	.cfi_restore x19
	.cfi_restore x20
	.cfi_restore x21
	.cfi_restore x22
	.cfi_restore x23
	.cfi_restore x24
	.cfi_restore x25
	.cfi_restore x26
	.cfi_restore x27
	.cfi_restore x28
	.cfi_restore x29
	.cfi_restore x30
	.cfi_restore d8
	.cfi_restore d9
	.cfi_restore d10
	.cfi_restore d11
	.cfi_restore d12
	.cfi_restore d13
	.cfi_restore d14
	.cfi_restore d15
	ret
	.cfi_endproc
	.size	hive__context_swap, . - hive__context_swap

	.globl	hive__context_entry
	.hidden	hive__context_entry
	.type	hive__context_entry, %function
	.p2align 4
/* The outermost frame of a context: nobody called it, so a backtrace ends here. The nop: unwinders look up the address before
 * the one that is returned to, and shall find these rules.                                                               */
	.cfi_startproc
	.cfi_undefined x30
	nop
hive__context_entry:
	mov	x0, x20
	blr	x19
	brk	#1
	.cfi_endproc
	.size	hive__context_entry, . - hive__context_entry
#endif
	.section .note.GNU-stack, "", %progbits
