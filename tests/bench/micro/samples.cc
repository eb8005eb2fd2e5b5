#include "tests/bench/micro/samples.h"

#include "reconciler/names.h"

#include <utility>

namespace holdfast::bench {
namespace {

// NUMBER, NAME and UID stand for what differs.
constexpr const char* kJob =
    R"({"apiVersion":"holdfast.dev/v1alpha1","kind":"DurableJob","metadata":{"creationTimestamp":"2026-06-01T11:00:00Z","generation":1,"managedFields":[{"apiVersion":"holdfast.dev/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:backoffLimit":{},"f:cancel":{},"f:disruptionLimit":{},"f:lostAfterSeconds":{},"f:podReplacementPolicy":{},"f:retryBackoff":{".":{},"f:factor":{},"f:initialSeconds":{},"f:jitterPercent":{},"f:maxSeconds":{}},"f:startDeadlineSeconds":{},"f:suspend":{},"f:template":{".":{},"f:metadata":{".":{},"f:annotations":{".":{},"f:example.com/team":{}}},"f:spec":{".":{},"f:containers":{},"f:restartPolicy":{}}}}},"manager":"kubectl-create","operation":"Update","time":"2026-06-01T11:00:00Z"}MANAGER],"name":"NAME","namespace":"media","resourceVersion":"NUMBER","uid":"UID"},"spec":{"backoffLimit":6,"cancel":false,"disruptionLimit":50,"lostAfterSeconds":40,"podReplacementPolicy":"TerminatingOrFailed","retryBackoff":{"factor":2,"initialSeconds":10,"jitterPercent":20,"maxSeconds":360},"startDeadlineSeconds":600,"suspend":false,"template":{"metadata":{"annotations":{"example.com/team":"encoders"}},"spec":{"containers":[{"command":["/encode","--input","/data/in","--output","/data/out"],"image":"registry.example.com/encode:1.36","name":"main","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}],"restartPolicy":"Never"}}}STATUS})";
constexpr const char* kJobManager =
    R"(,{"apiVersion":"holdfast.dev/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:attempt":{},"f:disruptions":{},"f:failures":{},"f:observedGeneration":{},"f:phase":{},"f:runs":{},"f:startTime":{},"f:waiting":{".":{},"f:deadline":{},"f:message":{},"f:nextAction":{},"f:reason":{}}}},"manager":"holdfast-operator","operation":"Update","subresource":"status","time":"2026-06-01T11:00:01Z"})";
constexpr const char* kJobStatus =
    R"(,"status":{"attempt":1,"disruptions":0,"failures":0,"observedGeneration":1,"phase":"Running","runs":[{"attempt":1,"index":0,"podName":"NAME-1-abcde","startTime":"2026-06-01T11:00:01.123456789Z"}],"startTime":"2026-06-01T11:00:01Z","waiting":{"deadline":"2026-06-01T11:10:01Z","message":"pod NAME-1-abcde is being created and started","nextAction":"attempt 1 ends as StartTimeout unless a container has run by then","reason":"PodStarting"}})";
constexpr const char* kPod =
    R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"NAME-1-abcde","namespace":"media","uid":"pod-UID","resourceVersion":"NUMBER","generation":1,"creationTimestamp":"2026-06-01T11:00:01Z","labels":{"holdfast.dev/attempt":"1","holdfast.dev/job-name":"NAME","holdfast.dev/job-uid":"UID"},"annotations":{"example.com/team":"encoders"},"ownerReferences":[{"apiVersion":"holdfast.dev/v1alpha1","kind":"DurableJob","name":"NAME","uid":"UID","controller":true}],"finalizers":["holdfast.dev/outcome"],"managedFields":[{"manager":"holdfast-operator","operation":"Update","apiVersion":"v1","time":"2026-06-01T11:00:01Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.com/team":{}},"f:finalizers":{".":{},"v:\"holdfast.dev/outcome\"":{}},"f:labels":{".":{},"f:holdfast.dev/attempt":{},"f:holdfast.dev/job-name":{},"f:holdfast.dev/job-uid":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"UID\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:command":{},"f:env":{".":{},"k:{\"name\":\"HOLDFAST_ATTEMPT\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"HOLDFAST_JOB_NAME\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"HOLDFAST_JOB_UID\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{".":{},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}},{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-06-01T11:00:03Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.244.0.7\"}":{".":{},"f:ip":{}}},"f:startTime":{}}},"subresource":"status"}]},"spec":{"volumes":[{"name":"kube-api-access-x7k2p","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],"containers":[{"name":"main","image":"registry.example.com/encode:1.36","command":["/encode","--input","/data/in","--output","/data/out"],"env":[{"name":"HOLDFAST_JOB_NAME","value":"NAME"},{"name":"HOLDFAST_JOB_UID","value":"UID"},{"name":"HOLDFAST_ATTEMPT","value":"1"}],"resources":{"requests":{"cpu":"500m","memory":"1Gi"}},"volumeMounts":[{"name":"kube-api-access-x7k2p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Never","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","serviceAccount":"default","nodeName":"node-7","securityContext":{},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{"phase":"Running","conditions":[{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-06-01T11:00:02Z"},{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-06-01T11:00:03Z"},{"type":"ContainersReady","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-06-01T11:00:03Z"},{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-06-01T11:00:01Z"}],"hostIP":"10.0.0.1","hostIPs":[{"ip":"10.0.0.1"}],"podIP":"10.244.0.7","podIPs":[{"ip":"10.244.0.7"}],"startTime":"2026-06-01T11:00:01Z","containerStatuses":[{"name":"main","state":{"running":{"startedAt":"2026-06-01T11:00:02Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"registry.example.com/encode:1.36","imageID":"registry.example.com/encode@sha256:0f1e2d3c4b5a","containerID":"containerd://7c1b0a9f8e7d","started":true}],"qosClass":"Burstable"}})";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string numbered(std::string text, std::int64_t number) {
  const std::string digits = std::to_string(1'000'000 + number);
  text = replaced(std::move(text), "NUMBER", digits);
  text = replaced(std::move(text), "NAME", "encode-" + digits);
  return replaced(std::move(text), "UID", "8c5d3a52-1f4e-4b7e-9a53-0d6a0" + digits);
}

std::string job(const char* manager, const char* status, std::int64_t number) {
  return numbered(replaced(replaced(kJob, "MANAGER", manager), "STATUS", status), number);
}

}  // namespace

std::string job_text(std::int64_t number) { return job("", "", number); }

std::string running_job_text(std::int64_t number) { return job(kJobManager, kJobStatus, number); }

std::string running_pod_text(std::int64_t number) { return numbered(kPod, number); }

std::string watch_line(const std::string& object) {
  return R"({"type":"MODIFIED","object":)" + object + "}";
}

std::string pod_list(std::int64_t count) {
  std::string text =
      R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9000000"},"items":[)";
  for (std::int64_t number = 0; number < count; ++number) {
    if (number > 0) text += ',';
    text += running_pod_text(number);
  }
  return text + "]}";
}

kube::Kind pods() {
  kube::Kind kind;
  kind.name = kind.plural = "pods";
  kind.group_path = "/api/v1";
  kind.decode = codecs::decode_pod;
  return kind;
}

kube::Kind jobs() {
  kube::Kind kind;
  kind.name = kind.plural = reconciler::kJobPlural;
  kind.group_path = reconciler::kJobGroupPath;
  kind.decode = codecs::decode_job;
  return kind;
}

}  // namespace holdfast::bench
