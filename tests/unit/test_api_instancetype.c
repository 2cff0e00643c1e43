/* What instance types and preferences make of a machine: KubeVirt's rules, a row for each. */
#include "lib/objects.h"

#include <string.h>

#include "api/instancetype/instancetype.h"
#include "api/instancetype/matcher.h"
#include "api/json.h"
#include "base/count.h"

static yyjson_doc *read(const char *text)
{
    ferry_cleanup_free char *json = unquote(text);
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);

    if (!doc) {
        fail_msg("not JSON: %s", json);
    }
    return doc;
}

/* ---- applied -----------------------------------------------------------------------------------
 */

#define TYPE(more) "{'cpu':{'guest':4},'memory':{'guest':'1Gi'}" more "}"
#define SOCKETS(s, c, t) "'cpu':{'sockets':" s ",'cores':" c ",'threads':" t "}"
#define SIZED SOCKETS("4", "1", "1") ",'memory':{'guest':'1Gi'}"
#define DEVICES(d) "{'domain':{'devices':{" d "}}}"
#define PREFER(d) "{'devices':{" d "}}"

static void applied(void **state)
{
    static const struct {
        const char *spec, *type, *preference, *wanted;
    } cases[] = {
        {"{}", NULL, NULL, "{}"},
        {"{'domain':{}}", TYPE(""), NULL, "{'domain':{" SIZED "}}"},
        {"{'domain':{'cpu':null,'memory':{'guest':null}}}", TYPE(""), NULL,
         "{'domain':{" SIZED "}}"},
        {"{'domain':{'cpu':{'sockets':0,'model':''}}}", TYPE(""), NULL,
         "{'domain':{'cpu':{'sockets':4,'model':'','cores':1,'threads':1},'memory':{'guest':'1Gi'}}"
         "}"},
        {"{}", TYPE(",'nodeSelector':{'a':'b'},'schedulerName':'s'"), NULL,
         "{'nodeSelector':{'a':'b'},'schedulerName':'s','domain':{" SIZED "}}"},
        {"{}",
         "{'cpu':{'guest':1,'model':'m','dedicatedCPUPlacement':true,'isolateEmulatorThread':true,"
         "'numa':{'guestMappingPassthrough':{}},'realtime':{},'maxSockets':8},'memory':{'guest':"
         "'1Gi','hugepages':{'pageSize':'2Mi'},'maxGuest':'4Gi'}}",
         NULL,
         "{'domain':{'cpu':{'model':'m','dedicatedCPUPlacement':true,'isolateEmulatorThread':true,"
         "'numa':{'guestMappingPassthrough':{}},'realtime':{},'maxSockets':8,'sockets':1,'cores':1,"
         "'threads':1},'memory':{'guest':'1Gi','hugepages':{'pageSize':'2Mi'},'maxGuest':'4Gi'}}}"},
        {"{}", "{'cpu':{'guest':1},'memory':{'guest':'1Gi','overcommitPercent':50}}", NULL,
         "{'domain':{" SOCKETS("1", "1", "1") ",'memory':{'guest':'1Gi'},'resources':{'requests':{"
                                              "'memory':'512Mi'}}}}"},
        {"{}", "{'cpu':{'guest':1},'memory':{'guest':'1001','overcommitPercent':10}}", NULL,
         "{'domain':{" SOCKETS("1", "1", "1") ",'memory':{'guest':'1001'},'resources':{'requests':{"
                                              "'memory':'900'}}}}"},
        {"{}",
         TYPE(",'ioThreads':{'supplementalPoolThreadCount':3},'ioThreadsPolicy':"
              "'supplementalPool','launchSecurity':{'sev':{}},'gpus':[{'name':'g'}],'hostDevices':"
              "[{'name':'h'}]"),
         NULL,
         "{'domain':{" SIZED ",'ioThreads':{'supplementalPoolThreadCount':3},'ioThreadsPolicy':"
         "'supplementalPool','launchSecurity':{'sev':{}},'devices':{'gpus':[{'name':'g'}],"
         "'hostDevices':[{'name':'h'}]}}}"},
        {"{'domain':{'devices':{'gpus':[{'name':'mine'}]}}}", TYPE(",'gpus':[]"), NULL,
         "{'domain':{'devices':{'gpus':[{'name':'mine'}]}," SIZED "}}"},
        /* vCPUs, as is preferred */
        {"{}", TYPE(""), "{'cpu':{'preferredCPUTopology':'cores'}}",
         "{'domain':{" SOCKETS("1", "4", "1") ",'memory':{'guest':'1Gi'}}}"},
        {"{}", TYPE(""), "{'cpu':{'preferredCPUTopology':'preferThreads'}}",
         "{'domain':{" SOCKETS("1", "1", "4") ",'memory':{'guest':'1Gi'}}}"},
        {"{}", TYPE(""), "{'cpu':{'preferredCPUTopology':'any'}}", "{'domain':{" SIZED "}}"},
        {"{}", TYPE(""), "{'cpu':{'preferredCPUTopology':'spread'}}",
         "{'domain':{" SOCKETS("2", "2", "1") ",'memory':{'guest':'1Gi'}}}"},
        {"{}", TYPE(""),
         "{'cpu':{'preferredCPUTopology':'preferSpread'},'preferSpreadSocketToCoreRatio':4}",
         "{'domain':{" SOCKETS("1", "4", "1") ",'memory':{'guest':'1Gi'}}}"},
        {"{}", TYPE(""),
         "{'cpu':{'preferredCPUTopology':'spread','spreadOptions':{'across':'CoresThreads'}}}",
         "{'domain':{" SOCKETS("1", "2", "2") ",'memory':{'guest':'1Gi'}}}"},
        {"{}", TYPE(""),
         "{'cpu':{'preferredCPUTopology':'spread','spreadOptions':{'across':'SocketsCoresThreads',"
         "'ratio':1}}}",
         "{'domain':{" SOCKETS("2", "1", "2") ",'memory':{'guest':'1Gi'}}}"},
        /* preferences fill in */
        {"{}", NULL,
         "{'clock':{'preferredClockOffset':{'utc':{}},'preferredTimer':{'hpet':{'present':false}}},"
         "'preferredSubdomain':'sub','preferredTerminationGracePeriodSeconds':0,"
         "'preferredArchitecture':'arm64','machine':{'preferredMachineType':'q35'}}",
         "{'domain':{'clock':{'utc':{},'timer':{'hpet':{'present':false}}},'machine':{'type':'q35'}"
         "},'subdomain':'sub','terminationGracePeriodSeconds':0,'architecture':'arm64'}"},
        {"{'subdomain':'mine','terminationGracePeriodSeconds':0,'architecture':'amd64','domain':{"
         "'machine':{'type':'pc'},'clock':{'timezone':'Z','timer':{}}}}",
         NULL,
         "{'clock':{'preferredClockOffset':{'utc':{}},'preferredTimer':{'kvm':{}}},"
         "'preferredSubdomain':'sub','preferredTerminationGracePeriodSeconds':9,"
         "'preferredArchitecture':'arm64','machine':{'preferredMachineType':'q35'}}",
         "{'subdomain':'mine','terminationGracePeriodSeconds':0,'architecture':'amd64','domain':{"
         "'machine':{'type':'pc'},'clock':{'timezone':'Z','timer':{}}}}"},
        {DEVICES("'autoattachMemBalloon':false"), NULL,
         PREFER("'preferredAutoattachMemBalloon':true,'preferredAutoattachGraphicsDevice':false,"
                "'preferredRng':{},'preferredTPM':{},'preferredUseVirtioTransitional':true,"
                "'preferredBlockMultiQueue':true,'preferredNetworkInterfaceMultiQueue':true,"
                "'preferredDisableHotplug':true,'preferredAutoattachPodInterface':false,"
                "'preferredAutoattachSerialConsole':true,'preferredAutoattachInputDevice':true"),
         DEVICES("'autoattachMemBalloon':false,'autoattachGraphicsDevice':false,'rng':{},'tpm':{},"
                 "'useVirtioTransitional':true,'blockMultiQueue':true,"
                 "'networkInterfaceMultiqueue':true,'disableHotplug':true,"
                 "'autoattachPodInterface':false,'autoattachSerialConsole':true,"
                 "'autoattachInputDevice':true")},
        {DEVICES("'disableHotplug':false,'rng':{'x':1}"), NULL,
         PREFER("'preferredDisableHotplug':true,'preferredRng':{}"),
         DEVICES("'disableHotplug':false,'rng':{'x':1}")},
        {DEVICES("'disks':[{'name':'a'},{'name':'b','disk':{'bus':'sata'},'cache':'none'},{'name':"
                 "'c','cdrom':{}},{'name':'d','lun':{}}]"),
         NULL,
         PREFER(
             "'preferredDiskBus':'virtio','preferredCdromBus':'sata','preferredLunBus':'scsi',"
             "'preferredDiskCache':'writethrough','preferredDiskIO':'native',"
             "'preferredDiskDedicatedIoThread':true,'preferredDiskBlockSize':{'matchVolume':{}}"),
         DEVICES("'disks':[{'name':'a','disk':{'bus':'virtio'},'blockSize':{'matchVolume':{}},"
                 "'cache':'writethrough','io':'native','dedicatedIOThread':true},{'name':'b','disk'"
                 ":{'bus':'sata'},'cache':'none','blockSize':{'matchVolume':{}},'io':'native'},{"
                 "'name':'c','cdrom':{'bus':'sata'}},{'name':'d','lun':{'bus':'scsi'}}]")},
        {"{'volumes':[{'name':'a'},{'name':'f'}],'domain':{'devices':{'filesystems':[{'name':'f'}]}"
         "}}",
         NULL, PREFER("'preferredDiskBus':'sata'"),
         "{'volumes':[{'name':'a'},{'name':'f'}],'domain':{'devices':{'filesystems':[{'name':'f'}],"
         "'disks':[{'name':'a','disk':{'bus':'sata'}}]}}}"},
        {"{'volumes':[{'name':'a'}]}", NULL, PREFER("'preferredRng':{}"),
         "{'volumes':[{'name':'a'}],'domain':{'devices':{'rng':{}}}}"},
        {"{'networks':[{'name':'p','pod':{}},{'name':'m','multus':{}}],'domain':{'devices':{"
         "'interfaces':[{'name':'p'},{'name':'m'},{'name':'p','bridge':{},'model':'e1000'}]}}}",
         NULL, PREFER("'preferredInterfaceModel':'virtio','preferredInterfaceMasquerade':{}"),
         "{'networks':[{'name':'p','pod':{}},{'name':'m','multus':{}}],'domain':{'devices':{"
         "'interfaces':[{'name':'p','model':'virtio','masquerade':{}},{'name':'m','model':'virtio'}"
         ",{'name':'p','bridge':{},'model':'e1000'}]}}}"},
        {DEVICES("'inputs':[{'name':'i'},{'name':'k','bus':'usb','type':'keyboard'}],'panicDevices'"
                 ":[{},{'model':'isa'}],'sound':{'name':'s'},'gpus':[{'name':'g'}]"),
         NULL,
         PREFER("'preferredInputBus':'virtio','preferredInputType':'tablet','preferredSoundModel':"
                "'ich9','preferredPanicDeviceModel':'pvpanic','preferredVirtualGPUOptions':{"
                "'display':{}}"),
         DEVICES("'inputs':[{'name':'i','bus':'virtio','type':'tablet'},{'name':'k','bus':'usb',"
                 "'type':'keyboard'}],'panicDevices':[{'model':'pvpanic'},{'model':'isa'}],'sound':"
                 "{'name':'s','model':'ich9'},'gpus':[{'name':'g','virtualGPUOptions':{'display':{}"
                 "}}]")},
        {"{}", NULL, PREFER("'preferredSoundModel':'ich9','preferredInputBus':'usb'"), "{}"},
        {"{'domain':{'features':{'acpi':{'enabled':false},'hyperv':{'relaxed':{'enabled':false}}}}"
         "}",
         NULL,
         "{'features':{'preferredAcpi':{},'preferredApic':{},'preferredKvm':{'hidden':true},"
         "'preferredPvspinlock':{},'preferredSmm':{},'preferredHyperv':{'relaxed':{},'vapic':{},"
         "'spinlocks':{'spinlocks':8191},'vpindex':{},'runtime':{},'synic':{},'synictimer':{},"
         "'reset':{},'vendorid':{},'frequencies':{},'reenlightenment':{},'tlbflush':{},'ipi':{},"
         "'evmcs':{}}}}",
         "{'domain':{'features':{'acpi':{'enabled':false},'apic':{},'kvm':{'hidden':true},"
         "'pvspinlock':{},'smm':{},'hyperv':{'relaxed':{'enabled':false},'vapic':{},'spinlocks':{"
         "'spinlocks':8191},'vpindex':{},'runtime':{},'synic':{},'synictimer':{},'reset':{},"
         "'vendorid':{},'frequencies':{},'reenlightenment':{},'tlbflush':{},'ipi':{},'evmcs':{}}}}"
         "}"},
        {"{'domain':{'cpu':{'features':[{'name':'a','policy':'disable'}]}}}", NULL,
         "{'cpu':{'preferredCPUFeatures':[{'name':'a'},{'name':'b','policy':'require'}]}}",
         "{'domain':{'cpu':{'features':[{'name':'a','policy':'disable'},{'name':'b','policy':"
         "'require'}]}}}"},
        {"{}", NULL, "{'cpu':{'preferredCPUFeatures':[{'name':'b'}]}}",
         "{'domain':{'cpu':{'features':[{'name':'b'}]}}}"},
        /* firmware */
        {"{}", NULL,
         "{'firmware':{'preferredEfi':{'secureBoot':true},'preferredUseSecureBoot':false}}",
         "{'domain':{'firmware':{'bootloader':{'efi':{'secureBoot':true}}}}}"},
        {"{}", NULL, "{'firmware':{'preferredUseEfi':true,'preferredUseSecureBoot':false}}",
         "{'domain':{'firmware':{'bootloader':{'efi':{'secureBoot':false}}}}}"},
        {"{}", NULL,
         "{'firmware':{'preferredUseBios':true,'preferredUseBiosSerial':true,'preferredEfi':{}}}",
         "{'domain':{'firmware':{'bootloader':{'bios':{'useSerial':true}}}}}"},
        {"{}", NULL, "{'firmware':{'preferredUseBios':false,'preferredUseBiosSerial':true}}", "{}"},
        {"{'domain':{'firmware':{'uuid':'u','bootloader':{'bios':{}}}}}", NULL,
         "{'firmware':{'preferredEfi':{}}}",
         "{'domain':{'firmware':{'uuid':'u','bootloader':{'bios':{}}}}}"},
        {"{'domain':{'firmware':{'uuid':'u'}}}", NULL, "{'firmware':{'preferredEfi':{}}}",
         "{'domain':{'firmware':{'uuid':'u','bootloader':{'efi':{}}}}}"},
        {"{'domain':{'firmware':{'bootloader':{'efi':{}}}}}", NULL,
         "{'firmware':{'preferredUseSecureBoot':true}}",
         "{'domain':{'firmware':{'bootloader':{'efi':{'secureBoot':true}}}}}"},
    };

    (void)state;
    for (size_t i = 0; i < FERRY_COUNT(cases); i++) {
        api_cleanup_doc yyjson_doc *spec = read(cases[i].spec), *wanted = read(cases[i].wanted);
        api_cleanup_doc yyjson_doc *type = cases[i].type ? read(cases[i].type) : NULL;
        api_cleanup_doc yyjson_doc *pref = cases[i].preference ? read(cases[i].preference) : NULL;
        api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_copy(spec);
        ferry_cleanup_buf struct ferry_buf conflicts = {0};
        const struct instancetype_pair pair = {type ? yyjson_doc_get_root(type) : NULL,
                                               pref ? yyjson_doc_get_root(pref) : NULL};
        yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
        size_t n = instancetype_apply(doc, root, yyjson_mut_obj(doc), &pair, "spec", &conflicts);

        if (n > 0 ||
            !yyjson_mut_equals(root, yyjson_val_mut_copy(doc, yyjson_doc_get_root(wanted)))) {
            ferry_cleanup_free char *got = json_doc_mut_text(root, 0, NULL);

            fail_msg("case %zu: %s\n   not: %s\n conflicts %s", i, got, cases[i].wanted,
                     conflicts.data ? conflicts.data : "none");
        }
    }
}

