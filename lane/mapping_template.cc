// The pod template: what batch/v1 allows there and a DurableJob does not.
#include <algorithm>
#include <array>

#include "lane/mapping.h"

namespace holdfast::lane {
namespace {

constexpr std::array<std::string_view, 4> kControllerLabels = {"batch.kubernetes.io/controller-uid",
                                                               "batch.kubernetes.io/job-name",
                                                               "controller-uid", "job-name"};

// The label of ours that says the same; empty: none does.
std::string our_label(const std::string& key) {
  if (!is_controller_label(key)) return "";
  return key.ends_with("job-name") ? "holdfast.dev/job-name" : "holdfast.dev/job-uid";
}

void note_once(std::string note, Differences& differences) {
  auto& notes = differences.notes;
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

// A custom resource takes whole numbers and strings as quantities, and no fractions.
void quote_quantity(Json& value, Differences& differences) {
  if (!value.is_number_float()) return;
  const std::string text = value.dump();
  note_once("the quantity " + text + " is quoted: a DurableJob takes no unquoted fractions",
            differences);
  value = text;
}

void quote_quantities(Json& value, Differences& differences) {
  if (!value.is_structured()) return;
  if (value.is_object()) {
    for (const char* const key : {"limits", "requests", "overhead"}) {
      if (!value.contains(key) || !value[key].is_object()) continue;
      for (auto& [name, quantity] : value[key].items()) quote_quantity(quantity, differences);
    }
    for (const char* const key : {"sizeLimit", "divisor"}) {
      if (value.contains(key)) quote_quantity(value[key], differences);
    }
  }
  for (auto& part : value) quote_quantities(part, differences);
}

void rename_text(Json& text, Differences& differences) {
  if (!text.is_string()) return;
  const std::string label = our_label(text.get<std::string>());
  if (label.empty()) return;
  note_once("the template selects by " + text.get<std::string>() + ", which is " + label + " now",
            differences);
  text = label;
}

// "metadata.labels['job-name']".
void rename_path(Json& path, Differences& differences) {
  const std::string text = path.is_string() ? path.get<std::string>() : "";
  constexpr std::string_view kStart = "metadata.labels['";
  if (!text.starts_with(kStart) || !text.ends_with("']")) return;
  const std::string key = text.substr(kStart.size(), text.size() - kStart.size() - 2);
  const std::string label = our_label(key);
  if (label.empty()) return;
  note_once("the template reads the label " + key + ", which is " + label + " now", differences);
  path = std::string(kStart) + label + "']";
}

void rename_labels(Json& labels, Differences& differences) {
  Json renamed = Json::object();
  for (const auto& [key, value] : labels.items()) {
    const std::string label = our_label(key);
    if (label == "holdfast.dev/job-uid") {
      note_once("the selector by " + key + " is dropped: it has the old Job's UID", differences);
      continue;
    }
    if (!label.empty()) {
      note_once("the template selects by " + key + ", which is " + label + " now", differences);
    }
    renamed[label.empty() ? key : label] = value;
  }
  labels = std::move(renamed);
}

// Affinities, spread constraints and the downward API name labels of the Job controller.
void rename_selectors(Json& value, Differences& differences) {
  if (!value.is_structured()) return;
  if (value.is_object()) {
    if (value.contains("matchLabels") && value["matchLabels"].is_object()) {
      rename_labels(value["matchLabels"], differences);
    }
    for (const char* const list : {"matchLabelKeys", "mismatchLabelKeys"}) {
      if (!value.contains(list) || !value[list].is_array()) continue;
      for (Json& key : value[list]) rename_text(key, differences);
    }
    if (value.contains("matchExpressions") && value["matchExpressions"].is_array()) {
      for (Json& expression : value["matchExpressions"]) {
        if (expression.is_object() && expression.contains("key")) {
          rename_text(expression["key"], differences);
        }
      }
    }
    if (value.contains("fieldPath")) rename_path(value["fieldPath"], differences);
  }
  for (auto& part : value) rename_selectors(part, differences);
}

void convert_restarts(Json& spec, Differences& differences) {
  const std::string policy = string_at(spec, "restartPolicy");
  if (policy == "OnFailure") {
    differences.notes.emplace_back(
        "restartPolicy is Never now, it was OnFailure: each attempt is a new pod, and backoffLimit "
        "counts attempts instead of restarts; files in emptyDir volumes do not last");
  }
  spec["restartPolicy"] = "Never";
  for (const char* const list : {"containers", "initContainers"}) {
    if (!spec.contains(list) || !spec[list].is_array()) continue;
    for (Json& container : spec[list]) {
      if (!container.is_object()) continue;
      const bool is_sidecar = std::string_view(list) == "initContainers" &&
                              string_at(container, "restartPolicy") == "Always";
      const bool has_policy = container.contains("restartPolicy") && !is_sidecar;
      if (!has_policy && !container.contains("restartPolicyRules")) continue;
      if (!is_sidecar) container.erase("restartPolicy");
      container.erase("restartPolicyRules");
      differences.notes.push_back(
          "container " + string_at(container, "name") +
          " has no restart policy of its own any more: no budget would count restarts in place");
    }
  }
}

void convert_metadata(ControllerLabels controller_labels, Json& pod_template) {
  if (!pod_template.contains("metadata") || !pod_template["metadata"].is_object()) return;
  Json& metadata = pod_template["metadata"];
  for (auto key = metadata.begin(); key != metadata.end();) {
    const bool stays =
        key.key() == "labels" || key.key() == "annotations" || key.key() == "finalizers";
    key = stays ? std::next(key) : metadata.erase(key);
  }
  const bool drops = controller_labels == ControllerLabels::kDropped;
  if (drops && metadata.contains("labels") && metadata["labels"].is_object()) {
    Json& labels = metadata["labels"];
    for (const std::string_view label : kControllerLabels) labels.erase(std::string(label));
    if (labels.empty()) metadata.erase("labels");
  }
  if (metadata.empty()) pod_template.erase("metadata");
}

}  // namespace

bool is_controller_label(std::string_view key) {
  return std::find(kControllerLabels.begin(), kControllerLabels.end(), key) !=
         kControllerLabels.end();
}

void convert_template(bool indexed, ControllerLabels labels, Json& pod_template,
                      Differences& differences) {
  convert_metadata(labels, pod_template);
  if (!pod_template.contains("spec") || !pod_template["spec"].is_object()) {
    differences.errors.emplace_back(
        "spec.template.spec is missing: it is the pod that the Job runs");
    return;
  }
  Json& spec = pod_template["spec"];
  convert_restarts(spec, differences);
  spec.erase("ephemeralContainers");
  if (indexed && spec.contains("hostname")) {
    spec.erase("hostname");
    differences.notes.emplace_back(
        "hostname of the template is dropped: batch/v1 ignores it in an Indexed Job, and each pod is NAME-INDEX");
  }
  quote_quantities(spec, differences);
  if (labels == ControllerLabels::kDropped) rename_selectors(spec, differences);
}

}  // namespace holdfast::lane
