/* Waiting where a thread may be cancelled.
 *
 * A cancelled thread unwinds, and what must be put right on the way is registered as C's
 * pthread_cleanup_push does without exceptions: by a jump buffer in the frame. A landing pad in Rust
 * would need the unwinder that is linked into this library to share its state with the program's. */
#include <pthread.h>

/* Calls wait(argument), in which the thread may be cancelled at any instruction. If it is, calls
 * cancelled(argument), and the thread ends. */
int relatch_cancellable(int (*wait)(void *), void (*cancelled)(void *), void *argument) {
    int result, type;
    pthread_cleanup_push(cancelled, argument);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    result = wait(argument);
    pthread_setcanceltype(type, &type);
    pthread_cleanup_pop(0);
    return result;
}
