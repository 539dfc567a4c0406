/* The program of `relatch demo`: a small cache shared by a few threads.
 *
 * Its one lock is a pthread_mutex_t. Most calls look a key up, some store one; `cache_lock` and
 * `cache_unlock` are the wrappers that every C program has. In the end the cache is checked: what is
 * in it, and how often it was stored to. A lock that does not lock ends with exit code 1.
 *
 * Usage: sample [threads [calls of each]] */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Few buckets, so that a lookup takes as long as one among many more keys. */
enum { BUCKETS = 16, KEYS = 4096, THREADS = 64 };

struct entry {
    uint32_t key, value;
    struct entry *next;
};

struct cache {
    size_t entries, stores;
    struct entry *buckets[BUCKETS];
    pthread_mutex_t lock;
};

/* What one thread does, and what it found. */
struct worker {
    pthread_t id;
    uint32_t random;
    long calls;
    size_t stores, wrong;
};

static struct cache *cache;
static pthread_barrier_t start;

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
    c->stores++;
    cache_unlock(c);
}

static void *work(void *argument) {
    struct worker *w = argument;
    uint32_t random = w->random, value = 0;
    pthread_barrier_wait(&start);
    for (long i = 0; i < w->calls; i++) {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        uint32_t key = random % KEYS;
        if (random >> 28 == 0) {
            cache_put(cache, key, key * 7);
            w->stores++;
        } else if (cache_get(cache, key, &value) && value != key * 7) {
            w->wrong++;
        }
    }
    return NULL;
}

/* How many things about the cache are not as they must be. */
static size_t check(const struct cache *c, size_t stores) {
    static char seen[KEYS];
    size_t entries = 0, wrong = c->stores != stores;
    for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
        for (const struct entry *e = c->buckets[bucket]; e; e = e->next) {
            wrong += e->key % BUCKETS != bucket || e->value != e->key * 7 || seen[e->key];
            seen[e->key] = 1;
            entries++;
        }
    }
    return wrong + (c->entries != entries);
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 4;
    long calls = argc > 2 ? atol(argv[2]) : 120000;
    if (threads < 1 || threads > THREADS || calls < 1) {
        fprintf(stderr, "usage: %s [threads [calls of each]]\n", argv[0]);
        return 2;
    }
    cache = cache_new();
    static struct worker workers[THREADS];
    pthread_barrier_init(&start, NULL, threads);
    for (int t = 0; t < threads; t++) {
        workers[t] = (struct worker){.random = 2463534242u + t, .calls = calls};
        if (pthread_create(&workers[t].id, NULL, work, &workers[t]) != 0) {
            fprintf(stderr, "%s: no thread\n", argv[0]);
            return 2;
        }
    }
    size_t stores = 0, wrong = 0;
    for (int t = 0; t < threads; t++) {
        pthread_join(workers[t].id, NULL);
        stores += workers[t].stores;
        wrong += workers[t].wrong;
    }
    wrong += check(cache, stores);
    printf("%ld calls, %zu stores, %zu entries, %zu wrong\n", threads * calls, stores, cache->entries, wrong);
    return wrong != 0;
}
