#include "plugin/verbs/verb.h"

namespace holdfast::plugin {
namespace {

std::string in_namespace(const Subject& subject) {
  return subject.namespace_.empty() ? "" : " in namespace " + subject.namespace_;
}

std::string not_found(const Error& error, const Subject& subject) {
  const std::string group = subject.resource.group_path;
  // For a kind that it does not know, the API server answers with no Status, or without a name.
  const bool is_object = error.reason == "NotFound" && error.message.find('"') != std::string::npos;
  if (!is_object && group.starts_with("/apis/holdfast.dev")) {
    return "this cluster knows no " + std::string(subject.resource.kind) +
           ": install Holdfast (helm install holdfast charts/holdfast), or choose another --context";
  }
  if (error.message.starts_with("namespaces ")) {
    return "there is no namespace " + subject.namespace_ + "; create it, or give another -n";
  }
  if (subject.name.empty()) return error.message;
  return "there is no " + std::string(subject.resource.kind) + " " + subject.name +
         in_namespace(subject) + "; kubectl get " + subject.resource.plural + " -A lists all";
}

}  // namespace

Result<std::string> namespace_of(const Command& command, Api& api) {
  if (command.has("all-namespaces")) return std::string();
  if (command.has("namespace")) return command.text("namespace");
  return api.context_namespace();
}

std::string advice(const Error& error, const Subject& subject) {
  switch (error.code) {
    case ErrorCode::kNotFound:
      return not_found(error, subject);
    case ErrorCode::kUnauthorized:
      return "the API server does not accept your credentials; log in again, or choose another --context";
    case ErrorCode::kForbidden:
      if (error.http_status != 403 || error.message.find("cannot ") == std::string::npos) break;
      return "you have no right to " + std::string(subject.verb) + " " + subject.resource.plural +
             in_namespace(subject) + "; ask for it: kubectl auth can-i " + subject.verb + " " +
             subject.resource.plural +
             (subject.namespace_.empty() ? " -A" : " -n " + subject.namespace_) + " must say yes";
    case ErrorCode::kTransient:
      if (error.http_status != 0) break;
      if (error.message.find("exec plugin") != std::string::npos) {
        return "cannot log in: " + error.message + "; log in again, or correct the kubeconfig";
      }
      return "cannot reach the API server (" + error.message +
             "); check the network, the proxy and the --context";
    case ErrorCode::kThrottled:
      return "the API server is busy; try again in a moment";
    case ErrorCode::kConflict:
      return "somebody else changed it meanwhile; try again";
    default:
      break;
  }
  return error.message;
}

Result<Json> job_of(const Command& command, Api& api) {
  // "dj/encode-7" and the like, as kubectl prints them.
  std::string name = command.arguments[0];
  const std::size_t slash = name.find('/');
  if (slash != std::string::npos) {
    const std::string kind = name.substr(0, slash);
    if (kind != "dj" && kind != "djob" && !kind.starts_with("durablejob")) {
      return make_error(ErrorCode::kInvalid, name + " is no DurableJob; give a name, or dj/NAME");
    }
    name = name.substr(slash + 1);
  }
  const Result<std::string> namespace_ = namespace_of(command, api);
  if (!namespace_.ok()) return namespace_.error();
  Result<Json> job = api.get(kJobs, *namespace_, name);
  if (job.ok()) return job;
  return make_error(job.error().code, advice(job.error(), {"get", kJobs, *namespace_, name}));
}

}  // namespace holdfast::plugin
