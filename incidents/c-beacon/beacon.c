#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MAX_NODES 64

struct node {
    char name[24];
    int64_t last_seen;
    unsigned beats;
};

static struct node nodes[MAX_NODES];
static int node_count;
static char state_path[256];

static int64_t now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static struct node *find_node(const char *name)
{
    for (int i = 0; i < node_count; i++)
        if (!strcmp(nodes[i].name, name))
            return &nodes[i];
    if (node_count == MAX_NODES)
        return NULL;
    struct node *n = &nodes[node_count++];
    snprintf(n->name, sizeof n->name, "%.23s", name);
    return n;
}

static int open_udp(uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0)
        return -1;
    getsockname(fd, (struct sockaddr *)&a, &len);
    *port = ntohs(a.sin_port);
    return fd;
}

static void drain(int fd)
{
    char buf[64];
    struct sockaddr_in from;
    for (;;) {
        socklen_t len = sizeof from;
        ssize_t n = recvfrom(fd, buf, sizeof buf - 1, 0, (struct sockaddr *)&from, &len);
        if (n < 0)
            return;
        buf[n] = 0;
        buf[strcspn(buf, "\r\n")] = 0;
        struct node *nd = find_node(buf);
        if (nd) {
            nd->beats++;
            nd->last_seen = now_s();
        }
        sendto(fd, "ack", 3, 0, (struct sockaddr *)&from, len);
    }
}

static void expire(void)
{
    FILE *f = fopen(state_path, "w");
    if (!f)
        return;
    for (int i = 0; i < node_count; i++)
        fprintf(f, "%s %u %s\n", nodes[i].name, nodes[i].beats, now_s() - nodes[i].last_seen > 15 ? "down" : "up");
    fclose(f);
}

int main(void)
{
    const char *run = getenv("RUN");
    uint16_t port;
    char path[256];
    if (!run)
        return 1;
    snprintf(state_path, sizeof state_path, "%s/nodes.txt", run);
    int udp = open_udp(&port);
    if (udp < 0)
        return 1;
    snprintf(path, sizeof path, "%s/beacon.port", run);
    FILE *pf = fopen(path, "w");
    fprintf(pf, "%u\n", port);
    fclose(pf);
    int tfd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec it = {{3, 0}, {3, 0}};
    timerfd_settime(tfd, 0, &it, NULL);
    int ep = epoll_create1(0);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = udp};
    epoll_ctl(ep, EPOLL_CTL_ADD, udp, &ev);
    ev.data.fd = tfd;
    epoll_ctl(ep, EPOLL_CTL_ADD, tfd, &ev);
    for (;;) {
        struct epoll_event got[8];
        int n = epoll_wait(ep, got, 8, -1);
        for (int i = 0; i < n; i++) {
            if (got[i].data.fd == tfd) {
                uint64_t ticks;
                if (read(tfd, &ticks, sizeof ticks) == sizeof ticks)
                    expire();
            } else {
                drain(udp);
            }
        }
    }
}
