/* Preloaded into daemons of a test site: their calendar clock is off by the number of seconds in
 * the file that FERRY_TEST_CLOCK names. The file is mapped, so a step reaches running processes at
 * once. Clocks that count from the start of the machine are left alone, as they are when somebody
 * sets the time. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *offset_s;

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("FERRY_TEST_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*offset_s), PROT_READ, MAP_SHARED, fd, 0);

    if (p != MAP_FAILED) {
        offset_s = p;
    }
    if (fd >= 0) {
        close(fd);
    }
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    long rc = syscall(SYS_clock_gettime, id, ret);

    if (rc == 0 && offset_s && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        ret->tv_sec += *offset_s;
    }
    return (int)rc;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec t;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *ret = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (ret) {
        *ret = t.tv_sec;
    }
    return t.tv_sec;
}
