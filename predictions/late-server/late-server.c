/* Answers each datagram to port 5399 of this machine after so many microseconds: late-server US. Says "ready" on descriptor 3. */
#include "work.h"
#include <arpa/inet.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
    int server = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(5399)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(server >= 0 && bind(server, (struct sockaddr *)&here, sizeof here) == 0, "bind");
    must(write(3, "ready\n", 6) == 6, "say ready");
    close(3);
    for (;;) {
        char question[512];
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        ssize_t size = recvfrom(server, question, sizeof question, 0, (struct sockaddr *)&from, &length);
        rest(atol(argc > 1 ? argv[1] : "0"));
        sendto(server, question, size > 0 ? size : 0, 0, (struct sockaddr *)&from, length);
    }
}
