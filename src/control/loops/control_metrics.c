#include "control/loops/control_metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/admit.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_queue.h"
#include "api/wire/wire_reason.h"
#include "base/count.h"
#include "base/prom.h"
#include "control/plan/facts.h"

static const double bounds[] = {0.5, 1,  2,   5,   10,  20,  30,   40,   50,
                                60,  90, 120, 180, 300, 600, 1200, 1800, 3600};
enum { N_BOUNDS = FERRY_COUNT(bounds) };

struct histogram {
    unsigned long long buckets[N_BOUNDS], count;
    double sum;
};

struct control_metrics {
    pthread_mutex_t lock;                   /* guards all below */
    struct histogram by_phase[PHASE_COUNT]; /* of PHASE_NONE and PHASE_UNKNOWN nothing is told */
};

struct control_metrics *control_metrics_new(void)
{
    struct control_metrics *m = ferry_xcalloc(1, sizeof(*m));

    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void control_metrics_free(struct control_metrics *m)
{
    if (m) {
        pthread_mutex_destroy(&m->lock);
        free(m);
    }
}

/* ---- histogram -------------------------------------------------------------------------------
 */

static void observe_locked(struct control_metrics *m, enum wire_phase phase, double seconds)
{
    struct histogram *h = &m->by_phase[phase];

    for (size_t k = 0; k < N_BOUNDS; k++) {
        h->buckets[k] += seconds <= bounds[k];
    }
    h->count++;
    h->sum += seconds;
}

static bool has_phase_time(const struct api_migration *m, const char *phase)
{
    for (size_t i = 0; i < m->n_phase_times; i++) {
        if (ferry_streq(m->phase_times[i].phase, phase)) {
            return true;
        }
    }
    return false;
}

void control_metrics_seen(struct control_metrics *m, const struct api_object *old,
                          const struct api_object *now)
{
    if (!old || !now) {
        return;
    }
    const struct api_migration *is = &now->u.migration;

    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < is->n_phase_times; i++) {
        const struct api_phase_time *t = &is->phase_times[i];
        int64_t took_ms = t->at_ms - is->meta.created_ms;

        if (!has_phase_time(&old->u.migration, t->phase)) {
            observe_locked(m, wire_phase_of(t->phase), (double)(took_ms > 0 ? took_ms : 0) / 1000);
        }
    }
    pthread_mutex_unlock(&m->lock);
}

static void write_histogram(struct control_metrics *m, struct ferry_buf *out)
{
    static const char name[] = "kubevirt_vmi_migration_phase_transition_time_from_creation_seconds";

    ferry_prom_head(out, name, "histogram",
                    "Time from the creation of a migration to each of its phases.");
    pthread_mutex_lock(&m->lock);
    for (int i = PHASE_PENDING; i <= PHASE_FAILED; i++) {
        const struct histogram *h = &m->by_phase[i];
        const char *phase = wire_phase_text((enum wire_phase)i);

        if (h->count) {
            ferry_prom_histogram(
                out, name, FERRY_LABELS({"phase", phase}),
                &(struct ferry_prom_histogram){bounds, h->buckets, N_BOUNDS, h->count, h->sum});
        }
    }
    pthread_mutex_unlock(&m->lock);
}

/* ---- gauges ----------------------------------------------------------------------------------
 */

static void begin(struct ferry_buf *out, const char *name, const char *help)
{
    ferry_prom_head(out, name, "gauge", help);
}

static void write_phases(const struct control_metrics_view *v, struct ferry_buf *out)
{
    size_t unset = 0, pending = 0, scheduling = 0, running = 0;

    for (size_t i = 0; i < v->n_migrations; i++) {
        const struct api_migration *m = &v->migrations[i]->u.migration;

        if (wire_migration_is_over(m)) {
            continue;
        }
        switch (wire_phase_of(m->phase)) {
        case PHASE_NONE:
            unset++;
            break;
        case PHASE_PENDING:
            pending++;
            break;
        case PHASE_SCHEDULING:
            scheduling++;
            break;
        default:
            running++;
        }
    }
    const struct {
        const char *name, *help;
        size_t n;
    } rows[] = {
        {"kubevirt_vmi_migrations_in_unset_phase", "Migrations without a phase.", unset},
        {"kubevirt_vmi_migrations_in_pending_phase", "Migrations that wait.", pending},
        {"kubevirt_vmi_migrations_in_scheduling_phase", "Migrations whose target pod starts.",
         scheduling},
        {"kubevirt_vmi_migrations_in_running_phase",
         "Migrations from a ready target pod to their end.", running},
    };
    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        begin(out, rows[i].name, rows[i].help);
        ferry_prom_sample(out, rows[i].name, NULL, (double)rows[i].n);
    }
}

static void write_ends(const struct control_metrics_view *v, enum wire_phase phase,
                       const char *name, struct ferry_buf *out)
{
    begin(out, name, "1 for each migration that is kept and ended so.");
    for (size_t i = 0; i < v->n_migrations; i++) {
        const struct api_migration *m = &v->migrations[i]->u.migration;

        if (wire_phase_is(m->phase, phase)) {
            ferry_prom_sample(out, name,
                              FERRY_LABELS({"vmi", m->vmi_name}, {"vmim", m->meta.name},
                                           {"namespace", m->meta.namespace_}),
                              1);
        }
    }
}

