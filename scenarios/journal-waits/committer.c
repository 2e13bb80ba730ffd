/* Makes a file's every append safe on disk, until it is ended: FILE. */
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int file = argc == 2 ? open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (file < 0 || write(3, "ready\n", 6) != 6)
        return 1;
    close(3);
    while (write(file, "line\n", 5) == 5 && fsync(file) == 0)
        ;
    return 1;
}
