#include "apiserver/kinds/schema_pattern.h"

#include <pthread.h>
#include <regex.h>
#include <string.h>

#include "base/str.h"

/* Our schemas have one pattern, that of quantities, in many places. */
struct pattern {
    struct pattern *next;
    char *text;
    regex_t compiled;
    bool good;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the list, and matching by it */
static struct pattern *patterns;

static struct pattern *find_locked(const char *text)
{
    for (struct pattern *p = patterns; p; p = p->next) {
        if (strcmp(p->text, text) == 0) {
            return p;
        }
    }
    struct pattern *p = ferry_xcalloc(1, sizeof(*p));
    p->text = ferry_strdup(text);
    /* The schemas keep to what POSIX and RE2 both have. */
    p->good = regcomp(&p->compiled, text, REG_EXTENDED | REG_NOSUB) == 0;
    p->next = patterns;
    patterns = p;
    return p;
}

bool schema_pattern_matches(const char *pattern, const char *text)
{
    pthread_mutex_lock(&lock);
    struct pattern *p = find_locked(pattern);
    bool ok = !p->good || regexec(&p->compiled, text, 0, NULL, 0) == 0;
    pthread_mutex_unlock(&lock);
    return ok;
}
