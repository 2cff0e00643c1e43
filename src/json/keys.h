/* An object of a document while it is changed key by key, when it or the change comes from somebody
 * who may send as many keys as they like: each is found by its hash, where yyjson walks the object
 * once for every key. Between json_keys_of() and json_keys_done() nobody else adds to the object or
 * takes from it; its values may be changed. No locks. */
#pragma once

#include <stddef.h>
#include <yyjson.h>

struct json_keys;

/* `more`: how many keys may come. A key that `obj` has twice counts as its last one. */
struct json_keys *json_keys_of(yyjson_mut_val *obj, size_t more);
yyjson_mut_val *json_keys_get(const struct json_keys *k, const char *key, size_t len); /* or NULL */
/* Both belong to the document. NULL as the value takes the key away. At most `more` that are new.
 */
void json_keys_put(struct json_keys *k, yyjson_mut_val *key, yyjson_mut_val *value);
/* The object has them, in the order in which they first came. */
void json_keys_done(struct json_keys *k);

/* Of the keys that `obj` has more than once the last ones hold. */
void json_keys_settle(yyjson_mut_val *obj);
