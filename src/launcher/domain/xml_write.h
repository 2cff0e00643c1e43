/* Writes XML into memory: a thin layer over libxml2's writer that remembers the first failure. */
#pragma once

#include <libxml/xmlwriter.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct xml_write {
    xmlBufferPtr buffer;
    xmlTextWriterPtr writer;
    bool failed; /* out of memory or a character that XML cannot carry */
};

int xml_write_init(struct xml_write *x, struct ferry_error *err);
/* Ends in any case. When `rc` is 0 and nothing failed, `*ret` is the text, owned by the caller;
 * else `rc` or an error. */
int xml_write_finish(struct xml_write *x, int rc, char **ret, struct ferry_error *err);

void xml_write_start(struct xml_write *x, const char *name);
void xml_write_end(struct xml_write *x);
void xml_write_attribute(struct xml_write *x, const char *name, const char *value);
void xml_write_number(struct xml_write *x, const char *name, int64_t value); /* attribute */
void xml_write_text(struct xml_write *x, const char *value);
void xml_write_text_element(struct xml_write *x, const char *name, const char *value);
/* An element with attributes only, given as name, value, ..., NULL. */
void xml_write_leaf(struct xml_write *x, const char *name, const char *const *attributes);
#define XML_LEAF(x, name, ...) xml_write_leaf((x), (name), (const char *const[]){__VA_ARGS__, NULL})
