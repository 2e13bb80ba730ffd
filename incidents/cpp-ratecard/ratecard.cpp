// Prices parcels: a card for each, of which the surcharge is worked out beside.
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

class Crew {
public:
    explicit Crew(int size) {
        for (int i = 0; i < size; ++i)
            hands_.emplace_back([this] { labour(); });
    }

    ~Crew() {
        for (auto &hand : hands_)
            hand.join();
    }

    std::future<int> take(std::function<int()> what) {
        auto job = std::make_shared<std::packaged_task<int()>>(std::move(what));
        auto result = job->get_future();
        {
            std::lock_guard<std::mutex> held(lock_);
            jobs_.emplace([job] { (*job)(); });
        }
        more_.notify_one();
        return result;
    }

private:
    void labour() {
        for (;;) {
            std::function<void()> job;
            {
                std::unique_lock<std::mutex> held(lock_);
                more_.wait(held, [this] { return !jobs_.empty(); });
                job = std::move(jobs_.front());
                jobs_.pop();
            }
            job();
        }
    }

    std::mutex lock_;
    std::condition_variable more_;
    std::queue<std::function<void()>> jobs_;
    std::vector<std::thread> hands_;
};

class RateCard {
public:
    explicit RateCard(Crew &crew) : crew_(crew) {}

    int total(int grams) {
        std::future<int> extra = crew_.take([grams] { return grams > 2000 ? 350 : 0; });
        int base = 400 + grams / 10;
        return base + extra.get();
    }

private:
    Crew &crew_;
};

int main() {
    Crew crew(2);
    RateCard card(crew);
    std::vector<std::future<int>> totals;
    for (int grams = 500; grams < 6000; grams += 250)
        totals.push_back(crew.take([&card, grams] { return card.total(grams); }));
    int sum = 0;
    std::thread teller([&] {
        for (auto &total : totals)
            sum += total.get();
        std::cout << sum << std::endl;
        std::exit(0);
    });
    teller.join();
}
