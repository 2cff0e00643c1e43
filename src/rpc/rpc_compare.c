/* Theory of operation. Two trees are walked together: what came, and, where it has a counterpart,
 * what was agreed. Each element and attribute that came needs a rule for its path (rpc_rules.h) and
 * a value that the rule allows; of the agreed ones, those whose rule says so must have come. An
 * agreed element has one counterpart at most, so nothing comes twice.
 *
 * Both are libvirt's to parse afterwards, by the same libxml2: whatever could be read in two ways
 * (entities, comments inside of texts, namespaces, bytes behind the end) is refused, too. */
#include "rpc/rpc_compare.h"

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "rpc/rpc_rules.h"
#include "rpc/rpc_value.h"

#define QEMU_NAMESPACE "http://libvirt.org/schemas/domain/qemu/1.0"

enum { PATH_MAX_BYTES = 128, SHOWN_MAX = 80, NODES_MAX = 4096 };

struct rpc_agreed {
    xmlDocPtr domain, cookie;
};

struct walk {
    const struct rpc_rule *(*rule_of)(const char *path);
    const struct rpc_agreed *agreed;
    const char *root; /* for messages */
    size_t nodes;
    struct ferry_error *err;
};

static const char *name_of(const xmlNode *n)
{
    return (const char *)n->name;
}

static void free_doc(xmlDocPtr *doc)
{
    xmlFreeDoc(*doc); /* takes NULL */
}
#define cleanup_doc ferry_cleanup(free_doc)

static void free_text(xmlChar **text)
{
    xmlFree(*text); /* takes NULL */
}
#define cleanup_text ferry_cleanup(free_text)

/* ---- reading -----------------------------------------------------------------------------------
 */

