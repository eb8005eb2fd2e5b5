#include "tests/unit/plugin/situations.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace holdfast::plugin {
namespace {

Json parsed(const char* text) {
  Result<Json> json = parse_json(text);
  if (!json) {
    std::cerr << "malformed JSON in a situation: " << text << '\n';
    std::abort();
  }
  return *json;
}

Json job(const char* name, const char* spec, const char* status) {
  Json job = parsed(R"({
    "apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
    "metadata": {"namespace": "media", "generation": 1,
                 "uid": "6f1c8c1e-0b7c-4c55-9c0f-2b9d6a0f7a11",
                 "creationTimestamp": "2026-07-01T13:30:00Z"},
    "spec": {"lostAfterSeconds": 40, "startDeadlineSeconds": 600, "disruptionLimit": 50,
             "retryBackoff": {"initialSeconds": 10, "factor": 2, "maxSeconds": 360}}
  })");
  job["metadata"]["name"] = name;
  job["spec"].merge_patch(parsed(spec));
  job["status"] = parsed(status);
  job["status"]["observedGeneration"] = 1;
  return job;
}

Json queued(const char* name, int priority, const char* key, const char* phase) {
  Json other = job(name, R"({"queue": {"name": "encode"}})", "{}");
  other["spec"]["queue"]["priority"] = priority;
  other["spec"]["queue"]["key"] = key;
  other["status"]["phase"] = phase;
  other["metadata"]["uid"] = name;
  if (std::string(phase) == "Pending") other["status"]["waiting"]["reason"] = "Queued";
  return other;
}

ExplainFacts waits_in_queue() {
  ExplainFacts facts;
  facts.job = job("film-17", R"({"queue": {"name": "encode", "key": "customer-7"}})", R"({
    "phase": "Pending",
    "waiting": {"reason": "Queued", "message": "the job waits in the JobQueue encode",
                "nextAction": "it starts when the queue gives it a permit; kubectl get jobqueue encode -n media -o wide says why none is free",
                "since": "2026-07-01T13:30:01Z"}})");
  facts.queue = parsed(R"({"metadata": {"name": "encode"},
    "spec": {"concurrency": 2, "concurrencyPerKey": 1},
    "status": {"running": 2, "waiting": 3, "head": ["urgent", "film-17", "film-18"],
               "conditions": [{"type": "Admitting", "status": "False", "reason": "Full",
                               "message": "as many jobs run as spec.concurrency allows"}]}})");
  Json own = facts.job;
  facts.queue_jobs = {queued("film-15", 0, "customer-7", "Running"),
                      queued("film-16", 0, "customer-9", "Running"),
                      own,
                      queued("urgent", 10, "customer-8", "Pending"),
                      queued("zoo", 0, "customer-7", "Pending"),
                      queued("film-14", 0, "customer-7", "Succeeded")};
  facts.queue_jobs[4]["metadata"]["creationTimestamp"] = "2026-07-01T13:40:00Z";
  return facts;
}

// Its clock stands, though the time since its start is longer than its limit.
ExplainFacts waits_in_queue_again() {
  ExplainFacts facts = waits_in_queue();
  facts.job["spec"]["activeDeadlineSeconds"] = 600;
  facts.job["status"]["phase"] = "Backoff";
  facts.job["status"]["startTime"] = "2026-07-01T13:31:00Z";
  facts.job["status"]["waiting"]["since"] = "2026-07-01T13:40:00Z";
  return facts;
}

ExplainFacts unschedulable() {
  ExplainFacts facts;
  facts.job = job("train", "{}", R"({
    "phase": "Running", "attempt": 1, "active": 1, "startTime": "2026-07-01T13:48:10Z",
    "runs": [{"index": 0, "attempt": 1, "podName": "train-1-x2k9d", "startTime": "2026-07-01T13:48:10.123456Z"}],
    "waiting": {"reason": "PodUnschedulable",
                "message": "0/12 nodes are available: 3 Insufficient nvidia.com/gpu, 9 node(s) had untolerated taint {team: render}. preemption: 0/12 nodes are available: 12 No preemption victims found for incoming pod.",
                "nextAction": "attempt 1 goes on once a node has its pod",
                "since": "2026-07-01T13:48:12Z"}})");
  return facts;
}

ExplainFacts image_pull() {
  ExplainFacts facts;
  facts.job = job("thumbs", "{}", R"({
    "phase": "Running", "attempt": 2, "disruptions": 1, "active": 1, "startTime": "2026-07-01T13:47:30Z",
    "runs": [{"index": 0, "attempt": 2, "podName": "thumbs-2-x2k9d", "nodeName": "node-2", "disruptions": 1,
              "startTime": "2026-07-01T13:57:31Z"}],
    "history": [{"attempt": 1, "outcome": "StartTimeout", "reason": "StartTimeout", "podName": "thumbs-1-x2k9d",
                 "nodeName": "node-1", "startTime": "2026-07-01T13:47:30Z", "endTime": "2026-07-01T13:57:31Z"}],
    "waiting": {"reason": "ImagePullBackOff",
                "message": "container main: Back-off pulling image \"registry.example.com/thumbs:1.4\": rpc error: code = NotFound desc = failed to pull and unpack image: not found",
                "nextAction": "attempt 2 ends as StartTimeout unless a container has run by then",
                "deadline": "2026-07-01T14:07:33Z", "since": "2026-07-01T13:57:50Z"}})");
  return facts;
}