static void write_waiting(const struct control_metrics_view *v, struct ferry_buf *out)
{
    size_t count[REASON_COUNT] = {0};

    for (size_t i = 0; i < v->n_migrations; i++) {
        const struct api_migration *m = &v->migrations[i]->u.migration;
        const char *text = api_map_get(&m->meta.annotations, ANNOTATION_QUEUE);
        wire_cleanup_queue struct wire_queue q = {0};

        if (!wire_migration_is_over(m) && wire_queue_read(text, &q)) {
            count[q.reason]++;
        }
    }
    begin(out, "ferry_migrations_waiting", "Migrations that wait, by why.");
    /* Of the closed set alone: what anybody may have written is not passed on. */
    for (int r = REASON_NONE; r < REASON_COUNT; r++) {
        if (wire_reason_is_wait((enum wire_reason)r)) {
            ferry_prom_sample(out, "ferry_migrations_waiting",
                              FERRY_LABELS({"reason", wire_reason_text((enum wire_reason)r)}),
                              (double)count[r]);
        }
    }
}

static int by_uid(const void *a, const void *b)
{
    const struct api_object *x = *(const struct api_object *const *)a;
    const struct api_object *y = *(const struct api_object *const *)b;

    return strcmp(x->meta->uid, y->meta->uid);
}

/* The migration that a VMI's state is about; KubeVirt's series carry its name. `sorted` by UID. */
static const char *name_of_move(const struct api_object *const *sorted, size_t n, const char *uid)
{
    const struct api_object probe = {.meta = &(struct api_meta){.uid = uid}}, *p = &probe;
    const struct api_object *const *found =
        uid ? bsearch(&p, sorted, n, sizeof(*sorted), by_uid) : NULL;

    return found ? (*found)->meta->name : "";
}

static void write_times(const struct control_metrics_view *v,
                        const struct api_object *const *sorted, bool end, struct ferry_buf *out)
{
    const char *name = end ? "kubevirt_vmi_migration_end_time_seconds"
                           : "kubevirt_vmi_migration_start_time_seconds";

    begin(out, name, end ? "When the last move ended." : "When the last move began.");
    for (size_t i = 0; i < v->n_vmis; i++) {
        const struct api_vmi *vmi = &v->vmis[i]->u.vmi;
        const struct api_migration_state *s = &vmi->migration;
        int64_t at_ms = end ? s->end_ms : s->start_ms;

        if (!s->present || !at_ms) {
            continue;
        }
        ferry_prom_time(
            out, name,
            FERRY_LABELS({"node", s->source_node}, {"namespace", vmi->meta.namespace_},
                         {"name", vmi->meta.name},
                         {"migration_name", name_of_move(sorted, v->n_migrations, s->uid)},
                         {end ? "status" : NULL, s->failed ? "failed" : "succeeded"}),
            at_ms);
    }
}

static void write_evictable(const struct control_metrics_view *v, struct ferry_buf *out)
{
    begin(out, "kubevirt_vmi_non_evictable",
          "1 for a VM that is to be moved when its node is emptied, and cannot be.");
    for (size_t i = 0; i < v->n_vmis; i++) {
        const struct api_vmi *vmi = &v->vmis[i]->u.vmi;
        const char *strategy = api_eviction_strategy(vmi->eviction_strategy, v->cluster_strategy);
        bool stuck = ferry_streq(strategy, "LiveMigrate") &&
                     !api_condition_true(&vmi->conditions, CONDITION_LIVE_MIGRATABLE);

        if (vmi_has_phase(vmi, PHASE_RUNNING)) {
            ferry_prom_sample(out, "kubevirt_vmi_non_evictable",
                              FERRY_LABELS({"node", vmi->node_name},
                                           {"namespace", vmi->meta.namespace_},
                                           {"name", vmi->meta.name}),
                              stuck);
        }
    }
}

/* Since when a VM is called Migrating: from the start of its move. */
static void write_migrating(const struct control_metrics_view *v, struct ferry_buf *out)
{
    static const char name[] = "kubevirt_vm_migrating_status_last_transition_timestamp_seconds";

    begin(out, name, "When the VM began to be moved, while it is.");
    for (size_t i = 0; i < v->n_vms; i++) {
        const struct api_vm *vm = &v->vms[i]->u.vm;

        for (size_t k = 0; ferry_streq(vm->printable_status, "Migrating") && k < v->n_vmis; k++) {
            const struct api_vmi *vmi = &v->vmis[k]->u.vmi;

            if (ferry_streq(vmi->meta.name, vm->meta.name) &&
                ferry_streq(vmi->meta.namespace_, vm->meta.namespace_) && vmi->migration.start_ms) {
                ferry_prom_time(
                    out, name,
                    FERRY_LABELS({"name", vm->meta.name}, {"namespace", vm->meta.namespace_}),
                    vmi->migration.start_ms);
            }
        }
    }
}

void control_metrics_write(struct control_metrics *m, const struct control_metrics_view *view,
                           struct ferry_buf *out)
{
    ferry_cleanup_free const struct api_object **sorted =
        ferry_xcalloc(view->n_migrations + 1, sizeof(*sorted));

    for (size_t i = 0; i < view->n_migrations; i++) {
        sorted[i] = view->migrations[i];
    }
    qsort(sorted, view->n_migrations, sizeof(*sorted), by_uid);
    write_phases(view, out);
    write_ends(view, PHASE_SUCCEEDED, "kubevirt_vmi_migration_succeeded", out);
    write_ends(view, PHASE_FAILED, "kubevirt_vmi_migration_failed", out);
    write_histogram(m, out);
    write_times(view, sorted, false, out);
    write_times(view, sorted, true, out);
    write_evictable(view, out);
    begin(out, "kubevirt_vmi_number_of_outdated", "VMs whose launcher is of an older image.");
    ferry_buf_printf(out, "kubevirt_vmi_number_of_outdated %zu\n", view->outdated);
    write_waiting(view, out);
    write_migrating(view, out);
    queue_metrics_write(view->queues, view->n_queues, out);
}