static void annotations(void **state)
{
    api_cleanup_doc yyjson_doc *meta = read("{'annotations':{'mine':'1','same':'2'}}");
    api_cleanup_doc yyjson_doc *type =
        read("{'cpu':{'guest':1},'memory':{'guest':'1Gi'},'annotations':{'same':'2','a':'3'}}");
    api_cleanup_doc yyjson_doc *pref = read("{'annotations':{'mine':'other','a':'other','b':'4'}}");
    api_cleanup_doc yyjson_doc *wanted =
        read("{'annotations':{'mine':'1','same':'2','a':'3','b':'4'}}");
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_copy(meta);
    ferry_cleanup_buf struct ferry_buf conflicts = {0};
    const struct instancetype_pair pair = {yyjson_doc_get_root(type), yyjson_doc_get_root(pref)};

    (void)state;
    assert_int_equal(instancetype_apply(doc, yyjson_mut_obj(doc), yyjson_mut_doc_get_root(doc),
                                        &pair, "spec", &conflicts),
                     0);
    assert_true(yyjson_mut_equals(yyjson_mut_doc_get_root(doc),
                                  yyjson_val_mut_copy(doc, yyjson_doc_get_root(wanted))));
}

/* ---- refused -----------------------------------------------------------------------------------
 */

#define VM(spec) "{'spec':{'template':{'spec':" spec "}}}"
#define DOMAIN(d) VM("{'domain':{" d "}}")
#define T "spec.template.spec."
#define CONFLICT(path) T path ": VM field(s) " T path " conflicts with selected instance type"
#define REQUIRES "failure checking preference requirements: "

