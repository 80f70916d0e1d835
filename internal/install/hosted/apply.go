package hosted

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Applier writes the objects of one installer to one cluster.
type Applier struct {
	API client.Client
	// Installer is the value of the label InstalledByLabel.
	Installer string
	// Cluster is the name of the cluster in messages.
	Cluster string
	// Progressf reports each change to the user.
	Progressf func(format string, args ...any)
	// DryRun means that the Applier compares and reports, and changes nothing.
	DryRun bool
}

// ForeignError means that an object exists that this installer did not install.
type ForeignError struct {
	Object    client.Object
	Cluster   string
	Installer string
}

// Error implements error.
func (f *ForeignError) Error() string {
	by := "in another way"
	if other := f.Object.GetLabels()[clusterv1alpha1.InstalledByLabel]; other != "" {
		by = "by " + other
	}
	return fmt.Sprintf("%s in %s was installed %s: delete it before %s may install it", Describe(f.Object), f.Cluster, by, f.Installer)
}

// Apply creates and changes objects, in this order. It writes only the objects that differ, and
// returns their number. An error of the type ForeignError means that an object has another
// installer.
func (a Applier) Apply(ctx context.Context, objects ...client.Object) (written int, err error) {
	for _, want := range objects {
		changed, err := a.apply(ctx, want)
		if err != nil {
			return written, err
		}
		if changed {
			written++
		}
	}
	return written, nil
}

func (a Applier) apply(ctx context.Context, want client.Object) (changed bool, err error) {
	content, err := a.labeled(want)
	if err != nil {
		return false, err
	}
	existing, err := a.read(ctx, want)
	if err != nil {
		return false, err
	}
	if existing != nil && !a.owns(existing) {
		return false, &ForeignError{Object: existing, Cluster: a.Cluster, Installer: a.Installer}
	}
	// The API server compares all fields, and removes fields that are no longer wanted. It does not
	// store an object without a difference.
	if existing == nil && a.DryRun {
		// The namespace of the object may not exist, so the API server is not asked.
		a.Progressf("%s would be created in %s", Describe(want), a.Cluster)
		return true, nil
	}
	options := []client.ApplyOption{client.FieldOwner(a.Installer), client.ForceOwnership}
	if a.DryRun {
		options = append(options, client.DryRunAll)
	}
	if err := a.API.Apply(ctx, client.ApplyConfigurationFromUnstructured(content), options...); err != nil {
		return false, fmt.Errorf("applying %s in %s: %w", Describe(want), a.Cluster, err)
	}
	verb := "created"
	if existing != nil {
		if hasSameContent(existing, content) {
			return false, nil
		}
		verb = "changed"
	}
	if a.DryRun {
		verb = "would be changed"
	}
	a.Progressf("%s %s in %s", Describe(want), verb, a.Cluster)
	return true, nil
}

// hasSameContent reports whether two states of an object differ only in the bookkeeping of the API
// server.
func hasSameContent(before, after *unstructured.Unstructured) bool {
	before, after = before.DeepCopy(), after.DeepCopy()
	for _, object := range []*unstructured.Unstructured{before, after} {
		object.SetResourceVersion("")
		object.SetManagedFields(nil)
	}
	return equality.Semantic.DeepEqual(before.Object, after.Object)
}

// labeled returns an object for server-side apply with the label of the installer, and without the
// fields that the API server sets.
func (a Applier) labeled(want client.Object) (*unstructured.Unstructured, error) {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", Describe(want), err)
	}
	content := &unstructured.Unstructured{Object: raw}
	labels := maps.Clone(want.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1alpha1.InstalledByLabel] = a.Installer
	content.SetLabels(labels)
	for _, field := range [][]string{{"status"}, {"metadata", "creationTimestamp"}, {"spec", "strategy"}, {"spec", "template", "metadata", "creationTimestamp"}} {
		unstructured.RemoveNestedField(content.Object, field...)
	}
	return content, nil
}

// read returns the stored object, or nil if it does not exist.
func (a Applier) read(ctx context.Context, want client.Object) (*unstructured.Unstructured, error) {
	existing := &unstructured.Unstructured{}
	existing.SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
	err := a.API.Get(ctx, client.ObjectKeyFromObject(want), existing)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", Describe(want), a.Cluster, err)
	}
	return existing, nil
}

func (a Applier) owns(existing client.Object) bool {
	return existing.GetLabels()[clusterv1alpha1.InstalledByLabel] == a.Installer
}

// CheckOwner returns a ForeignError if an object exists and has another installer.
func (a Applier) CheckOwner(ctx context.Context, object client.Object) error {
	existing, err := a.read(ctx, object)
	if err != nil || existing == nil || a.owns(existing) {
		return err
	}
	return &ForeignError{Object: existing, Cluster: a.Cluster, Installer: a.Installer}
}

// Delete deletes objects, in this order. An object of another installer is kept and reported. The
// absence of an object is no error.
func (a Applier) Delete(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		// The status of an object may change between the read and the deletion.
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return a.delete(ctx, object) }); err != nil {
			return err
		}
	}
	return nil
}

func (a Applier) delete(ctx context.Context, object client.Object) error {
	existing, err := a.read(ctx, object)
	switch {
	case err != nil:
		return err
	case existing == nil:
		return nil
	case !a.owns(existing):
		a.Progressf("%s in %s is kept: this command did not install it", Describe(object), a.Cluster)
		return nil
	}
	uid, version := existing.GetUID(), existing.GetResourceVersion()
	err = a.API.Delete(ctx, existing, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting %s in %s: %w", Describe(object), a.Cluster, err)
	}
	a.Progressf("%s deleted in %s", Describe(object), a.Cluster)
	return nil
}
