# Tests of the runtime's parts, each on its own.
iridium_test(runtime_unit_test
  SOURCES
    channel_watcher_test.cpp
    control_message_test.cpp
    device_fault_test.cpp
    find_job_test.cpp
    heap_test.cpp
    lane_layout_test.cpp
    mailbox_test.cpp
    offset_allocator_test.cpp
    payload_test.cpp
    socket_test.cpp
    status_pool_test.cpp
    stream_registry_test.cpp
    team_terms_test.cpp
  LIBRARIES iridium_test_support fmt::fmt
  IN_PROCESS QUICK)
