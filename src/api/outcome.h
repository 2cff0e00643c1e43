/* Where a guest is during and after a move: one pure function for launchers and handlers.
 *
 * It answers from what both hypervisors say now, never from a return code: a call can fail although
 * the guest arrived, and an abort can come too late. The two observations are never taken at the
 * same instant, so whatever a later pass could explain is "wait". */
#pragma once

#include <stdbool.h>

enum outcome_source {
    OUTCOME_SOURCE_UNKNOWN,  /* its host or launcher does not answer */
    OUTCOME_SOURCE_GONE,     /* no hypervisor process */
    OUTCOME_SOURCE_ACTIVE,   /* running, or paused by its user */
    OUTCOME_SOURCE_STOPPED,  /* stopped by the migration: all memory is still here */
    OUTCOME_SOURCE_POSTCOPY, /* the vCPUs left, part of the memory is still here */
    OUTCOME_SOURCE_COUNT
};

enum outcome_target {
    OUTCOME_TARGET_UNKNOWN,
    OUTCOME_TARGET_GONE,
    OUTCOME_TARGET_INCOMING,        /* loading; its vCPUs never ran */
    OUTCOME_TARGET_ACTIVE,          /* running or paused by its user, and all memory is here */
    OUTCOME_TARGET_POSTCOPY,        /* runs while memory still comes */
    OUTCOME_TARGET_POSTCOPY_PAUSED, /* as before, but the stream broke */
    OUTCOME_TARGET_NEVER_RAN,       /* gone, or it will be; its vCPUs never ran and never will */
    OUTCOME_TARGET_COUNT
};

enum outcome {
    OUTCOME_WAIT,
    OUTCOME_ON_SOURCE,
    OUTCOME_ON_TARGET,
    OUTCOME_RESUME_SOURCE, /* nobody else can have it: let the source run again */
    OUTCOME_LOST,
    OUTCOME_COUNT
};

/* `postcopy` = the move has switched to post-copy, by whoever's word: then the target's vCPUs may
 * have run, and a source that stands still must not be resumed unless it is certain that they did
 * not: until they do, the source has everything. */
enum outcome api_outcome_of(enum outcome_source source, enum outcome_target target, bool postcopy);

/* "running-on-source", ... */
const char *api_outcome_name(enum outcome o);
