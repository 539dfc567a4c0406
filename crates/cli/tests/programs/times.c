/* Sections and waits of planned lengths. Prints what it measured itself, between the calls, a line each:
 * "FUNCTION hold|wait|slept NANOSECONDS": the median of sections and waits, the sum of sleeps.
 *
 * Lengths are burnt on the time stamp counter: sleeping is longer than asked for. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define APART __attribute__((noinline, noclone))

enum { SECTIONS = 4000, WAITS = 200, SLEEPS = 20 };

static double ticks_per_ns;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void calibrate(void) {
    uint64_t ns = now_ns(), ticks = __rdtsc();
    while (now_ns() - ns < 200000000)
        ;
    uint64_t ticks_after = __rdtsc(), ns_after = now_ns();
    ticks_per_ns = (double)(ticks_after - ticks) / (ns_after - ns);
}

static void burn(double ns) {
    uint64_t until = __rdtsc() + (uint64_t)(ns * ticks_per_ns);
    while (__rdtsc() < until)
        ;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_ns(uint64_t *ticks, size_t n) {
    qsort(ticks, n, sizeof *ticks, by_value);
    return ticks[n / 2] / ticks_per_ns;
}

/* Each length has a lock, a site and a thread of its own. */
#define BURNING(name, us)                                                        \
    static pthread_mutex_t name##_lock = PTHREAD_MUTEX_INITIALIZER;             \
    static uint64_t name##_ticks[SECTIONS];                                      \
    APART void name(int i) {                                                     \
        pthread_mutex_lock(&name##_lock);                                        \
        uint64_t from = __rdtsc();                                               \
        burn(us * 1000.0);                                                       \
        name##_ticks[i] = __rdtsc() - from;                                      \
        pthread_mutex_unlock(&name##_lock);                                      \
    }                                                                            \
    static void *name##_thread(void *unused) {                                   \
        for (int i = 0; i < SECTIONS; i++)                                       \
            name(i), burn(500);                                                  \
        return unused;                                                           \
    }
BURNING(burn_1us, 1)
BURNING(burn_10us, 10)
BURNING(burn_100us, 100)

/* The holder lets go exactly 1 ms after the waiter said that it is about to wait. */
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static int turn; /* 2 i: the holder may take it, 2 i + 1: it holds it, and the waiter may wait */
static int waiting;
static uint64_t wait_ticks[WAITS];

static void until(int *word, int value) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
        ;
}

APART void hold_1ms(int i) {
    pthread_mutex_lock(&contended);
    __atomic_store_n(&turn, 2 * i + 1, __ATOMIC_RELEASE);
    until(&waiting, i + 1);
    burn(1e6);
    pthread_mutex_unlock(&contended);
}

APART void wait_1ms(int i) {
    until(&turn, 2 * i + 1);
    __atomic_store_n(&waiting, i + 1, __ATOMIC_RELEASE);
    uint64_t from = __rdtsc();
    pthread_mutex_lock(&contended);
    wait_ticks[i] = __rdtsc() - from;
    pthread_mutex_unlock(&contended);
    __atomic_store_n(&turn, 2 * i + 2, __ATOMIC_RELEASE);
}

static void *holder(void *unused) {
    for (int i = 0; i < WAITS; i++) {
        until(&turn, 2 * i);
        hold_1ms(i);
    }
    return unused;
}

static void *waiter(void *unused) {
    for (int i = 0; i < WAITS; i++)
        wait_1ms(i);
    return unused;
}

/* Sleeps of 10 ms in a condition variable, of every kind. */
static pthread_mutex_t bed = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t alarm_rings = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;
static int rings;
static uint64_t slept_ns;

static struct timespec in_10ms(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_nsec += 10000000;
    if (at.tv_nsec >= 1000000000)
        at.tv_nsec -= 1000000000, at.tv_sec++;
    return at;
}

APART void sleep_in_cond(int i) {
    pthread_mutex_lock(&bed);
    uint64_t from = now_ns();
    if (i % 3 == 0) {
        while (rings <= i / 3)
            pthread_cond_wait(&alarm_rings, &bed);
    } else if (i % 3 == 1) {
        struct timespec at = in_10ms(CLOCK_REALTIME);
        pthread_cond_timedwait(&never, &bed, &at);
    } else {
        struct timespec at = in_10ms(CLOCK_MONOTONIC);
        pthread_cond_clockwait(&never, &bed, CLOCK_MONOTONIC, &at);
    }
    slept_ns += now_ns() - from;
    pthread_mutex_unlock(&bed);
}

static void *sleeper(void *unused) {
    for (int i = 0; i < SLEEPS; i++)
        sleep_in_cond(i);
    return unused;
}

static void *ringer(void *unused) {
    for (int i = 0; i <= SLEEPS / 3; i++) {
        usleep(30000);
        pthread_mutex_lock(&bed);
        rings++;
        pthread_cond_signal(&alarm_rings);
        pthread_mutex_unlock(&bed);
    }
    return unused;
}

/* Two at once: as many as even a small machine has processors. */
static void together(void *(*one)(void *), void *(*other)(void *)) {
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, one, NULL) || pthread_create(&threads[1], NULL, other, NULL))
        abort();
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static void *idle(void *unused) { return unused; }

int main(void) {
    calibrate();
    together(burn_1us_thread, burn_10us_thread);
    together(burn_100us_thread, idle);
    together(holder, waiter);
    together(sleeper, ringer);
    printf("burn_1us hold %.0f\n", median_ns(burn_1us_ticks, SECTIONS));
    printf("burn_10us hold %.0f\n", median_ns(burn_10us_ticks, SECTIONS));
    printf("burn_100us hold %.0f\n", median_ns(burn_100us_ticks, SECTIONS));
    printf("wait_1ms wait %.0f\n", median_ns(wait_ticks, WAITS));
    printf("sleep_in_cond slept %.0f\n", (double)slept_ns);
    return 0;
}
