// CUPTI's entry point that PyTorch's profiler asks whether there is a GPU to watch. There is none:
// it records the host alone. CUPTI 13.2 itself, which finds no driver, calls itself without end.
namespace ferry::vgpu {

namespace {
constexpr int kNotInitialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED
}  // namespace

extern "C" int cuptiGetVersion(unsigned*) { return kNotInitialized; }

}  // namespace ferry::vgpu
