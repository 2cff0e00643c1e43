/* One row per type: its fields as NAME:TYPE, required ones with a "!". A type is string, integer
 * (32 bits), long (64), boolean, bytes (base64), quantity, intorstring, time, microtime, any, or
 * the name of a row; "[]" before it is a list, "{}" a map by string. Sources of volumes that only
 * clouds and other systems have are not looked into (any). tests/kubernetes/test_schemas.py holds
 * the rows against what a kube-apiserver says of itself. */
#include "apiserver/kinds/core_types.h"

#include <stddef.h>

const struct core_type core_types[] = {
    /* what every object has */
    {"ObjectMeta",
     "annotations:{}string creationTimestamp:time deletionGracePeriodSeconds:long "
     "deletionTimestamp:time finalizers:[]string generateName:string generation:long "
     "labels:{}string managedFields:[]ManagedFieldsEntry name:string namespace:string "
     "ownerReferences:[]OwnerReference resourceVersion:string selfLink:string uid:string"},
    {"OwnerReference",
     "apiVersion:string! blockOwnerDeletion:boolean controller:boolean kind:string! "
     "name:string! uid:string!"},
    {"ManagedFieldsEntry",
     "apiVersion:string fieldsType:string fieldsV1:any manager:string operation:string "
     "subresource:string time:time"},
    {"LabelSelector", "matchExpressions:[]LabelSelectorRequirement matchLabels:{}string"},
    {"LabelSelectorRequirement", "key:string! operator:string! values:[]string"},
    /* kinds */
    {"Namespace", "spec:NamespaceSpec status:NamespaceStatus"},
    {"Node", "spec:NodeSpec status:NodeStatus"},
    {"Pod", "spec:PodSpec status:PodStatus"},
    {"Event", "action:string count:integer eventTime:microtime firstTimestamp:time "
              "involvedObject:ObjectReference! lastTimestamp:time message:string reason:string "
              "related:ObjectReference reportingComponent:string reportingInstance:string "
              "series:EventSeries source:EventSource type:string"},
    {"ConfigMap", "binaryData:{}bytes data:{}string immutable:boolean"},
    {"Secret", "data:{}bytes immutable:boolean stringData:{}string type:string"},
    {"PersistentVolume", "spec:PersistentVolumeSpec status:PersistentVolumeStatus"},
    {"PersistentVolumeClaim", "spec:PersistentVolumeClaimSpec status:PersistentVolumeClaimStatus"},
    {"ResourceQuota", "spec:ResourceQuotaSpec status:ResourceQuotaStatus"},
    {"StorageClass",
     "allowVolumeExpansion:boolean allowedTopologies:[]TopologySelectorTerm "
     "mountOptions:[]string parameters:{}string provisioner:string! reclaimPolicy:string "
     "volumeBindingMode:string"},
    {"Lease", "spec:LeaseSpec"},
    {"ControllerRevision", "data:any revision:long!"},
    {"Role", "rules:[]PolicyRule"},
    {"ClusterRole", "aggregationRule:AggregationRule rules:[]PolicyRule"},
    {"RoleBinding", "roleRef:RoleRef! subjects:[]Subject"},
    {"ClusterRoleBinding", "roleRef:RoleRef! subjects:[]Subject"},
    /* namespaces, nodes */
    {"NamespaceSpec", "finalizers:[]string"},
    {"NamespaceStatus", "conditions:[]NamespaceCondition phase:string"},
    {"NamespaceCondition",
     "lastTransitionTime:time message:string reason:string status:string! type:string!"},
    {"NodeSpec", "configSource:NodeConfigSource externalID:string podCIDR:string podCIDRs:[]string "
                 "providerID:string taints:[]Taint unschedulable:boolean"},
    {"NodeConfigSource", "configMap:ConfigMapNodeConfigSource"},
    {"ConfigMapNodeConfigSource",
     "kubeletConfigKey:string! name:string! namespace:string! resourceVersion:string "
     "uid:string"},
    {"Taint", "effect:string! key:string! timeAdded:time value:string"},
    {"NodeStatus",
     "addresses:[]NodeAddress allocatable:{}quantity capacity:{}quantity "
     "conditions:[]NodeCondition config:NodeConfigStatus "
     "daemonEndpoints:NodeDaemonEndpoints declaredFeatures:[]string features:NodeFeatures "
     "images:[]ContainerImage nodeInfo:NodeSystemInfo phase:string "
     "runtimeHandlers:[]NodeRuntimeHandler volumesAttached:[]AttachedVolume "
     "volumesInUse:[]string"},
    {"NodeAddress", "address:string! type:string!"},
    {"NodeCondition", "lastHeartbeatTime:time lastTransitionTime:time message:string reason:string "
                      "status:string! type:string!"},
    {"NodeConfigStatus", "active:NodeConfigSource assigned:NodeConfigSource error:string "
                         "lastKnownGood:NodeConfigSource"},
    {"NodeDaemonEndpoints", "kubeletEndpoint:DaemonEndpoint"},
    {"DaemonEndpoint", "Port:integer!"},
    {"NodeFeatures", "supplementalGroupsPolicy:boolean"},
    {"ContainerImage", "names:[]string sizeBytes:long"},
    {"NodeSystemInfo",
     "architecture:string! bootID:string! containerRuntimeVersion:string! "
     "kernelVersion:string! kubeProxyVersion:string! kubeletVersion:string! "
     "machineID:string! operatingSystem:string! osImage:string! swap:NodeSwapStatus "
     "systemUUID:string!"},
    {"NodeSwapStatus", "capacity:long"},
    {"NodeRuntimeHandler", "features:NodeRuntimeHandlerFeatures name:string"},
    {"NodeRuntimeHandlerFeatures", "recursiveReadOnlyMounts:boolean userNamespaces:boolean"},
    {"AttachedVolume", "devicePath:string! name:string!"},
    /* volumes and claims */
    {"PersistentVolumeSpec",
     "accessModes:[]string awsElasticBlockStore:any azureDisk:any azureFile:any "
     "capacity:{}quantity cephfs:any cinder:any claimRef:ObjectReference "
     "csi:CSIPersistentVolumeSource fc:any flexVolume:any flocker:any "
     "gcePersistentDisk:any glusterfs:any hostPath:HostPathVolumeSource iscsi:any "
     "local:LocalVolumeSource mountOptions:[]string nfs:NFSVolumeSource "
     "nodeAffinity:VolumeNodeAffinity persistentVolumeReclaimPolicy:string "
     "photonPersistentDisk:any portworxVolume:any quobyte:any rbd:any scaleIO:any "
     "storageClassName:string storageos:any volumeAttributesClassName:string "
     "volumeMode:string vsphereVolume:any"},
    {"ObjectReference",
     "apiVersion:string fieldPath:string kind:string name:string namespace:string "
     "resourceVersion:string uid:string"},
    {"CSIPersistentVolumeSource",
     "controllerExpandSecretRef:SecretReference controllerPublishSecretRef:SecretReference "
     "driver:string! fsType:string nodeExpandSecretRef:SecretReference "
     "nodePublishSecretRef:SecretReference nodeStageSecretRef:SecretReference "
     "readOnly:boolean volumeAttributes:{}string volumeHandle:string!"},
    {"SecretReference", "name:string namespace:string"},
    {"HostPathVolumeSource", "path:string! type:string"},
    {"LocalVolumeSource", "fsType:string path:string!"},
    {"NFSVolumeSource", "path:string! readOnly:boolean server:string!"},
    {"VolumeNodeAffinity", "required:NodeSelector"},
    {"NodeSelector", "nodeSelectorTerms:[]NodeSelectorTerm!"},
    {"NodeSelectorTerm",
     "matchExpressions:[]NodeSelectorRequirement matchFields:[]NodeSelectorRequirement"},
    {"NodeSelectorRequirement", "key:string! operator:string! values:[]string"},
    {"PersistentVolumeStatus",
     "lastPhaseTransitionTime:time message:string phase:string reason:string"},
    {"PersistentVolumeClaimSpec",
     "accessModes:[]string dataSource:TypedLocalObjectReference "
     "dataSourceRef:TypedObjectReference resources:VolumeResourceRequirements "
     "selector:LabelSelector storageClassName:string volumeAttributesClassName:string "
     "volumeMode:string volumeName:string"},
    {"TypedLocalObjectReference", "apiGroup:string kind:string! name:string!"},
    {"TypedObjectReference", "apiGroup:string kind:string! name:string! namespace:string"},
    {"VolumeResourceRequirements", "limits:{}quantity requests:{}quantity"},
    {"PersistentVolumeClaimStatus",
     "accessModes:[]string allocatedResourceStatuses:{}string "
     "allocatedResources:{}quantity capacity:{}quantity "
     "conditions:[]PersistentVolumeClaimCondition currentVolumeAttributesClassName:string "
     "modifyVolumeStatus:ModifyVolumeStatus phase:string"},
    {"PersistentVolumeClaimCondition",
     "lastProbeTime:time lastTransitionTime:time message:string reason:string "
     "status:string! type:string!"},
    {"ModifyVolumeStatus", "status:string! targetVolumeAttributesClassName:string"},
    /* pods */
    {"PodSpec",
     "activeDeadlineSeconds:long affinity:Affinity automountServiceAccountToken:boolean "
     "containers:[]Container! dnsConfig:PodDNSConfig dnsPolicy:string "
     "enableServiceLinks:boolean ephemeralContainers:[]EphemeralContainer "
     "hostAliases:[]HostAlias hostIPC:boolean hostNetwork:boolean hostPID:boolean "
     "hostUsers:boolean hostname:string hostnameOverride:string "
     "imagePullSecrets:[]LocalObjectReference initContainers:[]Container nodeName:string "
     "nodeSelector:{}string os:PodOS overhead:{}quantity preemptionPolicy:string "
     "priority:integer priorityClassName:string readinessGates:[]PodReadinessGate "
     "resourceClaims:[]PodResourceClaim resources:ResourceRequirements "
     "restartPolicy:string runtimeClassName:string schedulerName:string "
     "schedulingGates:[]PodSchedulingGate schedulingGroup:PodSchedulingGroup "
     "securityContext:PodSecurityContext serviceAccount:string serviceAccountName:string "
     "setHostnameAsFQDN:boolean shareProcessNamespace:boolean subdomain:string "
     "terminationGracePeriodSeconds:long tolerations:[]Toleration "
     "topologySpreadConstraints:[]TopologySpreadConstraint volumes:[]Volume"},
    {"Affinity",
     "nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity"},
    {"NodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm "
                     "requiredDuringSchedulingIgnoredDuringExecution:NodeSelector"},
    {"PreferredSchedulingTerm", "preference:NodeSelectorTerm! weight:integer!"},
    {"PodAffinity", "preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm "
                    "requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm"},
    {"WeightedPodAffinityTerm", "podAffinityTerm:PodAffinityTerm! weight:integer!"},
    {"PodAffinityTerm",
     "labelSelector:LabelSelector matchLabelKeys:[]string mismatchLabelKeys:[]string "
     "namespaceSelector:LabelSelector namespaces:[]string topologyKey:string!"},
    {"PodAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm "
                        "requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm"},
    {"Container",
     "args:[]string command:[]string env:[]EnvVar envFrom:[]EnvFromSource image:string "
     "imagePullPolicy:string lifecycle:Lifecycle livenessProbe:Probe name:string! "
     "ports:[]ContainerPort readinessProbe:Probe resizePolicy:[]ContainerResizePolicy "
     "resources:ResourceRequirements restartPolicy:string "
     "restartPolicyRules:[]ContainerRestartRule securityContext:SecurityContext "
     "startupProbe:Probe stdin:boolean stdinOnce:boolean terminationMessagePath:string "
     "terminationMessagePolicy:string tty:boolean volumeDevices:[]VolumeDevice "
     "volumeMounts:[]VolumeMount workingDir:string"},
    {"EnvVar", "name:string! value:string valueFrom:EnvVarSource"},
    {"EnvVarSource", "configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector "
                     "fileKeyRef:FileKeySelector resourceFieldRef:ResourceFieldSelector "
                     "secretKeyRef:SecretKeySelector"},
    {"ConfigMapKeySelector", "key:string! name:string optional:boolean"},
    {"ObjectFieldSelector", "apiVersion:string fieldPath:string!"},
    {"FileKeySelector", "key:string! optional:boolean path:string! volumeName:string!"},
    {"ResourceFieldSelector", "containerName:string divisor:quantity resource:string!"},
    {"SecretKeySelector", "key:string! name:string optional:boolean"},
    {"EnvFromSource", "configMapRef:ConfigMapEnvSource prefix:string secretRef:SecretEnvSource"},
    {"ConfigMapEnvSource", "name:string optional:boolean"},
    {"SecretEnvSource", "name:string optional:boolean"},
    {"Lifecycle", "postStart:LifecycleHandler preStop:LifecycleHandler stopSignal:string"},
    {"LifecycleHandler",
     "exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction tcpSocket:TCPSocketAction"},
    {"ExecAction", "command:[]string"},
    {"HTTPGetAction",
     "host:string httpHeaders:[]HTTPHeader path:string port:intorstring! scheme:string"},
    {"HTTPHeader", "name:string! value:string!"},
    {"SleepAction", "seconds:long!"},
    {"TCPSocketAction", "host:string port:intorstring!"},
    {"Probe",
     "exec:ExecAction failureThreshold:integer grpc:GRPCAction httpGet:HTTPGetAction "
     "initialDelaySeconds:integer periodSeconds:integer successThreshold:integer "
     "tcpSocket:TCPSocketAction terminationGracePeriodSeconds:long timeoutSeconds:integer"},
    {"GRPCAction", "port:integer! service:string"},
    {"ContainerPort",
     "containerPort:integer! hostIP:string hostPort:integer name:string protocol:string"},
    {"ContainerResizePolicy", "resourceName:string! restartPolicy:string!"},
    {"ResourceRequirements", "claims:[]ResourceClaim limits:{}quantity requests:{}quantity"},
    {"ResourceClaim", "name:string! request:string"},
    {"ContainerRestartRule", "action:string! exitCodes:ContainerRestartRuleOnExitCodes"},
    {"ContainerRestartRuleOnExitCodes", "operator:string! values:[]integer"},
    {"SecurityContext",
     "allowPrivilegeEscalation:boolean appArmorProfile:AppArmorProfile "
     "capabilities:Capabilities privileged:boolean procMount:string "
     "readOnlyRootFilesystem:boolean runAsGroup:long runAsNonRoot:boolean runAsUser:long "
     "seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile windowsOptions:any"},
    {"AppArmorProfile", "localhostProfile:string type:string!"},
    {"Capabilities", "add:[]string drop:[]string"},
    {"SELinuxOptions", "level:string role:string type:string user:string"},
    {"SeccompProfile", "localhostProfile:string type:string!"},
    {"VolumeDevice", "devicePath:string! name:string!"},
    {"VolumeMount", "mountPath:string! mountPropagation:string name:string! readOnly:boolean "
                    "recursiveReadOnly:string subPath:string subPathExpr:string"},
    {"PodDNSConfig", "nameservers:[]string options:[]PodDNSConfigOption searches:[]string"},
    {"PodDNSConfigOption", "name:string value:string"},
    {"EphemeralContainer",
     "args:[]string command:[]string env:[]EnvVar envFrom:[]EnvFromSource image:string "
     "imagePullPolicy:string lifecycle:Lifecycle livenessProbe:Probe name:string! "
     "ports:[]ContainerPort readinessProbe:Probe resizePolicy:[]ContainerResizePolicy "
     "resources:ResourceRequirements restartPolicy:string "
     "restartPolicyRules:[]ContainerRestartRule securityContext:SecurityContext "
     "startupProbe:Probe stdin:boolean stdinOnce:boolean targetContainerName:string "
     "terminationMessagePath:string terminationMessagePolicy:string tty:boolean "
     "volumeDevices:[]VolumeDevice volumeMounts:[]VolumeMount workingDir:string"},
    {"HostAlias", "hostnames:[]string ip:string!"},
    {"LocalObjectReference", "name:string"},
    {"PodOS", "name:string!"},
    {"PodReadinessGate", "conditionType:string!"},
    {"PodResourceClaim", "name:string! resourceClaimName:string resourceClaimTemplateName:string"},
    {"PodSchedulingGate", "name:string!"},
    {"PodSchedulingGroup", "podGroupName:string"},
    {"PodSecurityContext",
     "appArmorProfile:AppArmorProfile fsGroup:long fsGroupChangePolicy:string "
     "runAsGroup:long runAsNonRoot:boolean runAsUser:long seLinuxChangePolicy:string "
     "seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile "
     "supplementalGroups:[]long supplementalGroupsPolicy:string sysctls:[]Sysctl "
     "windowsOptions:any"},
    {"Sysctl", "name:string! value:string!"},
    {"Toleration", "effect:string key:string operator:string tolerationSeconds:long value:string"},
    {"TopologySpreadConstraint",
     "labelSelector:LabelSelector matchLabelKeys:[]string maxSkew:integer! "
     "minDomains:integer nodeAffinityPolicy:string nodeTaintsPolicy:string "
     "topologyKey:string! whenUnsatisfiable:string!"},
    {"Volume", "awsElasticBlockStore:any azureDisk:any azureFile:any cephfs:any cinder:any "
               "configMap:ConfigMapVolumeSource csi:CSIVolumeSource "
               "downwardAPI:DownwardAPIVolumeSource emptyDir:EmptyDirVolumeSource "
               "ephemeral:EphemeralVolumeSource fc:any flexVolume:any flocker:any "
               "gcePersistentDisk:any gitRepo:any glusterfs:any hostPath:HostPathVolumeSource "
               "image:ImageVolumeSource iscsi:any name:string! nfs:NFSVolumeSource "
               "persistentVolumeClaim:PersistentVolumeClaimVolumeSource photonPersistentDisk:any "
               "portworxVolume:any projected:ProjectedVolumeSource quobyte:any rbd:any scaleIO:any "
               "secret:SecretVolumeSource storageos:any vsphereVolume:any"},
    {"ConfigMapVolumeSource", "defaultMode:integer items:[]KeyToPath name:string optional:boolean"},
    {"KeyToPath", "key:string! mode:integer path:string!"},
    {"CSIVolumeSource", "driver:string! fsType:string nodePublishSecretRef:LocalObjectReference "
                        "readOnly:boolean volumeAttributes:{}string"},
    {"DownwardAPIVolumeSource", "defaultMode:integer items:[]DownwardAPIVolumeFile"},
    {"DownwardAPIVolumeFile", "fieldRef:ObjectFieldSelector mode:integer path:string! "
                              "resourceFieldRef:ResourceFieldSelector"},
    {"EmptyDirVolumeSource", "medium:string sizeLimit:quantity"},
    {"EphemeralVolumeSource", "volumeClaimTemplate:PersistentVolumeClaimTemplate"},
    {"PersistentVolumeClaimTemplate", "metadata:ObjectMeta spec:PersistentVolumeClaimSpec!"},
    {"ImageVolumeSource", "pullPolicy:string reference:string"},
    {"PersistentVolumeClaimVolumeSource", "claimName:string! readOnly:boolean"},
    {"ProjectedVolumeSource", "defaultMode:integer sources:[]VolumeProjection"},
    {"VolumeProjection",
     "clusterTrustBundle:ClusterTrustBundleProjection configMap:ConfigMapProjection "
     "downwardAPI:DownwardAPIProjection podCertificate:PodCertificateProjection "
     "secret:SecretProjection serviceAccountToken:ServiceAccountTokenProjection"},
    {"ClusterTrustBundleProjection",
     "labelSelector:LabelSelector name:string optional:boolean path:string! "
     "signerName:string"},
    {"ConfigMapProjection", "items:[]KeyToPath name:string optional:boolean"},
    {"DownwardAPIProjection", "items:[]DownwardAPIVolumeFile"},
    {"PodCertificateProjection",
     "certificateChainPath:string credentialBundlePath:string keyPath:string "
     "keyType:string! maxExpirationSeconds:integer signerName:string! "
     "userAnnotations:{}string"},
    {"SecretProjection", "items:[]KeyToPath name:string optional:boolean"},
    {"ServiceAccountTokenProjection", "audience:string expirationSeconds:long path:string!"},
    {"SecretVolumeSource",
     "defaultMode:integer items:[]KeyToPath optional:boolean secretName:string"},
    {"PodStatus",
     "allocatedResources:{}quantity conditions:[]PodCondition "
     "containerStatuses:[]ContainerStatus ephemeralContainerStatuses:[]ContainerStatus "
     "extendedResourceClaimStatus:PodExtendedResourceClaimStatus hostIP:string "
     "hostIPs:[]HostIP initContainerStatuses:[]ContainerStatus message:string "
     "nodeAllocatableResourceClaimStatuses:[]NodeAllocatableResourceClaimStatus "
     "nominatedNodeName:string observedGeneration:long phase:string podIP:string "
     "podIPs:[]PodIP qosClass:string reason:string resize:string "
     "resourceClaimStatuses:[]PodResourceClaimStatus resources:ResourceRequirements "
     "startTime:time"},
    {"PodCondition",
     "lastProbeTime:time lastTransitionTime:time message:string observedGeneration:long "
     "reason:string status:string! type:string!"},
    {"ContainerStatus",
     "allocatedResources:{}quantity allocatedResourcesStatus:[]ResourceStatus "
     "containerID:string image:string! imageID:string! lastState:ContainerState "
     "name:string! ready:boolean! resources:ResourceRequirements restartCount:integer! "
     "started:boolean state:ContainerState stopSignal:string user:ContainerUser "
     "volumeMounts:[]VolumeMountStatus"},
    {"ResourceStatus", "name:string! resources:[]ResourceHealth"},
    {"ResourceHealth", "health:string message:string resourceID:string!"},
    {"ContainerState", "running:ContainerStateRunning terminated:ContainerStateTerminated "
                       "waiting:ContainerStateWaiting"},
    {"ContainerStateRunning", "startedAt:time"},
    {"ContainerStateTerminated",
     "containerID:string exitCode:integer! finishedAt:time message:string reason:string "
     "signal:integer startedAt:time"},
    {"ContainerStateWaiting", "message:string reason:string"},
    {"ContainerUser", "linux:LinuxContainerUser"},
    {"LinuxContainerUser", "gid:long! supplementalGroups:[]long uid:long!"},
    {"VolumeMountStatus",
     "mountPath:string! name:string! readOnly:boolean recursiveReadOnly:string "
     "volumeStatus:VolumeStatus"},
    {"VolumeStatus", "image:ImageVolumeStatus"},
    {"ImageVolumeStatus", "imageRef:string!"},
    {"PodExtendedResourceClaimStatus",
     "requestMappings:[]ContainerExtendedResourceRequest! resourceClaimName:string!"},
    {"ContainerExtendedResourceRequest",
     "containerName:string! requestName:string! resourceName:string!"},
    {"HostIP", "ip:string!"},
    {"NodeAllocatableResourceClaimStatus",
     "containers:[]string resourceClaimName:string! resources:{}quantity!"},
    {"PodIP", "ip:string!"},
    {"PodResourceClaimStatus", "name:string! resourceClaimName:string"},
    /* all else */
    {"EventSeries", "count:integer lastObservedTime:microtime"},
    {"EventSource", "component:string host:string"},
    {"ResourceQuotaSpec", "hard:{}quantity scopeSelector:ScopeSelector scopes:[]string"},
    {"ScopeSelector", "matchExpressions:[]ScopedResourceSelectorRequirement"},
    {"ScopedResourceSelectorRequirement", "operator:string! scopeName:string! values:[]string"},
    {"ResourceQuotaStatus", "hard:{}quantity used:{}quantity"},
    {"TopologySelectorTerm", "matchLabelExpressions:[]TopologySelectorLabelRequirement"},
    {"TopologySelectorLabelRequirement", "key:string! values:[]string!"},
    {"LeaseSpec",
     "acquireTime:microtime holderIdentity:string leaseDurationSeconds:integer "
     "leaseTransitions:integer preferredHolder:string renewTime:microtime strategy:string"},
    {"PolicyRule", "apiGroups:[]string nonResourceURLs:[]string resourceNames:[]string "
                   "resources:[]string verbs:[]string!"},
    {"AggregationRule", "clusterRoleSelectors:[]LabelSelector"},
    {"RoleRef", "apiGroup:string! kind:string! name:string!"},
    {"Subject", "apiGroup:string kind:string! name:string! namespace:string"},
    {.name = NULL},
};
