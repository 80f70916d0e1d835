package interpret

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
)

// The names of the flags with the input of an operation.
const (
	desiredFileFlag  = "desired-file"
	observedFileFlag = "observed-file"
	statusFileFlag   = "status-file"
	replicasFlag     = "desired-replica"
)

var inputFlags = []string{desiredFileFlag, observedFileFlag, statusFileFlag, replicasFlag}

// inputs are the arguments of an operation.
type inputs struct {
	desired, observed *unstructured.Unstructured
	items             []workv1alpha2.AggregatedStatusItem
	replicas          int64
}

// object returns the only object of an operation that takes one object.
func (i inputs) object() *unstructured.Unstructured {
	if i.desired != nil {
		return i.desired
	}
	return i.observed
}

// validateInput returns a usage error if the flags are not those that the operation needs.
func (o *options) validateInput() error {
	operation, err := findOperation(o.operationName)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(operation.flags), o.isSet)
	streams := 0
	for _, name := range append([]string{o.desiredFile, o.observedFile, o.statusFile}, o.filenames...) {
		if name == command.StandardInput {
			streams++
		}
	}
	switch {
	case operation.takesOneObject && len(missing) > 1:
		return command.NewUsageError("%s needs an object: set %s", operation.Name, operation.describeInput())
	case operation.takesOneObject && len(missing) == 0:
		return command.NewUsageError("%s takes one object: set %s, not both", operation.Name, operation.describeInput())
	case !operation.takesOneObject && len(missing) > 0:
		return command.NewUsageError("%s needs %s: --%s is missing", operation.Name, operation.describeInput(), missing[0])
	case o.replicas < 0:
		return command.NewUsageError("--%s must not be negative, not %d", replicasFlag, o.replicas)
	case streams > 1:
		return command.NewUsageError("only one file can be standard input")
	}
	return nil
}

// readInputs reads the files that the operation uses.
func (o *options) readInputs(ctx context.Context, operation operation) (in inputs, err error) {
	in.replicas = int64(o.replicas)
	for _, flag := range operation.flags {
		if !o.isSet(flag) {
			continue
		}
		switch flag {
		case desiredFileFlag:
			in.desired, err = o.readObject(ctx, o.desiredFile)
		case observedFileFlag:
			in.observed, err = o.readObject(ctx, o.observedFile)
		case statusFileFlag:
			in.items, err = o.readItems(ctx)
		}
		if err != nil {
			return in, fmt.Errorf("--%s: %w", flag, err)
		}
	}
	if in.desired != nil && in.observed != nil && in.desired.GroupVersionKind() != in.observed.GroupVersionKind() {
		return in, fmt.Errorf("--%s has %s, but --%s has %s: both must be the same kind", desiredFileFlag,
			describeKind(in.desired.GroupVersionKind()), observedFileFlag, describeKind(in.observed.GroupVersionKind()))
	}
	return in, nil
}

// readObject reads the only object of a file.
func (o *options) readObject(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	documents, err := o.readDocuments(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 {
		return nil, fmt.Errorf("%s has %d objects: give a file with exactly one", name, len(documents))
	}
	return documents[0].object()
}

// readItems reads the items of AggregateStatus. It never returns nil without an error, because a file
// without items means that no cluster has reported, not that nothing is known.
func (o *options) readItems(ctx context.Context) ([]workv1alpha2.AggregatedStatusItem, error) {
	documents, err := o.readDocuments(ctx, o.statusFile)
	if err != nil {
		return nil, err
	}
	healths := []workv1alpha2.ResourceHealth{workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy, workv1alpha2.ResourceUnknown}
	items := make([]workv1alpha2.AggregatedStatusItem, len(documents))
	for i, document := range documents {
		item := &items[i]
		if err := document.decode(item); err != nil {
			return nil, fmt.Errorf("%s is not an AggregatedStatusItem (clusterName, status, applied, appliedMessage, health): %w", document.place(),
				err)
		}
		if item.ClusterName == "" {
			return nil, fmt.Errorf("%s has no clusterName", document.place())
		}
		if item.Health != "" && !slices.Contains(healths, item.Health) {
			return nil, fmt.Errorf("%s: health is %q, not one of %v", document.place(), item.Health, healths)
		}
	}
	return items, nil
}
