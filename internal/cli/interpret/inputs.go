package interpret

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
)

// The names of the flags with the input of an operation.
const (
	desiredFileFlag  = "--desired-file"
	observedFileFlag = "--observed-file"
	statusFileFlag   = "--status-file"
	replicasFlag     = "--desired-replica"
)

// inputFlags are the flags with the input of an operation.
type inputFlags struct {
	desiredFile, observedFile, statusFile string
	hasReplicas                           bool
	replicas                              int32
}

func (i *inputFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&i.desiredFile, "desired-file", "", "file or URL with the template, the object in the control plane")
	flags.StringVar(&i.observedFile, "observed-file", "", "file or URL with the object in a member cluster")
	flags.StringVar(&i.statusFile, "status-file", "", "file or URL with the items of AggregateStatus: a list, or one document for each item")
	flags.Int32Var(&i.replicas, "desired-replica", 0, "number of replicas for ReviseReplica")
}

// given returns the names of the given flags.
func (i *inputFlags) given() (names []string) {
	for _, each := range []struct {
		name    string
		isGiven bool
	}{
		{desiredFileFlag, i.desiredFile != ""},
		{observedFileFlag, i.observedFile != ""},
		{statusFileFlag, i.statusFile != ""},
		{replicasFlag, i.hasReplicas},
	} {
		if each.isGiven {
			names = append(names, each.name)
		}
	}
	return names
}

// used returns the names of the flags that an operation can use.
func (k inputKind) used() []string {
	switch k {
	case desiredAndReplicas:
		return []string{desiredFileFlag, replicasFlag}
	case desiredAndStatusFile:
		return []string{desiredFileFlag, statusFileFlag}
	case oneObject, desiredAndObserved:
	}
	return []string{desiredFileFlag, observedFileFlag}
}

// unused returns the names of the given flags that the operation does not use.
func (i *inputFlags) unused(operation operation) []string {
	return without(i.given(), operation.input.used())
}

func without(names, excluded []string) (kept []string) {
	isExcluded := map[string]bool{}
	for _, name := range excluded {
		isExcluded[name] = true
	}
	for _, name := range names {
		if !isExcluded[name] {
			kept = append(kept, name)
		}
	}
	return kept
}

// validate returns a usage error if the flags are not those that the operation needs.
func (i *inputFlags) validate(operation operation, filenames []string) error {
	if operation.input == oneObject {
		switch {
		case i.desiredFile == "" && i.observedFile == "":
			return command.NewUsageError("%s needs an object: set %s", operation.Name, operation.input)
		case i.desiredFile != "" && i.observedFile != "":
			return command.NewUsageError("%s takes one object: set %s, not both", operation.Name, operation.input)
		}
	} else if missing := without(operation.input.used(), i.given()); len(missing) > 0 {
		return command.NewUsageError("%s needs %s: %s is missing", operation.Name, operation.input, missing[0])
	}
	if i.replicas < 0 {
		return command.NewUsageError("%s must not be negative, not %d", replicasFlag, i.replicas)
	}
	readers := 0
	for _, name := range append([]string{i.desiredFile, i.observedFile, i.statusFile}, filenames...) {
		if isStandardInput(name) {
			readers++
		}
	}
	if readers > 1 {
		return command.NewUsageError("only one file can be standard input")
	}
	return nil
}

// readInputs reads the files that the operation uses.
func (o *options) readInputs(ctx context.Context, operation operation) (inputs, error) {
	read := inputs{replicas: int64(o.inputs.replicas)}
	var err error
	if o.inputs.desiredFile != "" {
		if read.desired, err = o.readObject(ctx, desiredFileFlag, o.inputs.desiredFile); err != nil {
			return inputs{}, err
		}
	}
	if usesObserved := operation.input == oneObject || operation.input == desiredAndObserved; usesObserved && o.inputs.observedFile != "" {
		if read.observed, err = o.readObject(ctx, observedFileFlag, o.inputs.observedFile); err != nil {
			return inputs{}, err
		}
	}
	if operation.input == desiredAndStatusFile {
		if read.items, err = o.readItems(ctx); err != nil {
			return inputs{}, err
		}
	}
	if read.desired != nil && read.observed != nil && read.desired.GroupVersionKind() != read.observed.GroupVersionKind() {
		return inputs{}, fmt.Errorf("%s has %s, but %s has %s: both must be the same kind", desiredFileFlag,
			describeKind(read.desired.GroupVersionKind()), observedFileFlag, describeKind(read.observed.GroupVersionKind()))
	}
	return read, nil
}

// readObject reads the only object of a file.
func (o *options) readObject(ctx context.Context, flag, name string) (*unstructured.Unstructured, error) {
	documents, err := o.readDocuments(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if len(documents) != 1 {
		return nil, fmt.Errorf("%s: %s has %d objects: give a file with exactly one", flag, documents[0].source, len(documents))
	}
	object, err := documents[0].object()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if object.IsList() {
		return nil, fmt.Errorf("%s: %s has a list of objects: give a file with exactly one object", flag, documents[0].place())
	}
	return object, nil
}

// readItems reads the items of AggregateStatus. It never returns nil, because a file without items
// means that no cluster has reported, not that nothing is known.
func (o *options) readItems(ctx context.Context) ([]workv1alpha2.AggregatedStatusItem, error) {
	documents, err := o.readDocuments(ctx, o.inputs.statusFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statusFileFlag, err)
	}
	items := []workv1alpha2.AggregatedStatusItem{}
	for _, document := range documents {
		read, err := document.items()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", statusFileFlag, document.place(), err)
		}
		items = append(items, read...)
	}
	return items, nil
}

// healths are the values of the field health of an item.
var healths = []workv1alpha2.ResourceHealth{workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy, workv1alpha2.ResourceUnknown}

// items returns the items of a document, which is a list of items or one item.
func (d document) items() ([]workv1alpha2.AggregatedStatusItem, error) {
	values, isList := d.value.([]any)
	if !isList {
		values = []any{d.value}
	}
	var items []workv1alpha2.AggregatedStatusItem
	for i, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		var item workv1alpha2.AggregatedStatusItem
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&item); err != nil {
			return nil, fmt.Errorf("item %d is not an AggregatedStatusItem (clusterName, status, applied, appliedMessage, health): %w", i+1, describeWrongType(err))
		}
		if item.ClusterName == "" {
			return nil, fmt.Errorf("item %d has no clusterName", i+1)
		}
		if item.Health != "" && !slices.Contains(healths, item.Health) {
			return nil, fmt.Errorf("item %d: health is %q, not one of %v", i+1, item.Health, healths)
		}
		items = append(items, item)
	}
	return items, nil
}

// object returns the Kubernetes object of a document.
func (d document) object() (*unstructured.Unstructured, error) {
	fields, ok := d.value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a Kubernetes object", d.place())
	}
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return nil, fmt.Errorf("%s is not a Kubernetes object: apiVersion or kind is missing", d.place())
	}
	if _, err := schema.ParseGroupVersion(object.GetAPIVersion()); err != nil {
		return nil, fmt.Errorf("%s: %w", d.place(), err)
	}
	return object, nil
}

// describeKind returns a kind as users write it, such as "apps/v1 Deployment".
func describeKind(kind schema.GroupVersionKind) string {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return apiVersion + " " + name
}
