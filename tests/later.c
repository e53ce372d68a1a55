/* A clock that is DAYS ahead, for every process that has this library in LD_PRELOAD.

   Only the time of day is moved. Monotonic clocks are not, so timeouts and measurements stay true, and neither are the
   kernel's own times (of files, for one). A wait until a time of day is told to the kernel in the kernel's days; by the
   functions that name their clock, because those exist in one version only and need no search for the right one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/time.h>
#include <time.h>

static const time_t AHEAD_S = (time_t)DAYS * 86400;
/* Clocks that count from the start of the machine are below this for 31 years; the time of day is above since 2001. */
static const time_t DAY_OR_UPTIME_S = 1000000000;

static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find_real_clock(void) {
    *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real_clock_gettime)
        find_real_clock();
    int failed = real_clock_gettime(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
        now->tv_sec += AHEAD_S;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME_COARSE, &precise);
    if (now)
        *now = precise.tv_sec;
    return precise.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
    if (base != TIME_UTC)
        return 0;
    clock_gettime(CLOCK_REALTIME, now);
    return base;
}

static struct timespec of_the_kernel(const struct timespec *until) {
    struct timespec moved = *until;
    moved.tv_sec -= AHEAD_S;
    return moved;
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    struct timespec moved = of_the_kernel(until);
    return sem_clockwait(semaphore, CLOCK_REALTIME, &moved);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
    struct timespec moved = of_the_kernel(until);
    return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, &moved);
}

/* Which clock it means was said when the condition was made, so the number has to tell. */
int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    if (until->tv_sec < DAY_OR_UPTIME_S)
        return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, until);
    struct timespec moved = of_the_kernel(until);
    return pthread_cond_clockwait(condition, mutex, CLOCK_REALTIME, &moved);
}
