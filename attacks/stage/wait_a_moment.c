/* Waits for a moment, whatever its words are: a program that people run with secrets in its command line. */
#include <unistd.h>

int main(void)
{
    usleep(20000);
}
