// A sentence with the moments that it speaks of. Whoever shows it renders them by their own clock:
// a terminal once, a page again each second. Pure.
//
//   Text by = Text::due(deadline) + ": a pod that has not ended is then given up";
//   by.at(now);  // "in 12s (14:00:12 UTC): a pod that has not ended is then given up"
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"

namespace holdfast::plugin {

// How a moment reads: kMoment "in 12s (14:00:12 UTC)"; kDue the same, and "due 2s ago (13:59:58
// UTC), being done now"; kAgo "12s ago"; kFor "12s"; kClock "14:00:12".
enum class MomentForm { kMoment, kDue, kAgo, kFor, kClock };
std::string to_string(MomentForm form);  // "moment"

class Text {
 public:
  struct Piece {
    std::string words;  // if it is no moment
    std::optional<Time> moment;
    MomentForm form = MomentForm::kMoment;
  };

  Text() = default;
  Text(std::string words);       // NOLINT: a text without moments is one
  Text(std::string_view words);  // NOLINT
  Text(const char* words);       // NOLINT

  static Text moment(Time time) { return Text(time, MomentForm::kMoment); }
  static Text due(Time time) { return Text(time, MomentForm::kDue); }
  static Text ago(Time time) { return Text(time, MomentForm::kAgo); }
  static Text lasting(Time since) { return Text(since, MomentForm::kFor); }
  static Text clock(Time time) { return Text(time, MomentForm::kClock); }

  Text& operator+=(const Text& more);
  friend Text operator+(Text text, const Text& more) {
    text += more;
    return text;
  }

  bool empty() const { return pieces_.empty(); }
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::string at(Time now) const;
  // The same with each of its words as `change` returns them.
  Text with_words(const std::function<std::string(std::string)>& change) const;

 private:
  Text(Time time, MomentForm form) : pieces_{{"", time, form}} {}

  std::vector<Piece> pieces_;  // none is empty
};

}  // namespace holdfast::plugin
