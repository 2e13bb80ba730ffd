/* bad_names FOLDER NAME: waits for a lock on a file, in a socket and in a pipe, all of which have that name, in threads of that name. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *name;

static void *wait_in_socket(void *argument)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char byte;
    int ends = socket(AF_UNIX, SOCK_DGRAM, 0);
    prctl(PR_SET_NAME, name);
    /* An abstract name: any bytes. */
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
    if (bind(ends, (struct sockaddr *)&address, sizeof address) != 0 || read(ends, &byte, 1) < 0)
        return NULL;
    return argument;
}

static void *wait_in_fifo(void *argument)
{
    char byte;
    prctl(PR_SET_NAME, "\"x\\\n} 1\nfo");
    int fifo = open("fifo\033[2J\n<script>evil()", O_RDONLY);
    if (read(fifo, &byte, 1) < 0)
        return NULL;
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    char path[] = "\033[2J\033]52;c;b3duZWQ=\a\n``|`<img src=x onerror=evil()>`\xe2\x80\xae";
    if (argc != 3 || chdir(argv[1]) != 0)
        return 2;
    name = argv[2];
    if (mkfifo("fifo\033[2J\n<script>evil()", 0600) != 0)
        return 1;
    pthread_create(&thread, NULL, wait_in_socket, NULL);
    pthread_create(&thread, NULL, wait_in_fifo, NULL);
    int held = open(path, O_RDWR | O_CREAT, 0600), wanted = open(path, O_RDWR);
    if (held < 0 || wanted < 0 || flock(held, LOCK_EX) != 0)
        return 1;
    prctl(PR_SET_NAME, name);
    if (dprintf(3, "ready\n") < 0)
        return 1;
    close(3);
    flock(wanted, LOCK_EX);
}
