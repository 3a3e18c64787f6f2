// Instantiates the templates of checkpoints.h.
#include "sim/run/training/checkpoints.h"

namespace ferry {

FERRY_CHECKPOINTS_ON(, sim::SimDevice)
FERRY_CHECKPOINTS_ON(, Bent<sim::SimDevice>)
FERRY_CHECKPOINTS_ON(, Faulty<sim::SimDevice>)
template class sim::Segments<sim::SimDevice>;
template class sim::Segments<Bent<sim::SimDevice>>;
template class sim::Segments<Faulty<sim::SimDevice>>;

}  // namespace ferry
