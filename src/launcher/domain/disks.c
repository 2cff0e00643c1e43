#include "launcher/domain/disks.h"

#include <ctype.h>
#include <inttypes.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <string.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "base/str.h"
#include "launcher/domain/xml_read.h"

static yyjson_val *at(const yyjson_val *v, const char *pointer)
{
    return yyjson_ptr_get((yyjson_val *)(uintptr_t)v, pointer);
}

/* KubeVirt's volume names are DNS labels; they become parts of paths. */
static bool is_name(const char *s)
{
    size_t n = s ? strlen(s) : 0;

    for (size_t i = 0; i < n; i++) {
        if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && s[i] != '-') {
            return false;
        }
    }
    return n > 0 && n < DISKS_NAME_SIZE;
}

static bool listed(const char *names, const char *name)
{
    size_t len = strlen(name);

    for (const char *p = names; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        if (strncmp(p, name, len) == 0 && (p[len] == ',' || p[len] == '\0')) {
            return true;
        }
    }
    return false;
}

static yyjson_val *find_volume(const yyjson_val *spec, const char *name)
{
    yyjson_val *item;
    yyjson_arr_iter it = yyjson_arr_iter_with(at(spec, "/volumes"));

    while ((item = yyjson_arr_iter_next(&it))) {
        if (ferry_streq(yyjson_get_str(yyjson_obj_get(item, "name")), name)) {
            return item;
        }
    }
    return NULL;
}

static bool is_migrated_volume(const yyjson_val *status, const char *name)
{
    yyjson_val *item;
    yyjson_arr_iter it = yyjson_arr_iter_with(at(status, "/migratedVolumes"));

    while ((item = yyjson_arr_iter_next(&it))) {
        if (ferry_streq(yyjson_get_str(yyjson_obj_get(item, "volumeName")), name)) {
            return true;
        }
    }
    return false;
}

static int fail_disk(struct ferry_error *err, const char *name, const char *why)
{
    return ferry_fail(err, FERRY_INVALID, "spec.domain.devices.disks[%s]: %s", name, why);
}

/* Index of `word` in `words`, -1 when it is not there; 0 when it is NULL. */
static int choose(const char *word, const char *const *words, int n)
{
    for (int i = 0; word && i < n; i++) {
        if (ferry_streq(word, words[i])) {
            return i;
        }
    }
    return word ? -1 : 0;
}

/* A volume that is exchanged for another may have another mode there, if both are known. */
static void decode_modes(const struct api_vmi *vmi, bool claim, struct disk *d)
{
    const char *here = NULL, *there = NULL;

    for (size_t i = 0; claim && i < vmi->n_volumes; i++) {
        if (ferry_streq(vmi->volumes[i].name, d->name)) {
            here = there = vmi->volumes[i].claim.volume_mode;
            break;
        }
    }
    for (size_t i = 0; i < vmi->n_migrated_volumes; i++) {
        const struct api_migrated_volume *m = &vmi->migrated_volumes[i];

        if (ferry_streq(m->volume, d->name)) {
            here = m->source.volume_mode;
            there = here && m->destination.volume_mode ? m->destination.volume_mode : here;
            break;
        }
    }
    d->block = ferry_streq(here, "Block");
    d->block_there = ferry_streq(there, "Block");
}

static int decode_volume(const struct api_vmi *vmi, struct disk *d, struct ferry_error *err)
{
    yyjson_val *volume = find_volume(vmi->spec, d->name);
    bool host = yyjson_obj_get(volume, "hostDisk") != NULL;
    bool claim =
        yyjson_obj_get(volume, "persistentVolumeClaim") || yyjson_obj_get(volume, "dataVolume");
    bool migrated = is_migrated_volume(vmi->status, d->name);

    if (!volume) {
        return fail_disk(err, d->name, "there is no volume of that name");
    }
    if (yyjson_obj_get(volume, "cloudInitNoCloud")) {
        d->seed = d->readonly = true;
        d->format = "raw";
        return 0;
    }
    if (!host && !claim && !yyjson_obj_get(volume, "emptyDisk")) {
        return ferry_fail(
            err, FERRY_INVALID,
            "spec.volumes[%s]: must be a hostDisk, persistentVolumeClaim, dataVolume, "
            "emptyDisk or cloudInitNoCloud; others are not supported yet",
            d->name);
    }
    bool shared = claim || (host && yyjson_is_true(at(volume, "/hostDisk/shared")));
    decode_modes(vmi, claim, d);
    d->copied = !d->cdrom && (migrated || (!shared && !d->readonly));
    /* How much of a device such an image fills is not known before it is full. */
    if (d->block != d->block_there && ferry_streq(d->format, "qcow2")) {
        return fail_disk(err, d->name,
                         "a qcow2 image cannot go from a file system to a block device or back; a "
                         "raw one can");
    }
    return 0;
}

