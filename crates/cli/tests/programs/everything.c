/* Calls every lock function in every way that a program may, on every kind of lock, and says whether the
 * answers were those of POSIX. Prints "done" on standard output and on standard error, nothing else; a
 * wrong answer ends it with a message. Usage: everything [ROUNDS] */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, KINDS = 7 };

#define EXPECT(call, code)                                                                      \
    do {                                                                                        \
        int got_ = (call);                                                                      \
        if (got_ != (code)) {                                                                   \
            fprintf(stderr, "everything: line %d: %s: %d, not %d\n", __LINE__, #call, got_, code); \
            abort();                                                                            \
        }                                                                                       \
    } while (0)
#define OK(call) EXPECT(call, 0)

static long rounds = 200;
static const struct timespec past = { 1, 0 };

static struct timespec in_an_hour(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    now.tv_sec += 3600;
    return now;
}

/* normal, recursive, errorcheck, adaptive, PI, robust, process-shared */
static pthread_mutex_t mutexes[KINDS];
static pthread_rwlock_t rwlock, for_writers;
static pthread_spinlock_t spinlock;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static long counters[KINDS + 3], items;

static void init_mutex(pthread_mutex_t *mutex, int kind) {
    static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                                 PTHREAD_MUTEX_ADAPTIVE_NP };
    pthread_mutexattr_t attributes;
    OK(pthread_mutexattr_init(&attributes));
    if (kind < 4)
        OK(pthread_mutexattr_settype(&attributes, types[kind]));
    if (kind == 4)
        OK(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT));
    if (kind == 5)
        OK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    if (kind == 6)
        OK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    OK(pthread_mutex_init(mutex, &attributes));
    OK(pthread_mutexattr_destroy(&attributes));
}

static void use_mutexes(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        pthread_mutex_t *mutex = &mutexes[kind];
        struct timespec until = in_an_hour(CLOCK_REALTIME);
        OK(pthread_mutex_lock(mutex));
        counters[kind]++;
        if (kind == 1) {
            OK(pthread_mutex_lock(mutex));
            OK(pthread_mutex_trylock(mutex));
            OK(pthread_mutex_unlock(mutex));
            OK(pthread_mutex_unlock(mutex));
        }
        if (kind == 2)
            EXPECT(pthread_mutex_lock(mutex), EDEADLK);
        OK(pthread_mutex_unlock(mutex));
        if (kind == 2)
            EXPECT(pthread_mutex_unlock(mutex), EPERM);
        OK(pthread_mutex_timedlock(mutex, &until));
        counters[kind]++;
        OK(pthread_mutex_unlock(mutex));
        if (kind != 4) { /* PI mutexes know no other clock */
            until = in_an_hour(CLOCK_MONOTONIC);
            OK(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until));
            counters[kind]++;
            OK(pthread_mutex_unlock(mutex));
        }
        if (pthread_mutex_trylock(mutex) == 0) {
            counters[kind]++;
            OK(pthread_mutex_unlock(mutex));
        }
        (void)sched_yield();
    }
}

static void use_rwlocks(void) {
    struct timespec until = in_an_hour(CLOCK_REALTIME), monotonic = in_an_hour(CLOCK_MONOTONIC);
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_rdlock(&rwlock)); /* readers may read twice */
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_timedrdlock(&rwlock, &until));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &monotonic));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_wrlock(&rwlock));
    counters[KINDS]++;
    EXPECT(pthread_rwlock_rdlock(&rwlock), EDEADLK);
    EXPECT(pthread_rwlock_wrlock(&rwlock), EDEADLK);
    EXPECT(pthread_rwlock_tryrdlock(&rwlock), EBUSY);
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_timedwrlock(&rwlock, &until));
    counters[KINDS]++;
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &monotonic));
    counters[KINDS]++;
    OK(pthread_rwlock_unlock(&rwlock));
    if (pthread_rwlock_trywrlock(&rwlock) == 0) {
        counters[KINDS]++;
        OK(pthread_rwlock_unlock(&rwlock));
    }
    if (pthread_rwlock_tryrdlock(&rwlock) == 0)
        OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_wrlock(&for_writers));
    counters[KINDS + 1]++;
    OK(pthread_rwlock_unlock(&for_writers));
}

static void use_spinlock(void) {
    OK(pthread_spin_lock(&spinlock));
    counters[KINDS + 2]++;
    EXPECT(pthread_spin_trylock(&spinlock), EBUSY);
    OK(pthread_spin_unlock(&spinlock));
}

