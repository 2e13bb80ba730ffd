/* How a descriptor goes from a program to another that serves it: over a Unix socket, as container runtimes and virtual
 * machine monitors hand theirs over. */
#ifndef DESCRIPTOR_H
#define DESCRIPTOR_H

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static inline struct sockaddr_un socket_address(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    return address;
}

union descriptor_message {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

/* Sends DESCRIPTOR to whoever listens at PATH; 0 when that went well. */
static inline int send_descriptor(const char *path, int descriptor)
{
    struct sockaddr_un address = socket_address(path);
    char byte = 0;
    struct iovec data = {&byte, 1};
    union descriptor_message control = {0};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), sent;
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    if (connect(channel, (struct sockaddr *)&address, sizeof address) != 0)
        return -1;
    sent = (int)sendmsg(channel, &message, 0);
    close(channel);
    return sent == 1 ? 0 : -1;
}

/* A socket that listens at PATH. */
static inline int listen_at(const char *path)
{
    struct sockaddr_un address = socket_address(path);
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listening, (struct sockaddr *)&address, sizeof address) != 0 || listen(listening, 1) != 0)
        return -1;
    return listening;
}

/* The descriptor that the first client of LISTENING sends. */
static inline int receive_descriptor(int listening)
{
    char byte;
    struct iovec data = {&byte, 1};
    union descriptor_message control = {0};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    int channel = accept(listening, NULL, NULL), descriptor = -1;
    struct cmsghdr *header;
    if (channel < 0 || recvmsg(channel, &message, 0) != 1)
        return -1;
    header = CMSG_FIRSTHDR(&message);
    if (header != NULL)
        memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    close(channel);
    return descriptor;
}

#endif