ExplainFacts policy_refused() {
  ExplainFacts facts;
  facts.job = job("ledger", "{}", R"({
    "phase": "Running", "attempt": 1, "active": 1, "startTime": "2026-07-01T13:50:00Z",
    "runs": [{"index": 0, "attempt": 1, "podName": "ledger-1-gk5tc", "startTime": "2026-07-01T13:50:00Z"}],
    "conditions": [{"type": "Stalled", "status": "True", "reason": "PodCreationRefused",
                    "message": "pods \"ledger-1-gk5tc\" is forbidden"}],
    "waiting": {"reason": "PodCreationRefused",
                "message": "pods \"ledger-1-gk5tc\" is forbidden: ValidatingAdmissionPolicy 'images' with binding 'images' denied request: images come from registry.example.com",
                "nextAction": "the operator tries again",
                "deadline": "2026-07-01T14:00:20Z", "since": "2026-07-01T13:50:01Z"}})");
  return facts;
}

ExplainFacts stuck_terminating() {
  ExplainFacts facts;
  facts.job = job("mix", "{}", R"({
    "phase": "Running", "attempt": 2, "disruptions": 1, "active": 1, "startTime": "2026-07-01T13:40:00Z",
    "runs": [{"index": 0, "attempt": 2, "podName": "mix-2-x2k9d", "nodeName": "node-2", "disruptions": 1,
              "startTime": "2026-07-01T13:50:00Z"}],
    "waiting": {"reason": "PodTerminating",
                "message": "pod mix-2-x2k9d on node node-2 was deleted and has not ended",
                "nextAction": "attempt 2 is lost, unless the pod has ended by then; then attempt 3 starts",
                "deadline": "2026-07-01T14:00:40Z", "since": "2026-07-01T13:59:30Z"}})");
  return facts;
}

ExplainFacts back_off() {
  ExplainFacts facts;
  facts.job = job("film-17", "{}", R"({
    "phase": "Backoff", "attempt": 3, "failures": 2, "disruptions": 1, "startTime": "2026-07-01T13:52:00Z",
    "runs": [{"index": 0, "attempt": 3, "podName": "film-17-3-x2k9d", "nodeName": "node-3", "failures": 2,
              "startTime": "2026-07-01T13:58:55Z", "nextAttemptTime": "2026-07-01T14:00:12Z"}],
    "history": [
      {"attempt": 1, "outcome": "Failed", "reason": "OOMKilled", "exitCode": 137, "podName": "film-17-1-x2k9d",
       "nodeName": "node-1", "startTime": "2026-07-01T13:52:00Z", "endTime": "2026-07-01T13:54:30Z"},
      {"attempt": 2, "outcome": "Lost", "reason": "NodeSilent", "podName": "film-17-2-x2k9d",
       "nodeName": "node-2", "startTime": "2026-07-01T13:54:40Z", "endTime": "2026-07-01T13:58:50Z"},
      {"attempt": 3, "outcome": "Failed", "reason": "Error", "exitCode": 1, "podName": "film-17-3-x2k9d",
       "nodeName": "node-3", "startTime": "2026-07-01T13:58:55Z", "endTime": "2026-07-01T13:59:52Z"}],
    "waiting": {"reason": "RetryBackoff", "message": "attempt 3 ended as Failed; the next one waits its back-off",
                "nextAction": "attempt 4 starts", "deadline": "2026-07-01T14:00:12Z", "since": "2026-07-01T13:59:52Z"}})");
  facts.events = {parsed(R"({"reason": "AttemptFailed",
    "note": "attempt 3 ended (Error): container main ended with exit code 1: cannot open s3://in/film-17.mov: access denied"})")};
  return facts;
}

ExplainFacts node_lost() {
  ExplainFacts facts;
  facts.job = job("survivor", R"({"activeDeadlineSeconds": 7200})", R"({
    "phase": "Running", "attempt": 1, "active": 1, "startTime": "2026-07-01T13:57:00Z",
    "runs": [{"index": 0, "attempt": 1, "podName": "survivor-1-gk5tc", "nodeName": "node-2",
              "startTime": "2026-07-01T13:57:02Z"}],
    "waiting": {"reason": "NodeSilent", "message": "node node-2 does not renew its Lease",
                "nextAction": "attempt 1 ends as Lost unless the node renews it",
                "deadline": "2026-07-01T14:00:21Z", "since": "2026-07-01T13:59:56Z"}})");
  facts.node_lease = parsed(R"({"spec": {"renewTime": "2026-07-01T13:59:40.500000Z"}})");
  return facts;
}

