/* Claims of a VM's volumes: what is known of them, whether a move may rely on them. Pure. */
#pragma once

#include "api/object.h"
#include "api/wire/wire_reason.h"

struct storage_view {
    const struct api_object *const *claims; /* those that the VMI names and that exist */
    size_t n_claims;
    const struct api_object *const *classes, *const *profiles; /* all there are */
    size_t n_classes, n_profiles;
};

/* The claim behind a volume, whichever way it is named; NULL for volumes of other kinds. */
const char *storage_claim_name(const struct api_vmi_volume *v);
/* NULL = there is none of that name. */
const struct api_claim *storage_claim(const struct storage_view *s, const char *name);
bool storage_claim_is_block(const struct api_claim *c);
/* What it was given, or asks for while it is not bound. */
bool storage_claim_is_shared(const struct api_claim *c);
int64_t storage_claim_bytes(const struct api_claim *c);
/* Its class binds claims only when a pod that uses them has a node. */
bool storage_claim_waits_for_pod(const struct storage_view *s, const struct api_claim *c);

/* PersistentVolumeClaimInfo as JSON, owned by the caller. */
char *storage_claim_info(const struct api_claim *c);
/* The VMI's status.volumeStatus with all claims in it, as JSON; NULL when it is so already. */
char *storage_volume_status(const struct api_vmi *vmi, const struct storage_view *s);
/* The first claim of the VMI that does not exist, or NULL. */
const char *storage_missing_claim(const struct api_vmi *vmi, const struct storage_view *s);

struct storage_verdict {
    enum wire_reason reason; /* none = a move may begin */
    bool final;              /* waiting would not change it */
    const char *claim;       /* what it is about */
    char message[512];
};
/* May a move begin, as far as volumes go? */
struct storage_verdict storage_check(const struct api_vmi *vmi, const struct storage_view *s);
