/* The admission policy of Kubernetes says what the table of fields says:
 * deploy/kubernetes/fields.yaml is the text that is made here. `test_api_field_policy --write`
 * writes it. */
#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

#include "api/owners/field_rules.h"
#include "base/fd.h"
#include "base/str.h"

enum { LINE = 120, INDENT = 6, FILE_MAX = 1 << 20 };

static const char head[] =
    "# Which fields of a VirtualMachineInstance a node may write (docs/contracts/fields.md). Made "
    "of the table in\n"
    "# src/api/owners/field_rules.c by `test_api_field_policy --write`, and held to it by that "
    "test: do not edit.\n"
    "# The embedded API server has the same table built in. Needs Kubernetes 1.30.\n"
    "apiVersion: admissionregistration.k8s.io/v1\n"
    "kind: ValidatingAdmissionPolicy\n"
    "metadata:\n"
    "  name: ferry-node-vmis\n"
    "spec:\n"
    "  failurePolicy: Fail\n"
    "  matchConstraints:\n"
    "    resourceRules:\n"
    "    - apiGroups: [kubevirt.io]\n"
    "      apiVersions: [v1]\n"
    "      resources: [virtualmachineinstances]\n"
    "      operations: [UPDATE]\n"
    "  matchConditions:\n"
    "  - name: by-a-node\n"
    "    expression: >-\n"
    "      'system:nodes' in request.userInfo.groups ||\n"
    "      request.userInfo.username == 'system:serviceaccount:ferry:ferry-handler'\n"
    "  variables:\n";

static const char tail[] = "---\n"
                           "apiVersion: admissionregistration.k8s.io/v1\n"
                           "kind: ValidatingAdmissionPolicyBinding\n"
                           "metadata:\n"
                           "  name: ferry-node-vmis\n"
                           "spec:\n"
                           "  policyName: ferry-node-vmis\n"
                           "  validationActions: [Deny]\n";

static const struct {
    const char *name, *cel;
} variables[] = {
    {"node", "request.userInfo.username.startsWith('system:node:') ? "
             "request.userInfo.username.substring(12) :\n"
             "request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')"},
    {"before", "oldObject.?status.orValue({})"},
    {"after", "object.?status.orValue({})"},
    {"move", "variables.before.?migrationState.orValue({})"},
    {"moveAfter", "variables.after.?migrationState.orValue({})"},
    {"conditions", "variables.before.?conditions.orValue([])"},
    {"conditionsAfter", "variables.after.?conditions.orValue([])"},
    {"labels", "oldObject.metadata.?labels.orValue({})"},
    {"labelsAfter", "object.metadata.?labels.orValue({})"},
    {"annotations", "oldObject.metadata.?annotations.orValue({})"},
    {"annotationsAfter", "object.metadata.?annotations.orValue({})"},
    {"over", "variables.move.?completed.orValue(false)"},
    {"overAfter", "variables.moveAfter.?completed.orValue(false)"},
    {"failed", "variables.move.?failed.orValue(false)"},
    {"failedAfter", "variables.moveAfter.?failed.orValue(false)"},
    {"live", "!variables.over && !variables.failed"},
    {"unconfirmed",
     "variables.over && variables.failed && variables.move.?migrationUid.orValue('') != '' &&\n"
     "variables.annotations[?'ferry.io/unconfirmed'].orValue('') == variables.move.migrationUid "
     "&&\n"
     "variables.labels[?'kubevirt.io/migrationTargetNodeName'].orValue('') == variables.node"},
};

/* Of each place: the variables with what was there and what shall be, what is looked into
 * elsewhere, how messages name it. */
static const struct {
    const char *name, *before, *after, *deeper, *where;
} places[] = {
    [FIELD_OF_STATUS] = {"Status", "before", "after", "'conditions', 'migrationState'", "status."},
    [FIELD_OF_MOVE] = {"Move", "move", "moveAfter", NULL, "status.migrationState."},
    [FIELD_OF_CONDITIONS] = {"Conditions", "conditions", "conditionsAfter", NULL,
                             "status.conditions "},
    [FIELD_OF_LABELS] = {"Labels", "labels", "labelsAfter", NULL, "the label "},
    [FIELD_OF_ANNOTATIONS] = {"Annotations", "annotations", "annotationsAfter", NULL,
                              "the annotation "},
};

