/* The guest's memory, all of it under watch. From low to high:
 *
 *   working set   rewritten page by page, generation after generation; the old content of a page
 *                 is checked before it is rewritten
 *   static area   written once at boot with a pattern that depends on the page
 *   blank area    left alone after boot: must read as zero
 *   firmware      the last MEMORY_FIRMWARE_MIB, where the BIOS keeps its tables: must read as at
 * boot
 *
 * Any flipped, stale or missing page outside the guest's own code and stack is found by a check. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MEMORY_PAGE = 4096, MEMORY_FIRMWARE_MIB = 4 };

struct memory_layout {
    uint32_t working_mib, static_mib; /* cut to what fits */
    bool cover_all;                   /* the static area takes the blank area's place */
    uint32_t noise;                   /* words of noise a page, after three of its own */
};

/* `top`: end of RAM. Writes all areas. */
void memory_init(const struct memory_layout *layout, uint32_t top);
uint32_t memory_working_mib(void);
uint32_t memory_static_mib(void);

/* Checks and rewrites the next `n` pages of the working set. */
void memory_dirty(uint32_t n);
uint32_t memory_generation(void);
uint32_t memory_pages_written(void);
uint32_t memory_bad(void); /* bad pages met by memory_dirty() since boot */
uint32_t memory_working_pages(void);

/* A full check runs in slices, so that the heartbeat goes on; the working set may be dirtied
 * between them. memory_check_step() returns true when it is over. */
struct memory_check {
    uint32_t next;  /* page to look at */
    uint32_t bad;   /* found so far */
    uint32_t total; /* pages that will have been looked at */
};
void memory_check_start(struct memory_check *c);
bool memory_check_step(struct memory_check *c, uint32_t max_pages);
