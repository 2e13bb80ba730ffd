#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;

struct Upload {
    std::string device;
    size_t bytes = 0;
};

class UploadGateway {
public:
    explicit UploadGateway(std::string run) : run_(std::move(run)) {}

    bool open() {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::bind(listener_, reinterpret_cast<sockaddr *>(&a), sizeof a) < 0 || ::listen(listener_, 128) < 0)
            return false;
        socklen_t n = sizeof a;
        ::getsockname(listener_, reinterpret_cast<sockaddr *>(&a), &n);
        std::ofstream(run_ + "/upload.port") << ntohs(a.sin_port) << std::endl;
        return true;
    }

    void serve() {
        for (;;) {
            std::vector<pollfd> set{{listener_, POLLIN, 0}};
            for (auto &[fd, u] : uploads_)
                set.push_back({fd, POLLIN, 0});
            if (::poll(set.data(), set.size(), 1000) <= 0)
                continue;
            for (auto &p : set) {
                if (!p.revents)
                    continue;
                if (p.fd == listener_)
                    acceptDevice();
                else
                    receive(p.fd);
            }
        }
    }

private:
    void acceptDevice() {
        int c = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
        if (c < 0) {
            if (errno == EAGAIN || errno == EINTR)
                return;
            std::this_thread::sleep_for(50ms);
            return;
        }
        uploads_[c] = Upload{};
    }

    void receive(int fd) {
        char buf[4096];
        ssize_t n = ::read(fd, buf, sizeof buf);
        if (n <= 0) {
            if (n < 0 && errno == EAGAIN)
                return;
            ::close(fd);
            uploads_.erase(fd);
            return;
        }
        Upload &u = uploads_[fd];
        if (u.device.empty())
            u.device.assign(buf, static_cast<size_t>(std::min<ssize_t>(n, 12)));
        u.bytes += static_cast<size_t>(n);
        if (::write(fd, "ok\n", 3) < 0)
            ++failed_;
    }

    std::string run_;
    int listener_ = -1;
    std::map<int, Upload> uploads_;
    unsigned failed_ = 0;
};

int main() {
    const char *run = std::getenv("RUN");
    if (!run)
        return 1;
    UploadGateway gw(run);
    if (!gw.open())
        return 1;
    gw.serve();
}