ExplainFacts cut_off_running() {
  ExplainFacts facts;
  facts.job =
      job("ledger", R"({"heartbeat": {"leaseDurationSeconds": 30, "progressDeadlineSeconds": 300},
                                "podReplacementPolicy": "Failed"})",
          R"({
    "phase": "Backoff", "attempt": 1, "disruptions": 1, "startTime": "2026-07-01T13:50:00Z",
    "runs": [{"index": 0, "attempt": 1, "podName": "ledger-1-gk5tc", "nodeName": "node-2", "disruptions": 1,
              "startTime": "2026-07-01T13:50:02Z", "nextAttemptTime": "2026-07-01T13:58:31Z"}],
    "conditions": [{"type": "Stalled", "status": "True", "reason": "OldPodNotEnded", "message": ""}],
    "history": [{"attempt": 1, "outcome": "Lost", "reason": "HolderSilent", "podName": "ledger-1-gk5tc",
                 "nodeName": "node-2", "startTime": "2026-07-01T13:50:02Z", "endTime": "2026-07-01T13:58:31Z"}],
    "waiting": {"reason": "OldPodNotEnded",
                "message": "podReplacementPolicy is Failed and the old pod has not ended: ledger-1-gk5tc on node node-2",
                "nextAction": "the next attempt starts when it has ended, or when its node object is deleted",
                "since": "2026-07-01T13:58:31Z"}})");
  return facts;
}

ExplainFacts warm_worker_awaited() {
  ExplainFacts facts;
  facts.job = job("shot-4711", R"({"workerPool": {"name": "thumbnails"}, "payload": "x"})", R"({
    "phase": "Pending",
    "waiting": {"reason": "WorkerAwaited", "message": "no worker of the WorkerPool thumbnails has a free slot",
                "nextAction": "attempt 1 starts when one has; kubectl get workerpool thumbnails shows the workers",
                "since": "2026-07-01T13:59:10Z"}})");
  facts.pool = parsed(R"({"metadata": {"name": "thumbnails"}, "spec": {"maxWorkers": 10},
    "status": {"workers": 3, "starting": 1, "busy": 2, "slots": 2, "busySlots": 2, "waiting": 12, "failedStarts": 2,
               "message": "2 workers could not start: ErrImagePull; the next one starts at 14:01:00"}})");
  return facts;
}

ExplainFacts runs_on_worker() {
  ExplainFacts facts;
  facts.job = job("shot-4712", R"({"workerPool": {"name": "thumbnails"}})", R"({
    "phase": "Running", "attempt": 2, "disruptions": 1, "active": 1, "startTime": "2026-07-01T13:59:00Z",
    "runs": [{"index": 0, "attempt": 2, "workerName": "thumbnails-b7xk2", "workerUID": "u", "nodeName": "node-3",
              "disruptions": 1, "startTime": "2026-07-01T13:59:30Z", "progress": "14/50 frames"}],
    "history": [{"attempt": 1, "outcome": "Lost", "reason": "WorkerLost", "workerName": "thumbnails-9dj2c",
                 "nodeName": "node-1", "startTime": "2026-07-01T13:59:00Z", "endTime": "2026-07-01T13:59:30Z"}],
    "waiting": {"reason": "WorkerRunning", "message": "attempt 2 runs on worker thumbnails-b7xk2",
                "nextAction": "attempt 2 ends when its command does", "since": "2026-07-01T13:59:30Z"}})");
  return facts;
}

ExplainFacts hung_progress() {
  ExplainFacts facts;
  facts.job =
      job("encode-7", R"({"heartbeat": {"leaseDurationSeconds": 30, "progressDeadlineSeconds": 300},
                                  "attemptDeadlineSeconds": 3600})",
          R"({
    "phase": "Running", "attempt": 1, "active": 1, "startTime": "2026-07-01T13:50:00Z",
    "runs": [{"index": 0, "attempt": 1, "podName": "encode-7-1-gk5tc", "nodeName": "node-2", "progress": "61 %",
              "startTime": "2026-07-01T13:50:05Z"}],
    "waiting": {"reason": "NoProgress", "message": "the worker in pod encode-7-1-gk5tc lives and makes no progress",
                "nextAction": "attempt 1 ends as Hung unless the program reports progress",
                "deadline": "2026-07-01T14:01:40Z", "since": "2026-07-01T13:59:10Z"}})");
  facts.lease = parsed(R"({"metadata": {"annotations": {"holdfast.dev/progress-age": "195"}},
    "spec": {"leaseDurationSeconds": 30, "renewTime": "2026-07-01T13:59:55.000000Z"}})");
  return facts;
}

