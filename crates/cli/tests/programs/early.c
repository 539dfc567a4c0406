/* A library that locks in its constructor, before the constructors of most others have run, in a process
 * that has used up the thread-specific keys that need no memory. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long times;

__attribute__((noinline, noclone)) void lock_early(void) {
    pthread_mutex_lock(&mutex);
    times++;
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
}

__attribute__((constructor(101))) static void before_main(void) {
    for (int i = 0; i < 40; i++) {
        pthread_key_t key;
        if (pthread_key_create(&key, NULL))
            return;
    }
    for (int i = 0; i < 1000; i++)
        lock_early();
}

long early_times(void) { return times; }
