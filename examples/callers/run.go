// Creates a DurableJob with k8s.io/client-go and waits for its end: docs/call-it.md.
package holdfast

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var jobs = schema.GroupVersionResource{Group: "holdfast.dev", Version: "v1alpha1", Resource: "durablejobs"}

// Run creates the job unless it exists, and returns the phase that it ended in.
func Run(ctx context.Context, client dynamic.Interface, job *unstructured.Unstructured) (string, error) {
	api := client.Resource(jobs).Namespace(job.GetNamespace())
	if _, err := api.Create(ctx, job, metav1.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
		return "", err
	}
	for ; ; time.Sleep(2 * time.Second) {
		seen, err := api.Get(ctx, job.GetName(), metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		switch phase, _, _ := unstructured.NestedString(seen.Object, "status", "phase"); phase {
		case "Succeeded", "Failed", "Cancelled":
			return phase, nil
		}
	}
}
