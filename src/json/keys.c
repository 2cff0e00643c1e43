#include "json/keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"

enum { FEW = 16 }; /* are compared one by one */

struct pair {
    struct ferry_link link; /* in `map`, when there are many */
    yyjson_mut_val *key, *value;
};

struct json_keys {
    yyjson_mut_val *obj;
    struct ferry_map map;
    bool hashed;
    size_t n, room;
    struct pair pairs[];
};

static uint64_t hash_of(const char *key, size_t len)
{
    return ferry_hash(ferry_map_seed(), key, len);
}

static struct pair *find(const struct json_keys *k, const char *key, size_t len)
{
    if (!k->hashed) {
        for (size_t i = 0; i < k->n; i++) {
            if (yyjson_mut_equals_strn(k->pairs[i].key, key, len)) {
                return (struct pair *)&k->pairs[i];
            }
        }
        return NULL;
    }
    for (struct ferry_link *l = ferry_map_first(&k->map, hash_of(key, len)); l;
         l = ferry_map_next(l)) {
        struct pair *p = (struct pair *)l;

        if (yyjson_mut_equals_strn(p->key, key, len)) {
            return p;
        }
    }
    return NULL;
}

void json_keys_put(struct json_keys *k, yyjson_mut_val *key, yyjson_mut_val *value)
{
    const char *text = yyjson_mut_get_str(key);
    size_t len = yyjson_mut_get_len(key);
    struct pair *p = find(k, text, len);

    if (p) {
        p->value = value;
        return;
    }
    if (!value || k->n == k->room) {
        return; /* more than was said: a fault of the caller, which loses the key */
    }
    p = &k->pairs[k->n++];
    p->key = key;
    p->value = value;
    if (k->hashed) {
        ferry_map_add(&k->map, &p->link, hash_of(text, len));
    }
}

struct json_keys *json_keys_of(yyjson_mut_val *obj, size_t more)
{
    size_t room = yyjson_mut_obj_size(obj) + more, i, max;
    struct json_keys *k = ferry_xcalloc(1, sizeof(*k) + room * sizeof(struct pair));
    yyjson_mut_val *key, *value;

    k->obj = obj;
    k->room = room;
    k->hashed = room > FEW;
    yyjson_mut_obj_foreach(obj, i, max, key, value)
    {
        json_keys_put(k, key, value);
    }
    return k;
}

yyjson_mut_val *json_keys_get(const struct json_keys *k, const char *key, size_t len)
{
    const struct pair *p = find(k, key, len);

    return p ? p->value : NULL;
}

static void keep(struct ferry_link *l)
{
    (void)l; /* pairs are not allocated one by one */
}

void json_keys_done(struct json_keys *k)
{
    yyjson_mut_obj_clear(k->obj);
    for (size_t i = 0; i < k->n; i++) {
        if (k->pairs[i].value) {
            yyjson_mut_obj_add(k->obj, k->pairs[i].key, k->pairs[i].value);
        }
    }
    ferry_map_done(&k->map, keep);
    free(k);
}

void json_keys_settle(yyjson_mut_val *obj)
{
    json_keys_done(json_keys_of(obj, 0));
}
