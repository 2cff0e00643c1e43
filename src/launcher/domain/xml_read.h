/* Reading libvirt's XML. Pure. */
#pragma once

#include <libxml/tree.h>

#include "base/cleanup.h"

/* NULL when it is none (`xml` may be NULL). Nothing is fetched, and nothing is written about it. */
xmlDocPtr xml_read(const char *xml);
static inline void xml_read_freep(xmlDocPtr *doc)
{
    xmlFreeDoc(*doc); /* takes NULL */
}
#define xml_cleanup_doc ferry_cleanup(xml_read_freep)

/* The first child element of that name; NULL when there is none, or no `node`. */
xmlNodePtr xml_read_child(const xmlNode *node, const char *name);
/* An attribute, the content, the whole element as text: owned by the caller, NULL when there is
 * none. */
char *xml_read_attribute(const xmlNode *node, const char *name);
char *xml_read_content(const xmlNode *node);
char *xml_read_whole(xmlDocPtr doc, xmlNodePtr node);
