// The HTTP transport: the only way to the API server. One implementation over cpprestsdk
// (cpprest_transport.cc, the only file that includes it), one in the simulator.
//
// Threads: every method is called on the loop; every handler runs on the loop, in a later turn,
// never from inside the call that caused it. `decode` functions run on an I/O thread: they must be
// pure. A request always answers exactly once, a stream always ends exactly once, also when
// cancelled (ErrorCode::kCancelled) and when the transport is shut down.
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

// Which request goes first when not all can go. The more urgent has slots that the less urgent
// cannot take, so that requests that hang hold up nothing more urgent than themselves.
enum class Urgency {
  kOrdinary,
  kUrgent,  // a verdict rests on it
  kVital,   // this replica's membership rests on it
};
inline constexpr std::size_t kUrgencies = 3;

// Takes a body piece by piece, as it comes. Of one answer, and called on an I/O thread: pure.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  // False: it has seen enough.
  virtual bool read(std::string_view piece) = 0;
  // The parsed form of what came.
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
  // Makes the parsed form of a 2xx body; without it the body itself is kept.
  std::function<std::any(std::string&& body)> decode;
  // In place of `decode`, for bodies that are not to be held as a whole: makes the reader of a 2xx
  // one. Of any other status the first kMaxKeptBytes are kept.
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

// An Error here means that no usable answer came: kTransient or kCancelled, kTerminal when the
// answer is larger than allowed or the request cannot be sent as it stands. `maybe_applied` is
// false only if the request certainly never left. An HTTP error status is a Response.
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
  // Decoded lines in order. Reading pauses while too many wait to be handled.
  std::function<void(std::vector<std::any>&& lines)> on_lines;
  // No error: the server ended it cleanly.
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
  // The handler still runs, with kCancelled, unless the answer is on its way already. Unknown ids
  // are ignored.
  virtual void cancel(CallId call) = 0;
};

}  // namespace holdfast::http