static void admitted(void **state)
{
    static const struct {
        const char *vm, *type, *preference, *refusal; /* NULL: it may be */
    } cases[] = {
        {DOMAIN(""), TYPE(""), NULL, NULL},
        {DOMAIN("'cpu':{'cores':2}"), NULL, NULL, NULL},
        {DOMAIN("'cpu':{'cores':2}"), TYPE(""), NULL, CONFLICT("domain.cpu.cores")},
        {DOMAIN("'cpu':{'sockets':2}"), TYPE(""), NULL, CONFLICT("domain.cpu.sockets")},
        {DOMAIN("'cpu':{'threads':2}"), TYPE(""), NULL, CONFLICT("domain.cpu.threads")},
        {DOMAIN("'cpu':{'model':'m'}"), TYPE(""), NULL, NULL},
        {DOMAIN("'cpu':{'model':'m'}"), "{'cpu':{'guest':1,'model':'n'},'memory':{'guest':'1Gi'}}",
         NULL, CONFLICT("domain.cpu.model")},
        {DOMAIN("'cpu':{'dedicatedCPUPlacement':true}"),
         "{'cpu':{'guest':1,'dedicatedCPUPlacement':false},'memory':{'guest':'1Gi'}}", NULL,
         CONFLICT("domain.cpu.dedicatedCPUPlacement")},
        {DOMAIN("'cpu':{'dedicatedCPUPlacement':false}"),
         "{'cpu':{'guest':1,'dedicatedCPUPlacement':true},'memory':{'guest':'1Gi'}}", NULL, NULL},
        {DOMAIN("'cpu':{'isolateEmulatorThread':true}"),
         "{'cpu':{'guest':1,'isolateEmulatorThread':true},'memory':{'guest':'1Gi'}}", NULL,
         CONFLICT("domain.cpu.isolateEmulatorThread")},
        {DOMAIN("'cpu':{'numa':{}}"), "{'cpu':{'guest':1,'numa':{}},'memory':{'guest':'1Gi'}}",
         NULL, CONFLICT("domain.cpu.numa")},
        {DOMAIN("'cpu':{'realtime':{}}"),
         "{'cpu':{'guest':1,'realtime':{}},'memory':{'guest':'1Gi'}}", NULL,
         CONFLICT("domain.cpu.realtime")},
        {DOMAIN("'cpu':{'maxSockets':4}"),
         "{'cpu':{'guest':1,'maxSockets':8},'memory':{'guest':'1Gi'}}", NULL,
         CONFLICT("domain.cpu.maxSockets")},
        {DOMAIN("'resources':{'requests':{'cpu':1}}"), TYPE(""), NULL,
         CONFLICT("domain.resources.requests.cpu")},
        {DOMAIN("'resources':{'limits':{'cpu':'100m'}}"), TYPE(""), NULL,
         CONFLICT("domain.resources.limits.cpu")},
        {DOMAIN("'memory':{'guest':'1Gi'}"), TYPE(""), NULL, CONFLICT("domain.memory.guest")},
        {DOMAIN("'memory':{'hugepages':{}}"),
         "{'cpu':{'guest':1},'memory':{'guest':'1Gi','hugepages':{}}}", NULL,
         CONFLICT("domain.memory.hugepages")},
        {DOMAIN("'memory':{'maxGuest':'2Gi'}"),
         "{'cpu':{'guest':1},'memory':{'guest':'1Gi','maxGuest':'2Gi'}}", NULL,
         CONFLICT("domain.memory.maxGuest")},
        {DOMAIN("'resources':{'requests':{'memory':'1Gi'}}"), TYPE(""), NULL,
         CONFLICT("domain.resources.requests.memory")},
        {DOMAIN("'resources':{'limits':{'memory':'1Gi'}}"), TYPE(""), NULL,
         CONFLICT("domain.resources.limits.memory")},
        {DOMAIN("'ioThreads':{'supplementalPoolThreadCount':1}"),
         TYPE(",'ioThreads':{'supplementalPoolThreadCount':2}"), NULL,
         CONFLICT("domain.ioThreads.supplementalPoolThreadCount")},
        {DOMAIN("'ioThreadsPolicy':'auto'"), TYPE(",'ioThreadsPolicy':'auto'"), NULL,
         CONFLICT("domain.ioThreadsPolicy")},
        {DOMAIN("'launchSecurity':{}"), TYPE(",'launchSecurity':{'sev':{}}"), NULL,
         CONFLICT("domain.launchSecurity")},
        {DOMAIN("'devices':{'gpus':[{'name':'g'}]}"), TYPE(",'gpus':[{'name':'h'}]"), NULL,
         CONFLICT("domain.devices.gpus")},
        {DOMAIN("'devices':{'hostDevices':[{'name':'g'}]}"), TYPE(",'hostDevices':[{'name':'h'}]"),
         NULL, CONFLICT("domain.devices.hostDevices")},
        {VM("{'nodeSelector':{}}"), TYPE(",'nodeSelector':{'a':'b'}"), NULL,
         CONFLICT("nodeSelector")},
        {VM("{'schedulerName':'a'}"), TYPE(",'schedulerName':'b'"), NULL,
         CONFLICT("schedulerName")},
        {"{'spec':{'template':{'metadata':{'annotations':{'k':'v'}},'spec':{}}}}",
         TYPE(",'annotations':{'k':'w'}"), NULL,
         "annotations.k: VM field(s) annotations.k conflicts with selected instance type"},
        {DOMAIN("'cpu':{'cores':2},'memory':{'guest':'1Gi'}"), TYPE(""), NULL,
         T "domain.cpu.cores: VM field(s) " T "domain.cpu.cores, " T
           "domain.memory.guest conflicts with selected instance type"},
        /* spread */
        {DOMAIN(""), "{'cpu':{'guest':3},'memory':{'guest':'1Gi'}}",
         "{'cpu':{'preferredCPUTopology':'spread'}}",
         "instancetype.spec.cpu.guest: 3 vCPUs provided by the instance type are not divisible by "
         "the Spec.PreferSpreadSocketToCoreRatio or Spec.CPU.PreferSpreadOptions.Ratio of 2 "
         "provided by the preference"},
        {DOMAIN(""), "{'cpu':{'guest':3},'memory':{'guest':'1Gi'}}",
         "{'cpu':{'preferredCPUTopology':'spread','spreadOptions':{'across':'CoresThreads'}}}",
         "instancetype.spec.cpu.guest: 3 vCPUs provided by the instance type are not divisible by "
         "the number of threads per core 2"},
        {DOMAIN(""), "{'cpu':{'guest':6},'memory':{'guest':'1Gi'}}",
         "{'cpu':{'preferredCPUTopology':'spread','spreadOptions':{'across':"
         "'SocketsCoresThreads'}}}",
         "instancetype.spec.cpu.guest: 6 vCPUs provided by the instance type are not divisible by "
         "the number of threads per core 2 and Spec.PreferSpreadSocketToCoreRatio or "
         "Spec.CPU.PreferSpreadOptions.Ratio of 2"},
        {DOMAIN(""), NULL, "{'cpu':{'preferredCPUTopology':'spread'}}", NULL},
        /* requirements */
        {DOMAIN(""), TYPE(""), "{'requirements':{'cpu':{'guest':4},'memory':{'guest':'1Gi'}}}",
         NULL},
        {DOMAIN(""), TYPE(""), "{'requirements':{'cpu':{'guest':5}}}",
         "spec.instancetype: " REQUIRES "insufficient CPU resources of 4 vCPU provided by instance "
         "type, preference requires 5 vCPU"},
        {DOMAIN(""), TYPE(""), "{'requirements':{'memory':{'guest':'2Gi'}}}",
         "spec.instancetype: " REQUIRES "insufficient Memory resources of 1Gi provided by instance "
         "type, preference requires 2Gi"},
        {DOMAIN("'memory':{'guest':'1Gi'}"), NULL, "{'requirements':{'memory':{'guest':'2Gi'}}}",
         "spec.template.spec.domain.memory: " REQUIRES "insufficient Memory resources of 1Gi "
         "provided by VirtualMachine, preference requires 2Gi"},
        {DOMAIN("'resources':{'requests':{'memory':'2Gi'}}"), NULL,
         "{'requirements':{'memory':{'guest':'2Gi'}}}", NULL},
        {DOMAIN("'cpu':{'sockets':2}"), NULL, "{'requirements':{'cpu':{'guest':2}}}", NULL},
        {DOMAIN("'cpu':{'cores':2}"), NULL, "{'requirements':{'cpu':{'guest':2}}}",
         T "domain.cpu.sockets: " REQUIRES "insufficient CPU resources of 0 vCPU provided by "
           "VirtualMachine, preference requires 2 vCPU provided as sockets"},
        {DOMAIN("'cpu':{'cores':2}"), NULL,
         "{'cpu':{'preferredCPUTopology':'cores'},'requirements':{'cpu':{'guest':2}}}", NULL},
        {DOMAIN("'cpu':{'cores':2,'sockets':2,'threads':1}"), NULL,
         "{'cpu':{'preferredCPUTopology':'any'},'requirements':{'cpu':{'guest':4}}}", NULL},
        {DOMAIN("'cpu':{'cores':2,'sockets':2,'threads':1}"), NULL,
         "{'cpu':{'preferredCPUTopology':'spread'},'requirements':{'cpu':{'guest':5}}}",
         T "domain.cpu.sockets, " T "domain.cpu.cores: " REQUIRES "insufficient CPU resources of 4 "
           "vCPU provided by VirtualMachine, preference requires 5 vCPU provided as SocketsCores"},
        {DOMAIN("'cpu':{'sockets':9223372036854775807,'cores':4294967295,'threads':-1}"), NULL,
         "{'cpu':{'preferredCPUTopology':'any'},'requirements':{'cpu':{'guest':1}}}",
         T "domain.cpu.cores, " T "domain.cpu.sockets, " T "domain.cpu.threads: " REQUIRES
           "insufficient CPU resources of 0 vCPU provided by VirtualMachine, preference requires 1 "
           "vCPU provided as cores, sockets and threads"},
        {DOMAIN("'resources':{'requests':{'cpu':'2'}}"), NULL,
         "{'requirements':{'cpu':{'guest':2}}}", NULL},
        {DOMAIN(""), NULL, "{'requirements':{'architecture':'amd64'}}", NULL},
        {DOMAIN(""), NULL, "{'requirements':{'architecture':'arm64'}}",
         "spec.template.spec.architecture: " REQUIRES "preference requires architecture arm64 but "
         "amd64 is being requested"},
        {DOMAIN(""), NULL,
         "{'preferredArchitecture':'amd64','requirements':{'architecture':'amd64'}}", NULL},
        /* what only programs write */
        {DOMAIN(""), TYPE(",'annotations':{'ferry.io/target-state':'x'}"), NULL,
         "spec.instancetype: annotations of Ferry's programs may not be set: "
         "ferry.io/target-state"},
        {DOMAIN(""), NULL, "{'annotations':{'kubevirt.io/evacuationMigration':'x'}}",
         "spec.preference: annotations of Ferry's programs may not be set: "
         "kubevirt.io/evacuationMigration"},
        {DOMAIN(""), NULL, "{'annotations':{'ferry.io/qcow2':'d'}}", NULL},
        /* data volumes */
        {"{'spec':{'dataVolumeTemplates':[{'spec':{'storage':{'storageClassName':'x'}}}]}}", NULL,
         "{'volumes':{'preferredStorageClassName':'fast'}}", NULL},
        {"{'spec':{'dataVolumeTemplates':[{'spec':{'storage':{}}}]}}", NULL,
         "{'volumes':{'preferredStorageClassName':'fast'}}",
         "spec.dataVolumeTemplates: the preference's storage class fast is not given to data "
         "volumes; name it in the template of each"},
    };

    (void)state;
    for (size_t i = 0; i < FERRY_COUNT(cases); i++) {
        api_cleanup_doc yyjson_doc *vm = read(cases[i].vm);
        api_cleanup_doc yyjson_doc *type = cases[i].type ? read(cases[i].type) : NULL;
        api_cleanup_doc yyjson_doc *pref = cases[i].preference ? read(cases[i].preference) : NULL;
        const struct instancetype_pair pair = {type ? yyjson_doc_get_root(type) : NULL,
                                               pref ? yyjson_doc_get_root(pref) : NULL};
        struct ferry_error err = {0};
        int rc = instancetype_admit(yyjson_doc_get_root(vm), &pair, &err);

        if (!cases[i].refusal ? rc != 0
                              : rc != -FERRY_INVALID || !ferry_streq(err.msg, cases[i].refusal)) {
            fail_msg("case %zu: %d %s\n not: %s", i, rc, err.msg,
                     cases[i].refusal ? cases[i].refusal : "taken");
        }
    }
}

