# A limb times a natural: result (r3), source (r4), limbs (r5, even), multiplier (r6); least significant limb first; the carry limb comes back in r3.
# Two limbs a pass, the load two limbs ahead: two limbs past the end of the source are read.
	.text
	.globl mul_1
mul_1:
	srwi 5,5,1
	mtctr 5
	li 11,0
	addic 0,11,0
	addi 3,3,-4
	lwz 20,0(4)
	lwzu 21,4(4)
1:
	mullw 8,20,6
	mulhwu 10,20,6
	lwzu 20,4(4)
	adde 8,8,11
	stwu 8,4(3)
	mullw 9,21,6
	mulhwu 11,21,6
	lwzu 21,4(4)
	adde 9,9,10
	stwu 9,4(3)
	bdnz 1b
	addze 3,11
	blr
