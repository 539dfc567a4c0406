/* Works for some milliseconds in the sections of two threads, and 5 % longer where it is said to be
 * converted: a slowdown of known size, whatever the locks do. Usage: slower [SECTIONS] */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, WORK = 2000 };

static struct {
    pthread_mutex_t lock;
    uint64_t value;
    char apart[64];
} shards[THREADS];
static long sections = 10000;
static int work = WORK;

static void *run(void *number) {
    intptr_t own = (intptr_t)number;
    for (long i = 0; i < sections; i++) {
        pthread_mutex_lock(&shards[own].lock);
        uint64_t value = shards[own].value + 1;
        for (int j = 0; j < work; j++)
            value ^= value << 13, value ^= value >> 7, value ^= value << 17;
        shards[own].value = value;
        pthread_mutex_unlock(&shards[own].lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const char *mode = getenv("RELATCH_MODE");
    pthread_t threads[THREADS];
    if (argc > 1)
        sections = atol(argv[1]);
    if (mode && !strcmp(mode, "convert"))
        work += WORK / 20;
    for (intptr_t i = 0; i < THREADS; i++) {
        pthread_mutex_init(&shards[i].lock, NULL);
        if (pthread_create(&threads[i], NULL, run, (void *)i))
            return 1;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%llx\n", (unsigned long long)(shards[0].value + shards[1].value));
    return 0;
}
