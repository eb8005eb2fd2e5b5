holdfast_test(api_test SOURCES api/docs_link_test.cc api/fields_test.cc api/index_set_test.cc LIBRARIES holdfast_api holdfast_kube)
target_compile_definitions(api_test PRIVATE CRD_FOLDER="${PROJECT_SOURCE_DIR}/crds"
                                            HOLDFAST_VERSION="${PROJECT_VERSION}")