ExplainFacts stages() {
  ExplainFacts facts;
  facts.job =
      job("publish",
          R"({"stages": [{"name": "verify", "template": {}}, {"name": "report", "template": {}},
                                            {"name": "cleanup", "when": "Always", "template": {}}]})",
          R"({
    "phase": "Backoff", "attempt": 5, "failures": 1, "startTime": "2026-07-01T13:31:00Z", "stage": "verify",
    "stages": [
      {"name": "main", "phase": "Succeeded", "startTime": "2026-07-01T13:31:00Z", "completionTime": "2026-07-01T13:40:30Z",
       "failures": 1, "result": "proof-48151623"},
      {"name": "verify", "phase": "Running", "startTime": "2026-07-01T13:40:30Z", "deferrals": 3},
      {"name": "report", "phase": "Pending"},
      {"name": "cleanup", "phase": "Pending"}],
    "runs": [{"index": 0, "attempt": 5, "podName": "publish-5-x", "nodeName": "node-1", "deferrals": 3,
              "startTime": "2026-07-01T13:59:20Z", "nextAttemptTime": "2026-07-01T14:00:25Z"}],
    "history": [
      {"stage": "main", "index": 0, "attempt": 1, "outcome": "Failed", "reason": "Error", "exitCode": 2, "nodeName": "node-1",
       "startTime": "2026-07-01T13:31:00Z", "endTime": "2026-07-01T13:34:10Z"},
      {"stage": "main", "index": 0, "attempt": 2, "outcome": "Succeeded", "reason": "Completed", "exitCode": 0,
       "nodeName": "node-1", "startTime": "2026-07-01T13:34:20Z", "endTime": "2026-07-01T13:40:30Z"},
      {"stage": "verify", "index": 0, "attempt": 5, "outcome": "Deferred", "reason": "Deferred", "exitCode": 75, "count": 3,
       "nodeName": "node-1", "podName": "publish-5-x", "startTime": "2026-07-01T13:40:35Z", "endTime": "2026-07-01T13:59:25Z"}],
    "waiting": {"reason": "Deferred", "message": "stage verify: attempt 5 was deferred, 3 times in a row",
                "nextAction": "attempt 6 starts", "deadline": "2026-07-01T14:00:25Z", "since": "2026-07-01T13:40:40Z"}})");
  return facts;
}

// The job's own time counts no more.
ExplainFacts always_stage() {
  ExplainFacts facts;
  facts.job = job(
      "publish",
      R"({"activeDeadlineSeconds": 3600, "stages": [{"name": "cleanup", "when": "Always", "template": {}}]})",
      R"({
    "phase": "Running", "attempt": 2, "failures": 1, "startTime": "2026-07-01T13:31:00Z", "stage": "cleanup",
    "stages": [
      {"name": "main", "phase": "Failed", "startTime": "2026-07-01T13:31:00Z", "completionTime": "2026-07-01T13:58:00Z",
       "failures": 1, "message": "attempt 1 failed"},
      {"name": "cleanup", "phase": "Running", "startTime": "2026-07-01T13:58:00Z"}],
    "runs": [{"index": 0, "attempt": 2, "podName": "publish-2-x", "nodeName": "node-1", "startTime": "2026-07-01T13:58:00Z"}],
    "waiting": {"reason": "PodStarting", "message": "stage cleanup: pod publish-2-x starts on node node-1",
                "nextAction": "the stage fails as DeadlineExceeded", "deadline": "2026-07-01T14:08:00Z",
                "since": "2026-07-01T13:59:00Z"}})");
  return facts;
}

ExplainFacts thousand_runs() {
  ExplainFacts facts;
  facts.job = job("scan", R"({"completions": 1000, "parallelism": 50, "completionMode": "Indexed",
                              "backoffLimitPerIndex": 2})",
                  R"({
    "phase": "Running", "attempt": 512, "failures": 21, "disruptions": 4, "active": 3, "succeeded": 412,
    "completions": "412/1000", "startTime": "2026-07-01T13:31:00Z",
    "completedIndexes": "0-2,4-16,20-415", "failedIndexes": "3,17-19",
    "runs": [
      {"index": 204, "attempt": 480, "attempts": 3, "podName": "scan-480-x", "nodeName": "node-1", "failures": 2,
       "startTime": "2026-07-01T13:49:00Z", "nextAttemptTime": "2026-07-01T14:00:28Z"},
      {"index": 416, "attempt": 510, "podName": "scan-510-x", "nodeName": "node-3", "startTime": "2026-07-01T13:55:00Z"},
      {"index": 417, "attempt": 511, "podName": "scan-511-x", "nodeName": "node-2", "startTime": "2026-07-01T13:58:00Z"},
      {"index": 418, "attempt": 512, "podName": "scan-512-x", "startTime": "2026-07-01T13:59:59.123456Z",
       "refused": "exceeded quota: pods"},
      {"index": 333, "attempt": 490, "podName": "scan-490-x", "nodeName": "node-1", "failures": 1,
       "startTime": "2026-07-01T13:59:00Z", "nextAttemptTime": "2026-07-01T14:00:08Z"}],
    "history": [
      {"index": 19, "attempt": 60, "outcome": "Failed", "reason": "Error", "exitCode": 42, "nodeName": "node-1",
       "startTime": "2026-07-01T13:40:00Z", "endTime": "2026-07-01T13:41:00Z"},
      {"index": 204, "attempt": 480, "outcome": "Failed", "reason": "OOMKilled", "exitCode": 137, "nodeName": "node-1",
       "startTime": "2026-07-01T13:49:00Z", "endTime": "2026-07-01T13:59:48Z"},
      {"index": 415, "attempt": 509, "outcome": "Succeeded", "reason": "Completed", "exitCode": 0, "nodeName": "node-2",
       "startTime": "2026-07-01T13:54:00Z", "endTime": "2026-07-01T13:57:59Z"}],
    "waiting": {"reason": "PodCreationRefused", "message": "run 418: pods \"scan-512-x\" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=2, limited: pods=2",
                "nextAction": "the operator retries the same pod every 5 to 30 s; no attempt and no budget is spent",
                "since": "2026-07-01T13:58:00Z"}})");
  return facts;
}

