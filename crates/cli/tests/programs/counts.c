/* Takes every kind of lock a known number of times, at sites of its own, in four threads, and ends as
 * it is told. Usage: counts [END [PROGRAM ARGUMENT]]
 *
 * What was done is written to standard output before the end, a line for each function that acquires:
 * "FUNCTION exclusive|shared ACQUISITIONS REJECTED". Where the number follows from chance (tries, waking
 * up) the thread has counted it itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

enum { THREADS = 4, SLOTS = 3 };

#define FUNCTIONS(X)                                                                            \
    X(plain, exclusive) X(tried, exclusive) X(timed, exclusive) X(clocked, exclusive)             \
    X(too_late, exclusive) X(twice, exclusive) X(cache_put, exclusive) X(cache_get, exclusive)    \
    X(slot_store, exclusive) X(slot_load, exclusive) X(consume, exclusive) X(produce, exclusive)  \
    X(doze, exclusive) X(doze_clocked, exclusive) X(spun, exclusive) X(spin_tried, exclusive)     \
    X(look, shared) X(look_tried, shared) X(look_timed, shared) X(look_clocked, shared)           \
    X(change, exclusive) X(change_tried, exclusive) X(change_timed, exclusive)                    \
    X(change_clocked, exclusive) X(read_too_late, shared) X(after_fork, exclusive)                \
    X(main, exclusive)

enum {
#define X(name, mode) id_##name,
    FUNCTIONS(X)
#undef X
    ALL
};

static const char *const lines[ALL] = {
#define X(name, mode) #name " " #mode,
    FUNCTIONS(X)
#undef X
};

static long acquired[ALL], rejected[ALL];
static __thread long mine[ALL], gave_up[ALL];

/* Counted while it is held; now and then long enough for another thread to find it so. */
#define GOT(name) (mine[id_##name]++ % 64 ? 0 : sched_yield())
#define GAVE_UP(name) (gave_up[id_##name]++, sched_yield())

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER, forked = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER, written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;

static void need(int code) {
    if (code) {
        fprintf(stderr, "counts: %s\n", strerror(code));
        abort();
    }
}

static struct timespec in_an_hour(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    now.tv_sec += 3600;
    return now;
}

static const struct timespec past = { 1, 0 };

APART void plain(void) {
    need(pthread_mutex_lock(&first));
    GOT(plain);
    pthread_mutex_unlock(&first); /* a jump, when optimised */
}

APART void tried(void) {
    while (pthread_mutex_trylock(&first))
        GAVE_UP(tried);
    GOT(tried);
    need(pthread_mutex_unlock(&first));
}

APART void timed(void) {
    struct timespec until = in_an_hour(CLOCK_REALTIME);
    need(pthread_mutex_timedlock(&second, &until));
    GOT(timed);
    need(pthread_mutex_unlock(&second));
}

APART void clocked(void) {
    struct timespec until = in_an_hour(CLOCK_MONOTONIC);
    need(pthread_mutex_clocklock(&second, CLOCK_MONOTONIC, &until));
    GOT(clocked);
    need(pthread_mutex_unlock(&second));
}

/* Main holds it. */
APART void too_late(void) {
    if (pthread_mutex_timedlock(&taken, &past) != ETIMEDOUT)
        abort();
    GAVE_UP(too_late);
    if (pthread_mutex_clocklock(&taken, CLOCK_MONOTONIC, &past) != ETIMEDOUT)
        abort();
    GAVE_UP(too_late);
}

APART void twice(void) {
    need(pthread_mutex_lock(&again));
    GOT(twice);
    need(pthread_mutex_lock(&again));
    GOT(twice);
    need(pthread_mutex_unlock(&again));
    need(pthread_mutex_unlock(&again));
}

/* The helper that every C program has: passes its argument on. */
struct cache {
    long entries;
    pthread_mutex_t lock;
};
static struct cache cache = { 0, PTHREAD_MUTEX_INITIALIZER };
APART static void cache_lock(struct cache *c) { need(pthread_mutex_lock(&c->lock)); }
APART static void cache_unlock(struct cache *c) { need(pthread_mutex_unlock(&c->lock)); }

APART void cache_put(void) {
    cache_lock(&cache);
    cache.entries++;
    GOT(cache_put);
    cache_unlock(&cache);
}

APART void cache_get(void) {
    cache_lock(&cache);
    GOT(cache_get);
    cache_unlock(&cache);
}

