/* Prints the features that the kernel announces to this process, in hexadecimal. */
#include <stdio.h>
#include <sys/auxv.h>

int main(void) {
    printf("%lx\n", getauxval(AT_HWCAP));
    return 0;
}