ExplainFacts finished_failed() {
  ExplainFacts facts;
  facts.job = job("nightly", R"({"backoffLimit": 2, "ttlSecondsAfterFinished": 3600})", R"({
    "phase": "Failed", "attempt": 3, "failures": 3, "startTime": "2026-07-01T13:31:00Z",
    "completionTime": "2026-07-01T13:44:00Z",
    "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
                    "message": "3 attempts failed, and backoffLimit is 2"}],
    "history": [
      {"attempt": 1, "outcome": "Failed", "reason": "Error", "exitCode": 1, "nodeName": "node-1", "podName": "nightly-1-x",
       "startTime": "2026-07-01T13:31:00Z", "endTime": "2026-07-01T13:36:00Z"},
      {"attempt": 2, "outcome": "Hung", "reason": "NoProgress", "nodeName": "node-1", "podName": "nightly-2-x",
       "startTime": "2026-07-01T13:36:10Z", "endTime": "2026-07-01T13:40:00Z"},
      {"attempt": 3, "outcome": "Failed", "reason": "Error", "exitCode": 1, "nodeName": "node-2", "podName": "nightly-3-x",
       "startTime": "2026-07-01T13:40:20Z", "endTime": "2026-07-01T13:44:00Z"}]})");
  facts.pods = {parsed(R"({"metadata": {"name": "nightly-3-x"}, "status": {"containerStatuses": [
    {"name": "main", "state": {"terminated": {"exitCode": 1, "message": "psql: error: connection to server at \"db\" refused\n"}}}]}})")};
  return facts;
}

ExplainFacts finished_indexes() {
  ExplainFacts facts = thousand_runs();
  Json& status = facts.job["status"];
  status.erase("waiting");
  status.erase("runs");
  status["phase"] = "Failed";
  status["succeeded"] = 996;
  status["completionTime"] = "2026-07-01T13:59:50Z";
  status["conditions"] = parsed(R"([{"type": "Failed", "status": "True", "reason": "FailedIndexes",
                                     "message": "4 runs have failed"}])");
  return facts;
}

ExplainFacts finished_well() {
  ExplainFacts facts;
  facts.job = job("one-shot", R"({"description": "the report of one night"})", R"({
    "phase": "Succeeded", "attempt": 2, "disruptions": 1, "startTime": "2026-07-01T13:31:00Z", "succeeded": 1,
    "completionTime": "2026-07-01T13:33:00Z",
    "conditions": [{"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "the run has succeeded"}],
    "history": [
      {"attempt": 1, "outcome": "Lost", "reason": "NodeSilent", "nodeName": "node-1", "podName": "one-shot-1-x",
       "startTime": "2026-07-01T13:31:00Z", "endTime": "2026-07-01T13:32:00Z"},
      {"attempt": 2, "outcome": "Succeeded", "reason": "Completed", "exitCode": 0, "nodeName": "node-2", "podName": "one-shot-2-x",
       "startTime": "2026-07-01T13:32:01Z", "endTime": "2026-07-01T13:33:00Z"}]})");
  return facts;
}

ExplainFacts cancelled() {
  ExplainFacts facts;
  facts.job = job("draft", R"({"cancel": true})", R"({
    "phase": "Cancelled", "attempt": 1, "startTime": "2026-07-01T13:31:00Z", "completionTime": "2026-07-01T13:33:00Z",
    "conditions": [{"type": "Cancelled", "status": "True", "reason": "Cancelled", "message": "spec.cancel is true"}],
    "history": [{"attempt": 1, "outcome": "Cancelled", "reason": "Cancelled", "nodeName": "node-1", "podName": "draft-1-x",
                 "startTime": "2026-07-01T13:31:00Z", "endTime": "2026-07-01T13:33:00Z"}]})");
  return facts;
}