static void objects(void **state)
{
    static const struct {
        const char *plural, *spec, *refusal;
    } cases[] = {
        {"virtualmachineinstancetypes", "{'memory':{'overcommitPercent':5}}", NULL},
        {"virtualmachineinstancetypes", "{'memory':{'overcommitPercent':0,'hugepages':{}}}", NULL},
        {"virtualmachineclusterinstancetypes", "{'memory':{'overcommitPercent':5,'hugepages':{}}}",
         "spec.memory: spec.memory.overcommitPercent and spec.memory.hugepages should not be "
         "requested together."},
        {"virtualmachineinstancetypes", "{'annotations':{'ferry.io/progress':'x'}}",
         "spec.annotations: annotations of Ferry's programs may not be set: ferry.io/progress"},
        {"virtualmachinepreferences",
         "{'cpu':{'preferredCPUTopology':'spread','spreadOptions':{'across':'CoresThreads',"
         "'ratio':2}}}",
         NULL},
        {"virtualmachinepreferences",
         "{'cpu':{'preferredCPUTopology':'cores','spreadOptions':{'across':'CoresThreads','ratio':"
         "3}}}",
         NULL},
        {"virtualmachineclusterpreferences",
         "{'cpu':{'preferredCPUTopology':'spread','spreadOptions':{'across':'CoresThreads',"
         "'ratio':3}}}",
         "spec: only a ratio of 2 (1 core 2 threads) is allowed when spreading vCPUs over cores "
         "and threads"},
    };

    (void)state;
    for (size_t i = 0; i < FERRY_COUNT(cases); i++) {
        ferry_cleanup_free char *text = ferry_asprintf("{'spec':%s}", cases[i].spec);
        api_cleanup_doc yyjson_doc *doc = read(text);
        struct ferry_error err = {0};
        int rc = instancetype_check(
            api_resource_find("instancetype.kubevirt.io", "v1beta1", cases[i].plural),
            yyjson_doc_get_root(doc), &err);

        assert_int_equal(rc, cases[i].refusal ? -FERRY_INVALID : 0);
        assert_string_equal(err.msg, cases[i].refusal ? cases[i].refusal : "");
    }
}