static int decode_disk(const struct api_vmi *vmi, yyjson_val *json, int used[2], struct disk *ret,
                       struct ferry_error *err)
{
    static const char *const buses[] = {"virtio", "sata"}, *const prefixes[] = {"vd", "sd"};
    static const char *const caches[] = {"none", "writethrough", "writeback"};
    const char *name = yyjson_get_str(yyjson_obj_get(json, "name"));
    static const char *const ios[] = {"", "native", "threads"};
    bool cdrom = yyjson_obj_get(json, "cdrom") != NULL;
    const char *bus_name = api_json_str(json, cdrom ? "/cdrom/bus" : "/disk/bus");
    int bus = choose(bus_name ? bus_name : cdrom ? "sata" : "virtio", buses, 2);
    int cache = choose(api_json_str(json, "/cache"), caches, 3);
    int io = choose(api_json_str(json, "/io"), ios, 3);

    if (!is_name(name)) {
        return ferry_fail(err, FERRY_INVALID,
                          "spec.domain.devices.disks: each needs a name of lower-case letters, "
                          "digits and dashes");
    }
    if (yyjson_obj_get(json, "lun")) {
        return fail_disk(err, name, "only disks and CD-ROMs are supported yet");
    }
    if (bus < 0 || cache < 0 || io < 0 || (cdrom && bus == 0)) {
        return fail_disk(err, name,
                         cdrom && bus == 0 ? "bus: a CD-ROM must be on sata"
                         : bus < 0         ? "bus: must be virtio or sata"
                         : io < 0          ? "io: must be native or threads"
                                           : "cache: must be none, writethrough or writeback");
    }
    if (io == 1 && cache != 0) {
        return fail_disk(err, name, "io: native needs cache none");
    }
    *ret = (struct disk){
        .bus = buses[bus],
        .cache = caches[cache],
        .io = io > 0 ? ios[io] : NULL,
        .cdrom = cdrom,
        .format =
            listed(api_map_get(&vmi->meta.annotations, ANNOTATION_QCOW2), name) ? "qcow2" : "raw",
        .boot_order = api_json_int(json, "/bootOrder", 0),
        .readonly = cdrom || yyjson_is_true(at(json, "/disk/readonly"))};
    snprintf(ret->name, sizeof(ret->name), "%s", name);
    snprintf(ret->dev, sizeof(ret->dev), "%s%c", prefixes[bus], 'a' + used[bus]++);
    return decode_volume(vmi, ret, err);
}

int disks_decode(const struct api_vmi *vmi, struct disks *ret, struct ferry_error *err)
{
    yyjson_val *list = at(vmi->spec, "/domain/devices/disks"), *item;
    yyjson_arr_iter it = yyjson_arr_iter_with(list);
    int used[2] = {0};

    *ret = (struct disks){0};
    if (yyjson_arr_size(list) > DISKS_MAX) {
        return ferry_fail(err, FERRY_INVALID, "spec.domain.devices.disks: at most %d", DISKS_MAX);
    }
    while ((item = yyjson_arr_iter_next(&it))) {
        struct disk d;

        if (decode_disk(vmi, item, used, &d, err) < 0) {
            return -FERRY_INVALID;
        }
        for (size_t i = 0; i < ret->n; i++) {
            if (ferry_streq(ret->list[i].name, d.name)) {
                return fail_disk(err, d.name, "is there twice");
            }
        }
        ret->list[ret->n++] = d;
    }
    return 0;
}

