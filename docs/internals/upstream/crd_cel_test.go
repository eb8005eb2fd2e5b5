// A benchmark for the package k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel of Kubernetes: what the API server
// spends on the validation rules of any custom resource definition. README.md says how to run it.
//
// The variable CRD names the file of a definition. WRITES names files of objects, with commas between them. The first is
// created. Each other one is a write of the status on top of the write before.
//
// cpu-ns/op is the CPU time of the whole process, with the garbage collector. Other load on the machine disturbs it less
// than ns/op.
package cel_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"
)

func BenchmarkCRD(b *testing.B) {
	if os.Getenv("CRD") == "" || os.Getenv("WRITES") == "" {
		b.Skip("CRD and WRITES name no files")
	}
	s := storedSchema(b, os.Getenv("CRD"))
	validator := cel.NewValidator(s, true, celconfig.PerCallLimit)
	if validator == nil {
		b.Fatal("the definition has no rules")
	}

	files := strings.Split(os.Getenv("WRITES"), ",")
	var old map[string]interface{}
	for _, file := range files {
		written := map[string]interface{}{}
		read(b, file, &written)
		next := written
		if old != nil {
			next = runtime.DeepCopyJSON(old)
			next["status"] = written["status"]
		}
		defaulting.Default(next, s)
		if old == nil {
			delete(next, "status")
		}
		validate := func(b *testing.B) {
			var options []cel.Option
			var oldObject interface{}
			if old != nil {
				oldObject = old
				correlated := common.NewCorrelatedObject(next, old, &model.Structural{Structural: s})
				options = append(options, cel.WithRatcheting(correlated))
			}
			errs, _ := validator.Validate(context.Background(), nil, s, next, oldObject, celconfig.RuntimeCELCostBudget, options...)
			if len(errs) > 0 {
				b.Fatal(errs.ToAggregate())
			}
		}
		b.Run(filepath.Base(files[0])+"/"+filepath.Base(file), func(b *testing.B) {
			validate(b)
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu(b)
			for i := 0; i < b.N; i++ {
				validate(b)
			}
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
		})
		// the defaults of the status are there when it is read
		old = runtime.DeepCopyJSON(next)
		defaulting.Default(old, s)
	}
}

// storedSchema returns the schema of the version that is stored in etcd.
func storedSchema(b *testing.B, file string) *schema.Structural {
	crd := apiextensionsv1.CustomResourceDefinition{}
	read(b, file, &crd)
	for _, version := range crd.Spec.Versions {
		if !version.Storage {
			continue
		}
		internal := apiextensions.CustomResourceValidation{}
		err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, &internal, nil)
		if err != nil {
			b.Fatal(err)
		}
		s, err := schema.NewStructural(internal.OpenAPIV3Schema)
		if err != nil {
			b.Fatal(err)
		}
		if err := defaulting.PruneDefaults(s); err != nil {
			b.Fatal(err)
		}
		return s
	}
	b.Fatal("the definition has no version that is stored")
	return nil
}

func read(b *testing.B, file string, into interface{}) {
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	text, err = yaml.YAMLToJSON(text)
	if err != nil {
		b.Fatal(err)
	}
	// whole numbers become int64, as in the API server
	if err := utiljson.Unmarshal(text, into); err != nil {
		b.Fatal(err)
	}
}

func cpu(b *testing.B) int64 {
	usage := syscall.Rusage{}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
