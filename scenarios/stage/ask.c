/* Asks on port 8126, over a connection for each question, the next one as soon as the last is answered. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 8126 };

int main(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr = { htonl(INADDR_LOOPBACK) } };
    /* A connection that is reset leaves no port behind for a minute. */
    struct linger reset = { .l_onoff = 1 };
    char answer;
    if (write(3, "ready\n", 6) != 6)
        return 1;
    for (;;) {
        int connection = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(connection, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        if (connect(connection, (struct sockaddr *)&address, sizeof(address)) != 0 || send(connection, "q", 1, 0) != 1 ||
            recv(connection, &answer, 1, 0) != 1)
            return 1;
        close(connection);
    }
}