static void use_queue(void) {
    OK(pthread_mutex_lock(&queue));
    items++;
    OK(pthread_cond_signal(&moved));
    OK(pthread_mutex_unlock(&queue));
    OK(pthread_mutex_lock(&queue));
    while (items == 0)
        OK(pthread_cond_wait(&moved, &queue));
    items--;
    OK(pthread_cond_broadcast(&moved));
    OK(pthread_mutex_unlock(&queue));
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    OK(pthread_mutex_lock(&queue));
    EXPECT(pthread_cond_timedwait(&never, &queue, &past), ETIMEDOUT);
    EXPECT(pthread_cond_clockwait(&never, &queue, CLOCK_MONOTONIC, &past), ETIMEDOUT);
    OK(pthread_mutex_unlock(&queue));
}

/* Locks that live as long as a call, in memory that was another's: as nodes of a tree have. */
static void use_short_lived(void) {
    struct {
        pthread_mutex_t mutex;
        pthread_rwlock_t rwlock;
    } *node = malloc(sizeof *node);
    OK(pthread_mutex_init(&node->mutex, NULL));
    OK(pthread_rwlock_init(&node->rwlock, NULL));
    OK(pthread_mutex_lock(&node->mutex));
    OK(pthread_rwlock_wrlock(&node->rwlock));
    OK(pthread_rwlock_unlock(&node->rwlock));
    OK(pthread_mutex_unlock(&node->mutex));
    OK(pthread_rwlock_destroy(&node->rwlock));
    OK(pthread_mutex_destroy(&node->mutex));
    free(node);
}

static void *work(void *unused) {
    for (long i = 0; i < rounds; i++) {
        use_mutexes();
        use_rwlocks();
        use_spinlock();
        use_queue();
        use_short_lived();
    }
    return unused;
}

/* A robust mutex tells that its owner died. */
static void *die_holding(void *unused) {
    OK(pthread_mutex_lock(&mutexes[5]));
    return unused;
}

static void use_robust(void) {
    pthread_t thread;
    OK(pthread_create(&thread, NULL, die_holding, NULL));
    OK(pthread_join(thread, NULL));
    EXPECT(pthread_mutex_lock(&mutexes[5]), EOWNERDEAD);
    OK(pthread_mutex_consistent(&mutexes[5]));
    OK(pthread_mutex_unlock(&mutexes[5]));
}

/* A mutex in shared memory, and one held across a fork as atfork handlers do. */
static void use_fork(void) {
    struct {
        pthread_mutex_t mutex;
        long count;
    } *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    init_mutex(&shared->mutex, 6);
    OK(pthread_mutex_lock(&queue));
    pid_t child = fork();
    OK(pthread_mutex_unlock(&queue));
    for (int i = 0; i < 1000; i++) {
        OK(pthread_mutex_lock(&shared->mutex));
        shared->count++;
        OK(pthread_mutex_unlock(&shared->mutex));
    }
    if (child == 0) {
        use_mutexes();
        use_rwlocks();
        use_spinlock();
        use_short_lived();
        _exit(0);
    }
    int status = 0;
    OK(waitpid(child, &status, 0) != child || status != 0);
    OK(shared->count != 2000);
}

int main(int argc, char **argv) {
    if (argc > 1)
        rounds = atol(argv[1]);
    for (int kind = 0; kind < KINDS; kind++)
        init_mutex(&mutexes[kind], kind);
    pthread_rwlockattr_t attributes;
    OK(pthread_rwlockattr_init(&attributes));
    OK(pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
    OK(pthread_rwlock_init(&rwlock, NULL));
    OK(pthread_rwlock_init(&for_writers, &attributes));
    OK(pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        OK(pthread_create(&threads[i], NULL, work, NULL));
    for (int i = 0; i < THREADS; i++)
        OK(pthread_join(threads[i], NULL));
    long exact = THREADS * rounds;
    OK(counters[KINDS + 1] != exact || counters[KINDS + 2] != exact || items != 0);
    OK(counters[KINDS] < 3 * exact || counters[0] < 3 * exact);
    use_robust();
    use_fork();
    for (int kind = 0; kind < KINDS; kind++)
        OK(pthread_mutex_destroy(&mutexes[kind]));
    OK(pthread_rwlock_destroy(&rwlock));
    OK(pthread_rwlock_destroy(&for_writers));
    OK(pthread_spin_destroy(&spinlock));
    puts("done");
    fputs("done\n", stderr);
    return 0;
}
