// Handles an answer's body as a transport does, for tests with a complete body.
#pragma once

#include <utility>

#include "client/http/transport.h"

namespace holdfast::test {

inline void decode_body(const http::Request& request, http::Response& response) {
  if (response.status / 100 != 2) return;
  if (request.make_reader) {
    const auto reader = request.make_reader();
    const std::string_view body = response.body;
    if (reader->read(body.substr(0, body.size() / 2))) reader->read(body.substr(body.size() / 2));
    response.decoded = reader->finish();
  } else if (request.decode) {
    response.decoded = request.decode(std::move(response.body));
  } else {
    return;
  }
  response.body.clear();
}

}  // namespace holdfast::test
