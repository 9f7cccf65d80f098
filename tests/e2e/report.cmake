# include()d by tests/CMakeLists.txt
add_executable(write_page ${CMAKE_CURRENT_LIST_DIR}/write_page.c)
target_link_libraries(write_page PRIVATE ours report)
set_target_properties(write_page PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME e2e.flamegraph_page COMMAND ${Python3_EXECUTABLE}
	${CMAKE_CURRENT_LIST_DIR}/flamegraph_page.py $<TARGET_FILE:write_page>)
set_tests_properties(e2e.flamegraph_page PROPERTIES LABELS e2e TIMEOUT 300 SKIP_RETURN_CODE 77)
add_test(NAME e2e.timeline_page COMMAND ${Python3_EXECUTABLE}
	${CMAKE_CURRENT_LIST_DIR}/timeline_page.py ${CMAKE_SOURCE_DIR}/daemon/cli/timeline.html)
set_tests_properties(e2e.timeline_page PROPERTIES LABELS e2e TIMEOUT 400 SKIP_RETURN_CODE 77)
add_test(NAME bench.timeline_page COMMAND ${Python3_EXECUTABLE}
	${CMAKE_CURRENT_LIST_DIR}/timeline_page.py ${CMAKE_SOURCE_DIR}/daemon/cli/timeline.html --judge)
set_tests_properties(bench.timeline_page PROPERTIES LABELS bench TIMEOUT 600 SKIP_RETURN_CODE 77)
