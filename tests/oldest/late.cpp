// A module that no system loads whose glibc is older than 2.30.
#include <unistd.h>

extern "C" int late_thread() { return gettid(); }