/* A folded block, each line in its place. */
static void put_block(struct ferry_buf *b, const char *text)
{
    ferry_buf_puts(b, ">-\n");
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");

        ferry_buf_printf(b, "%*s%.*s\n", INDENT, "", (int)n, line);
        line += n + (line[n] != '\0');
    }
}

static void put_variable(struct ferry_buf *b, const char *name, const char *cel)
{
    ferry_buf_printf(b, "  - name: %s\n    expression: ", name);
    put_block(b, cel);
}

/* 'a', 'b', ... of the keys of a place that meet one of the bits, broken into lines. */
static size_t put_keys(struct ferry_buf *b, enum field_place place, unsigned parts, unsigned limits)
{
    size_t n, found = 0, column = 40;
    const struct field_rule *rules = field_rules(&n);

    for (size_t i = 0; i < n; i++) {
        const struct field_rule *r = &rules[i];

        if (r->place != place || !((r->parts & parts) || (r->limits & limits))) {
            continue;
        }
        if (found++) {
            column += strlen(r->key) + 4;
            ferry_buf_puts(b, column > LINE ? ",\n" : ", ");
            column = column > LINE ? strlen(r->key) : column;
        }
        ferry_buf_printf(b, "'%s'", r->key);
    }
    return found;
}

static void put_may(struct ferry_buf *b, enum field_place place)
{
    ferry_cleanup_buf struct ferry_buf cel = {0};
    ferry_cleanup_free char *name = ferry_asprintf("may%s", places[place].name);
    const char *deeper = places[place].deeper;
    size_t n;
    const struct field_part_row *parts = field_rules_parts(&n);

    ferry_buf_printf(&cel, "[%s]", deeper ? deeper : "");
    for (size_t i = 0; i < n; i++) {
        ferry_cleanup_buf struct ferry_buf keys = {0};

        if (put_keys(&keys, place, parts[i].part, 0)) {
            ferry_buf_printf(&cel, " +\n(variables.%s ? [%s] : [])", parts[i].name, keys.data);
        }
    }
    put_variable(b, name, cel.data);
}

/* What differs and is not the node's to write. */
static void put_stray(struct ferry_buf *b, enum field_place place)
{
    const char *before = places[place].before, *after = places[place].after;
    ferry_cleanup_free char *name = ferry_asprintf("stray%s", places[place].name);
    ferry_cleanup_free char *cel =
        place == FIELD_OF_CONDITIONS
            ? ferry_asprintf("(variables.%s.filter(c, !(c in variables.%s)) +\n"
                             "variables.%s.filter(c, !(c in variables.%s)))\n"
                             ".map(c, c.?type.orValue('')).filter(k, !(k in variables.may%s))",
                             before, after, after, before, places[place].name)
            : ferry_asprintf("(variables.%s.filter(k, !(k in variables.%s) || "
                             "variables.%s[k] != variables.%s[k]) +\n"
                             "variables.%s.filter(k, !(k in variables.%s)))\n"
                             ".filter(k, !(k in variables.may%s))",
                             before, after, after, before, after, before, places[place].name);

    put_variable(b, name, cel);
}

static void put_variables(struct ferry_buf *b)
{
    size_t n;
    const struct field_part_row *parts = field_rules_parts(&n);

    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        put_variable(b, variables[i].name, variables[i].cel);
    }
    for (size_t i = 0; i < n; i++) {
        put_variable(b, parts[i].name, parts[i].cel);
    }
    for (enum field_place p = 0; p < FIELD_PLACE_COUNT; p++) {
        put_may(b, p);
        put_stray(b, p);
    }
}

/* `message` is an expression when it has quotes. */
static void put_validation(struct ferry_buf *b, const char *cel, const char *message)
{
    ferry_buf_puts(b, "  - expression: ");
    put_block(b, cel);
    ferry_buf_puts(b, strchr(message, '"') ? "    messageExpression: " : "    message: ");
    put_block(b, message);
    ferry_buf_puts(b, "    reason: Forbidden\n");
}

static void put_place(struct ferry_buf *b, enum field_place place)
{
    ferry_cleanup_free char *cel =
        ferry_asprintf("size(variables.stray%s) == 0", places[place].name);
    ferry_cleanup_free char *message = ferry_asprintf(
        "\"node '\" + variables.node + \"' may not change %s\" + string(variables.stray%s[0]) +\n"
        "\": it is not what the node is to this VirtualMachineInstance\"",
        places[place].where, places[place].name);

    put_validation(b, cel, message);
}

