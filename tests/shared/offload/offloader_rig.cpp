// Instantiates the templates of offloader_rig.h.
#include "tests/shared/offload/offloader_rig.h"

namespace ferry {

template class Outbound<Counted<sim::SimDevice>>;
template class Inbound<Counted<sim::SimDevice>>;
template class OffloadCore<Counted<sim::SimDevice>, test::ScriptAutograd>;
template class Offloader<Counted<sim::SimDevice>, test::ScriptAutograd>;

}  // namespace ferry
