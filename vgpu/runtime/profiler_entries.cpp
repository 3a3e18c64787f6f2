// The entry point of CUPTI with which PyTorch's profiler asks whether there is a GPU to watch. It
// answers that there is none, so the profiler records the host alone. Otherwise CUPTI 13.2 itself
// would answer: it finds no driver and then calls itself without end.
namespace ferry::vgpu {

namespace {
constexpr int kNotInitialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED
}  // namespace

extern "C" int cuptiGetVersion(unsigned*) { return kNotInitialized; }

}  // namespace ferry::vgpu
