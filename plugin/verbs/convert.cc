#include "plugin/verbs/convert.h"

#include <algorithm>

#include "lane/annotations.h"
#include "lane/batch_job.h"
#include "reconciler/names.h"

namespace holdfast::plugin {
namespace {

constexpr const char* kOurController = "holdfast.dev/operator";
constexpr const char* kOwnController = "kubernetes.io/job-controller";

Json kept_labels(const Json& labels, Conversion& conversion) {
  Json kept = Json::object();
  if (!labels.is_object()) return kept;
  for (const auto& [key, value] : labels.items()) {
    if (lane::is_controller_label(key)) continue;
    if (key == lane::kKueueLabel) {
      conversion.notes.push_back(
          "label " + key +
          " is dropped: Kueue sees the pods of a DurableJob alone; set the label in "
          "spec.template (docs/kueue.md), or spec.queue to a JobQueue (docs/queues.md)");
      continue;
    }
    kept[key] = value;
  }
  return kept;
}

// Annotations of kubectl and of controllers are about the old object. Ours are fields of the new
// one.
Json kept_annotations(const Json& annotations) {
  Json kept = Json::object();
  if (!annotations.is_object()) return kept;
  for (const auto& [key, value] : annotations.items()) {
    const bool is_dropped = lane::is_ours(key) || key.starts_with("kubectl.kubernetes.io/") ||
                            key.starts_with("batch.kubernetes.io/") ||
                            key.find("kueue.x-k8s.io/") != std::string::npos;
    if (!is_dropped) kept[key] = value;
  }
  return kept;
}

Json kept_metadata(const Json& metadata, Conversion& conversion) {
  Json kept = Json::object();
  for (const char* const key : {"name", "generateName", "namespace"}) {
    if (!string_at(metadata, key).empty()) kept[key] = string_at(metadata, key);
  }
  if (Json labels = kept_labels(at(metadata, "labels"), conversion); !labels.empty()) {
    kept["labels"] = std::move(labels);
  }
  if (Json annotations = kept_annotations(at(metadata, "annotations")); !annotations.empty()) {
    kept["annotations"] = std::move(annotations);
  }
  std::string name = string_at(kept, "name");
  if (name.find('.') != std::string::npos) {
    std::replace(name.begin(), name.end(), '.', '-');
    kept["name"] = name;
    conversion.notes.push_back("metadata.name is " + name +
                               " now: the names of pods are made from it, so it has no dots");
  }
  return kept;
}

void note_manager(const Json& spec, Conversion& conversion) {
  const std::string manager = string_at(spec, "managedBy");
  if (manager.empty() || manager == kOwnController || manager == kOurController) return;
  conversion.notes.push_back("managedBy: " + manager +
                             " is dropped: that controller does not know DurableJobs");
}

// Copies what both have. Anything else is the server's, or an error.
Json kept_spec(const Json& spec, Conversion& conversion) {
  Json kept = Json::object();
  for (const auto& [key, value] : spec.items()) {
    if (value.is_null()) continue;
    if (lane::is_shared_field(key) || key == "ttlSecondsAfterFinished") {
      kept[key] = value;
    } else if (key == "manualSelector" && value == true) {
      conversion.notes.push_back(
          "manualSelector and selector are dropped: a DurableJob knows its pods by their owner");
    } else if (key != "selector" && key != "manualSelector" && key != "managedBy") {
      conversion.errors.push_back(
          "spec." + key +
          " is no field that convert knows: remove it from the Job, and see "
          "docs/api.md for what DurableJobs have");
    }
  }
  note_manager(spec, conversion);
  return kept;
}

// The API server fills it in, so a stored Job says nothing about what its author wanted.
void note_last_words(const Json& spec, Conversion& conversion) {
  const Json& containers = at(at(at(spec, "template"), "spec"), "containers");
  const bool is_file = std::any_of(containers.begin(), containers.end(), [](const Json& one) {
    return string_at(one, "terminationMessagePolicy") == "File";
  });
  if (!is_file) return;
  conversion.notes.emplace_back(
      "terminationMessagePolicy: File stays: the last lines of a failed container are not kept; "
      "remove the field to see them in explain (docs/monitor.md)");
}

void note_deadlines(const Json& spec, Conversion& conversion) {
  conversion.notes.push_back(
      "backoffLimit counts failed attempts only: evicted pods and dead nodes count against "
      "disruptionLimit (default 50 for each run)");
  if (at(spec, "activeDeadlineSeconds").is_number()) {
    conversion.notes.push_back(
        "activeDeadlineSeconds goes on after a resume, without the suspended time; batch/v1 starts it again");
  }
  conversion.notes.push_back(
      "pods have the label holdfast.dev/job-name instead of batch.kubernetes.io/job-name: change "
      "Services, NetworkPolicies and dashboards that select by it");
}

bool is_true(const Json& status, std::string_view type) {
  for (const Json& condition : at(status, "conditions")) {
    if (string_at(condition, "type") == type) return string_at(condition, "status") == "True";
  }
  return false;
}

// Whether the Job is one of the cluster, and not only a manifest.
bool is_stored(const Json& job) {
  return !string_at(at(job, "metadata"), "uid").empty() || int_at(at(job, "status"), "active") > 0;
}

// The lane's DurableJob often has the name that the new one gets, also once the Job has ended.
void note_lane(const Json& job, Conversion& conversion) {
  const Json& metadata = at(job, "metadata");
  const std::string name = string_at(metadata, "name");
  const Json& annotations = at(metadata, "annotations");
  // In a copy of another Job the record is that Job's.
  const bool is_own =
      string_at(annotations, lane::kUidsAnnotation).starts_with(string_at(metadata, "uid"));
  const std::string recorded = string_at(annotations, lane::kNameAnnotation);
  const std::string durable = is_own && lane::is_object_name(recorded) ? recorded : name;
  conversion.notes.push_back(
      "Holdfast runs the Job by DurableJob " + durable +
      ": before you create the new one, stop it with `kubectl delete job " + name +
      "`, and wait until the DurableJob and its pods are gone with `kubectl wait --for=delete dj/" +
      durable + " --timeout=-1s` and `kubectl wait --for=delete pod -l " +
      reconciler::kJobNameLabel + "=" + durable + " --timeout=-1s`, or the work is done twice");
}

void note_progress(const Json& job, Conversion& conversion) {
  const Json& status = at(job, "status");
  const Json& spec = at(job, "spec");
  const std::string name = string_at(at(job, "metadata"), "name");
  const bool is_of_lane = string_at(spec, "managedBy") == kOurController;
  if (is_of_lane && is_stored(job) && lane::is_object_name(name)) note_lane(job, conversion);
  if (is_true(status, "Complete") || is_true(status, "Failed")) {
    conversion.notes.push_back("the Job has ended: the DurableJob does all of its work again");
    return;
  }
  // Between two attempts it has no active pod, and starts the next one soon.
  const bool runs = int_at(status, "active") > 0 || (is_stored(job) && !bool_at(spec, "suspend"));
  if (runs && !is_of_lane) {
    conversion.notes.push_back(
        "the Job runs: before you create the DurableJob, stop it with `kubectl delete job " + name +
        " --cascade=foreground`, or the work is done twice");
  }
  if (int_at(status, "succeeded") > 0) {
    conversion.notes.push_back(
        "the Job has done a part of its work, and the DurableJob starts from the beginning: set "
        "spec.indexes to what is left (docs/migrate.md)");
  }
}

void convert_job(const Json& metadata, const Json& spec, Conversion& conversion) {
  Json job = {{"apiVersion", reconciler::kJobApiVersion}, {"kind", reconciler::kJobKind}};
  job["metadata"] = kept_metadata(metadata, conversion);
  job["spec"] = kept_spec(spec, conversion);
  Json& kept = job["spec"];
  lane::add_annotated_fields(at(metadata, "annotations"), kept, conversion);
  lane::convert_deadline(kept, conversion);
  lane::convert_runs(job["metadata"], kept, conversion);
  lane::convert_policies(kept, conversion);
  if (at(kept, "template").is_object()) {
    lane::convert_template(string_at(kept, "completionMode") == "Indexed",
                           lane::ControllerLabels::kDropped, kept["template"], conversion);
  } else {
    conversion.errors.emplace_back(
        "spec.template is missing: a Job has the pod that it runs there");
  }
  note_last_words(kept, conversion);
  note_deadlines(kept, conversion);
  if (conversion.errors.empty()) conversion.job = std::move(job);
}

void note_schedule(const Json& spec, Conversion& conversion) {
  std::vector<std::string>& notes = conversion.notes;
  std::string schedule = "schedule \"" + string_at(spec, "schedule") + "\"";
  if (!string_at(spec, "timeZone").empty()) schedule += " (" + string_at(spec, "timeZone") + ")";
  notes.push_back(
      schedule +
      " is not in the DurableJob, which runs once: keep a CronJob whose pod creates the "
      "DurableJob (docs/migrate.md, \"CronJob\")");
  const std::string policy = string_at(spec, "concurrencyPolicy", "Allow");
  if (policy != "Allow") {
    notes.push_back("concurrencyPolicy: " + policy +
                    " has no effect on DurableJobs that a CronJob's pod creates: set spec.queue to "
                    "a JobQueue with concurrency 1, so that one waits for the other");
  }
  if (at(spec, "startingDeadlineSeconds").is_number()) {
    notes.push_back("startingDeadlineSeconds: " + at(spec, "startingDeadlineSeconds").dump() +
                    " is dropped: it limits how late a schedule may start a job, so set it in the "
                    "CronJob that creates the DurableJob");
  }
  if (bool_at(spec, "suspend")) {
    notes.emplace_back("the CronJob is suspended, and the DurableJob is not: do not create it yet");
  }
  for (const char* const limit : {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}) {
    if (!at(spec, limit).is_number()) continue;
    notes.emplace_back(std::string(limit) +
                       " is dropped: set spec.ttlSecondsAfterFinished to have ended jobs deleted");
    break;
  }
}

void convert_cron_job(const Json& object, Conversion& conversion) {
  const Json& spec = at(object, "spec");
  const Json& inner = at(spec, "jobTemplate");
  Json metadata = at(inner, "metadata").is_object() ? at(inner, "metadata") : Json::object();
  for (const char* const key : {"name", "namespace"}) {
    const std::string value = string_at(at(object, "metadata"), key);
    if (!value.empty()) metadata[key] = value;
  }
  note_schedule(spec, conversion);
  convert_job(metadata, at(inner, "spec").is_object() ? at(inner, "spec") : Json::object(),
              conversion);
}

}  // namespace

Conversion convert(const Json& object) {
  Conversion conversion;
  const std::string kind = string_at(object, "kind");
  const bool is_batch = string_at(object, "apiVersion").starts_with("batch/");
  if (is_batch && kind == "CronJob") {
    convert_cron_job(object, conversion);
  } else if (is_batch && kind == "Job") {
    convert_job(at(object, "metadata"),
                at(object, "spec").is_object() ? at(object, "spec") : Json::object(), conversion);
    note_progress(object, conversion);
  } else if (kind == "List") {
    conversion.errors.emplace_back(
        "this is a List: convert one object at a time, as `kubectl get job NAME -o yaml` prints it");
  } else {
    conversion.errors.push_back("this is " + (kind.empty() ? "no object" : "a " + kind) +
                                ", and convert reads a Job or a CronJob of batch/v1");
  }
  return conversion;
}

}  // namespace holdfast::plugin
