// Takes locks through the guards of the C++ library, in functions of its own, in four threads. Prints a
// line for each: "FUNCTION exclusive|shared ACQUISITIONS REJECTED".
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#define APART __attribute__((noinline, noclone))

static const int THREADS = 4;

static std::mutex one;
static std::shared_mutex table;
static std::recursive_mutex again;
static std::timed_mutex patient;
static thread_local std::mutex left, right;

namespace store {
struct Shard {
    std::mutex mutex;
    long hits = 0;
    APART void Lookup() {
        std::lock_guard<std::mutex> guard(mutex);
        hits++;
    }
    APART void Release() {
        std::unique_lock<std::mutex> guard(mutex);
        hits--;
        guard.unlock();
        guard.lock();
        hits++;
    }
};
} // namespace store

APART static void with_guard(long &n) {
    std::lock_guard<std::mutex> guard(one);
    n++;
}

APART static void with_unique(long &n) {
    std::unique_lock<std::mutex> guard(one);
    n++;
}

// Two of one thread alone, so that std::lock never has to give one back.
APART static void with_scoped(long &n) {
    std::scoped_lock guard(left, right);
    n += 2;
}

APART static void with_scoped_one(long &n) {
    std::scoped_lock guard(one);
    n++;
}

APART static void with_shared(long &n) {
    std::shared_lock<std::shared_mutex> guard(table);
    n++;
}

APART static void with_exclusive(long &n) {
    std::unique_lock<std::shared_mutex> guard(table);
    n++;
}

APART static void with_recursive(long &n) {
    std::lock_guard<std::recursive_mutex> outer(again);
    n++;
    std::lock_guard<std::recursive_mutex> inner(again);
    n++;
}

APART static void with_patience(long &n) {
    std::unique_lock<std::timed_mutex> guard(patient, std::chrono::hours(1));
    if (!guard.owns_lock())
        abort();
    n++;
}

APART static void with_try(long &n, long &refused) {
    for (;;) {
        std::unique_lock<std::mutex> guard(one, std::try_to_lock);
        if (guard.owns_lock())
            break;
        refused++;
    }
    n++;
}

APART static void with_wait(long &n) {
    static std::mutex mutex;
    static std::condition_variable never;
    std::unique_lock<std::mutex> guard(mutex);
    n++;
    if (never.wait_for(guard, std::chrono::microseconds(1)) != std::cv_status::timeout)
        abort();
    n++;
}

struct Counts {
    long guard, unique, scoped, scoped_one, shared, exclusive, recursive, patience, tried, refused, wait;
};

int main() {
    static store::Shard shard;
    std::vector<Counts> counts(THREADS);
    std::vector<std::thread> threads;
    for (int t = 0; t < THREADS; t++)
        threads.emplace_back([&counts, t] {
            Counts &c = counts[t];
            for (int i = 0; i < 1009; i++) with_guard(c.guard);
            for (int i = 0; i < 503; i++) with_unique(c.unique);
            for (int i = 0; i < 211; i++) with_scoped(c.scoped);
            for (int i = 0; i < 307; i++) with_scoped_one(c.scoped_one);
            for (int i = 0; i < 907; i++) with_shared(c.shared);
            for (int i = 0; i < 103; i++) with_exclusive(c.exclusive);
            for (int i = 0; i < 101; i++) with_recursive(c.recursive);
            for (int i = 0; i < 53; i++) with_patience(c.patience);
            for (int i = 0; i < 401; i++) with_try(c.tried, c.refused);
            for (int i = 0; i < 43; i++) with_wait(c.wait);
            for (int i = 0; i < 601; i++) shard.Lookup();
            for (int i = 0; i < 223; i++) shard.Release();
        });
    for (auto &thread : threads)
        thread.join();
    Counts all = {};
    for (Counts &c : counts) {
        all.guard += c.guard, all.unique += c.unique, all.scoped += c.scoped;
        all.scoped_one += c.scoped_one, all.shared += c.shared, all.exclusive += c.exclusive;
        all.recursive += c.recursive, all.patience += c.patience, all.tried += c.tried;
        all.refused += c.refused, all.wait += c.wait;
    }
    printf("with_guard exclusive %ld 0\nwith_unique exclusive %ld 0\n", all.guard, all.unique);
    printf("with_scoped exclusive %ld 0\nwith_scoped_one exclusive %ld 0\n", all.scoped, all.scoped_one);
    printf("with_shared shared %ld 0\nwith_exclusive exclusive %ld 0\n", all.shared, all.exclusive);
    printf("with_recursive exclusive %ld 0\nwith_patience exclusive %ld 0\n", all.recursive, all.patience);
    printf("with_try exclusive %ld %ld\nwith_wait exclusive %ld 0\n", all.tried, all.refused, all.wait);
    printf("store::Shard::Lookup exclusive %d 0\n", THREADS * 601);
    printf("store::Shard::Release exclusive %d 0\n", THREADS * 223 * 2);
    return 0;
}
