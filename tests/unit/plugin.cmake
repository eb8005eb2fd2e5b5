file(GLOB PLUGIN_TESTS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS plugin/*_test.cc plugin/ui/*_test.cc)
holdfast_test(plugin_test SOURCES ${PLUGIN_TESTS} plugin/situations.cc LIBRARIES holdfast_plugin_ui)
# The texts of tests/unit/plugin/explain, and the defaults that the CRD documents.
target_compile_definitions(plugin_test PRIVATE GOLDEN_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}/plugin/explain"
                                               CRD_FOLDER="${PROJECT_SOURCE_DIR}/crds")