static void put_limits(struct ferry_buf *b, const struct field_rule *r)
{
    const char *key = r->key, *old = places[r->place].before, *now = places[r->place].after;
    ferry_cleanup_free char *same = ferry_asprintf(
        "variables.%s[?'%s'].orValue('') == variables.%s[?'%s'].orValue('')", now, key, old, key);
    ferry_cleanup_free char *what = ferry_asprintf("%s%s", places[r->place].where, key);

    if (r->limits & FIELD_ONCE) {
        ferry_cleanup_free char *cel =
            ferry_asprintf("!(variables.%s[?'%s'].hasValue()) || variables.%s['%s'] == null ||\n%s",
                           old, key, old, key, same);
        ferry_cleanup_free char *message = ferry_asprintf("%s is written once", what);

        put_validation(b, cel, message);
    }
    if (r->limits & FIELD_OWN_NAME) {
        ferry_cleanup_free char *cel = ferry_asprintf(
            "%s ||\nvariables.%s[?'%s'].orValue('') == variables.node", same, now, key);
        ferry_cleanup_free char *message = ferry_asprintf("%s takes the node's own name", what);

        put_validation(b, cel, message);
    }
    if (r->limits & FIELD_AWAY) {
        ferry_cleanup_free char *cel =
            ferry_asprintf("%s ||\n!variables.%s[?'%s'].hasValue()", same, now, key);
        ferry_cleanup_free char *message = ferry_asprintf("%s may only be taken away", what);

        put_validation(b, cel, message);
    }
    if (r->limits & FIELD_MOVE_UID) {
        ferry_cleanup_free char *cel = ferry_asprintf("%s ||\nvariables.%s[?'%s'].orValue('') == "
                                                      "variables.move.?migrationUid.orValue('')",
                                                      same, now, key);
        ferry_cleanup_free char *message = ferry_asprintf("%s takes the uid of the move", what);

        put_validation(b, cel, message);
    }
}

static void put_validations(struct ferry_buf *b)
{
    static const char *const kept[] = {"finalizers", "ownerReferences"};
    ferry_cleanup_buf struct ferry_buf concern = {0};
    size_t n;
    const struct field_rule *rules = field_rules(&n);

    ferry_buf_puts(b, "  validations:\n");
    ferry_buf_puts(&concern, "variables.node != '' && (variables.runs || variables.source || "
                             "variables.target || variables.leaves)");
    put_validation(b, concern.data,
                   "\"node '\" + variables.node + \"' may change only VirtualMachineInstances that "
                   "are on it,\n"
                   "on their way to it or leaving it\"");
    for (size_t i = 0; i < COUNT_OF(kept); i++) {
        ferry_cleanup_free char *cel =
            ferry_asprintf("object.metadata.?%s.orValue([]) == oldObject.metadata.?%s.orValue([])",
                           kept[i], kept[i]);
        ferry_cleanup_free char *message =
            ferry_asprintf("a node may not change metadata.%s", kept[i]);

        put_validation(b, cel, message);
    }
    for (enum field_place p = 0; p < FIELD_PLACE_COUNT; p++) {
        put_place(b, p);
    }
    for (size_t i = 0; i < n; i++) {
        put_limits(b, &rules[i]);
    }
}

static char *policy_text(void)
{
    struct ferry_buf b = {0};

    ferry_buf_puts(&b, head);
    put_variables(&b);
    put_validations(&b);
    ferry_buf_puts(&b, tail);
    return ferry_buf_take(&b);
}

static void manifest(void **state)
{
    ferry_cleanup_free char *want = policy_text();
    ferry_cleanup_buf struct ferry_buf file = {0};

    (void)state;
    assert_int_equal(ferry_read_file(POLICY_FILE, FILE_MAX, &file, NULL), 0);
    if (strlen(want) != file.len || memcmp(want, file.data, file.len) != 0) {
        fail_msg("%s is not what the table says: run test_api_field_policy --write", POLICY_FILE);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(manifest)};

    if (argc > 1 && strcmp(argv[1], "--write") == 0) {
        ferry_cleanup_free char *text = policy_text();

        return ferry_write_file(POLICY_FILE, text, strlen(text), 0644, NULL) < 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
