# What the dynamic linker binds the program's calls to.
#
# A hook hands the stack pointer at its entry (where the return address lies) and the caller's frame
# pointer on in the fifth and sixth argument registers, which no hooked function uses, and jumps through
# its slot. In `same` mode a slot holds glibc's own function: the hook is a few instructions and leaves
# no frame. The first call of all, which may come before any constructor, finds empty slots.

	.text

	.macro SLOT name index
	.p2align 4
	.type relatch_\name, @function
relatch_\name:
	movq relatch_slots+8*\index(%rip), %rax
	testq %rax, %rax
	je 1f
	movq %rsp, %r8
	movq %rbp, %r9
	jmpq *%rax
1:	pushq %rdi
	pushq %rsi
	pushq %rdx
	pushq %rcx
	subq $8, %rsp
	call relatch_begin
	addq $8, %rsp
	popq %rcx
	popq %rdx
	popq %rsi
	popq %rdi
	movq %rsp, %r8
	movq %rbp, %r9
	jmpq *relatch_slots+8*\index(%rip)
	.size relatch_\name, . - relatch_\name
	.endm

# Unversioned: binds to every version that a program asks for.
	.macro HOOK name index
	SLOT \name \index
	.globl \name
	.type \name, @function
	.set \name, relatch_\name
	.endm

# Only the condition variable of glibc 2.3.2 and later: the older one is a pointer to another structure.
	.macro CONDITION_HOOK name index
	SLOT \name \index
	.globl relatch_\name
	.symver relatch_\name, \name@@GLIBC_2.3.2, remove
	.endm

	HOOK pthread_mutex_init 0
	HOOK pthread_mutex_destroy 1
	HOOK pthread_mutex_lock 2
	HOOK pthread_mutex_trylock 3
	HOOK pthread_mutex_timedlock 4
	HOOK pthread_mutex_clocklock 5
	HOOK pthread_mutex_unlock 6
	HOOK pthread_rwlock_init 7
	HOOK pthread_rwlock_destroy 8
	HOOK pthread_rwlock_rdlock 9
	HOOK pthread_rwlock_tryrdlock 10
	HOOK pthread_rwlock_timedrdlock 11
	HOOK pthread_rwlock_clockrdlock 12
	HOOK pthread_rwlock_wrlock 13
	HOOK pthread_rwlock_trywrlock 14
	HOOK pthread_rwlock_timedwrlock 15
	HOOK pthread_rwlock_clockwrlock 16
	HOOK pthread_rwlock_unlock 17
	HOOK pthread_spin_init 18
	HOOK pthread_spin_destroy 19
	HOOK pthread_spin_lock 20
	HOOK pthread_spin_trylock 21
	HOOK pthread_spin_unlock 22
	CONDITION_HOOK pthread_cond_wait 23
	CONDITION_HOOK pthread_cond_timedwait 24
	CONDITION_HOOK pthread_cond_signal 25
	CONDITION_HOOK pthread_cond_broadcast 26
	CONDITION_HOOK pthread_cond_destroy 27
	HOOK pthread_cond_clockwait 28

	.section .init_array, "aw", @init_array
	.quad relatch_begin
	.section .fini_array, "aw", @fini_array
	.quad relatch_end

	.section .note.GNU-stack, "", @progbits
