#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

struct Tile {
    int zoom, x, y;
};

struct Rendered {
    Tile tile;
    std::vector<uint8_t> pixels;
};

class TilePyramid {
public:
    explicit TilePyramid(std::string dir) : dir_(std::move(dir)) {}

    void plan(int maxZoom) {
        for (int z = 0; z <= maxZoom; ++z)
            for (int x = 0; x < (1 << z); ++x)
                for (int y = 0; y < (1 << z); ++y)
                    todo_.push({z, x, y});
        total_ = todo_.size();
    }

    void start(int threads) {
        running_ = threads;
        for (int i = 0; i < threads; ++i)
            crew_.emplace_back([this] { renderLoop(); });
    }

    void writeManifest() {
        std::ofstream m(dir_ + "/manifest.json");
        m << "{\"tiles\":" << total_ << ",\"format\":\"raw8\",\"checks\":[";
        for (int part = 0; part < 12; ++part) {
            m << (part ? "," : "") << part * 31 % 17;
            m.flush();
            std::this_thread::sleep_for(60ms);
        }
        m << "]}\n";
    }

    void awaitCrew() {
        std::unique_lock<std::mutex> lk(mu_);
        allDone_.wait(lk);
    }

    void publish() {
        for (auto &t : crew_)
            t.join();
        std::ofstream out(dir_ + "/tiles.bin", std::ios::binary);
        for (auto &r : done_)
            out.write(reinterpret_cast<const char *>(r.pixels.data()), static_cast<std::streamsize>(r.pixels.size()));
    }

    size_t rendered() {
        std::lock_guard<std::mutex> lk(mu_);
        return done_.size();
    }

private:
    static Rendered draw(const Tile &t) {
        Rendered r{t, std::vector<uint8_t>(64 * 64)};
        for (int i = 0; i < 64 * 64; ++i)
            r.pixels[i] = static_cast<uint8_t>((i * (t.x + 3)) ^ (i / 64 * (t.y + 5)) ^ t.zoom);
        return r;
    }

    bool next(Tile &t) {
        std::lock_guard<std::mutex> lk(mu_);
        if (todo_.empty())
            return false;
        t = todo_.front();
        todo_.pop();
        return true;
    }

    void renderLoop() {
        Tile t{};
        while (next(t)) {
            Rendered r = draw(t);
            std::lock_guard<std::mutex> lk(mu_);
            done_.push_back(std::move(r));
        }
        std::lock_guard<std::mutex> lk(mu_);
        if (--running_ == 0)
            allDone_.notify_all();
    }

    std::string dir_;
    std::queue<Tile> todo_;
    std::vector<Rendered> done_;
    std::vector<std::thread> crew_;
    std::mutex mu_;
    std::condition_variable allDone_;
    size_t total_ = 0;
    int running_ = 0;
};

int main() {
    const char *run = std::getenv("RUN");
    if (!run)
        return 1;
    TilePyramid pyramid(run);
    std::atomic<bool> stop{false};
    std::thread progress([&] {
        while (!stop) {
            std::this_thread::sleep_for(1s);
            std::cout << "rendered " << pyramid.rendered() << std::endl;
        }
    });
    pyramid.plan(5);
    pyramid.start(3);
    pyramid.writeManifest();
    pyramid.awaitCrew();
    pyramid.publish();
    stop = true;
    progress.join();
    return 0;
}
