// Answers a FakeTransport's requests as an API server does that keeps a few objects.
#pragma once

#include <map>
#include <string>

#include "core/json.h"
#include "tests/support/fake_transport.h"
#include "tests/support/manual_loop.h"

namespace holdfast::rescue {

class ObjectServer {
 public:
  ObjectServer(test::ManualLoop& loop, test::FakeTransport& transport)
      : loop_(loop), transport_(transport) {}

  // By path. Set and erase them as another client would.
  std::map<std::string, Json> objects;
  int refuse_with = 0;  // the status of all answers, if it is not zero
  std::string refuse_writes_of;

  void put(const std::string& path, Json object) {
    object["metadata"]["uid"] = "uid of " + path;
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    objects[path] = std::move(object);
  }
  int version() { return ++version_; }

  void serve() {
    loop_.run_ready();
    while (transport_.pending() > 0) {
      answer(http::Request(transport_.request()));
      loop_.run_ready();
    }
  }

 private:
  void answer(const http::Request& request) {
    if (refuse_with != 0) return transport_.answer(refuse_with, R"({"kind": "Status"})");
    std::string path = request.target.substr(0, request.target.find('?'));
    if (request.method == "GET") return answer_with(path);
    if (!refuse_writes_of.empty() && path.find(refuse_writes_of) != std::string::npos) {
      return transport_.answer(403, R"({"kind": "Status", "reason": "Forbidden"})");
    }
    Json body = *parse_json(request.body);
    if (request.method == "POST") path += "/" + string_at(body["metadata"], "name");
    const auto found = objects.find(path);
    const std::string there = found == objects.end() ? "" : version_of(found->second);
    if (version_of(body) != there) {
      return transport_.answer(409, R"({"kind": "Status", "reason": "Conflict"})");
    }
    put(path, std::move(body));
    answer_with(path);
  }
  void answer_with(const std::string& path) {
    const auto found = objects.find(path);
    if (found == objects.end()) {
      return transport_.answer(404, R"({"kind": "Status", "reason": "NotFound"})");
    }
    transport_.answer(200, found->second.dump());
  }
  static std::string version_of(const Json& object) {
    return string_at(at(object, "metadata"), "resourceVersion");
  }

  test::ManualLoop& loop_;
  test::FakeTransport& transport_;
  int version_ = 100;
};

}  // namespace holdfast::rescue
