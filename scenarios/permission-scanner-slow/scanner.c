/* A scanner of files, as antivirus products are: nothing below DIRECTORY is opened before it has had MILLISECONDS to look.
 * Says "ready" on descriptor 3. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fanotify.h>
#include <time.h>
#include <unistd.h>

static void decide(int group, const struct fanotify_event_metadata *event, struct timespec delay)
{
    struct fanotify_response answer = {event->fd, FAN_ALLOW};
    nanosleep(&delay, NULL);
    if (write(group, &answer, sizeof answer) != (ssize_t)sizeof answer)
        perror("answer");
    close(event->fd);
}

int main(int argc, char **argv)
{
    long ms = argc == 3 ? atol(argv[2]) : -1;
    struct timespec delay = {ms / 1000, ms % 1000 * 1000000};
    struct fanotify_event_metadata events[64], *event;
    int group = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
    ssize_t length;
    if (ms < 0 || group < 0
        || fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN_PERM, AT_FDCWD, argv[1]) != 0)
        return 1;
    if (write(3, "ready\n", 6) != 6)
        return 1;
    close(3);
    while ((length = read(group, events, sizeof events)) > 0)
        for (event = events; FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length))
            decide(group, event, delay);
    return 1;
}