/* Its sister: finds the lock in a table, and is called through a second one. */
static struct {
    pthread_mutex_t lock;
    long value;
} slots[SLOTS];
APART static void slot_lock_by_index(unsigned slot) { need(pthread_mutex_lock(&slots[slot % SLOTS].lock)); }
APART static void slot_lock(unsigned slot) {
    slot_lock_by_index(slot + SLOTS);
    slots[slot % SLOTS].value++;
}
APART static void slot_unlock(unsigned slot) { need(pthread_mutex_unlock(&slots[slot % SLOTS].lock)); }

APART static void slot_unlock_by_jump(unsigned slot) { pthread_mutex_unlock(&slots[slot % SLOTS].lock); }

APART void slot_store(unsigned slot) {
    slot_lock(slot);
    GOT(slot_store);
    slot_unlock(slot);
}

APART void slot_load(unsigned slot) {
    slot_lock(slot);
    GOT(slot_load);
    slot_unlock_by_jump(slot);
}

/* Waiting ends a section, and waking up begins one. */
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;
static long items;

APART void consume(void) {
    need(pthread_mutex_lock(&queue));
    GOT(consume);
    while (items == 0) {
        need(pthread_cond_wait(&filled, &queue));
        GOT(consume);
    }
    items--;
    need(pthread_mutex_unlock(&queue));
}

APART void produce(void) {
    need(pthread_mutex_lock(&queue));
    GOT(produce);
    items++;
    need(pthread_cond_signal(&filled));
    need(pthread_mutex_unlock(&queue));
}

APART void doze(void) {
    need(pthread_mutex_lock(&queue));
    GOT(doze);
    if (pthread_cond_timedwait(&never, &queue, &past) != ETIMEDOUT)
        abort();
    GOT(doze);
    need(pthread_mutex_unlock(&queue));
}

APART void doze_clocked(void) {
    need(pthread_mutex_lock(&queue));
    GOT(doze_clocked);
    if (pthread_cond_clockwait(&never, &queue, CLOCK_MONOTONIC, &past) != ETIMEDOUT)
        abort();
    GOT(doze_clocked);
    need(pthread_mutex_unlock(&queue));
}

APART void spun(void) {
    need(pthread_spin_lock(&spinlock));
    GOT(spun);
    pthread_spin_unlock(&spinlock);
}

APART void spin_tried(void) {
    while (pthread_spin_trylock(&spinlock))
        GAVE_UP(spin_tried);
    GOT(spin_tried);
    need(pthread_spin_unlock(&spinlock));
}

APART void look(void) {
    need(pthread_rwlock_rdlock(&table));
    GOT(look);
    pthread_rwlock_unlock(&table);
}

APART void look_tried(void) {
    while (pthread_rwlock_tryrdlock(&table))
        GAVE_UP(look_tried);
    GOT(look_tried);
    need(pthread_rwlock_unlock(&table));
}

APART void look_timed(void) {
    struct timespec until = in_an_hour(CLOCK_REALTIME);
    need(pthread_rwlock_timedrdlock(&table, &until));
    GOT(look_timed);
    need(pthread_rwlock_unlock(&table));
}

APART void look_clocked(void) {
    struct timespec until = in_an_hour(CLOCK_MONOTONIC);
    need(pthread_rwlock_clockrdlock(&table, CLOCK_MONOTONIC, &until));
    GOT(look_clocked);
    need(pthread_rwlock_unlock(&table));
}

APART void change(void) {
    need(pthread_rwlock_wrlock(&table));
    GOT(change);
    pthread_rwlock_unlock(&table);
}

APART void change_tried(void) {
    while (pthread_rwlock_trywrlock(&table))
        GAVE_UP(change_tried);
    GOT(change_tried);
    need(pthread_rwlock_unlock(&table));
}

APART void change_timed(void) {
    struct timespec until = in_an_hour(CLOCK_REALTIME);
    need(pthread_rwlock_timedwrlock(&table, &until));
    GOT(change_timed);
    need(pthread_rwlock_unlock(&table));
}

APART void change_clocked(void) {
    struct timespec until = in_an_hour(CLOCK_MONOTONIC);
    need(pthread_rwlock_clockwrlock(&table, CLOCK_MONOTONIC, &until));
    GOT(change_clocked);
    need(pthread_rwlock_unlock(&table));
}

/* Main writes it. */
APART void read_too_late(void) {
    if (pthread_rwlock_timedrdlock(&written, &past) != ETIMEDOUT)
        abort();
    GAVE_UP(read_too_late);
    if (pthread_rwlock_clockrdlock(&written, CLOCK_MONOTONIC, &past) != ETIMEDOUT)
        abort();
    GAVE_UP(read_too_late);
}

APART void after_fork(void) {
    need(pthread_mutex_lock(&forked));
    GOT(after_fork);
    need(pthread_mutex_unlock(&forked));
}

