// The HTTP transport: the only way to the API server. CpprestTransport implements it over
// cpprestsdk; the simulator has its own.
//
// Threads: call every method on the loop. Every handler runs on the loop, in a later turn, never
// inside the call that caused it. The `decode` functions run on an I/O thread and must be pure.
//
// A request answers exactly once, and a stream ends exactly once. This includes cancelled calls
// (ErrorCode::kCancelled) and the transport's end.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace holdfast::http {

using Headers = std::vector<std::pair<std::string, std::string>>;
using CallId = std::uint64_t;  // 0 is never a call

// Which requests go first when there are not enough slots. Each urgency has slots that the lower
// ones cannot take. So requests that hang never block more urgent ones.
enum class Urgency {
  kOrdinary,
  kUrgent,  // a verdict depends on it
  kVital,   // this replica's membership depends on it
};
inline constexpr std::size_t kUrgencies = 3;

// Reads the body of one answer piece by piece, as it arrives. Called on an I/O thread: pure.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  // False: it needs no further piece.
  virtual bool read(std::string_view piece) = 0;
  // The parsed body.
  virtual std::any finish() = 0;
};

struct Request {
  std::string method = "GET";
  std::string target;  // path and query, encoded
  Headers headers;     // Authorization, Content-Type, Accept, User-Agent, ...
  std::string body;
  Duration timeout = std::chrono::seconds(30);  // the whole request, connect to last byte
  std::size_t max_response_bytes = 256u << 20;
  bool accept_gzip = false;  // worth it for lists
  Urgency urgency = Urgency::kOrdinary;
  // Parses a 2xx body. Without it, the response keeps the body itself.
  std::function<std::any(std::string&& body)> decode;
  // Replaces `decode` for bodies that are too large to hold: makes the reader of a 2xx body. For
  // any other status the first kMaxKeptBytes are kept.
  std::function<std::unique_ptr<BodyReader>()> make_reader;
};
inline constexpr std::size_t kMaxKeptBytes = 64u << 10;

struct Response {
  int status = 0;
  std::string body;  // empty when it was decoded
  std::any decoded;
  std::optional<Time> date;             // the server's, from `Date`
  std::optional<Duration> retry_after;  // from `Retry-After` in seconds
  SteadyTime sent{};                    // when the request was handed to the network
  SteadyTime received{};
};

// An Error means that no usable answer came: kTransient or kCancelled. It is kTerminal if the
// answer is too large, or if the request cannot be sent at all. The flag `maybe_applied` is false
// only if the request certainly never left. An HTTP error status is a Response.
using ResponseHandler = std::function<void(Result<Response>)>;

struct StreamRequest {
  std::string target;
  Headers headers;
  Duration open_timeout = std::chrono::seconds(30);  // until the response's head
  Duration idle_timeout = std::chrono::minutes(11);  // without one byte: ended with kTransient
  std::size_t max_line_bytes = 16u << 20;            // a longer line ends the stream, kTerminal
  std::function<std::any(std::string_view line)> decode;
};

struct StreamHandlers {
  // The head came. `response.body` is set (bounded) when the status is not 200; the stream then
  // ends by itself.
  std::function<void(const Response& response)> on_open;
  // Decoded lines in order. Reading pauses while too many lines wait.
  std::function<void(std::vector<std::any>&& lines)> on_lines;
  // No error: the server ended the stream cleanly.
  std::function<void(std::optional<Error> error)> on_end;
};

// PEM texts; empty means none.
struct TlsConfig {
  std::string ca;
  std::string client_certificate;
  std::string client_key;
  std::string server_name;  // overrides the URL's host for SNI and verification
  bool insecure_skip_verify = false;
  bool operator==(const TlsConfig&) const = default;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual CallId send(Request request, ResponseHandler handler) = 0;
  virtual CallId open(StreamRequest request, StreamHandlers handlers) = 0;
  // The handler still runs: with kCancelled, unless the answer was already on its way. Ignores
  // unknown ids.
  virtual void cancel(CallId call) = 0;
};

}  // namespace holdfast::http
