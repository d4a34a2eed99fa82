# Calls a function with every register that it must keep poisoned, and records what it left in them.
#
# struct registers (driver.c), aligned to 16: 0 v20-v31, 192 f14-f31, 336 r14-r31, 408 the condition register, 412 r1, 416 r2, 420 r13, 424 VRSAVE.

    .machine "7450"
    .lcomm saved,8,8            # our stack pointer, and where the found registers go: the callee's registers are not to be trusted
    .text

# void call_poisoned(void *function, const uint32_t arguments[8], struct registers *poison, struct registers *found)
    .globl call_poisoned
    .type call_poisoned,@function
call_poisoned:
    stwu 1,-480(1)
    mflr 0
    stw 0,484(1)
    stmw 14,208(1)
    mfcr 0
    stw 0,280(1)
    stw 2,284(1)
    stw 13,288(1)
    mfspr 0,256
    stw 0,292(1)
    .irp n,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    stfd \n,304+8*(\n-14)(1)
    .endr
    .irp n,20,21,22,23,24,25,26,27,28,29,30,31
    li 11,16+16*(\n-20)
    stvx \n,1,11
    .endr
    lis 11,saved@ha
    stw 1,saved@l(11)
    stw 6,saved+4@l(11)
    # What is nobody's to poison, but everybody's to keep.
    stw 1,412(5)
    stw 2,416(5)
    stw 13,420(5)
    mtctr 3
    .irp n,20,21,22,23,24,25,26,27,28,29,30,31
    li 11,16*(\n-20)
    lvx \n,5,11
    .endr
    # Registers that hold nothing are poisoned too: nobody may rely on zeros there.
    .irp n,0,1,2,3,4,5,6,7
    vor \n,20+\n,20+\n
    vor 8+\n,24+\n,24+\n
    .endr
    vor 16,20,21
    vor 17,22,23
    vor 18,24,25
    vor 19,26,27
    .irp n,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    lfd \n,192+8*(\n-14)(5)
    .endr
    lwz 0,424(5)
    mtspr 256,0
    lwz 0,408(5)
    mtcr 0
    li 0,-1
    mtxer 0
    mr 12,5
    mr 11,4
    lwz 3,0(11)
    lwz 4,4(11)
    lwz 5,8(11)
    lwz 6,12(11)
    lwz 7,16(11)
    lwz 8,20(11)
    lwz 9,24(11)
    lwz 10,28(11)
    lmw 14,336(12)
    bctrl
    lis 11,saved@ha
    lwz 12,saved+4@l(11)
    stmw 14,336(12)
    mfcr 0
    stw 0,408(12)
    stw 1,412(12)
    stw 2,416(12)
    stw 13,420(12)
    mfspr 0,256
    stw 0,424(12)
    .irp n,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    stfd \n,192+8*(\n-14)(12)
    .endr
    lwz 1,saved@l(11)
    .irp n,20,21,22,23,24,25,26,27,28,29,30,31
    li 11,16*(\n-20)
    stvx \n,12,11
    .endr
    .irp n,20,21,22,23,24,25,26,27,28,29,30,31
    li 11,16+16*(\n-20)
    lvx \n,1,11
    .endr
    .irp n,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    lfd \n,304+8*(\n-14)(1)
    .endr
    lwz 0,292(1)
    mtspr 256,0
    lwz 2,284(1)
    lwz 13,288(1)
    lwz 0,280(1)
    mtcr 0
    lmw 14,208(1)
    lwz 0,484(1)
    mtlr 0
    addi 1,1,480
    blr
    .size call_poisoned,.-call_poisoned

# Functions that each break one rule: the check must see every one of them.
    .globl breaks_general, breaks_vector, breaks_float, breaks_vector_save, breaks_condition, breaks_stack_pointer, breaks_small_data, keeps_all
breaks_general:
    addi 31,31,1
    blr
breaks_vector:
    vnor 20,20,20
    blr
breaks_float:
    fneg 14,14
    blr
breaks_vector_save:
    li 3,0
    mtspr 256,3
    blr
breaks_condition:
    crnot 19,19                 # the last bit of CR4
    blr
breaks_stack_pointer:
    addi 1,1,-16
    blr
breaks_small_data:
    addi 13,13,8
    blr
# What is not saved may be changed.
keeps_all:
    li 3,0
    li 12,0
    vspltisb 0,0
    vspltisb 19,0
    mtctr 3
    mtcrf 0xc3,3                # CR0, CR1, CR6, CR7
    blr

    .section .note.GNU-stack,"",@progbits
