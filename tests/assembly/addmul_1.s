# A limb times a natural, added to the result: result (r3), source (r4), limbs (r5, a multiple of four), multiplier (r6); least significant limb first;
# the carry limb comes back in r3. One chain of carries for the products and one for the old limbs.
	.text
	.globl addmul_1
addmul_1:
	srwi 5,5,2
	mtctr 5
	li 0,0
	addic 7,0,0
	addi 3,3,-4
	addi 4,4,-4
1:
	lwz 20,4(4)
	lwz 21,8(4)
	lwz 22,12(4)
	lwzu 23,16(4)
	mullw 8,20,6
	mullw 9,21,6
	mullw 10,22,6
	mullw 11,23,6
	adde 8,8,0
	mulhwu 0,20,6
	lwz 20,4(3)
	adde 9,9,0
	mulhwu 0,21,6
	lwz 21,8(3)
	adde 10,10,0
	mulhwu 0,22,6
	lwz 22,12(3)
	adde 11,11,0
	mulhwu 0,23,6
	lwz 23,16(3)
	addze 0,0
	addc 8,8,20
	stw 8,4(3)
	adde 9,9,21
	stw 9,8(3)
	adde 10,10,22
	stw 10,12(3)
	adde 11,11,23
	stwu 11,16(3)
	bdnz 1b
	addze 3,0
	blr
