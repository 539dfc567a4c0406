/* What an uncontended acquire and release cost: prints the median over many batches, in nanoseconds.
 * Usage: pair mutex|read|write|spin CPU */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 1001, PAIRS = 500 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

/* With one thread alone glibc takes a mutex without an atomic operation. */
static void *idle(void *unused) {
    pause();
    return unused;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define BATCH(acquire, release)                                       \
    __attribute__((noinline)) static void acquire##_batch(void) {     \
        for (int i = 0; i < PAIRS; i++) {                             \
            acquire(LOCK);                                            \
            release(LOCK);                                            \
        }                                                             \
    }
#define LOCK &mutex
BATCH(pthread_mutex_lock, pthread_mutex_unlock)
#undef LOCK
#define LOCK &rwlock
BATCH(pthread_rwlock_rdlock, pthread_rwlock_unlock)
BATCH(pthread_rwlock_wrlock, pthread_rwlock_unlock)
#undef LOCK
#define LOCK &spinlock
BATCH(pthread_spin_lock, pthread_spin_unlock)

int main(int argc, char **argv) {
    static double batches[BATCHES];
    static const struct {
        const char *name;
        void (*batch)(void);
    } kinds[] = {
        { "mutex", pthread_mutex_lock_batch },
        { "read", pthread_rwlock_rdlock_batch },
        { "write", pthread_rwlock_wrlock_batch },
        { "spin", pthread_spin_lock_batch },
    };
    void (*batch)(void) = NULL;
    for (size_t i = 0; argc == 3 && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(argv[1], kinds[i].name))
            batch = kinds[i].batch;
    if (!batch) {
        fprintf(stderr, "usage: pair mutex|read|write|spin CPU\n");
        return 2;
    }
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(argv[2]), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus)) {
        perror("pair");
        return 2;
    }
    pthread_t second;
    pthread_spin_init(&spinlock, 0);
    if (pthread_create(&second, NULL, idle, NULL))
        return 2;
    batch();
    for (int i = 0; i < BATCHES; i++) {
        double from = now_ns();
        batch();
        batches[i] = (now_ns() - from) / PAIRS;
    }
    qsort(batches, BATCHES, sizeof *batches, by_value);
    printf("%.3f\n", batches[BATCHES / 2]);
    return 0;
}
