// What Argo CD, Flux, kstatus and Helm 4 make of objects, by their own code. Reads JSON objects from standard input and prints
// for each its health and the message:
//
//	gitops argocd FILE    FILE is an argocd-cm ConfigMap; its health checks and those that are built in
//	gitops flux FILE      FILE is a Kustomization; its healthCheckExprs, and its kstatus for all other kinds
//	gitops kstatus        Kubernetes' own kstatus, which kpt has
//
// Or waits for them in a cluster, and prints one line, "ready" or "not ready" and why:
//
//	gitops helm KUBECONFIG SECONDS         as `helm install --wait --wait-for-jobs --timeout` for what a chart has
//	gitops helm-hook KUBECONFIG SECONDS    the same for what is a hook
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	argoproj "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/gitops-engine/pkg/health"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/engine"
	fluxstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/fluxcd/pkg/runtime/statusreaders"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

const healthKey = "resource.customizations.health."

// Reads one object's health.
type reader func(*unstructured.Unstructured) (string, string, error)

func argocd(text []byte) (reader, error) {
	var file struct{ Data map[string]string }
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	scripts := lua.ResourceHealthOverrides{}
	for key, script := range file.Data {
		// As in a key of the ConfigMap: a _ stands for the / between group and kind.
		if kind, ok := strings.CutPrefix(key, healthKey); ok {
			scripts[strings.Replace(kind, "_", "/", 1)] = argoproj.ResourceOverride{HealthLua: script}
		}
	}
	return func(object *unstructured.Unstructured) (string, string, error) {
		found, err := health.GetResourceHealth(object, scripts)
		if err != nil {
			return "", "", err
		}
		if found == nil {
			return "None", "", nil
		}
		return string(found.Status), found.Message, nil
	}, nil
}

func flux(text []byte) (reader, error) {
	var file struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	ofKind := map[string]*cel.StatusEvaluator{}
	for _, check := range file.Spec.HealthCheckExprs {
		evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		if err != nil {
			return nil, err
		}
		ofKind[check.APIVersion+"/"+check.Kind] = evaluator
	}
	// Flux waits for a Job's end; to kstatus itself a Job is done once it has started.
	jobs := statusreaders.NewCustomJobStatusReader(nil)
	return func(object *unstructured.Unstructured) (string, string, error) {
		if evaluator := ofKind[object.GetAPIVersion()+"/"+object.GetKind()]; evaluator != nil {
			return fluxSays(evaluator.Evaluate(context.Background(), object))
		}
		if jobs.Supports(object.GroupVersionKind().GroupKind()) {
			return ofReader(jobs, object)
		}
		return fluxSays(fluxstatus.Compute(object))
	}, nil
}

func ofReader(readers engine.StatusReader, object *unstructured.Unstructured) (string, string, error) {
	found, err := readers.ReadStatusForObject(context.Background(), nil, object)
	if err != nil {
		return "", "", err
	}
	return string(found.Status), found.Message, found.Error
}

func fluxSays(result *fluxstatus.Result, err error) (string, string, error) {
	if err != nil {
		return "", "", err
	}
	return string(result.Status), result.Message, nil
}

func kstatus(object *unstructured.Unstructured) (string, string, error) {
	result, err := status.Compute(object)
	if err != nil {
		return "", "", err
	}
	return string(result.Status), result.Message, nil
}

func helm(kubeconfig string, timeout time.Duration, hook bool) error {
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &kubeconfig
	client := kube.New(flags)
	resources, err := client.Build(os.Stdin, false)
	if err != nil {
		log.Fatal(err)
	}
	waiter, err := client.GetWaiter(kube.StatusWatcherStrategy)
	if err != nil {
		log.Fatal(err)
	}
	if hook {
		return waiter.WatchUntilReady(resources, timeout)
	}
	return waiter.WaitWithJobs(resources, timeout)
}

func mainHelm(arguments []string) {
	seconds, err := strconv.Atoi(arguments[2])
	if err != nil {
		log.Fatal(err)
	}
	if err := helm(arguments[1], time.Duration(seconds)*time.Second, arguments[0] == "helm-hook"); err != nil {
		fmt.Printf("not ready\t%s\n", oneLine(err.Error()))
	} else {
		fmt.Print("ready\t\n")
	}
}

func oneLine(text string) string {
	return strings.ReplaceAll(text, "\n", " ")
}

func main() {
	makers := map[string]func([]byte) (reader, error){"argocd": argocd, "flux": flux}
	switch {
	case len(os.Args) == 3 && makers[os.Args[1]] != nil:
		mainHealth(fromFile(makers[os.Args[1]], os.Args[2]))
	case len(os.Args) == 2 && os.Args[1] == "kstatus":
		mainHealth(kstatus)
	case len(os.Args) == 4 && (os.Args[1] == "helm" || os.Args[1] == "helm-hook"):
		mainHelm(os.Args[1:])
	default:
		log.Fatal("usage: gitops argocd|flux FILE <OBJECTS, gitops kstatus <OBJECTS, or gitops helm|helm-hook KUBECONFIG SECONDS <OBJECTS")
	}
}

func fromFile(make func([]byte) (reader, error), file string) reader {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	read, err := make(text)
	if err != nil {
		log.Fatal(err)
	}
	return read
}

func mainHealth(read reader) {
	objects := json.NewDecoder(os.Stdin)
	for {
		var object unstructured.Unstructured
		if err := objects.Decode(&object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		found, message, err := read(&object)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\t%s\n", found, oneLine(message))
	}
}
