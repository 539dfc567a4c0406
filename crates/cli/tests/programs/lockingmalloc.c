/* A library to be preloaded: an allocator that takes a pthread mutex in every call, as jemalloc does. Blocks
 * of powers of two from one region; what is freed is used again. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZES = 48, ALIGNED = SIZES - 1 };
#define REGION ((size_t)4 << 30)

struct block {
    size_t size; /* log2 of the block with this header */
    struct block *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct block *unused[SIZES];
static char *at, *end;

void *malloc(size_t bytes) {
    size_t size = 5;
    struct block *block = NULL;
    while (((size_t)1 << size) < bytes + sizeof *block)
        if (++size == SIZES)
            return errno = ENOMEM, NULL;
    pthread_mutex_lock(&mutex);
    if (!at) {
        at = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        end = at == MAP_FAILED ? (at = NULL) : at + REGION;
    }
    if (unused[size]) {
        block = unused[size];
        unused[size] = block->next;
    } else if ((size_t)(end - at) >= (size_t)1 << size) {
        block = (struct block *)at;
        at += (size_t)1 << size;
    }
    pthread_mutex_unlock(&mutex);
    if (!block)
        return errno = ENOMEM, NULL;
    block->size = size;
    return block + 1;
}

void free(void *memory) {
    if (!memory)
        return;
    struct block *block = (struct block *)memory - 1;
    pthread_mutex_lock(&mutex);
    block->next = unused[block->size];
    unused[block->size] = block;
    pthread_mutex_unlock(&mutex);
}

void *calloc(size_t n, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(n, bytes, &all))
        return errno = ENOMEM, NULL;
    void *memory = malloc(all);
    return memory ? memset(memory, 0, all) : NULL;
}

void *realloc(void *old, size_t bytes) {
    if (!old)
        return malloc(bytes);
    struct block *block = (struct block *)old - 1;
    size_t had = block->size == ALIGNED ? (size_t)block->next : ((size_t)1 << block->size) - sizeof *block;
    if (bytes <= had)
        return old;
    void *memory = malloc(bytes);
    if (memory) {
        memcpy(memory, old, had);
        free(old);
    }
    return memory;
}

/* The block's header lies just before what is handed out, so an aligned one cannot be found again: it is
 * never used again. */
int posix_memalign(void **memory, size_t to, size_t bytes) {
    char *whole = malloc(bytes + to + sizeof(struct block));
    if (!whole)
        return ENOMEM;
    char *aligned = (char *)(((uintptr_t)whole + sizeof(struct block) + to - 1) / to * to);
    ((struct block *)aligned - 1)->size = ALIGNED;
    ((struct block *)aligned - 1)->next = (void *)bytes;
    *memory = aligned;
    return 0;
}

void *aligned_alloc(size_t to, size_t bytes) {
    void *memory;
    return posix_memalign(&memory, to, bytes) ? NULL : memory;
}

void *memalign(size_t to, size_t bytes) { return aligned_alloc(to, bytes); }
