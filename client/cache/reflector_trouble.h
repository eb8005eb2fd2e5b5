// What goes wrong with the lists and watches of a reflector: what an error means, and how long to
// wait. Each kind of trouble has a back-off of its own: a server that throttles, a server that does
// not answer. An expired version is no trouble: the first list after it comes at once. Loop only.
#pragma once

#include <string>

#include "client/cache/backoff.h"
#include "core/result.h"

namespace holdfast::cache {

// The server says that it has not reached the version asked for. Its data was set back, or it lags
// behind the server asked before.
bool version_ahead(const Error& error);
// The version of a watch, or the token of a list, has expired; or version_ahead().
bool needs_consistent_list(const Error& error);
// The answer was too large (kTerminal) or incomplete.
bool is_incomplete(const Error& error);
// The server's Retry-After, at most kLongestAsked.
Duration asked_by(const Error& error);

// The longest Retry-After that is obeyed.
inline constexpr Duration kLongestAsked = std::chrono::minutes(5);

class ReflectorTrouble {
 public:
  // A back-off starts over after this long without trouble of its kind.
  static constexpr Duration kGoodFor = std::chrono::minutes(2);
  // Shorter for a server that answers: a changed CRD throttles its watches and expires their
  // version, and that is normal.
  static constexpr Duration kSoonGood = std::chrono::seconds(5);

  explicit ReflectorTrouble(Random& random) : random_(random) {}

  // The last trouble, empty once a list or a watch has succeeded since.
  const std::string& text() const { return text_; }
  void note(const Error& error) { text_ = error.message; }
  void over() { text_.clear(); }

  // How long to wait after this error. Draws a random number.
  Duration next_wait(const Error& error, SteadyTime now);
  // A list or a watch has succeeded.
  void good(SteadyTime now);
  // The outage is over, and lengthens no later back-off.
  void server_answers() { unanswered_.reset(); }

 private:
  Random& random_;
  Backoff unanswered_{kGoodFor};
  Backoff throttled_{kSoonGood};
  Backoff expired_{kSoonGood, Duration::zero()};
  std::string text_;
};

}  // namespace holdfast::cache
