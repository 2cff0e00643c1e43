#include "rpc/rpc_agreement.h"

#include <libxml/entities.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"

static void put(struct ferry_buf *b, const char *name, const char *text)
{
    xmlChar *escaped = text ? xmlEncodeSpecialChars(NULL, BAD_CAST text) : NULL;

    if (escaped) {
        ferry_buf_printf(b, "<%s>%s</%s>\n", name, (const char *)escaped, name);
    }
    xmlFree(escaped);
}

char *rpc_agreement_write(const struct rpc_agreement *a, const char *domain_xml,
                          struct ferry_error *err)
{
    struct rpc_agreement back;
    struct ferry_buf b = {0};

    ferry_buf_puts(&b, "<move>\n");
    put(&b, "connect", a->connect);
    put(&b, "memory", a->memory);
    put(&b, "disks", a->disks);
    for (size_t i = 0; i < a->n_copied; i++) {
        put(&b, "copied", a->copied[i]);
    }
    ferry_buf_puts(&b, domain_xml);
    ferry_buf_puts(&b, "</move>\n");
    char *text = ferry_buf_take(&b);
    if (rpc_agreement_read(text, strlen(text), &back, err) < 0) {
        free(text);
        return NULL;
    }
    rpc_agreement_done(&back);
    return text;
}

static void take(xmlNodePtr n, char **to)
{
    xmlChar *text = xmlNodeGetContent(n);

    free(*to);
    *to = ferry_strdup((const char *)text);
    xmlFree(text);
}

static int take_domain(xmlNodePtr n, struct rpc_agreement *ret, struct ferry_error *err)
{
    xmlBufferPtr buffer = xmlBufferCreate();
    int rc = ret->domain ? ferry_fail(err, FERRY_INVALID, "more than one domain") : 0;

    if (rc == 0 && (!buffer || xmlNodeDump(buffer, n->doc, n, 0, 0) < 0)) {
        rc = ferry_fail(err, FERRY_FATAL, "out of memory");
    }
    if (rc == 0) {
        rc = rpc_agreed_new((const char *)xmlBufferContent(buffer), (size_t)xmlBufferLength(buffer),
                            &ret->domain, err);
    }
    xmlBufferFree(buffer);
    return rc;
}

static int take_element(xmlNodePtr n, struct rpc_agreement *ret, struct ferry_error *err)
{
    const struct {
        const char *name;
        char **to;
    } texts[] = {{"connect", &ret->connect}, {"memory", &ret->memory}, {"disks", &ret->disks}};
    const char *name = (const char *)n->name;

    for (size_t i = 0; i < FERRY_COUNT(texts); i++) {
        if (strcmp(name, texts[i].name) == 0) {
            take(n, texts[i].to);
            return 0;
        }
    }
    if (strcmp(name, "copied") == 0 && ret->n_copied < RPC_COPIED_MAX) {
        take(n, &ret->copied[ret->n_copied++]);
        return 0;
    }
    return strcmp(name, "domain") == 0
               ? take_domain(n, ret, err)
               : ferry_fail(err, FERRY_INVALID, "<%s>: not known, or one too many", name);
}

static int read_elements(xmlDocPtr doc, struct rpc_agreement *ret, struct ferry_error *err)
{
    const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;
    int rc = 0;

    if (!root) {
        return ferry_fail(err, FERRY_INVALID, "it is not XML");
    }
    for (xmlNodePtr n = root->children; rc == 0 && n; n = n->next) {
        rc = n->type == XML_ELEMENT_NODE ? take_element(n, ret, err) : 0;
    }
    if (rc == 0 && (!ret->connect || !ret->memory || !ret->domain)) {
        rc = ferry_fail(err, FERRY_INVALID, "connect, memory or domain is missing");
    }
    return rc;
}

int rpc_agreement_read(const char *text, size_t len, struct rpc_agreement *ret,
                       struct ferry_error *err)
{
    struct rpc_agreement a = {0};
    xmlDocPtr doc = len <= RPC_XML_MAX
                        ? xmlReadMemory(text, (int)len, "agreed.xml", NULL,
                                        XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING)
                        : NULL;
    int rc = read_elements(doc, &a, err);

    xmlFreeDoc(doc);
    if (rc < 0) {
        rpc_agreement_done(&a);
        ferry_wrap(err, "what was agreed for a move");
        return rc;
    }
    *ret = a;
    return 0;
}

void rpc_agreement_done(struct rpc_agreement *a)
{
    free(a->connect);
    free(a->memory);
    free(a->disks);
    for (size_t i = 0; i < a->n_copied; i++) {
        free(a->copied[i]);
    }
    rpc_agreed_free(a->domain);
    *a = (struct rpc_agreement){0};
}