/* ---- what a VM names ---------------------------------------------------------------------------
 */

#define NAMED(m, status) "{'spec':{'instancetype':" m "},'status':" status "}"
#define HAS(kind, name)                                                                            \
    "{'instancetypeRef':{'name':'" name "','kind':'" kind                                          \
    "','controllerRevisionRef':{'name':'r1'}}}"

static void matchers(void **state)
{
    static const struct {
        const char *vm;
        bool names;
        const char *plural, *revision;
        bool asked, recorded;
    } cases[] = {
        {"{'spec':{}}", false, NULL, NULL, false, false},
        {NAMED("null", "{}"), false, NULL, NULL, false, false},
        {NAMED("{'name':'a'}", "{}"), true, "virtualmachineclusterinstancetypes", NULL, false,
         false},
        {NAMED("{'name':'a','kind':'VirtualMachineInstancetype'}", "{}"), true,
         "virtualmachineinstancetypes", NULL, false, false},
        {NAMED("{'name':'a','kind':'virtualmachineinstancetypes'}", "{}"), true,
         "virtualmachineinstancetypes", NULL, false, false},
        {NAMED("{'name':'a','kind':'VirtualMachinePreference'}", "{}"), true, NULL, NULL, false,
         false},
        {NAMED("{'name':'a'}", HAS("VirtualMachineClusterInstancetype", "a")), true,
         "virtualmachineclusterinstancetypes", "r1", false, true},
        {NAMED("{'name':'b'}", HAS("VirtualMachineClusterInstancetype", "a")), true,
         "virtualmachineclusterinstancetypes", NULL, false, false},
        {NAMED("{'name':'a'}", HAS("VirtualMachineInstancetype", "a")), true,
         "virtualmachineclusterinstancetypes", NULL, false, false},
        {NAMED("{'name':'a','revisionName':'r2'}", HAS("VirtualMachineClusterInstancetype", "a")),
         true, "virtualmachineclusterinstancetypes", "r2", true, false},
        {NAMED("{'name':'a','revisionName':'r1'}", HAS("VirtualMachineClusterInstancetype", "a")),
         true, "virtualmachineclusterinstancetypes", "r1", true, true},
    };

    (void)state;
    for (size_t i = 0; i < FERRY_COUNT(cases); i++) {
        api_cleanup_doc yyjson_doc *vm = read(cases[i].vm);
        struct matcher m;
        bool names = matcher_read(yyjson_doc_get_root(vm), MATCHER_INSTANCETYPE, &m);

        if (names != cases[i].names ||
            !ferry_streq(m.resource ? m.resource->plural : NULL, cases[i].plural) ||
            !ferry_streq(m.revision, cases[i].revision) || m.asked != cases[i].asked ||
            m.recorded != cases[i].recorded) {
            fail_msg("case %zu: %s: %d %s %s %d %d", i, cases[i].vm, names,
                     m.resource ? m.resource->plural : "-", m.revision ? m.revision : "-", m.asked,
                     m.recorded);
        }
    }
}

