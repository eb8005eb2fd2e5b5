// logs: the log of one attempt, from its pod or from its worker's.
#include "client/kube/object.h"
#include "client/kube/percent_encode.h"
#include "plugin/terminal/print.h"
#include "plugin/verbs/attempt_place.h"
#include "plugin/verbs/verbs.h"
#include "reconciler/names.h"

namespace holdfast::plugin {
namespace {

class Logs {
 public:
  Logs(const Command& command, Api& api, Terminal& terminal)
      : command_(command), api_(api), terminal_(terminal) {}

  int run() {
    const Result<Json> job = job_of(command_, api_);
    if (!job.ok()) return refuse(terminal_, command_, job.error().message);
    const Json& metadata = at(*job, "metadata");
    name_ = string_at(metadata, "name");
    namespace_ = string_at(metadata, "namespace");
    const AttemptChoice choice{command_.number("attempt"), command_.number("index"),
                               command_.text("stage")};
    const Result<std::vector<Json>> pods =
        api_.list(kPods, namespace_,
                  {std::string(reconciler::kJobUidLabel) + "=" + string_at(metadata, "uid"), ""});
    if (!pods.ok()) {
      return refuse(terminal_, command_, advice(pods.error(), {"list", kPods, namespace_, ""}));
    }
    const Result<AttemptPlace> place = find_attempt(*job, *pods, choice);
    if (!place.ok()) return refuse(terminal_, command_, place.error().message);
    return print(*place);
  }

 private:
  int print(const AttemptPlace& place) {
    const Result<Json> pod = api_.get(kPods, namespace_, place.pod);
    if (!pod.ok()) return no_pod(place, pod.error());
    const Result<std::string> log = api_.text(path(place, container(*pod)));
    if (!log.ok()) {
      if (log.error().code == ErrorCode::kInvalid || log.error().code == ErrorCode::kNotFound) {
        return refuse(terminal_, command_,
                      attempt(place) + " has no log yet: " + log.error().message +
                          "; see kubectl holdfast explain " + name_);
      }
      if (log.error().http_status >= 500) {
        return refuse(terminal_, command_,
                      "the API server cannot get the log of " + attempt(place) +
                          " from the node: " + log.error().message +
                          "; the node may be down, see kubectl holdfast explain " + name_);
      }
      const Resource kLogs{"/api/v1", "pods/log", "log", "pod"};
      return refuse(terminal_, command_,
                    advice(log.error(), {"get", kLogs, namespace_, place.pod}));
    }
    std::string text = place.is_worker ? lines_of_attempt(*log, name_, place.attempt) : *log;
    if (place.is_worker) text = last_lines(text);
    terminal_.out(text);
    if (text.empty()) terminal_.err(attempt(place) + " has written nothing\n");
    return kExitDone;
  }

  static std::string attempt(const AttemptPlace& place) {
    return "attempt " + std::to_string(place.attempt) +
           (place.is_worker ? " in worker " : " in pod ") + place.pod;
  }

  int no_pod(const AttemptPlace& place, const Error& error) {
    if (error.code != ErrorCode::kNotFound) {
      return refuse(terminal_, command_, advice(error, {"get", kPods, namespace_, place.pod}));
    }
    std::string line = "the pod " + place.pod + " of attempt " + std::to_string(place.attempt) +
                       " is gone, and its log with it";
    if (!place.end.empty()) line += "; the attempt ended as " + place.end;
    return refuse(terminal_, command_, line + "; see kubectl holdfast explain " + name_);
  }

  std::string container(const Json& pod) const {
    if (command_.has("container")) return command_.text("container");
    const Json& containers = at(at(pod, "spec"), "containers");
    return containers.is_array() && !containers.empty() ? string_at(containers[0], "name") : "";
  }

  std::string path(const AttemptPlace& place, const std::string& container) const {
    std::string path = kube::object_path("/api/v1", "pods", namespace_, place.pod, "log");
    path += "?container=" + kube::percent_encode(container);
    // A worker may have run for weeks, and an earlier job of the same name in it.
    if (place.is_worker && place.start) {
      path += "&sinceTime=" + kube::percent_encode(format_time(*place.start));
    }
    const auto tail = command_.number("tail");
    if (tail && !place.is_worker) path += "&tailLines=" + std::to_string(*tail);
    const auto limit = command_.number("limit-bytes");
    if (limit) path += "&limitBytes=" + std::to_string(*limit);
    return path;
  }

  std::string last_lines(const std::string& text) const {
    const auto tail = command_.number("tail");
    if (!tail) return text;
    std::size_t begin = text.size();
    for (std::int64_t lines = 0; begin > 0; --begin) {
      if (begin < text.size() && text[begin - 1] == '\n' && ++lines == *tail) break;
    }
    return *tail == 0 ? "" : text.substr(begin);
  }

  const Command& command_;
  Api& api_;
  Terminal& terminal_;
  std::string name_, namespace_;
};

}  // namespace

int logs(const Command& command, Api& api, Terminal& terminal) {
  return Logs(command, api, terminal).run();
}

}  // namespace holdfast::plugin
