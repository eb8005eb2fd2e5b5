holdfast_test(kube_config_test
  SOURCES kube/base64_test.cc kube/child_process_test.cc kube/config_test.cc kube/connection_test.cc
          kube/credentials_test.cc kube/exec_plugin_test.cc kube/kubeconfig_test.cc
          kube/tls_rotation_test.cc kube/yaml_test.cc
  LIBRARIES holdfast_kube)
