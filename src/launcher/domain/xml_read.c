#include "launcher/domain/xml_read.h"

#include <libxml/parser.h>
#include <string.h>

#include "base/str.h"

xmlDocPtr xml_read(const char *xml)
{
    return xml ? xmlReadMemory(xml, (int)strlen(xml), "libvirt.xml", NULL,
                               XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING)
               : NULL;
}

xmlNodePtr xml_read_child(const xmlNode *node, const char *name)
{
    for (xmlNodePtr c = node ? node->children : NULL; c; c = c->next) {
        if (c->type == XML_ELEMENT_NODE && ferry_streq((const char *)c->name, name)) {
            return c;
        }
    }
    return NULL;
}

static char *take(xmlChar *text)
{
    char *copy = text && *text ? ferry_strdup((const char *)text) : NULL;

    xmlFree(text);
    return copy;
}

char *xml_read_attribute(const xmlNode *node, const char *name)
{
    return node ? take(xmlGetProp(node, BAD_CAST name)) : NULL;
}

char *xml_read_content(const xmlNode *node)
{
    return node ? take(xmlNodeGetContent(node)) : NULL;
}

char *xml_read_whole(xmlDocPtr doc, xmlNodePtr node)
{
    xmlBufferPtr buffer = xmlBufferCreate();
    char *text = NULL;

    if (buffer && xmlNodeDump(buffer, doc, node, 0, 0) >= 0) {
        text = ferry_strdup((const char *)xmlBufferContent(buffer));
    }
    xmlBufferFree(buffer);
    return text;
}
