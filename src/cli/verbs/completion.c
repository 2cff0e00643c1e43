/* The scripts know the verbs and what their arguments name; options they ask of the verb's own
 * --help and names of the API, so that neither can be out of date. Both shells share one function,
 * which prints the candidates for the words so far, one per line. */
#include "cli/verbs/completion.h"

#include <stdio.h>

static void put_names(const struct cli_verb *verbs, struct ferry_buf *out)
{
    bool first = true;

    for (const struct cli_verb *v = verbs; v->name; v++) {
        if (!v->hidden) {
            ferry_buf_printf(out, "%s%s", first ? "" : " ", v->name);
            first = false;
        }
    }
}

/* "migrate) kinds='vms' ;;" for each verb that takes names. */
static void put_kinds(const struct cli_verb *verbs, const char *prefix, struct ferry_buf *out)
{
    for (const struct cli_verb *v = verbs; v->name; v++) {
        if (!v->hidden && !ferry_str_empty(v->completes)) {
            ferry_buf_printf(out, "    '%s%s') kinds='%s' ;;\n", prefix, v->name, v->completes);
        }
        if (v->sub) {
            ferry_cleanup_free char *below = ferry_asprintf("%s ", v->name);

            put_kinds(v->sub, below, out);
        }
    }
}

static void put_groups(const struct cli_verb *verbs, struct ferry_buf *out)
{
    for (const struct cli_verb *v = verbs; v->name; v++) {
        if (v->sub) {
            ferry_buf_printf(out, "    '%s') verbs='", v->name);
            put_names(v->sub, out);
            ferry_buf_puts(out, "' ;;\n");
        }
    }
}

/* What comes after an option that takes a value; nothing = names of files, by the shell. */
static void put_values(struct ferry_buf *out)
{
    ferry_buf_puts(
        out, "  case $before in\n"
             "  --to) command ferry node list -o name 2>/dev/null | sed 's,.*/,,'; return ;;\n"
             "  -o | --output) printf '%s\\n' json yaml wide name; return ;;\n"
             "  -f | --file | --kubeconfig | --root) return ;;\n"
             "  esac\n");
}

/* ferry_candidates VERB SUBVERB CURRENT BEFORE: the verb ('' = none yet), the verb below it, the
 * word that is typed and the one before it. */
static void put_candidates(const struct cli_verb *verbs, struct ferry_buf *out)
{
    ferry_buf_puts(out,
                   "_ferry_candidates() {\n"
                   "  local verb=$1 sub=$2 current=$3 before=$4 verbs= kinds= kind= call=$1\n");
    put_values(out);
    ferry_buf_puts(out, "  if [ -z \"$verb\" ]; then\n"
                        "    printf '%s\\n' --help --version ");
    put_names(verbs, out);
    ferry_buf_puts(out, "\n"
                        "    return\n"
                        "  fi\n"
                        "  case $verb in\n");
    put_groups(verbs, out);
    ferry_buf_puts(out, "  esac\n"
                        "  if [ -n \"$verbs\" ] && [ -z \"$sub\" ]; then\n"
                        "    printf '%s\\n' --help $(printf '%s' \"$verbs\")\n"
                        "    return\n"
                        "  fi\n"
                        "  [ -z \"$verbs\" ] || call=\"$verb $sub\"\n"
                        "  case $current in\n"
                        "  -*)\n"
                        "    command ferry $(printf '%s' \"$call\") --help 2>/dev/null |\n"
                        "      grep -o -e '--[a-z][a-z-]*' | sort -u\n"
                        "    return\n"
                        "    ;;\n"
                        "  esac\n"
                        "  case $call in\n");
    put_kinds(verbs, "", out);
    ferry_buf_puts(out, "  esac\n"
                        "  for kind in $(printf '%s' \"$kinds\"); do\n"
                        "    case $kind in\n"
                        "    vms) command ferry vm list -o name 2>/dev/null ;;\n"
                        "    moves) command ferry list -o name 2>/dev/null ;;\n"
                        "    policies) command ferry policy list -o name 2>/dev/null ;;\n"
                        "    nodes) command ferry node list -o name 2>/dev/null ;;\n"
                        "    shells) printf '%s\\n' bash zsh ;;\n"
                        "    esac\n"
                        "  done | sed 's,.*/,,'\n"
                        "}\n\n");
}

void completion_bash(const struct cli_verb *verbs, struct ferry_buf *out)
{
    ferry_buf_puts(out, "# bash completion for ferry; made by 'ferry completion bash'\n");
    put_candidates(verbs, out);
    ferry_buf_puts(out, "_ferry() {\n"
                        "  local current=${COMP_WORDS[COMP_CWORD]} verb= sub=\n"
                        "  [ \"$COMP_CWORD\" -lt 2 ] || verb=${COMP_WORDS[1]}\n"
                        "  [ \"$COMP_CWORD\" -lt 3 ] || sub=${COMP_WORDS[2]}\n"
                        "  COMPREPLY=($(compgen -W \"$(_ferry_candidates \"$verb\" \"$sub\" "
                        "\"$current\" \"${COMP_WORDS[COMP_CWORD - 1]}\")\" -- \"$current\"))\n"
                        "}\n"
                        "complete -o default -F _ferry ferry\n");
}

void completion_zsh(const struct cli_verb *verbs, struct ferry_buf *out)
{
    ferry_buf_puts(out, "#compdef ferry\n# zsh completion for ferry; made by 'ferry completion "
                        "zsh'\n");
    put_candidates(verbs, out);
    ferry_buf_puts(out, "_ferry() {\n"
                        "  local verb= sub=\n"
                        "  [ \"$CURRENT\" -lt 3 ] || verb=${words[2]}\n"
                        "  [ \"$CURRENT\" -lt 4 ] || sub=${words[3]}\n"
                        "  compadd -- ${(f)\"$(_ferry_candidates \"$verb\" \"$sub\" "
                        "\"${words[CURRENT]}\" \"${words[CURRENT - 1]}\")\"}\n"
                        "}\n"
                        "if [ \"${funcstack[1]}\" = _ferry ]; then\n"
                        "  _ferry \"$@\"\n"
                        "else\n"
                        "  compdef _ferry ferry\n"
                        "fi\n");
}

int verb_completion(int argc, char **argv, struct ferry_error *err)
{
    const struct ferry_option options[] = {{0}};
    const struct ferry_command cmd = {
        .name = "ferry completion",
        .usage = "bash|zsh",
        .summary = "Prints a script that completes verbs, options and names in a shell.",
        .options = options,
        .epilogue = "For this shell alone:  eval \"$(ferry completion bash)\"",
    };
    const struct cli_call call = {&cmd, .what = "a shell", .may_miss = true};
    const char *shell = NULL;
    int rc = cli_parse(&call, argc, argv, &shell, err);
    ferry_cleanup_buf struct ferry_buf out = {0};

    if (rc < 0) {
        return rc;
    }
    if (ferry_streq(shell, "bash")) {
        completion_bash(cli_verbs, &out);
    } else if (ferry_streq(shell, "zsh")) {
        completion_zsh(cli_verbs, &out);
    } else {
        return ferry_fail(err, FERRY_INVALID, "which shell: bash or zsh?");
    }
    fputs(out.data, stdout);
    return FERRY_EXIT_OK;
}
