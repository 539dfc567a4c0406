/* The program of `relatch demo`: a small cache shared by a few threads.
 *
 * Its one lock is a pthread_mutex_t. Most calls look a key up, some store one; `cache_lock` and
 * `cache_unlock` are the wrappers that every C program has. Usage: sample [threads [calls]] */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 1024, KEYS = 4096 };

struct entry {
    uint32_t key, value;
    struct entry *next;
};

struct cache {
    size_t entries;
    struct entry *buckets[BUCKETS];
    pthread_mutex_t lock;
};

static struct cache *cache;
static long calls = 400000;

static struct cache *cache_new(void) {
    struct cache *c = calloc(1, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

static void cache_lock(struct cache *c) { pthread_mutex_lock(&c->lock); }
static void cache_unlock(struct cache *c) { pthread_mutex_unlock(&c->lock); }

static struct entry *find(struct cache *c, uint32_t key) {
    struct entry *e = c->buckets[key % BUCKETS];
    while (e && e->key != key)
        e = e->next;
    return e;
}

static int cache_get(struct cache *c, uint32_t key, uint32_t *value) {
    cache_lock(c);
    struct entry *e = find(c, key);
    if (e)
        *value = e->value;
    cache_unlock(c);
    return e != NULL;
}

static void cache_put(struct cache *c, uint32_t key, uint32_t value) {
    cache_lock(c);
    struct entry *e = find(c, key);
    if (!e) {
        e = malloc(sizeof *e);
        e->key = key;
        e->next = c->buckets[key % BUCKETS];
        c->buckets[key % BUCKETS] = e;
        c->entries++;
    }
    e->value = value;
    cache_unlock(c);
}

static void *worker(void *seed) {
    uint32_t random = 2463534242u + (uint32_t)(uintptr_t)seed, value = 0;
    uintptr_t wrong = 0;
    for (long i = 0; i < calls; i++) {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        uint32_t key = random % KEYS;
        if (random >> 28 == 0)
            cache_put(cache, key, key * 7);
        else if (cache_get(cache, key, &value) && value != key * 7)
            wrong++;
    }
    return (void *)wrong;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 4;
    if (argc > 2)
        calls = atol(argv[2]);
    if (threads < 1 || threads > 64 || calls < 1) {
        fprintf(stderr, "usage: %s [threads [calls]]\n", argv[0]);
        return 2;
    }
    cache = cache_new();
    pthread_t id[64];
    for (intptr_t t = 0; t < threads; t++)
        pthread_create(&id[t], NULL, worker, (void *)t);
    uintptr_t wrong = 0;
    for (int t = 0; t < threads; t++) {
        void *result;
        pthread_join(id[t], &result);
        wrong += (uintptr_t)result;
    }
    printf("%ld calls, %zu entries, %zu wrong\n", threads * calls, cache->entries, (size_t)wrong);
    return wrong != 0;
}