ExplainFacts suspended() {
  ExplainFacts facts;
  facts.job = job("paused", R"({"suspend": true})", R"({
    "phase": "Suspended", "attempt": 1, "startTime": "2026-07-01T13:31:00Z",
    "history": [{"attempt": 1, "outcome": "Suspended", "reason": "Suspended", "nodeName": "node-1", "podName": "paused-1-x",
                 "startTime": "2026-07-01T13:31:00Z", "endTime": "2026-07-01T13:45:00Z"}],
    "waiting": {"reason": "Suspended", "message": "spec.suspend is true", "nextAction": "set spec.suspend to false to go on",
                "since": "2026-07-01T13:45:00Z"}})");
  return facts;
}

Json pod(const char* name, const char* node, const char* deleted) {
  Json pod = parsed(R"({"status": {"phase": "Running"}})");
  pod["metadata"]["name"] = name;
  pod["spec"]["nodeName"] = node;
  if (*deleted) pod["metadata"]["deletionTimestamp"] = deleted;
  return pod;
}

// examples/sweep.yaml two seconds after its policy was met: run 7 has not been read yet, and the
// pods of runs 4 and 6 use their grace.
ExplainFacts decided_open() {
  ExplainFacts facts;
  facts.job = job("sweep", R"({"completionMode": "Indexed", "completions": 12, "parallelism": 4,
                               "template": {"spec": {"terminationGracePeriodSeconds": 5}}})",
                  R"({
    "phase": "Running", "attempt": 8, "failures": 1, "active": 1, "succeeded": 3, "completions": "3/12",
    "startTime": "2026-07-01T13:59:30Z", "completedIndexes": "0-1,3",
    "runs": [
      {"index": 2, "attempt": 3, "podName": "sweep-3-x", "nodeName": "node-1", "failures": 1,
       "startTime": "2026-07-01T13:59:30Z", "nextAttemptTime": "2026-07-01T14:00:08Z"},
      {"index": 4, "attempt": 5, "podName": "sweep-5-x", "nodeName": "node-1",
       "startTime": "2026-07-01T13:59:40Z", "nextAttemptTime": "2026-07-01T13:59:58Z"},
      {"index": 6, "attempt": 7, "podName": "sweep-7-x", "nodeName": "node-2",
       "startTime": "2026-07-01T13:59:50Z", "nextAttemptTime": "2026-07-01T13:59:58Z"},
      {"index": 7, "attempt": 8, "podName": "sweep-8-x", "nodeName": "node-2",
       "startTime": "2026-07-01T13:59:55Z"}],
    "conditions": [{"type": "SuccessCriteriaMet", "status": "True", "reason": "SuccessPolicy",
                    "message": "Matched rules at index 0", "lastTransitionTime": "2026-07-01T13:59:58Z"}],
    "waiting": {"reason": "RunsStopped", "message": "the job ends (SuccessPolicy): its pods are being stopped",
                "nextAction": "the job is Succeeded when they have ended, or at waiting.deadline",
                "since": "2026-07-01T13:59:58Z"}})");
  facts.pods = {pod("sweep-5-x", "node-1", "2026-07-01T14:00:03Z"),
                pod("sweep-7-x", "node-2", "2026-07-01T14:00:03Z"), pod("sweep-8-x", "node-2", "")};
  return facts;
}

// The same when no run is open any more, for a person who may not list pods.
ExplainFacts decided_back_off() {
  ExplainFacts facts = decided_open();
  facts.pods.clear();
  facts.job["status"]["phase"] = "Backoff";
  facts.job["status"]["runs"][3]["nextAttemptTime"] = "2026-07-01T13:59:59Z";
  return facts;
}

ExplainFacts decided_pending() {
  ExplainFacts facts;
  facts.job = job("import", R"({"backoffLimit": 0})", R"({
    "phase": "Pending", "attempt": 2, "failures": 1, "disruptions": 1, "startTime": "2026-07-01T13:50:00Z",
    "runs": [{"index": 0, "attempt": 2, "podName": "import-2-x", "nodeName": "node-3", "failures": 1, "disruptions": 1,
              "startTime": "2026-07-01T13:55:00Z", "nextAttemptTime": "2026-07-01T13:59:40Z"}],
    "history": [{"attempt": 2, "outcome": "Failed", "reason": "Error", "exitCode": 1, "podName": "import-2-x",
                 "nodeName": "node-3", "startTime": "2026-07-01T13:55:00Z", "endTime": "2026-07-01T13:59:40Z"}],
    "conditions": [{"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded",
                    "message": "1 attempt failed, backoffLimit forgives 0", "lastTransitionTime": "2026-07-01T13:59:40Z"}],
    "waiting": {"reason": "RunsStopped", "message": "the job ends (BackoffLimitExceeded): its pods are being stopped",
                "nextAction": "the job is Failed when they have ended, or at waiting.deadline",
                "deadline": "2026-07-01T14:00:50Z", "since": "2026-07-01T13:59:40Z"}})");
  facts.pods = {pod("import-1-x", "node-2", "2026-07-01T14:00:10Z")};
  return facts;
}