static void add_mine(void) {
    for (int i = 0; i < ALL; i++) {
        __atomic_add_fetch(&acquired[i], mine[i], __ATOMIC_RELAXED);
        __atomic_add_fetch(&rejected[i], gave_up[i], __ATOMIC_RELAXED);
        mine[i] = gave_up[i] = 0;
    }
}

static int arrived, may_end, wait_for_the_end;

/* Every site's turn begins in all threads at once. */
static pthread_barrier_t together;
#define TIMES(n) pthread_barrier_wait(&together); for (int i = 0; i < (n); i++)

static void *work(void *unused) {
    TIMES(1009) plain();
    TIMES(503) tried(), i % 8 ? (void)0 : plain();
    TIMES(307) timed();
    TIMES(211) clocked();
    TIMES(53) too_late();
    TIMES(101) twice();
    TIMES(409) cache_put();
    TIMES(811) cache_get();
    TIMES(311) slot_store(i);
    TIMES(613) slot_load(i);
    TIMES(97) produce(), consume();
    TIMES(43) doze();
    TIMES(47) doze_clocked();
    TIMES(601) spun();
    TIMES(401) spin_tried();
    TIMES(907) look(), i % 9 ? (void)0 : change();
    TIMES(509) look_tried(), i % 8 ? (void)0 : change();
    TIMES(223) look_timed();
    TIMES(227) look_clocked();
    TIMES(103) change();
    TIMES(59) change_tried();
    TIMES(61) change_timed();
    TIMES(67) change_clocked();
    TIMES(37) read_too_late();
    add_mine();
    __atomic_add_fetch(&arrived, 1, __ATOMIC_RELEASE);
    while (wait_for_the_end && !__atomic_load_n(&may_end, __ATOMIC_ACQUIRE))
        usleep(1000);
    return unused;
}

static void *work_after_fork(void *unused) {
    for (int i = 0; i < 777; i++) after_fork();
    add_mine();
    return unused;
}

static void run(pthread_t *threads, void *(*what)(void *)) {
    for (int i = 0; i < THREADS; i++)
        need(pthread_create(&threads[i], NULL, what, NULL));
}

static void join(pthread_t *threads) {
    for (int i = 0; i < THREADS; i++)
        need(pthread_join(threads[i], NULL));
}

/* In one write, so that two processes do not mix their lines. */
static void tell(void) {
    char text[4096];
    size_t used = 0;
    for (int i = 0; i < ALL; i++) {
        long a = __atomic_load_n(&acquired[i], __ATOMIC_RELAXED);
        long r = __atomic_load_n(&rejected[i], __ATOMIC_RELAXED);
        if (a || r)
            used += snprintf(text + used, sizeof text - used, "%s %ld %ld\n", lines[i], a, r);
    }
    if (write(1, text, used) != (ssize_t)used)
        abort();
}

/* The child of a process whose other threads are in the middle of their sections. */
static void in_child(void) {
    pthread_t threads[THREADS];
    memset(acquired, 0, sizeof acquired);
    memset(rejected, 0, sizeof rejected);
    run(threads, work_after_fork);
    join(threads);
    tell();
    _exit(0);
}

int main(int argc, char **argv) {
    const char *end = argc > 1 ? argv[1] : "return";
    int forks = !strcmp(end, "fork-first") || !strcmp(end, "fork-amid");
    pthread_t threads[THREADS];
    pid_t child = -1;
    wait_for_the_end = strcmp(end, "return") != 0 && !forks;
    if (!strcmp(end, "fork-first"))
        child = fork();
    for (int i = 0; i < SLOTS; i++)
        need(pthread_mutex_init(&slots[i].lock, NULL));
    need(pthread_spin_init(&spinlock, 0));
    need(pthread_barrier_init(&together, NULL, THREADS));
    need(pthread_mutex_lock(&taken));
    GOT(main);
    need(pthread_rwlock_wrlock(&written));
    GOT(main);
    add_mine();
    run(threads, work);
    if (!strcmp(end, "fork-amid")) {
        usleep(300);
        child = fork();
        if (child == 0)
            in_child();
    }
    if (!wait_for_the_end)
        join(threads);
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < THREADS)
        usleep(1000);
    tell();
    if (!strcmp(end, "kill"))
        raise(SIGKILL);
    if (!strcmp(end, "_exit"))
        _exit(0);
    if (!strcmp(end, "exit"))
        exit(0);
    if (!strcmp(end, "exec") && argc > 2)
        execv(argv[2], argv + 2);
    if (child > 0) {
        int status = 0;
        if (waitpid(child, &status, 0) != child || status)
            return 1;
    }
    return 0;
}
