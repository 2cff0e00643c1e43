#include "api/outcome.h"

#include "base/count.h"

/* Before post-copy the source holds everything until the target has confirmed that it runs. */
static const enum outcome precopy[OUTCOME_SOURCE_COUNT][OUTCOME_TARGET_COUNT] = {
    [OUTCOME_SOURCE_UNKNOWN] = {[OUTCOME_TARGET_ACTIVE] = OUTCOME_ON_TARGET},
    [OUTCOME_SOURCE_GONE] = {[OUTCOME_TARGET_GONE] = OUTCOME_LOST,
                             [OUTCOME_TARGET_ACTIVE] = OUTCOME_ON_TARGET,
                             [OUTCOME_TARGET_NEVER_RAN] = OUTCOME_LOST},
    /* Active on both cannot be: one of the two passes is older than the switch-over. */
    [OUTCOME_SOURCE_ACTIVE] = {[OUTCOME_TARGET_UNKNOWN] = OUTCOME_ON_SOURCE,
                               [OUTCOME_TARGET_GONE] = OUTCOME_ON_SOURCE,
                               [OUTCOME_TARGET_INCOMING] = OUTCOME_ON_SOURCE,
                               [OUTCOME_TARGET_NEVER_RAN] = OUTCOME_ON_SOURCE},
    [OUTCOME_SOURCE_STOPPED] = {[OUTCOME_TARGET_GONE] = OUTCOME_RESUME_SOURCE,
                                [OUTCOME_TARGET_ACTIVE] = OUTCOME_ON_TARGET,
                                [OUTCOME_TARGET_NEVER_RAN] = OUTCOME_RESUME_SOURCE},
    [OUTCOME_SOURCE_POSTCOPY] = {[OUTCOME_TARGET_GONE] = OUTCOME_LOST,
                                 [OUTCOME_TARGET_ACTIVE] = OUTCOME_ON_TARGET,
                                 [OUTCOME_TARGET_NEVER_RAN] = OUTCOME_RESUME_SOURCE},
};

/* From then on a guest needs both hosts until all of its memory has arrived. */
static const enum outcome postcopy_[OUTCOME_SOURCE_COUNT][OUTCOME_TARGET_COUNT] = {
    [OUTCOME_SOURCE_UNKNOWN] = {[OUTCOME_TARGET_ACTIVE] = OUTCOME_ON_TARGET},
    [OUTCOME_SOURCE_GONE] = {[OUTCOME_TARGET_GONE] = OUTCOME_LOST,
                             [OUTCOME_TARGET_INCOMING] = OUTCOME_LOST,
                             [OUTCOME_TARGET_ACTIVE] = OUTCOME_ON_TARGET,
                             [OUTCOME_TARGET_POSTCOPY_PAUSED] = OUTCOME_LOST,
                             [OUTCOME_TARGET_NEVER_RAN] = OUTCOME_LOST},
    [OUTCOME_SOURCE_STOPPED] = {[OUTCOME_TARGET_GONE] = OUTCOME_LOST,
                                [OUTCOME_TARGET_ACTIVE] = OUTCOME_ON_TARGET,
                                [OUTCOME_TARGET_NEVER_RAN] = OUTCOME_RESUME_SOURCE},
    [OUTCOME_SOURCE_POSTCOPY] = {[OUTCOME_TARGET_GONE] = OUTCOME_LOST,
                                 [OUTCOME_TARGET_ACTIVE] = OUTCOME_ON_TARGET,
                                 [OUTCOME_TARGET_NEVER_RAN] = OUTCOME_RESUME_SOURCE},
};

enum outcome api_outcome_of(enum outcome_source source, enum outcome_target target, bool postcopy)
{
    return postcopy ? postcopy_[source][target] : precopy[source][target];
}

const char *api_outcome_name(enum outcome o)
{
    static const char *const names[] = {
        [OUTCOME_WAIT] = "undecided-wait",
        [OUTCOME_ON_SOURCE] = "running-on-source",
        [OUTCOME_ON_TARGET] = "running-on-target",
        [OUTCOME_RESUME_SOURCE] = "resume-source",
        [OUTCOME_LOST] = "lost",
    };
    _Static_assert(FERRY_COUNT(names) == OUTCOME_COUNT, "one name per outcome");

    return names[o];
}
