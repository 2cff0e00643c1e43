/* The NoCloud seed of a guest: a small read-only disk from which cloud-init takes its settings.
 *
 * It is an ISO 9660 image (with the long names of Rock Ridge and Joliet) labelled cidata that holds
 * user-data, meta-data and, when there is some, network-config. The same VMI and Secrets give the
 * same bytes whoever makes it and when: a target makes its own, and nothing is copied. */
#pragma once

#include <stddef.h>

#include "api/kinds.h"
#include "base/cleanup.h"
#include "base/error.h"

enum { SEED_PART_MAX = 1 << 20 };

struct seed_part {
    char *data; /* owned; NULL = there is none */
    size_t n;
};
struct seed {
    struct seed_part user, network, meta;
};

/* Of the volume `name`, whose source is cloudInitNoCloud. What is in Secrets is in files below
 * `secrets`: NAME-udata/userdata and NAME-ndata/networkdata, as KubeVirt calls the keys (userData
 * and networkData will do). Errors never quote content. */
int seed_read(const struct api_vmi *vmi, const char *name, const char *secrets, struct seed *ret,
              struct ferry_error *err);
/* The image; owned by the caller. Made by xorriso, with files in a directory of its own below
 * `dir`, which are gone afterwards. */
int seed_image(const struct seed *seed, const char *dir, struct seed_part *ret,
               struct ferry_error *err);
void seed_part_done(struct seed_part *p); /* overwrites it first */
void seed_done(struct seed *s);

/* All of it: the image of the volume at `path`, unless one is there. */
int seed_make(const struct api_vmi *vmi, const char *name, const char *secrets, const char *path,
              struct ferry_error *err);
