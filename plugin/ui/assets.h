// The page's files, which are compressed into the program (cmake -DHOLDFAST_UI=ON).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::plugin {

struct Asset {
  std::string_view path;  // "/", "/app.js"
  std::string_view type;
  std::string_view gzip;  // its bytes
};

// Empty: the program was built without the page.
const std::vector<Asset>& assets();

}  // namespace holdfast::plugin
