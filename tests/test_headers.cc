// Without a source there is no precompiled header: CMakeLists.txt.
