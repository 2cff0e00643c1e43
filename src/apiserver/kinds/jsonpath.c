#include "apiserver/kinds/jsonpath.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "base/str.h"

enum { KEY_MAX = 256 };

/* [?(@.key=="value")]: the first item of the list for which that holds. */
static const yyjson_val *find_item(yyjson_val *list, const char *step, size_t len)
{
    char key[KEY_MAX], value[KEY_MAX], text[2 * KEY_MAX];
    yyjson_val *item;
    size_t i, max;

    snprintf(text, sizeof(text), "%.*s", (int)len, step);
    if (sscanf(text, "?(@.%255[^=]==\"%255[^\"]\")", key, value) != 2) {
        return NULL;
    }
    yyjson_arr_foreach(list, i, max, item)
    {
        if (ferry_streq(yyjson_get_str(yyjson_obj_get(item, key)), value)) {
            return item;
        }
    }
    return NULL;
}

static const yyjson_val *bracket(yyjson_val *v, const char *step, size_t len)
{
    char key[KEY_MAX];
    unsigned index;

    if (len && *step == '?') {
        return find_item(v, step, len);
    }
    if (len > 2 && *step == '\'' && len < KEY_MAX) {
        snprintf(key, sizeof(key), "%.*s", (int)len - 2, step + 1);
        return yyjson_obj_get(v, key);
    }
    return sscanf(step, "%u]", &index) == 1 ? yyjson_arr_get(v, index) : NULL;
}

/* The key after a dot, up to the next step; a backslash takes what follows as it is. */
static const char *read_key(const char *path, char key[KEY_MAX])
{
    size_t n = 0;

    for (; *path && *path != '.' && *path != '[' && n + 1 < KEY_MAX; path++) {
        path += *path == '\\' && path[1];
        key[n++] = *path;
    }
    key[n] = '\0';
    return path;
}

const yyjson_val *jsonpath_first(const yyjson_val *v, const char *path)
{
    char key[KEY_MAX];

    while (v && *path) {
        if (*path == '.') {
            path = read_key(path + 1, key);
            v = yyjson_obj_get((yyjson_val *)v, key);
        } else if (*path == '[') {
            const char *end = strstr(path, "]");

            if (!end) {
                return NULL;
            }
            v = bracket((yyjson_val *)v, path + 1, (size_t)(end - path - 1));
            path = end + 1;
        } else {
            return NULL;
        }
    }
    return v;
}
