/* Cancels threads that wait on a condition variable. A thread cancelled while it waits leaves the mutex to
 * its clean-up handler, acquired. Prints "done" on standard output; a wrong answer ends it with a message. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIMES = 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int waiting, cleaned_up;

static void need(int code) {
    if (code) {
        fprintf(stderr, "cancel: %s\n", strerror(code));
        abort();
    }
}

static void clean_up(void *unused) {
    (void)unused;
    cleaned_up++;
    need(pthread_mutex_unlock(&mutex));
}

static void *wait_for_ever(void *timed) {
    struct timespec until;
    need(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(clean_up, NULL);
    waiting = 1;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 3600;
    for (;;)
        timed ? pthread_cond_timedwait(&never, &mutex, &until) : pthread_cond_wait(&never, &mutex);
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    for (int i = 0; i < TIMES; i++) {
        pthread_t thread;
        void *result;
        waiting = 0;
        need(pthread_create(&thread, NULL, wait_for_ever, i % 2 ? &mutex : NULL));
        for (int waits = 0; !waits; sched_yield()) {
            need(pthread_mutex_lock(&mutex));
            waits = waiting;
            need(pthread_mutex_unlock(&mutex));
        }
        need(pthread_cancel(thread));
        need(pthread_join(thread, &result));
        if (result != PTHREAD_CANCELED)
            abort();
        need(pthread_mutex_lock(&mutex));
        if (cleaned_up != i + 1)
            abort();
        need(pthread_mutex_unlock(&mutex));
    }
    puts("done");
    return 0;
}
