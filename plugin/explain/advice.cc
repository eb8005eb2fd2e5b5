#include "plugin/explain/advice.h"

#include <algorithm>
#include <iterator>

namespace holdfast::plugin {
namespace {

using reconciler::AnyReason;
using reconciler::Reason;

// Commands that several reasons share.
constexpr const char* kLogs = "kubectl holdfast logs {job} -n {ns}";
constexpr const char* kFollow = "kubectl logs {pod} -n {ns} -f";
constexpr const char* kLogsOfRun = "kubectl holdfast logs {job} -n {ns} --index {index}";
constexpr const char* kLogsOfAttempt = "kubectl holdfast logs {job} -n {ns} --attempt {attempt}";
constexpr const char* kRetry = "kubectl holdfast retry {job} -n {ns}";
constexpr const char* kRetryFailed = "kubectl holdfast retry {job} -n {ns} --failed-indexes";
constexpr const char* kResume = "kubectl holdfast resume {job} -n {ns}";
constexpr const char* kDescribePod = "kubectl describe pod {pod} -n {ns}";
constexpr const char* kNode = "kubectl get node {node}";
constexpr const char* kOperators = "kubectl get pods -A -l app.kubernetes.io/name=holdfast";
constexpr const char* kQueue = "kubectl get jq {queue} -n {ns} -o wide";
constexpr const char* kPool = "kubectl get wp {pool} -n {ns} -o wide";
constexpr const char* kFirst =
    "kubectl patch dj {job} -n {ns} --type=merge -p '{\"spec\":{\"queue\":{\"priority\":{higher}}}}'";

struct Entry {
  Reason reason;
  Advice advice;
};

// In the order of the enumeration.
constexpr Entry kAdvice[] = {
    {Reason::kAttemptDeadlineExceeded,
     {"the attempt ran longer than attemptDeadlineSeconds",
      "Is the program slow, or does it hang? If it is slow, raise spec.attemptDeadlineSeconds.",
      {"kubectl edit dj {job} -n {ns}"}}},
    {Reason::kAwaitsEmptyWorker,
     {"its last worker ran out of memory with others on it, and no worker of its pool is empty",
      "Nothing: the pool keeps a worker free for it. If commands need more memory than they have, "
      "raise resources.limits.memory of the pool's template, or lower slotsPerWorker.",
      {kPool, "kubectl get pods -n {ns} -l holdfast.dev/worker-pool={pool}"}}},
    {Reason::kBackoffLimitExceeded,
     {"more attempts failed than backoffLimit forgives",
      "Read the log. If the cause was outside, run the work again with `retry`, as a new job. If the job itself is "
      "wrong, correct its manifest, and apply it under another name.",
      {kLogsOfAttempt, kRetry}}},
    {Reason::kCancelled,
     {"the job was cancelled (spec.cancel)",
      "Nothing runs any more. To run the work after all, make a new job.",
      {kRetry}}},
    {Reason::kCompleted, {"the pod succeeded", ""}},
    {Reason::kDeadlineExceeded,
     {"the job was active longer than activeDeadlineSeconds",
      "Find out what took so long, raise spec.activeDeadlineSeconds in the manifest, and run the "
      "work again as a new job.",
      {kRetry}}},
    {Reason::kDeferLimitExceeded,
     {"a run said \"not yet\" more often in a row than deferLimit allows",
      "Look at what it waits for. Then run the work again, with a higher deferLimit if the wait is normal.",
      {kLogsOfAttempt, kRetry}}},
    {Reason::kDeferred,
     {"the last attempt ended with \"not yet\"",
      "Nothing: it asks again by itself. Its log says what is not ready yet.",
      {kLogs}}},
    {Reason::kDisruptionLimitExceeded,
     {"a run was lost more often than disruptionLimit forgives",
      "Look at the nodes before you raise the limit: they, or what evicts pods, are the cause. Then "
      "run the work again.",
      {"kubectl get nodes", kRetry}}},
    {Reason::kDisruptionTarget,
     {"the pod was evicted or preempted",
      "Nothing, unless it happens often: then look at who evicts pods on that node.",
      {kNode}}},
    {Reason::kError,
     {"a container failed",
      "Read its log. If the template is to blame, suspend the job, edit it and resume.",
      {kLogsOfAttempt}}},
    {Reason::kFailedIndexes,
     {"all runs have ended, and some failed for good",
      "Read the log of a failed run, correct the cause, and run only the failed indexes again.",
      {kLogsOfRun, kRetryFailed}}},
    {Reason::kFenced,
     {"the agent could not renew the job's Lease, so it stopped its program",
      "Nothing, unless it happens often: then look whether the pods reach the API server, or set a "
      "higher heartbeat.leaseDurationSeconds in new jobs.",
      {kNode}}},
    {Reason::kGuardMissing,
     {"the policies that refuse wrong writes of jobs are missing or changed, so no attempt starts",
      "Ask who installed Holdfast to install them again, with the chart of the version that runs.",
      {"kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings"}}},
    {Reason::kHandedBack,
     {"the worker had to leave and gave the attempt back before it began", ""}},
    {Reason::kHeartbeatAwaited,
     {"the pod runs, and its agent has not renewed the job's Lease yet",
      "If it stays: a line `holdfast: ...` in the log says why. Is the pod's service account in the "
      "chart's workerServiceAccounts? Does a NetworkPolicy keep it from the API server?",
      {"kubectl logs {pod} -n {ns}"}}},
    {Reason::kHolderSilent,
     {"the agent in the pod does not renew the job's Lease: dead, frozen or cut off",
      "Nothing: it comes back, or the attempt is lost and the next one starts. To look at it:",
      {"kubectl exec {pod} -n {ns} -- /holdfast/agent check"}}},
    {Reason::kLeaseHeld,
     {"the pod that held the job's Lease last may still run",
      "Nothing: this takes one lease duration at most. A shorter heartbeat.leaseDurationSeconds "
      "shortens it in later jobs."}},
    {Reason::kLeaseNotGranted,
     {"the pod ended well without the job's Lease, so its program cannot have run",
      "Look whether a webhook changes the pod's command.",
      {kDescribePod}}},
    {Reason::kLeaseWriteRefused,
     {"the API server refuses the operator's write of the job's Lease",
      "Ask who installed Holdfast: is {ns} among the chart's workerNamespaces? Or does a quota forbid Leases?",
      {"kubectl get lease holdfast-{uid} -n {ns} -o yaml", "kubectl describe quota -n {ns}"}}},
    {Reason::kMaxFailedIndexesExceeded,
     {"more runs failed for good than maxFailedIndexes allows",
      "Read the log of a failed run, correct the cause, and run only the failed indexes again.",
      {kLogsOfRun, kRetryFailed}}},
    {Reason::kNoProgress,
     {"the program lives and reports no progress",
      "Does it hang? Look now, because its log goes with the pod. If it is only slow, let it report "
      "(/holdfast/agent progress), or give the next job a higher progressDeadlineSeconds.",
      {kLogs}}},
    {Reason::kNoScheduler,
     {"no scheduler has reported on the pod",
      "Is there a scheduler of the name in the template's schedulerName? Does it run?",
      {kDescribePod}}},
    {Reason::kNodeGone,
     {"the pod's node does not exist any more",
      "Nothing: the attempt is lost, and the next one starts on another node.",
      {"kubectl get nodes"}}},
    {Reason::kNodeSilent,
     {"the node's kubelet does not renew its Lease",
      "Nothing: the node comes back, or the next attempt starts elsewhere. If you know that the node "
      "is dead, cordon it, so that no pod goes there.",
      {"kubectl cordon {node}"}}},
    {Reason::kNotKnownToThisVersion,
     {"the operator is older than the job or its pool, and does not know all of its fields",
      "Ask who installed Holdfast: was it rolled back? It goes on once a newer version runs, or "
      "once the fields that the message names are removed.",
      {"kubectl edit dj {job} -n {ns}"}}},
    {Reason::kOOMKilled,
     {"a container used more memory than its limit",
      "Raise resources.limits.memory in the template: suspend the job, edit it and resume.",
      {"kubectl holdfast suspend {job} -n {ns}"}}},
    {Reason::kOldPodNotEnded,
     {"podReplacementPolicy is Failed, and the old pod may still run",
      "If the node is gone for good, make sure that the machine is OFF, then delete its node object. "
      "If two pods may overlap, change the policy instead.",
      {"kubectl delete node {node}",
       "kubectl patch dj {job} -n {ns} --type=merge -p "
       "'{\"spec\":{\"podReplacementPolicy\":\"TerminatingOrFailed\"}}'"}}},
    {Reason::kOperatorAwaited,
     {"no operator has read the job yet",
      "Does the operator run, and does it watch the namespace {ns} (chart value watchNamespaces)?",
      {kOperators}}},
    {Reason::kOwnerRemoved,
     {"somebody removed the job from the pod's owners, so the operator stopped it",
      "Find out which program changes ownerReferences of pods.",
      {kDescribePod}}},
    {Reason::kParallelismReduced,
     {"spec.parallelism was lowered; the run starts again when there is room", ""}},
    {Reason::kPaused,
     {"spec.parallelism is 0, so no run starts",
      "Set parallelism to go on.",
      {"kubectl patch dj {job} -n {ns} --type=merge -p '{\"spec\":{\"parallelism\":1}}'"}}},
    {Reason::kPodCreationQueued,
     {"other pods of the namespace are created first",
      "If it stays, a slow admission webhook is the usual cause. Who runs it can lower its timeoutSeconds.",
      {"kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations"}}},
    {Reason::kPodCreationRefused,
     {"the API server refuses the pod",
      "The message names the cause: a quota, a policy, a webhook or a missing right.",
      {"kubectl describe quota -n {ns}", "kubectl get ns {ns} --show-labels"}}},
    {Reason::kPodCreationUnanswered,
     {"a pod of the job may still be created, and the job waits for it",
      "Nothing: the operator stops the pod if it appears. A slow admission webhook is the usual cause.",
      {"kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations"}}},
    {Reason::kPodDeleted,
     {"somebody deleted the pod before it ended",
      "Nothing, unless it happens often: then find out who deletes pods."}},
    {Reason::kPodDeletionFails,
     {"the job ends, and the request to delete its pod fails",
      "The message names the cause, often a webhook for DELETE without endpoints: repair or "
      "remove it. The operator tries again every 30 s.",
      {"kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations",
       "kubectl describe pod {pod} -n {ns}"}}},
    {Reason::kPodFailurePolicy,
     {"a FailJob rule of podFailurePolicy matched",
      "Read the log, correct the cause, then run the work again as a new job.",
      {kLogsOfAttempt, kRetry}}},
    {Reason::kPodGated,
     {"scheduling gates hold the pod back",
      "Whoever set the gates has to remove them: a queue or a quota controller, such as Kueue.",
      {"kubectl get pod {pod} -n {ns} -o jsonpath='{.spec.schedulingGates}'"}}},
    {Reason::kPodGone,
     {"the pod does not exist any more",
      "Nothing, unless it happens often: then find out who deletes pods."}},
    {Reason::kPodNameTaken,
     {"another pod has the name of the attempt's pod",
      "Look at that pod. If nobody needs it, delete it: the operator then creates its own.",
      {"kubectl get pod {pod} -n {ns} -o yaml", "kubectl delete pod {pod} -n {ns}"}}},
    {Reason::kPodNeverCreated,
     {"a replica of the operator recorded the attempt, and died before it created the pod", ""}},
    {Reason::kPodNotCreated,
     {"the attempt is on record, and its pod does not exist",
      "Nothing: a replica of the operator died in between. The next attempt starts by itself."}},
    {Reason::kPodRejected,
     {"the node refused the pod",
      "Look why: the node had no room, or a taint, or other hardware than the pod asks for.",
      {"kubectl describe node {node}"}}},
    {Reason::kPodRunning,
     {"its pod runs", "Nothing is wrong. To read its log:", {kFollow, kLogsOfRun}}},
    {Reason::kPodStarting,
     {"its pod is being created, scheduled or started",
      "Nothing yet. If it takes long, the pod's Events say what its node waits for: an image, a volume, a Secret.",
      {kDescribePod}}},
    {Reason::kPodStuckTerminating,
     {"the pod was deleted and did not end in time",
      "If its node is gone for good, delete the node object.",
      {kNode}}},
    {Reason::kPodTemplateInvalid,
     {"the API server or the operator refuses the template for good",
      "Correct the field that the message names, and create the job again under another name."}},
    {Reason::kPodTemplateRefused,
     {"the API server calls the pod invalid, but not the template",
      "A webhook probably changes the pod. Look which one sets the field that the message names.",
      {"kubectl get mutatingwebhookconfigurations"}}},
    {Reason::kPodTerminating,
     {"the pod was deleted, and its containers shut down",
      "Nothing: it ends, or is given up when its time is over. A lower terminationGracePeriodSeconds "
      "shortens this in later jobs.",
      {kDescribePod}}},
    {Reason::kPodUnschedulable,
     {"no node fits the pod",
      "Compare what the pod asks for with the nodes: requests, taints, node selectors, a volume's "
      "zone. If the template is wrong, suspend the job, edit it and resume.",
      {kDescribePod, "kubectl holdfast suspend {job} -n {ns}"}}},
    {Reason::kPoolMissing,
     {"the namespace has no WorkerPool of this name",
      "Create the WorkerPool {pool}, or make the job again with another one.",
      {"kubectl get wp -n {ns}"}}},
    {Reason::kQueueMissing,
     {"the namespace has no JobQueue of this name",
      "Create the JobQueue {queue}, or make the job again with another one.",
      {"kubectl get jq -n {ns}"}}},
    {Reason::kQueued,
     {"it waits for a permit of its queue",
      "Wait for its turn, or raise its priority to start it earlier.",
      {kQueue, kFirst}}},
    {Reason::kRestartsSpread,
     {"an outage of the API server stopped this attempt and many others",
      "Nothing: the restarts are spread, so that they do not overload the API server."}},
    {Reason::kResuming, {"the job was just resumed", "Nothing: it goes on in a moment."}},
    {Reason::kRetryBackoff,
     {"it waits before its next attempt",
      "To wait less, lower spec.retryBackoff.maxSeconds.",
      {"kubectl patch dj {job} -n {ns} --type=merge -p "
       "'{\"spec\":{\"retryBackoff\":{\"initialSeconds\":1,\"maxSeconds\":10}}}'"}}},
    {Reason::kRunsStopped,
     {"the outcome is decided, and the pods that still run are being stopped",
      "Nothing: they end, or are given up when their time is over. To have the work done again, retry the "
      "job when it has ended.",
      {kDescribePod}}},
    {Reason::kStageStarting,
     {"the last stage has ended, and the next one has not begun",
      "Nothing. If it stays, spec.suspend is true: resume the job.",
      {kResume}}},
    {Reason::kStartTimeout,
     {"the pod did not start in time",
      "Check the image name, the pull secret, the volumes, and the ConfigMaps and Secrets that the "
      "template names. A start that is only slow needs a higher spec.startDeadlineSeconds.",
      {"kubectl get events -n {ns} --field-selector involvedObject.name={pod}"}}},
    {Reason::kSuccessPolicy, {"a rule of successPolicy is met", ""}},
    {Reason::kSuspended,
     {"spec.suspend is true", "Resume it to go on. Its counts and results stay.", {kResume}}},
    {Reason::kWorkerAwaited,
     {"no worker of its pool has a free slot",
      "Is maxWorkers of the pool too small, or do its workers not start? The pool's message says.",
      {kPool, "kubectl get pods -n {ns} -l holdfast.dev/worker-pool={pool}"}}},
    {Reason::kWorkerLost,
     {"the worker was silent or its pod ended, and it was cut off",
      "Nothing, unless it happens often: then look at the worker's node.",
      {kPool}}},
    {Reason::kWorkerOOMKilled,
     {"its worker ran out of memory with several attempts on it, and the kernel killed them all",
      "Nothing: the next attempts of its run are alone on their workers, so the guilty one is found. "
      "If it happens often, raise resources.limits.memory of the pool's template, or lower slotsPerWorker.",
      {kPool}}},
    {Reason::kWorkerRunning,
     {"its command runs on a worker",
      "Nothing is wrong. To read its log:",
      {"kubectl logs {worker} -n {ns} -f", kLogsOfRun}}},
    {Reason::kWorkerStarting,
     {"a worker was told of the attempt, and has not begun it",
      "Nothing: it begins, or the worker is cut off and another one gets the attempt.",
      {kPool}}},
    {Reason::kWorkerStopped,
     {"the worker had to end, and stopped the command",
      "Nothing, unless it happens often: then raise terminationGracePeriodSeconds of the pool's template.",
      {kPool}}},
    {Reason::kWorkerStopping,
     {"the last attempt is being stopped on its worker",
      "Nothing: it ends, or the worker is cut off.",
      {kPool}}},
};
static_assert(std::size(kAdvice) == static_cast<std::size_t>(Reason::kWorkerStopping) + 1);
static_assert(std::is_sorted(std::begin(kAdvice), std::end(kAdvice),
                             [](const Entry& a, const Entry& b) { return a.reason < b.reason; }));

// Words of kubelets and of programs that stop pods.
struct ForeignEntry {
  std::string_view word;
  Advice advice;
  std::string_view heading;  // in docs/reasons.md; empty: it is not on the page
};
constexpr Advice kImage = {
    "a node cannot get the container's image",
    "Check the image's name and tag (\"not found\") and the pull secret of the pod or its account "
    "(\"denied\", \"unauthorized\"). If the template is wrong, suspend the job, edit it, resume.",
    {kDescribePod, "kubectl holdfast suspend {job} -n {ns}"}};
constexpr Advice kConfig = {
    "a node cannot make the container: something that the template names is missing or wrong",
    "Check that each ConfigMap, Secret and key that the template names exists in {ns}.",
    {kDescribePod, "kubectl get configmaps,secrets -n {ns}"}};
constexpr Advice kCannotRun = {
    "a node cannot start the container's program",
    "Check command, args and workingDir in the template: the program must "
    "be in the image and executable.",
    {kDescribePod, "kubectl holdfast suspend {job} -n {ns}"}};
constexpr ForeignEntry kForeign[] = {
    {"ErrImagePull", kImage, "ErrImagePull"},
    {"ImagePullBackOff", kImage, "ImagePullBackOff"},
    {"InvalidImageName", kImage, "InvalidImageName"},
    {"ErrImageNeverPull", kImage, "ErrImagePull"},
    {"ImageInspectError", kImage, "ErrImagePull"},
    {"RegistryUnavailable", kImage, "ErrImagePull"},
    {"CreateContainerConfigError", kConfig, "CreateContainerConfigError"},
    {"CreateContainerError", kCannotRun, "CreateContainerError"},
    {"RunContainerError", kCannotRun, "CreateContainerError"},
    {"StartError", kCannotRun, "CreateContainerError"},
    {"ContainerCannotRun", kCannotRun, "CreateContainerError"},
    {"Evicted",
     {"the node evicted the pod, because it ran short of something",
      "Look at the node's pressure. Requests that say what the pod needs make this rarer.",
      {"kubectl describe node {node}"}},
     ""},
    {"ContainerStatusUnknown",
     {"the node lost track of the container, for example because it restarted", ""},
     ""},
};

// A kubelet's word that is not in the table.
constexpr Advice kUnknown = {
    "a node reports this", "The pod's Events have the details.", {kDescribePod}};

const ForeignEntry* foreign(std::string_view word) {
  const auto found = std::ranges::find(kForeign, word, &ForeignEntry::word);
  return found == std::end(kForeign) ? nullptr : &*found;
}

}  // namespace

const Advice& advice_on(Reason reason) { return kAdvice[static_cast<std::size_t>(reason)].advice; }

const Advice& advice_on(const AnyReason& reason) {
  if (const auto own = reconciler::parse_reason(reason.text())) return advice_on(*own);
  const auto* const found = foreign(reason.text());
  return found ? found->advice : kUnknown;
}

std::string_view heading_of(std::string_view reason) {
  if (reconciler::parse_reason(std::string(reason))) return reason;
  const ForeignEntry* const found = foreign(reason);
  return found ? found->heading : std::string_view();
}

}  // namespace holdfast::plugin
