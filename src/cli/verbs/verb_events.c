/* events: what happened. */
#include "cli/session/call.h"
#include "cli/verbs/verbs.h"
#include "cli/watch/events.h"

int verb_events(int argc, char **argv, struct ferry_error *err)
{
    return listing_verb(&events_listing, argc, argv, err);
}