// The outcome is there, and the words beside it are still those of a wait.
ExplainFacts decided_unsaid() {
  ExplainFacts facts = back_off();
  facts.job["status"]["conditions"] = decided_pending().job["status"]["conditions"];
  return facts;
}

ExplainFacts cancel_asked() {
  ExplainFacts facts = back_off();
  facts.job["spec"]["cancel"] = true;
  facts.job["metadata"]["generation"] = 2;
  return facts;
}

ExplainFacts cancelling() {
  ExplainFacts facts = cancel_asked();
  Json& status = facts.job["status"];
  status["phase"] = "Cancelling";
  status["runs"][0]["nextAttemptTime"] = "2026-07-01T13:59:58Z";
  status["waiting"] = parsed(R"({"reason": "PodTerminating",
    "message": "the job was cancelled; pod film-17-3-x2k9d is being stopped",
    "nextAction": "the job is Cancelled when the pod has ended, or at waiting.deadline",
    "deadline": "2026-07-01T14:00:58Z", "since": "2026-07-01T13:59:58Z"})");
  status["history"].back().update(
      {{"outcome", "DeadlineExceeded"}, {"reason", "AttemptDeadlineExceeded"}});
  // Nobody waits for that of the lost attempt.
  facts.pods = {pod("film-17-3-x2k9d", "node-3", "2026-07-01T14:00:18Z"),
                pod("film-17-2-x2k9d", "node-2", "2026-07-01T14:00:30Z")};
  return facts;
}

ExplainFacts suspend_asked() {
  ExplainFacts facts;
  facts.job = job("train", R"({"suspend": true, "activeDeadlineSeconds": 3600})", R"({
    "phase": "Running", "attempt": 1, "active": 1, "startTime": "2026-07-01T13:48:10Z",
    "runs": [{"index": 0, "attempt": 1, "podName": "train-1-x2k9d", "nodeName": "node-1",
              "startTime": "2026-07-01T13:48:10Z"}],
    "waiting": {"reason": "PodRunning", "message": "pod train-1-x2k9d runs on node node-1",
                "nextAction": "attempt 1 ends when its pod does", "since": "2026-07-01T13:48:12Z"}})");
  facts.job["metadata"]["generation"] = 2;
  return facts;
}

ExplainFacts suspended_in_grace() {
  ExplainFacts facts = decided_open();
  facts.job["spec"]["suspend"] = true;
  Json& status = facts.job["status"];
  status["phase"] = "Suspended";
  status["conditions"] =
      parsed(R"([{"type": "Suspended", "status": "True", "reason": "JobSuspended"}])");
  for (Json& run : status["runs"]) run["nextAttemptTime"] = "2026-07-01T13:59:58Z";
  status["waiting"] =
      parsed(R"({"reason": "Suspended", "message": "spec.suspend is true; no pod runs",
    "nextAction": "set spec.suspend to false to go on", "since": "2026-07-01T13:59:58Z"})");
  facts.pods.pop_back();
  return facts;
}

ExplainFacts resume_asked() {
  ExplainFacts facts = suspended_in_grace();
  facts.job["spec"]["suspend"] = false;
  facts.job["metadata"]["generation"] = 2;
  facts.pods.clear();
  return facts;
}

ExplainFacts back_off_over() {
  ExplainFacts facts = back_off();
  facts.job["status"]["waiting"]["deadline"] = "2026-07-01T13:59:58Z";
  facts.job["status"]["runs"][0]["nextAttemptTime"] = "2026-07-01T13:59:58Z";
  return facts;
}

ExplainFacts back_offs_over() {
  ExplainFacts facts = thousand_runs();
  for (Json& run : facts.job["status"]["runs"]) {
    if (run.contains("nextAttemptTime")) run["nextAttemptTime"] = "2026-07-01T13:59:58Z";
  }
  return facts;
}

ExplainFacts time_over() {
  ExplainFacts facts = suspend_asked();
  facts.job["spec"]["suspend"] = false;
  facts.job["spec"]["activeDeadlineSeconds"] = 708;
  facts.job["status"]["waiting"]["deadline"] = "2026-07-01T13:59:58Z";
  return facts;
}

ExplainFacts time_ends_first() {
  ExplainFacts facts = back_off();
  facts.job["spec"]["activeDeadlineSeconds"] = 485;
  facts.job["status"]["waiting"]["deadline"] = "2026-07-01T14:00:05Z";
  return facts;
}

