/* Hashing, and a hash table of what its user owns.
 *
 *     struct item {
 *         struct ferry_link link; // first
 *         char *key;
 *     };
 *     for (struct ferry_link *l = ferry_map_first(&map, hash); l; l = ferry_map_next(l)) {
 *         struct item *it = (struct item *)l; // compare it->key
 *     }
 *
 * No locks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, 64 bits. Always the same for the same bytes: what is kept or sent may hold it. */
#define FERRY_HASH_BASIS UINT64_C(14695981039346656037)
uint64_t ferry_hash(uint64_t h, const void *data, size_t n);
/* A text with its end, so that "a", "bc" is not "ab", "c". */
uint64_t ferry_hash_text(uint64_t h, const char *text);

struct ferry_link {
    struct ferry_link *next;
    uint64_t hash;
};

struct ferry_map {
    struct ferry_link **rows; /* as many as a power of two; not fewer than items */
    size_t n_rows, n;
};

/* Where the hashes of keys begin: drawn by each process, so that nobody can choose names that all
 * come into one row. */
uint64_t ferry_map_seed(void);
/* Those with this hash, one after the other; NULL at the end. */
struct ferry_link *ferry_map_first(const struct ferry_map *m, uint64_t hash);
struct ferry_link *ferry_map_next(const struct ferry_link *l);
/* Whether there is one with the key already is for the caller to know. */
void ferry_map_add(struct ferry_map *m, struct ferry_link *l, uint64_t hash);
void ferry_map_remove(struct ferry_map *m, struct ferry_link *l); /* which is in it */
/* `free_one` for each; the map is empty after. */
void ferry_map_done(struct ferry_map *m, void (*free_one)(struct ferry_link *l));
