#include "relay/handover/image.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

int relay_image_write(const struct relay_state *s, int64_t now, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = memfd_create("ferry-relay-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct pack k = {0};

    relay_state_pack(s, now, &k);
    size_t size = k.len;
    if (fd < 0 || ftruncate(fd, (off_t)size) < 0) {
        return ferry_fail_errno(err, errno, "memory of %zu bytes for the state", size);
    }
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        return ferry_fail_errno(err, errno, "mapping %zu bytes for the state", size);
    }
    k = (struct pack){.data = at, .room = size};
    relay_state_pack(s, now, &k);
    munmap(at, size);
    if (fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
        return ferry_fail_errno(err, errno, "sealing the state");
    }
    return ferry_take_fd(&fd);
}

int relay_image_read(int fd, int64_t now, struct relay_state *ret, struct ferry_error *err)
{
    struct stat st;

    /* Memory that somebody could still cut off would end this process when it is read. */
    if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size <= 0) {
        return ferry_fail(err, FERRY_PEER, "the state is not in sealed memory");
    }
    size_t size = (size_t)st.st_size;
    void *at = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
        return ferry_fail_errno(err, errno, "mapping a state of %zu bytes", size);
    }
    int rc = relay_state_unpack(at, size, now, ret, err);
    munmap(at, size);
    return rc;
}
