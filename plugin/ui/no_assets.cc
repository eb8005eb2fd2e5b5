// For a build without the page: -DHOLDFAST_UI=OFF.
#include "plugin/ui/assets.h"

namespace holdfast::plugin {

const std::vector<Asset>& assets() {
  static const std::vector<Asset> none;
  return none;
}

}  // namespace holdfast::plugin
