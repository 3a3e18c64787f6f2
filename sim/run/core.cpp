// Instantiates the templates of core.h.
#include "sim/run/core.h"

namespace ferry {

template class Outbound<sim::SimDevice>;
template class Outbound<Bent<sim::SimDevice>>;
template class Outbound<Faulty<sim::SimDevice>>;
FERRY_OFFLOADER_ON(, sim::SimDevice)
FERRY_OFFLOADER_ON(, Bent<sim::SimDevice>)
FERRY_OFFLOADER_ON(, Faulty<sim::SimDevice>)

}  // namespace ferry
