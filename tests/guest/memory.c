#include "memory.h"

#include <stddef.h>

#include "machine.h"

enum { WORDS = MEMORY_PAGE / 4, PAGES_PER_MIB = 256, REPORTED_MAX = 3 };

extern char guest_end[];

static uint32_t *base;                                    /* start of the working set */
static uint32_t n_working, n_static, n_blank, n_firmware; /* pages */
static int n_noise;                                       /* words of a page before its zeros */
static uint32_t cursor, generation, written, bad;
static uint32_t firmware_sums[MEMORY_FIRMWARE_MIB * PAGES_PER_MIB];

static uint32_t *page_at(uint32_t page)
{
    return base + (size_t)page * WORDS;
}

static uint32_t mix(uint32_t gen, uint32_t page)
{
    uint32_t x = gen * 2654435761u ^ (page + 0x9e3779b9u);

    x ^= x >> 15;
    x *= 0x2c1b3c6du;
    x ^= x >> 12;
    return x | 1;
}

static uint32_t next_noise(uint32_t x)
{
    return x * 1664525u + 1013904223u;
}

static void wipe(uint32_t page)
{
    uint32_t *w = page_at(page);

    for (int i = 0; i < WORDS; i++) {
        w[i] = 0;
    }
}

/* A page of generation `gen`: its generation, its number, a word mixed from both, noise seeded by
 * that word, zeros. `whole` is false for a rewrite that leaves the zeros alone. */
static void fill(uint32_t page, uint32_t gen, bool whole)
{
    uint32_t *w = page_at(page), x = mix(gen, page);

    if (whole && n_noise < WORDS) {
        wipe(page);
    }
    w[0] = gen;
    w[1] = page;
    w[2] = x;
    for (int i = 3; i < n_noise; i++) {
        x = next_noise(x);
        w[i] = x;
    }
}

static bool holds(uint32_t page, uint32_t gen, bool whole)
{
    const uint32_t *w = page_at(page);
    uint32_t x = mix(gen, page);

    if (w[0] != gen || w[1] != page || w[2] != x) {
        return false;
    }
    for (int i = 3; i < n_noise; i++) {
        x = next_noise(x);
        if (w[i] != x) {
            return false;
        }
    }
    for (int i = n_noise; whole && i < WORDS; i++) {
        if (w[i]) {
            return false;
        }
    }
    return true;
}

static bool is_blank(uint32_t page)
{
    const uint32_t *w = page_at(page);
    uint32_t any = 0;

    for (int i = 0; i < WORDS; i += 4) {
        any |= w[i] | w[i + 1] | w[i + 2] | w[i + 3];
    }
    return any == 0;
}

static uint32_t sum(uint32_t page)
{
    const uint32_t *w = page_at(page);
    uint32_t s = 0;

    for (int i = 0; i < WORDS; i++) {
        s = (s ^ w[i]) * 16777619u;
    }
    return s;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void memory_init(const struct memory_layout *layout, uint32_t top)
{
    /* The boot loader's information lies right behind the image; stay clear of it. */
    uint32_t start = ((uint32_t)guest_end + 0x1fffff) & ~0x1fffffu;
    uint32_t pages = top > start ? (top - start) / MEMORY_PAGE : 0;

    base = (uint32_t *)start;
    n_noise = (int)smaller(3 + layout->noise, WORDS);
    n_firmware = smaller(pages, MEMORY_FIRMWARE_MIB * PAGES_PER_MIB);
    pages -= n_firmware;
    n_working = smaller(pages, layout->working_mib * PAGES_PER_MIB);
    pages -= n_working;
    n_static = layout->cover_all ? pages : smaller(pages, layout->static_mib * PAGES_PER_MIB);
    n_blank = pages - n_static;
    for (uint32_t p = 0; p < n_working + n_static; p++) {
        fill(p, 0, true);
    }
    /* The BIOS leaves traces of its own start in there. Reading first keeps the others unallocated
     * on the host, as the memory of an idle guest is. */
    for (uint32_t p = n_working + n_static; p < n_working + n_static + n_blank; p++) {
        if (!is_blank(p)) {
            wipe(p);
        }
    }
    for (uint32_t i = 0; i < n_firmware; i++) {
        firmware_sums[i] = sum(n_working + n_static + n_blank + i);
    }
}

uint32_t memory_working_mib(void)
{
    return n_working / PAGES_PER_MIB;
}

uint32_t memory_static_mib(void)
{
    return n_static / PAGES_PER_MIB;
}

uint32_t memory_working_pages(void)
{
    return n_working;
}

uint32_t memory_generation(void)
{
    return generation;
}

uint32_t memory_pages_written(void)
{
    return written;
}

uint32_t memory_bad(void)
{
    return bad;
}

static void report(const char *what, uint32_t page, uint32_t want)
{
    machine_puts("CORRUPT ");
    machine_put_field(what, page);
    machine_put_field(" want=", want);
    machine_put_field(" got=", page_at(page)[0]);
    machine_puts("\n");
}

void memory_dirty(uint32_t n)
{
    while (n--) {
        if (!holds(cursor, generation, false) && ++bad <= REPORTED_MAX) {
            report("working page=", cursor, generation);
        }
        fill(cursor, generation + 1, false);
        written++;
        if (++cursor == n_working) {
            cursor = 0;
            generation++;
        }
    }
}

static bool page_is_right(uint32_t page)
{
    if (page < n_working) {
        return holds(page, page < cursor ? generation + 1 : generation, true);
    }
    if (page < n_working + n_static) {
        return holds(page, 0, true);
    }
    if (page < n_working + n_static + n_blank) {
        return is_blank(page);
    }
    return sum(page) == firmware_sums[page - n_working - n_static - n_blank];
}

void memory_check_start(struct memory_check *c)
{
    *c = (struct memory_check){.total = n_working + n_static + n_blank + n_firmware};
}

bool memory_check_step(struct memory_check *c, uint32_t max_pages)
{
    for (; max_pages && c->next < c->total; max_pages--, c->next++) {
        if (!page_is_right(c->next) && ++c->bad <= REPORTED_MAX) {
            report("checked page=", c->next, 0);
        }
    }
    return c->next == c->total;
}
