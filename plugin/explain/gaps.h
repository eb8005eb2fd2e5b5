// Texts with gaps: the job's own names are put in.
//
//   fill_gaps("kubectl get dj {job}", {{"job", "a"}})  ->  "kubectl get dj a"
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::plugin {

// Gaps: {job} {ns} {pod} {node} {attempt} {index} {queue} {pool} {worker} {uid}. None: the text has
// a gap that has no value.
using Gaps = std::map<std::string, std::string, std::less<>>;
std::optional<std::string> fill_gaps(std::string_view text, const Gaps& gaps);

}  // namespace holdfast::plugin