/* No entities, comments, instructions or sections of raw text: libvirt writes none of them. */
static xmlDocPtr parse(const char *xml, size_t len)
{
    if (len > RPC_XML_MAX || memchr(xml, '\0', len) || memmem(xml, len, "<!", 2) ||
        memmem(xml, len, "<?", 2)) {
        return NULL;
    }
    xmlDocPtr doc = xmlReadMemory(xml, (int)len, "move.xml", NULL,
                                  XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    if (doc && !xmlDocGetRootElement(doc)) {
        xmlFreeDoc(doc);
        return NULL;
    }
    return doc;
}

static xmlNodePtr child(const xmlNode *parent, const char *name)
{
    for (xmlNodePtr c = parent ? parent->children : NULL; c; c = c->next) {
        if (c->type == XML_ELEMENT_NODE && strcmp(name_of(c), name) == 0) {
            return c;
        }
    }
    return NULL;
}

static xmlChar *attribute(const xmlNode *n, const char *name)
{
    return n ? xmlGetNoNsProp(n, BAD_CAST name) : NULL;
}

static const char *content(const xmlNode *parent, const char *name)
{
    const xmlNode *n = child(parent, name);

    return n && n->children && n->children->content ? (const char *)n->children->content : "";
}

/* ---- refusing ----------------------------------------------------------------------------------
 */

/* What a peer wrote, fit for a log. */
static void show(const char *value, char ret[SHOWN_MAX + 4])
{
    size_t n = 0;

    for (; value[n] && n < SHOWN_MAX; n++) {
        ret[n] = (char)(value[n] >= ' ' && value[n] <= '~' ? value[n] : '?');
    }
    snprintf(ret + n, 4, "%s", value[n] ? "..." : "");
}

static int refuse(struct walk *w, const char *path, const char *value, const char *why)
{
    char shown[SHOWN_MAX + 4], shown_path[SHOWN_MAX + 4];

    show(value, shown);
    show(path, shown_path);
    return ferry_fail(w->err, FERRY_DENIED, "/%s/%s%s%s%s %s", w->root, shown_path,
                      *value ? " '" : "", shown, *value ? "'" : "", why);
}

/* ---- values ------------------------------------------------------------------------------------
 */

/* "PATH/NAME" or "PATH/@NAME"; a name that is too long for any rule makes a path that has none. */
static void join(char ret[PATH_MAX_BYTES], const char *path, const char *sign, const char *name)
{
    snprintf(ret, PATH_MAX_BYTES, "%s%s%s%s", path, *path ? "/" : "", sign, name);
}

static int check_attribute(struct walk *w, const xmlNode *in, const xmlNode *agreed,
                           const xmlAttr *a, const char *path)
{
    char full[PATH_MAX_BYTES];
    const char *name = (const char *)a->name;
    cleanup_text xmlChar *value = attribute(in, name), *wanted = attribute(agreed, name);
    cleanup_text xmlChar *unit = attribute(in, "unit"), *unit_wanted = attribute(agreed, "unit");
    const char *v = value ? (const char *)value : "";

    join(full, path, "@", name);
    const struct rpc_rule *rule = a->ns ? NULL : w->rule_of(full);
    if (!rule) {
        return refuse(w, full, v, "is not part of a move");
    }
    return rpc_value_allowed(rule, v, (const char *)unit, (const char *)wanted,
                             (const char *)unit_wanted)
               ? 0
               : refuse(w, full, v, "is not what was agreed");
}

/* The text of an element; "" when it has elements, between which only blanks may stand. */
static xmlChar *text_of(const xmlNode *n)
{
    xmlChar *text = xmlNodeGetContent(n);

    for (const xmlNode *c = n->children; c; c = c->next) {
        if (c->type == XML_ELEMENT_NODE && text) {
            text[0] = '\0';
        }
    }
    return text;
}

static bool is_blank(const xmlNode *n)
{
    const char *s = n->content ? (const char *)n->content : "";

    return !s[strspn(s, " \t\r\n")];
}

static int check_text(struct walk *w, const xmlNode *in, const xmlNode *agreed,
                      const struct rpc_rule *rule, const char *path)
{
    cleanup_text xmlChar *value = text_of(in), *wanted = agreed ? text_of(agreed) : NULL;
    cleanup_text xmlChar *unit = attribute(in, "unit"), *unit_wanted = attribute(agreed, "unit");
    const char *v = value ? (const char *)value : "";

    if (rule->value == RPC_FLAG && !agreed) {
        return refuse(w, path, "", "was not agreed");
    }
    if (rule->value <= RPC_FLAG) { /* the blanks of an empty element */
        v += strspn(v, " \t\r\n");
    }
    return rpc_value_allowed(rule, v, (const char *)unit, (const char *)wanted,
                             (const char *)unit_wanted)
               ? 0
               : refuse(w, path, v, "is not what was agreed");
}

/* ---- counterparts ------------------------------------------------------------------------------
 */

static xmlChar *key_of(const xmlNode *n, const struct rpc_key *key)
{
    return attribute(key->child ? child(n, key->child) : n, key->attribute);
}

static bool same_key(const xmlNode *a, const xmlNode *b, const struct rpc_key *key)
{
    cleanup_text xmlChar *x = key ? key_of(a, key) : NULL, *y = key ? key_of(b, key) : NULL;

    return !key || (x && y && xmlStrcasecmp(x, y) == 0);
}

/* The agreed element that `in` stands for, from now on taken; NULL when there is none left. */
static xmlNodePtr counterpart(const xmlNode *in, const xmlNode *agreed_parent, const char *path)
{
    const struct rpc_key *key = rpc_rules_key(path);

    for (xmlNodePtr c = agreed_parent ? agreed_parent->children : NULL; c; c = c->next) {
        if (c->type == XML_ELEMENT_NODE && !c->_private && strcmp(name_of(c), name_of(in)) == 0 &&
            same_key(in, c, key)) {
            c->_private = c;
            return c;
        }
    }
    return NULL;
}

static bool is_needed(const struct rpc_rule *rule)
{
    static const bool needed[] = {[RPC_FLAG] = true, [RPC_SAME] = true, [RPC_MAC] = true,
                                  [RPC_SIZE] = true, [RPC_TYPE] = true, [RPC_SAME_OR_OF] = true};

    return rule && (size_t)rule->value < FERRY_COUNT(needed) && needed[rule->value];
}

/* An agreed element that has not come: it, or something in it, may be needed. */
static int check_missing(struct walk *w, const xmlNode *agreed, const char *path)
{
    char full[PATH_MAX_BYTES];

    if (is_needed(w->rule_of(path))) {
        return refuse(w, path, "", "is missing");
    }
    for (const xmlAttr *a = agreed->properties; a; a = a->next) {
        join(full, path, "@", (const char *)a->name);
        if (is_needed(w->rule_of(full))) {
            return refuse(w, full, "", "is missing");
        }
    }
    for (const xmlNode *c = agreed->children; c; c = c->next) {
        if (c->type == XML_ELEMENT_NODE) {
            join(full, path, "", name_of(c));
            if (check_missing(w, c, full) < 0) {
                return -FERRY_DENIED;
            }
        }
    }
    return 0;
}

/* After all that came was looked at: whether what was agreed is there. */
static int check_all_there(struct walk *w, const xmlNode *in, const xmlNode *agreed,
                           const char *path)
{
    char full[PATH_MAX_BYTES];
    int rc = 0;

    for (const xmlAttr *a = agreed->properties; rc == 0 && a; a = a->next) {
        cleanup_text xmlChar *value = attribute(in, (const char *)a->name);

        join(full, path, "@", (const char *)a->name);
        if (!value && is_needed(w->rule_of(full))) {
            rc = refuse(w, full, "", "is missing");
        }
    }
    for (const xmlNode *c = agreed->children; rc == 0 && c; c = c->next) {
        if (c->type == XML_ELEMENT_NODE && !c->_private) {
            join(full, path, "", name_of(c));
            rc = check_missing(w, c, full);
        }
    }
    return rc;
}

/* What was taken can be taken again. */
static void forget(const xmlNode *agreed)
{
    for (xmlNodePtr c = agreed->children; c; c = c->next) {
        c->_private = NULL;
    }
}

/* ---- QEMU's own arguments ----------------------------------------------------------------------
 */

static bool is_qemu(const xmlNode *n, const char *name)
{
    return n->type == XML_ELEMENT_NODE && strcmp(name_of(n), name) == 0 && n->ns &&
           xmlStrEqual(n->ns->href, BAD_CAST QEMU_NAMESPACE);
}

/* The next argument from `n` on. */
static const xmlNode *argument(const xmlNode *n)
{
    while (n && !is_qemu(n, "arg")) {
        n = n->next;
    }
    return n;
}

static bool same_argument(const xmlNode *a, const xmlNode *b)
{
    cleanup_text xmlChar *x = attribute(a, "value"), *y = attribute(b, "value");

    return x && y && xmlStrEqual(x, y);
}

static int check_shape(struct walk *w, const xmlNode *in)
{
    for (const xmlNode *c = in->children; c; c = c->next) {
        bool fits = is_qemu(c, "arg") && !c->children && c->properties && !c->properties->next &&
                    !c->properties->ns && ++w->nodes <= NODES_MAX;

        if (!fits && !(c->type == XML_TEXT_NODE && is_blank(c))) {
            return refuse(w, "qemu:commandline", "", "has more than arguments");
        }
    }
    return in->properties ? refuse(w, "qemu:commandline", "", "has attributes") : 0;
}

/* In order, and nothing else; the launchers of older versions ask for fewer of the monitors, each
 * of four arguments. */
static int check_commandline(struct walk *w, const xmlNode *in, const xmlNode *agreed)
{
    enum { MONITOR_ARGUMENTS = 4 };
    const xmlNode *a = argument(agreed ? agreed->children : NULL);
    size_t n = 0;

    if (check_shape(w, in) < 0) {
        return -FERRY_DENIED;
    }
    for (const xmlNode *c = argument(in->children); c; c = argument(c->next), n++) {
        cleanup_text xmlChar *value = attribute(c, "value");

        if (!a || !same_argument(c, a)) {
            return refuse(w, "qemu:commandline/qemu:arg", value ? (const char *)value : "",
                          "is not what was agreed");
        }
        a = argument(a->next);
    }
    return n % MONITOR_ARGUMENTS == 0
               ? 0
               : refuse(w, "qemu:commandline", "", "has an incomplete list of arguments");
}

/* ---- the walk ----------------------------------------------------------------------------------
 */

static int check_element(struct walk *w, const xmlNode *in, const xmlNode *agreed,
                         const char *path);

/* A domain, or the part of one that a cookie has beside it. */
static int check_inside(struct walk *w, const xmlNode *in, const xmlNode *agreed, const char *root,
                        const char *path)
{
    struct walk inner = {.rule_of = rpc_rules_domain,
                         .agreed = w->agreed,
                         .root = root,
                         .nodes = w->nodes,
                         .err = w->err};
    int rc = check_element(&inner, in, agreed, path);

    w->nodes = inner.nodes;
    return rc;
}

static int check_child(struct walk *w, const xmlNode *in, const xmlNode *agreed, const char *path)
{
    char full[PATH_MAX_BYTES];
    const xmlNode *domain = xmlDocGetRootElement(w->agreed->domain);
    bool in_cookie = w->rule_of == rpc_rules_cookie && !*path;

    join(full, path, "", name_of(in));
    if (in->nsDef || in->ns) {
        bool known = !in->nsDef && !in_cookie && !*path && is_qemu(in, "commandline");
        const xmlNode *wanted = known ? counterpart(in, agreed, "") : NULL;

        return known && wanted ? check_commandline(w, in, wanted)
                               : refuse(w, full, "", "is not part of a move");
    }
    if (in_cookie && strcmp(full, "cpu") == 0) {
        return check_inside(w, in, child(domain, "cpu"), "qemu-migration", full);
    }
    if (!w->rule_of(full)) {
        return refuse(w, full, "", "is not part of a move");
    }
    const struct rpc_key *key = rpc_rules_key(full);
    const xmlNode *wanted = counterpart(in, agreed, full);
    if (!wanted && key && !key->more) {
        return refuse(w, full, "", "was not agreed");
    }
    return !wanted && !key && child(agreed, name_of(in)) ? refuse(w, full, "", "is there twice")
                                                         : check_element(w, in, wanted, full);
}

static int check_children(struct walk *w, const xmlNode *in, const xmlNode *agreed,
                          const char *path)
{
    bool has_elements = false;
    int rc = 0;

    for (const xmlNode *c = in->children; c; c = c->next) {
        has_elements = has_elements || c->type == XML_ELEMENT_NODE;
    }
    for (const xmlNode *c = in->children; rc == 0 && c; c = c->next) {
        if (c->type == XML_ELEMENT_NODE) {
            rc = check_child(w, c, agreed, path);
        } else if (c->type != XML_TEXT_NODE || (has_elements && !is_blank(c))) {
            rc = refuse(w, path, "", "holds what libvirt does not write");
        }
    }
    return rc;
}

/* `path` is "" for the root, which needs no rule. */
static int check_element(struct walk *w, const xmlNode *in, const xmlNode *agreed, const char *path)
{
    const struct rpc_rule *rule = *path ? w->rule_of(path) : NULL;
    int rc = ++w->nodes > NODES_MAX ? refuse(w, path, "", "is one element too many") : 0;

    if (rc == 0 && rule) {
        rc = check_text(w, in, agreed, rule, path);
    }
    for (const xmlAttr *a = in->properties; rc == 0 && a; a = a->next) {
        rc = check_attribute(w, in, agreed, a, path);
    }
    if (rc == 0) {
        rc = check_children(w, in, agreed, path);
    }
    if (agreed) {
        rc = rc < 0 ? rc : check_all_there(w, in, agreed, path);
        forget(agreed);
    }
    return rc;
}

/* libvirt's namespace for QEMU, by its usual name, and no other. */
static bool namespaces_fit(const xmlNode *root)
{
    const xmlNs *ns = root->nsDef;

    return !root->ns &&
           (!ns || (!ns->next && ns->prefix && xmlStrEqual(ns->prefix, BAD_CAST "qemu") &&
                    xmlStrEqual(ns->href, BAD_CAST QEMU_NAMESPACE)));
}

static int check_domain_root(struct walk *w, const xmlNode *root)
{
    if (strcmp(name_of(root), "domain") != 0 || !namespaces_fit(root)) {
        return refuse(w, "", "", "is not a domain");
    }
    return check_element(w, root, xmlDocGetRootElement(w->agreed->domain), "");
}

int rpc_compare_domain(const struct rpc_agreed *a, const char *xml, size_t len,
                       struct ferry_error *err)
{
    cleanup_doc xmlDocPtr doc = parse(xml, len);
    struct walk w = {.rule_of = rpc_rules_domain, .agreed = a, .root = "domain", .err = err};

    return doc ? check_domain_root(&w, xmlDocGetRootElement(doc))
               : ferry_fail(err, FERRY_DENIED, "the domain is not XML as libvirt writes it");
}

/* ---- the cookie --------------------------------------------------------------------------------
 */

/* Takes the one domain that a cookie may have out of it and judges it as such. */
static int check_persistent(const struct rpc_agreed *a, xmlNodePtr root, struct ferry_error *err)
{
    struct walk w = {
        .rule_of = rpc_rules_domain, .agreed = a, .root = "qemu-migration/domain", .err = err};
    xmlNodePtr domain = child(root, "domain");

    if (!domain) {
        return 0;
    }
    int rc = check_domain_root(&w, domain);
    xmlUnlinkNode(domain);
    xmlFreeNode(domain);
    return rc;
}

int rpc_compare_cookie(const struct rpc_agreed *a, const char *cookie, size_t len,
                       struct ferry_error *err)
{
    struct walk w = {
        .rule_of = rpc_rules_cookie, .agreed = a, .root = "qemu-migration", .err = err};

    if (len > 0 && cookie[len - 1] == '\0') { /* libvirt sends the end of the string, too */
        len--;
    }
    if (len == 0) {
        return 0;
    }
    cleanup_doc xmlDocPtr doc = parse(cookie, len);
    xmlNodePtr root = doc ? xmlDocGetRootElement(doc) : NULL;
    if (!root || strcmp(name_of(root), "qemu-migration") != 0 || root->ns || root->nsDef) {
        return ferry_fail(err, FERRY_DENIED, "the cookie is not XML as libvirt writes it");
    }
    int rc = check_persistent(a, root, err);
    return rc < 0 ? rc : check_element(&w, root, xmlDocGetRootElement(a->cookie), "");
}

/* ---- what was agreed ---------------------------------------------------------------------------
 */

/* What libvirt makes of it: the balloon's size beside the memory, a console for each serial line.
 */
static void complete(xmlNodePtr domain)
{
    xmlNodePtr memory = child(domain, "memory"), devices = child(domain, "devices");

    if (memory && !child(domain, "currentMemory")) {
        xmlNodePtr copy = xmlDocCopyNode(memory, domain->doc, 1);

        xmlNodeSetName(copy, BAD_CAST "currentMemory");
        xmlAddChild(domain, copy);
    }
    for (xmlNodePtr c = devices ? devices->children : NULL; c; c = c->next) {
        if (c->type == XML_ELEMENT_NODE && strcmp(name_of(c), "serial") == 0) {
            xmlNodePtr copy = xmlDocCopyNode(c, domain->doc, 1);

            xmlNodeSetName(copy, BAD_CAST "console");
            xmlAddChild(devices, copy);
        }
    }
}

static void make_cookie(struct rpc_agreed *a)
{
    static const char *const names[] = {"name", "uuid"};
    xmlNodePtr root = xmlNewNode(NULL, BAD_CAST "qemu-migration");

    a->cookie = xmlNewDoc(BAD_CAST "1.0");
    xmlDocSetRootElement(a->cookie, root);
    for (size_t i = 0; i < FERRY_COUNT(names); i++) {
        const char *text = content(xmlDocGetRootElement(a->domain), names[i]);

        xmlNewTextChild(root, NULL, BAD_CAST names[i], BAD_CAST text);
    }
}

int rpc_agreed_new(const char *domain_xml, size_t len, struct rpc_agreed **ret,
                   struct ferry_error *err)
{
    xmlDocPtr doc = parse(domain_xml, len);
    const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;

    if (!root || strcmp(name_of(root), "domain") != 0 || !*content(root, "name") ||
        !*content(root, "uuid")) {
        xmlFreeDoc(doc);
        return ferry_fail(err, FERRY_INVALID, "the agreed domain is not one");
    }
    struct rpc_agreed *a = ferry_xcalloc(1, sizeof(*a));
    a->domain = doc;
    complete(xmlDocGetRootElement(doc));
    make_cookie(a);
    *ret = a;
    return 0;
}

void rpc_agreed_free(struct rpc_agreed *a)
{
    if (a) {
        xmlFreeDoc(a->domain);
        xmlFreeDoc(a->cookie);
        free(a);
    }
}

const char *rpc_agreed_name(const struct rpc_agreed *a)
{
    return content(xmlDocGetRootElement(a->domain), "name");
}

const char *rpc_agreed_emulator(const struct rpc_agreed *a)
{
    return content(child(xmlDocGetRootElement(a->domain), "devices"), "emulator");
}