static void matchers_checked(void **state)
{
    static const struct {
        const char *spec, *old, *refusal;
    } cases[] = {
        {"{}", NULL, ""},
        {"{'instancetype':{'name':'a'},'preference':{'name':'b'}}", NULL, ""},
        {"{'instancetype':{}}", NULL,
         "spec.instancetype: Either Name or InferFromVolume should be provided within the "
         "InstancetypeMatcher"},
        {"{'preference':{'kind':'VirtualMachinePreference'}}", NULL,
         "spec.preference: Either Name or InferFromVolume should be provided within the "
         "PreferenceMatcher"},
        {"{'instancetype':{'name':'a','kind':'Pod'}}", NULL,
         "spec.instancetype.kind: got unexpected kind in InstancetypeMatcher: Pod"},
        {"{'instancetype':{'inferFromVolume':'v'}}", NULL, ""}, /* the table of fields has it */
        {"{'instancetype':{'name':'b','revisionName':'r'}}",
         "{'instancetype':{'name':'a','revisionName':'r'}}",
         "spec.instancetype.revisionName: the Matcher Name has been updated without updating the "
         "RevisionName"},
        {"{'instancetype':{'name':'b','revisionName':'s'}}",
         "{'instancetype':{'name':'a','revisionName':'r'}}", ""},
        {"{}", "{'instancetype':{'name':'a','revisionName':'r'}}", ""},
    };

    (void)state;
    for (size_t i = 0; i < FERRY_COUNT(cases); i++) {
        ferry_cleanup_free char *text = ferry_asprintf("{'spec':%s}", cases[i].spec);
        ferry_cleanup_free char *before =
            ferry_asprintf("{'spec':%s}", cases[i].old ? cases[i].old : "{}");
        api_cleanup_doc yyjson_doc *vm = read(text), *old = read(before);
        struct ferry_error err = {0};

        (void)matcher_check(yyjson_doc_get_root(vm), cases[i].old ? yyjson_doc_get_root(old) : NULL,
                            &err);
        assert_string_equal(err.msg, cases[i].refusal);
    }
}