char *disks_path(const char *dir, const struct disk *d)
{
    return d->block ? ferry_asprintf("%s/%s", dir, d->name) : disks_image_path(dir, d->name);
}

char *disks_image_path(const char *dir, const char *name)
{
    return ferry_asprintf("%s/%s/disk.img", dir, name);
}

int disks_check_arrival(const struct disks *disks, struct ferry_error *err)
{
    for (size_t i = 0; i < disks->n; i++) {
        const struct disk *d = &disks->list[i];

        if (d->block != d->block_there) {
            return ferry_fail(err, FERRY_INVALID,
                              "spec.volumes[%s]: its destination is a %s, and this pod has %s",
                              d->name, d->block_there ? "block device" : "file system",
                              d->block_there ? "none" : "a block device");
        }
    }
    return 0;
}

const struct disks_size *disks_size_of(const struct disks_sizes *sizes, const char *name)
{
    for (size_t i = 0; i < sizes->n; i++) {
        if (ferry_streq(sizes->list[i].name, name)) {
            return &sizes->list[i];
        }
    }
    return NULL;
}

/* ---- the domain at the destination -------------------------------------------------------------
 */

static void set_source(xmlNodePtr disk, const struct disk *d, const char *dir)
{
    xmlNodePtr source = xml_read_child(disk, "source");
    struct disk there = *d;

    there.block = d->block_there;
    ferry_cleanup_free char *path = disks_path(dir, &there);
    if (!source) {
        return;
    }
    xmlSetProp(disk, BAD_CAST "type", BAD_CAST(there.block ? "block" : "file"));
    xmlUnsetProp(source, BAD_CAST(there.block ? "file" : "dev"));
    xmlSetProp(source, BAD_CAST(there.block ? "dev" : "file"), BAD_CAST path);
}

static void add_slice(xmlNodePtr disk, int64_t bytes)
{
    xmlNodePtr source = xml_read_child(disk, "source");
    char text[24];

    if (!source || xml_read_child(source, "slices")) {
        return;
    }
    snprintf(text, sizeof(text), "%" PRId64, bytes);
    xmlNodePtr slice = xmlNewChild(xmlNewChild(source, NULL, BAD_CAST "slices", NULL), NULL,
                                   BAD_CAST "slice", NULL);
    xmlNewProp(slice, BAD_CAST "type", BAD_CAST "storage");
    xmlNewProp(slice, BAD_CAST "offset", BAD_CAST "0");
    xmlNewProp(slice, BAD_CAST "size", BAD_CAST text);
}

int disks_edit_xml(const char *xml, const char *dir, const struct disks_edit *edits, size_t n,
                   char **ret, struct ferry_error *err)
{
    xml_cleanup_doc xmlDocPtr doc = xml_read(xml);
    xmlNodePtr devices = doc ? xml_read_child(xmlDocGetRootElement(doc), "devices") : NULL;
    xmlChar *text = NULL;

    if (!devices) {
        return ferry_fail(err, FERRY_FATAL, "libvirt's domain XML cannot be read");
    }
    for (xmlNodePtr d = devices->children; d; d = d->next) {
        xmlNodePtr target =
            ferry_streq((const char *)d->name, "disk") ? xml_read_child(d, "target") : NULL;
        xmlChar *dev = target ? xmlGetProp(target, BAD_CAST "dev") : NULL;

        for (size_t i = 0; dev && i < n; i++) {
            const struct disk *disk = edits[i].disk;

            if (!ferry_streq((const char *)dev, disk->dev)) {
                continue;
            }
            if (disk->block != disk->block_there) {
                set_source(d, disk, dir);
            }
            if (edits[i].slice_bytes) {
                add_slice(d, edits[i].slice_bytes);
            }
        }
        xmlFree(dev);
    }
    xmlDocDumpMemory(doc, &text, NULL);
    *ret = ferry_strdup((const char *)text);
    xmlFree(text);
    return 0;
}
