// Instantiates the templates of core.h.
#include "sim/run/core.h"

namespace ferry {

FERRY_CORE_ON(, sim::SimDevice)
FERRY_CORE_ON(, Bent<sim::SimDevice>)
FERRY_CORE_ON(, Faulty<sim::SimDevice>)
template class sim::Segments<sim::SimDevice>;
template class sim::Segments<Bent<sim::SimDevice>>;
template class sim::Segments<Faulty<sim::SimDevice>>;

}  // namespace ferry
