#include "base/pages.h"

#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Only what was never writable: a page of such a segment is as it is in its file. (Tables that the
 * linker fills in and then protects belong to a writable segment.) */
static void forget_segment(const struct dl_phdr_info *object, const ElfW(Phdr) * segment)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
    uintptr_t end = begin + segment->p_filesz;

    if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) {
        return;
    }
    begin = (begin + page - 1) & ~(page - 1);
    end &= ~(page - 1);
    if (begin < end) {
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* saves memory, or does not */
    }
}

static int forget_object(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        forget_segment(object, &object->dlpi_phdr[i]);
    }
    return 0;
}

void ferry_pages_forget(void)
{
    dl_iterate_phdr(forget_object, NULL);
}