ExplainFacts stage_ends() {
  ExplainFacts facts = stages();
  Json& status = facts.job["status"];
  Json& stage = status["stages"][1];
  stage["phase"] = "Failed";
  stage["message"] = "DeadlineExceeded: the stage was active longer than its activeDeadlineSeconds";
  stage["completionTime"] = "2026-07-01T13:59:58Z";
  status["runs"][0]["nextAttemptTime"] = "2026-07-01T13:59:58Z";
  status["conditions"] =
      parsed(R"([{"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded",
    "message": "stage verify: the stage was active longer than its activeDeadlineSeconds"}])");
  status["waiting"] = parsed(R"({"reason": "RunsStopped",
    "message": "the job has failed (DeadlineExceeded); stage verify: the stage ends (Failed): its pods are being stopped",
    "nextAction": "the job goes on when they have ended, or at waiting.deadline", "since": "2026-07-01T13:59:58Z"})");
  facts.pods = {pod("publish-5-x", "node-1", "2026-07-01T14:00:28Z")};
  return facts;
}

// Leases of an operator whose last replica was seen some minutes ago.
std::vector<Json> dead_operator() {
  return {
      parsed(
          R"({"metadata": {"name": "holdfast-member-holdfast-0-abc", "labels": {"holdfast.dev/lease": "member"},
                                  "annotations": {"holdfast.dev/shards": "1"}},
    "spec": {"holderIdentity": "holdfast-0-abc", "leaseDurationSeconds": 15, "renewTime": "2026-07-01T13:54:00.000000Z"}})"),
      parsed(
          R"({"metadata": {"name": "holdfast-shard-0", "labels": {"holdfast.dev/lease": "shard"}},
    "spec": {"holderIdentity": "holdfast-0-abc"}})")};
}

ExplainFacts no_operator() {
  ExplainFacts facts;
  facts.job = back_off().job;
  facts.job["metadata"]["name"] = "forgotten";
  facts.job["status"]["waiting"]["deadline"] = "2026-07-01T13:56:00Z";
  facts.job["status"]["runs"][0]["nextAttemptTime"] = "2026-07-01T13:56:00Z";
  facts.job["status"]["waiting"]["since"] = "2026-07-01T13:53:59Z";
  facts.job["status"]["history"] =
      parsed(R"([{"attempt": 3, "outcome": "Failed", "reason": "Error", "exitCode": 1,
     "podName": "film-17-3-x2k9d", "nodeName": "node-3", "startTime": "2026-07-01T13:52:00Z", "endTime": "2026-07-01T13:53:59Z"}])");
  facts.operator_leases = dead_operator();
  return facts;
}

ExplainFacts slow_operator() {
  ExplainFacts facts = no_operator();
  for (Json& lease : facts.operator_leases) {
    lease["metadata"]["namespace"] = "holdfast-system";
    lease["spec"]["renewTime"] = "2026-07-01T13:59:58.000000Z";
  }
  return facts;
}

ExplainFacts never_read() {
  ExplainFacts facts;
  facts.job = job("new", "{}", "{}");
  facts.job.erase("status");
  facts.job["metadata"]["creationTimestamp"] = "2026-07-01T13:55:00Z";
  return facts;
}

}  // namespace

Time noon() { return *parse_time("2026-07-01T14:00:00Z"); }

const std::vector<Situation>& situations() {
  static const std::vector<Situation> all = {
      {"waits-in-queue", waits_in_queue()},
      {"waits-in-queue-again", waits_in_queue_again()},
      {"unschedulable", unschedulable()},
      {"image-pull", image_pull()},
      {"policy-refused", policy_refused()},
      {"stuck-terminating", stuck_terminating()},
      {"back-off", back_off()},
      {"node-lost", node_lost()},
      {"cut-off-running", cut_off_running()},
      {"warm-worker-awaited", warm_worker_awaited()},
      {"runs-on-worker", runs_on_worker()},
      {"hung-progress", hung_progress()},
      {"stages", stages()},
      {"always-stage", always_stage()},
      {"thousand-runs", thousand_runs()},
      {"finished-failed", finished_failed()},
      {"finished-indexes", finished_indexes()},
      {"finished-well", finished_well()},
      {"cancelled", cancelled()},
      {"suspended", suspended()},
      {"decided-open", decided_open()},
      {"decided-back-off", decided_back_off()},
      {"decided-pending", decided_pending()},
      {"decided-unsaid", decided_unsaid()},
      {"cancel-asked", cancel_asked()},
      {"cancelling", cancelling()},
      {"suspend-asked", suspend_asked()},
      {"suspended-in-grace", suspended_in_grace()},
      {"resume-asked", resume_asked()},
      {"back-off-over", back_off_over()},
      {"back-offs-over", back_offs_over()},
      {"time-over", time_over()},
      {"time-ends-first", time_ends_first()},
      {"stage-ends", stage_ends()},
      {"no-operator", no_operator()},
      {"slow-operator", slow_operator()},
      {"never-read", never_read()},
  };
  return all;
}

const Situation& situation(const std::string& name) {
  return *std::find_if(situations().begin(), situations().end(),
                       [&](const Situation& one) { return one.name == name; });
}

}  // namespace holdfast::plugin
