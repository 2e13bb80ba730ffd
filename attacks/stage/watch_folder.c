/* watch_folder FOLDER FILE: writes the name of all that is made in FOLDER to FILE, also of what is gone a moment later. FILE is there
 * when it watches. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    _Alignas(struct inotify_event) char buffer[65536];
    int watch = inotify_init1(IN_CLOEXEC);
    if (argc != 3 || inotify_add_watch(watch, argv[1], IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_MODIFY) < 0)
        return 1;
    FILE *out = fopen(argv[2], "w");
    for (ssize_t got; out && (got = read(watch, buffer, sizeof buffer)) > 0; fflush(out)) {
        for (char *at = buffer; at < buffer + got;) {
            struct inotify_event *event = (void *)at;
            fprintf(out, "%s\n", event->len > 0 ? event->name : "(the folder itself)");
            at += sizeof *event + event->len;
        }
    }
    return 1;
}
