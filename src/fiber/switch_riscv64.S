/* SPDX-License-Identifier: MIT */
/* The switch for riscv64, lp64d. The frame of a context that is not running, from its stack pointer upwards:
 *
 *    0 ra (where to go on)   8 s0 … s11   104 fs0 … fs11   200 fcsr
 *
 * In a new context s1 is the function, s2 its argument, s0 (the frame pointer) 0, and ra is hive__context_entry. fcsr is
 * written only when it differs: a write waits for the pipeline on many cores.
 *
 * The frame has the same shape before and after the stack pointer changes, so one set of unwind rules is right for both. */
#if defined(__riscv) && __riscv_xlen == 64 && defined(__riscv_float_abi_double)
	.text

	.globl	hive__context_swap
	.hidden	hive__context_swap
	.type	hive__context_swap, @function
	.p2align 2
/* void hive__context_swap(void **ret_saved [a0], void *go_on [a1]) */
hive__context_swap:
	.cfi_startproc
	addi	sp, sp, -208
	.cfi_adjust_cfa_offset 208
	sd	ra, 0(sp)
	sd	s0, 8(sp)
	sd	s1, 16(sp)
	sd	s2, 24(sp)
	sd	s3, 32(sp)
	sd	s4, 40(sp)
	sd	s5, 48(sp)
	sd	s6, 56(sp)
	sd	s7, 64(sp)
	sd	s8, 72(sp)
	sd	s9, 80(sp)
	sd	s10, 88(sp)
	sd	s11, 96(sp)
	fsd	fs0, 104(sp)
	fsd	fs1, 112(sp)
	fsd	fs2, 120(sp)
	fsd	fs3, 128(sp)
	fsd	fs4, 136(sp)
	fsd	fs5, 144(sp)
	fsd	fs6, 152(sp)
	fsd	fs7, 160(sp)
	fsd	fs8, 168(sp)
	fsd	fs9, 176(sp)
	fsd	fs10, 184(sp)
	fsd	fs11, 192(sp)
	.cfi_rel_offset ra, 0
	.cfi_rel_offset s0, 8
	.cfi_rel_offset s1, 16
	.cfi_rel_offset s2, 24
	.cfi_rel_offset s3, 32
	.cfi_rel_offset s4, 40
	.cfi_rel_offset s5, 48
	.cfi_rel_offset s6, 56
	.cfi_rel_offset s7, 64
	.cfi_rel_offset s8, 72
	.cfi_rel_offset s9, 80
	.cfi_rel_offset s10, 88
	.cfi_rel_offset s11, 96
	.cfi_rel_offset fs0, 104
	.cfi_rel_offset fs1, 112
	.cfi_rel_offset fs2, 120
	.cfi_rel_offset fs3, 128
	.cfi_rel_offset fs4, 136
	.cfi_rel_offset fs5, 144
	.cfi_rel_offset fs6, 152
	.cfi_rel_offset fs7, 160
	.cfi_rel_offset fs8, 168
	.cfi_rel_offset fs9, 176
	.cfi_rel_offset fs10, 184
	.cfi_rel_offset fs11, 192
	frcsr	t0
	sd	t0, 200(sp)
	sd	sp, 0(a0)
	mv	sp, a1
	ld	t1, 200(sp)
	beq	t0, t1, hive__context_resume
	fscsr	t1
	.globl	hive__context_resume
	.hidden	hive__context_resume
hive__context_resume:
	ld	ra, 0(sp)
	ld	s0, 8(sp)
	ld	s1, 16(sp)
	ld	s2, 24(sp)
	ld	s3, 32(sp)
	ld	s4, 40(sp)
	ld	s5, 48(sp)
	ld	s6, 56(sp)
	ld	s7, 64(sp)
	ld	s8, 72(sp)
	ld	s9, 80(sp)
	ld	s10, 88(sp)
	ld	s11, 96(sp)
	fld	fs0, 104(sp)
	fld	fs1, 112(sp)
	fld	fs2, 120(sp)
	fld	fs3, 128(sp)
	fld	fs4, 136(sp)
	fld	fs5, 144(sp)
	fld	fs6, 152(sp)
	fld	fs7, 160(sp)
	fld	fs8, 168(sp)
	fld	fs9, 176(sp)
	fld	fs10, 184(sp)
	fld	fs11, 192(sp)
	addi	sp, sp, 208
	.cfi_adjust_cfa_offset -208
	.cfi_restore ra
	.cfi_restore s0
	.cfi_restore s1
	.cfi_restore s2
	.cfi_restore s3
	.cfi_restore s4
	.cfi_restore s5
	.cfi_restore s6
	.cfi_restore s7
	.cfi_restore s8
	.cfi_restore s9
	.cfi_restore s10
	.cfi_restore s11
	.cfi_restore fs0
	.cfi_restore fs1
	.cfi_restore fs2
	.cfi_restore fs3
	.cfi_restore fs4
	.cfi_restore fs5
	.cfi_restore fs6
	.cfi_restore fs7
	.cfi_restore fs8
	.cfi_restore fs9
	.cfi_restore fs10
	.cfi_restore fs11
	ret
	.cfi_endproc
	.size	hive__context_swap, . - hive__context_swap

	.globl	hive__context_entry
	.hidden	hive__context_entry
	.type	hive__context_entry, @function
	.p2align 2
/* The outermost frame of a context: nobody called it, so a backtrace ends here. The nop: unwinders look up the address before
 * the one that is returned to, and shall find these rules.                                                               */
	.cfi_startproc
	.cfi_undefined ra
	nop
hive__context_entry:
	mv	a0, s2
	jalr	s1
	ebreak
	.cfi_endproc
	.size	hive__context_entry, . - hive__context_entry
#endif
	.section .note.GNU-stack, "", @progbits