static void revisions(void **state)
{
    api_cleanup_doc yyjson_doc *vm = read(
        "{'metadata':{'name':'web','namespace':'ns','uid':'vm-1'},'spec':{'preference':{'name':'p'}"
        "}}");
    api_cleanup_doc yyjson_doc *object =
        read("{'metadata':{'name':'p','uid':'u','generation':3,'labels':{'a':'b'},'annotations':{"
             "'c':'d'}},'spec':{'preferredSubdomain':'s'}}");
    api_cleanup_doc yyjson_doc *wanted = read(
        "{'apiVersion':'apps/v1','kind':'ControllerRevision','metadata':{'name':"
        "'web-p-v1beta1-u-3','namespace':'ns','labels':{'instancetype.kubevirt.io/"
        "object-generation':'3','instancetype.kubevirt.io/object-kind':"
        "'VirtualMachineClusterPreference','instancetype.kubevirt.io/object-name':'p',"
        "'instancetype.kubevirt.io/object-uid':'u','instancetype.kubevirt.io/object-version':"
        "'v1beta1'},'ownerReferences':[{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachine',"
        "'name':'web','uid':'vm-1','controller':true,'blockOwnerDeletion':true}]},'data':{"
        "'apiVersion':'instancetype.kubevirt.io/v1beta1','kind':'VirtualMachineClusterPreference',"
        "'metadata':{'name':'p','uid':'u','generation':3},'spec':{'preferredSubdomain':'s'}},"
        "'revision':0}");
    struct matcher m, type = {.of = MATCHER_INSTANCETYPE};

    (void)state;
    assert_true(matcher_read(yyjson_doc_get_root(vm), MATCHER_PREFERENCE, &m));
    ferry_cleanup_free char *text =
        matcher_revision(yyjson_doc_get_root(vm), &m, yyjson_doc_get_root(object));
    api_cleanup_doc yyjson_doc *made = yyjson_read(text, strlen(text), 0);
    if (!yyjson_equals(yyjson_doc_get_root(made), yyjson_doc_get_root(wanted))) {
        fail_msg("%s", text);
    }
    /* It gives back what it keeps, to the matcher of its kind alone. */
    assert_string_equal(
        api_json_str(matcher_spec(&m, yyjson_doc_get_root(made)), "/preferredSubdomain"), "s");
    assert_string_equal(
        api_json_str(matcher_spec(&m, yyjson_doc_get_root(object)), "/preferredSubdomain"), "s");
    assert_null(matcher_spec(&type, yyjson_doc_get_root(made)));
    ferry_cleanup_free char *status = matcher_status(&m, "r");
    assert_string_equal(status, "{\"name\":\"p\",\"kind\":\"VirtualMachineClusterPreference\","
                                "\"controllerRevisionRef\":{\"name\":\"r\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(applied),   cmocka_unit_test(annotations),
        cmocka_unit_test(admitted),  cmocka_unit_test(objects),
        cmocka_unit_test(matchers),  cmocka_unit_test(matchers_checked),
        cmocka_unit_test(revisions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
