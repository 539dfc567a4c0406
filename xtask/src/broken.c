/* Locks that do not lock, to be preloaded: what a case must notice. */
#include <pthread.h>

#define DOES_NOTHING(name, type)        \
    int name(type *lock) {              \
        (void)lock;                     \
        return 0;                       \
    }

DOES_NOTHING(pthread_mutex_lock, pthread_mutex_t)
DOES_NOTHING(pthread_mutex_trylock, pthread_mutex_t)
DOES_NOTHING(pthread_mutex_unlock, pthread_mutex_t)
DOES_NOTHING(pthread_rwlock_rdlock, pthread_rwlock_t)
DOES_NOTHING(pthread_rwlock_tryrdlock, pthread_rwlock_t)
DOES_NOTHING(pthread_rwlock_wrlock, pthread_rwlock_t)
DOES_NOTHING(pthread_rwlock_trywrlock, pthread_rwlock_t)
DOES_NOTHING(pthread_rwlock_unlock, pthread_rwlock_t)
