/* Locks before any constructor has run (unless CONSTRUCTORS is defined: then in one), in constructors (of early.c, which it is linked with), in main and
 * in a destructor. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long times;

void lock_early(void);
long early_times(void);

__attribute__((noinline, noclone)) void lock_first(void) {
    pthread_mutex_lock(&mutex);
    times++;
    pthread_mutex_unlock(&mutex);
}

static void at_the_very_beginning(int argc, char **argv, char **environment) {
    (void)argc, (void)argv, (void)environment;
    for (int i = 0; i < 500; i++)
        lock_first();
}

#ifdef CONSTRUCTORS
__attribute__((section(".init_array"), used)) static
#else
__attribute__((section(".preinit_array"), used)) static
#endif
 void (*const first)(int, char **, char **) =
    at_the_very_beginning;

__attribute__((destructor(101))) static void after_main(void) {
    for (int i = 0; i < 50; i++)
        lock_first();
}

static void *work(void *unused) {
    lock_early();
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
        return 1;
    printf("%ld %ld\n", times, early_times());
    return times == 500 && early_times() == 1001 ? 0 : 1;
}
