// What kstatus, and so Helm, Flux and kpt, make of objects: reads JSON objects from standard input,
// and prints for each its status (InProgress, Current, Failed, ...) and the message.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	objects := json.NewDecoder(os.Stdin)
	for {
		var object unstructured.Unstructured
		if err := objects.Decode(&object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		result, err := status.Compute(&object)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\t%s\n", result.Status, result.Message)
	}
}
