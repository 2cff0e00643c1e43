#include "launcher/domain/xml_write.h"

#include <stdio.h>

#include "base/str.h"

static void note(struct xml_write *x, int rc)
{
    x->failed = x->failed || rc < 0;
}

int xml_write_init(struct xml_write *x, struct ferry_error *err)
{
    xmlBufferPtr buffer = xmlBufferCreate();

    *x = (struct xml_write){.buffer = buffer,
                            .writer = buffer ? xmlNewTextWriterMemory(buffer, 0) : NULL};
    if (!x->writer) {
        return ferry_fail(err, FERRY_FATAL, "making XML: out of memory");
    }
    xmlTextWriterSetIndent(x->writer, 1);
    xmlTextWriterSetIndentString(x->writer, BAD_CAST "  ");
    return 0;
}

int xml_write_finish(struct xml_write *x, int rc, char **ret, struct ferry_error *err)
{
    if (x->writer) {
        xmlFreeTextWriter(x->writer); /* flushes into the buffer */
    }
    if (rc == 0 && x->failed) {
        rc = ferry_fail(err, FERRY_INVALID, "the VMI holds text that XML cannot carry");
    }
    if (rc == 0) {
        *ret = ferry_strdup((const char *)xmlBufferContent(x->buffer));
    }
    if (x->buffer) {
        xmlBufferFree(x->buffer);
    }
    return rc;
}

void xml_write_start(struct xml_write *x, const char *name)
{
    note(x, xmlTextWriterStartElement(x->writer, BAD_CAST name));
}

void xml_write_end(struct xml_write *x)
{
    note(x, xmlTextWriterEndElement(x->writer));
}

void xml_write_attribute(struct xml_write *x, const char *name, const char *value)
{
    note(x, xmlTextWriterWriteAttribute(x->writer, BAD_CAST name, BAD_CAST value));
}

void xml_write_number(struct xml_write *x, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    xml_write_attribute(x, name, text);
}

void xml_write_text(struct xml_write *x, const char *value)
{
    note(x, xmlTextWriterWriteString(x->writer, BAD_CAST value));
}

void xml_write_text_element(struct xml_write *x, const char *name, const char *value)
{
    note(x, xmlTextWriterWriteElement(x->writer, BAD_CAST name, BAD_CAST value));
}

void xml_write_leaf(struct xml_write *x, const char *name, const char *const *attributes)
{
    xml_write_start(x, name);
    for (; attributes[0]; attributes += 2) {
        xml_write_attribute(x, attributes[0], attributes[1]);
    }
    xml_write_end(x);
}
