// What the precompiled header of the tests is made with; see tests/CMakeLists.txt.
