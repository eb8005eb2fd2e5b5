#include "tests/simulation/crash_wire.h"

#include <utility>

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReset{1};

Error no_answer(ErrorCode code, const char* why) {
  Error error = make_error(code, why);
  error.maybe_applied = true;
  return error;
}

}  // namespace

http::CallId TappedWire::keep(Answer answer) {
  // Above all of the network's.
  const http::CallId id = (http::CallId{1} << 62) + next_kept_++;
  kept_.emplace(id, std::move(answer));
  return id;
}

http::CallId TappedWire::lose(Answer answer, bool silently, Duration limit) {
  const http::CallId id = keep(std::move(answer));
  loop_.call_after(silently ? limit : Duration(kReset), [this, id, silently] {
    report_loss(id, silently ? "timed out" : "connection reset");
  });
  return id;
}

void TappedWire::report_loss(http::CallId call, const char* why) {
  auto kept = kept_.extract(call);
  if (kept.empty()) return;
  if (const auto carried = carried_.find(call); carried != carried_.end()) {
    network_.cancel(carried->second);
  }
  if (!dying_) tap_.is_over();
  kept.mapped()(no_answer(ErrorCode::kTransient, why));
}

void TappedWire::die() {
  if (std::exchange(dying_, true)) return;
  tap_.dies(replica_);
}

void TappedWire::cancel(http::CallId call) {
  auto kept = kept_.extract(call);
  if (kept.empty()) return network_.cancel(call);
  if (const auto carried = carried_.find(call); carried != carried_.end()) {
    network_.cancel(carried->second);
  }
  if (!dying_) tap_.is_over();  // its sender has given it up
  loop_.post([answer = std::move(kept.mapped())] {
    answer(no_answer(ErrorCode::kCancelled, "cancelled"));
  });
}

http::CallId TappedWire::send(http::Request request, http::ResponseHandler handler) {
  if (dying_) return keep(handler);
  const auto mishap = tap_.leaves(replica_, request.method, request.target);
  if (!mishap) return network_.send(std::move(request), std::move(handler));
  const Duration limit = request.timeout;
  switch (*mishap) {
    case Mishap::kCrashBefore:
      die();
      return keep(handler);
    case Mishap::kRequestLost:
    case Mishap::kRequestLostSilently:
      return lose(handler, *mishap == Mishap::kRequestLostSilently, limit);
    case Mishap::kAnswerLost: {
      tap_.goes_out(replica_, *mishap, request.target);
      const http::CallId id = keep(handler);
      carried_[id] = network_.send(std::move(request), [this, id](const Result<http::Response>&) {
        report_loss(id, "connection reset");
      });
      return id;
    }
    case Mishap::kAnswerLostSilently: {
      tap_.goes_out(replica_, *mishap, request.target);
      const http::CallId id = lose(handler, /*silently=*/true, limit);
      carried_[id] = network_.send(std::move(request), [](const Result<http::Response>&) {});
      return id;
    }
    case Mishap::kCrashAnswered:
      return network_.send(std::move(request), [this, handler](Result<http::Response> answer) {
        die();
        handler(std::move(answer));
      });
    default:
      tap_.goes_out(replica_, *mishap, request.target);
      return network_.send(std::move(request), std::move(handler));
  }
}

http::CallId TappedWire::open(http::StreamRequest request, http::StreamHandlers handlers) {
  const auto ends = [on_end = handlers.on_end](const Error& error) { on_end(error); };
  if (dying_) return keep(ends);
  const auto mishap = tap_.leaves(replica_, "GET", request.target);
  if (!mishap) return network_.open(std::move(request), std::move(handlers));
  const Duration limit = request.open_timeout;
  http::StreamHandlers deaf{[](const http::Response&) {}, [](std::vector<std::any>&&) {},
                            [](const std::optional<Error>&) {}};
  switch (*mishap) {
    case Mishap::kCrashBefore:
      die();
      return keep(ends);
    case Mishap::kRequestLost:
    case Mishap::kRequestLostSilently:
      return lose(ends, *mishap == Mishap::kRequestLostSilently, limit);
    case Mishap::kAnswerLost: {
      const http::CallId id = keep(ends);
      deaf.on_open = [this, id](const http::Response&) { report_loss(id, "connection reset"); };
      carried_[id] = network_.open(std::move(request), std::move(deaf));
      return id;
    }
    case Mishap::kAnswerLostSilently: {
      const http::CallId id = lose(ends, /*silently=*/true, limit);
      carried_[id] = network_.open(std::move(request), std::move(deaf));
      return id;
    }
    case Mishap::kCrashAnswered:
      handlers.on_open = [this, on_open = handlers.on_open](const http::Response& head) {
        die();
        on_open(head);
      };
      return network_.open(std::move(request), std::move(handlers));
    default:
      tap_.goes_out(replica_, *mishap, request.target);
      return network_.open(std::move(request), std::move(handlers));
  }
}

}  // namespace holdfast::simulation
