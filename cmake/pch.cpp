// Nothing: CMake hangs the precompiled header on it.
