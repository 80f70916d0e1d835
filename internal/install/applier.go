package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// FieldManager is the field manager of the objects that the function Apply writes.
const FieldManager = "karmada-install"

// maxParallelWrites limits the concurrent requests of the function Apply.
const maxParallelWrites = 8

// Apply applies objects to the control plane in parallel, regardless of their installer. It returns the
// number of objects that it changed, and all errors.
func Apply(ctx context.Context, karmada *rest.Config, objects ...client.Object) (written int, err error) {
	karmadaClient, err := client.New(karmada, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return 0, fmt.Errorf("creating a client of the control plane: %w", err)
	}
	applier := Applier{API: karmadaClient, Installer: FieldManager, Cluster: KarmadaName, Progressf: func(string, ...any) {}, ownsAll: true}
	errs := make([]error, len(objects))
	var changes atomic.Int64
	var writers errgroup.Group
	writers.SetLimit(maxParallelWrites)
	for i, object := range objects {
		writers.Go(func() error {
			var changed bool
			if changed, errs[i] = applier.apply(ctx, object); changed {
				changes.Add(1)
			}
			return nil
		})
	}
	_ = writers.Wait()
	return int(changes.Load()), errors.Join(errs...)
}

// Applier writes one installer's objects to one cluster. It never changes or deletes an object that another
// installer owns.
type Applier struct {
	API client.Client
	// Installer is the objects' field manager and the value of their InstalledByLabel.
	Installer string
	// Cluster is the cluster's name in messages.
	Cluster string
	// Progressf reports a change to the user.
	Progressf func(format string, args ...any)
	// DryRun makes the Applier compare and report without writing.
	DryRun bool
	// ownsAll makes the Applier change every object and add no label.
	ownsAll bool
}

// ForeignError means that an object already exists and belongs to another installer.
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

// Apply creates and updates the objects in the given order. It skips objects that are already up to date and
// returns the number of objects that it wrote. It returns a ForeignError if another installer owns an
// object.
func (a Applier) Apply(ctx context.Context, objects ...client.Object) (written int, err error) {
	for _, object := range objects {
		changed, err := a.apply(ctx, object)
		if err != nil {
			return written, err
		}
		if changed {
			written++
		}
	}
	return written, nil
}

func (a Applier) apply(ctx context.Context, wanted client.Object) (changed bool, err error) {
	content, err := a.encode(wanted)
	if err != nil {
		return false, err
	}
	existing, err := a.readOwned(ctx, wanted)
	if err != nil {
		return false, err
	}
	if existing == nil && a.DryRun {
		// The namespace may not exist yet, so the API server would reject a dry-run request.
		a.Progressf("%s would be created in %s", Describe(wanted), a.Cluster)
		return true, nil
	}
	options := []client.ApplyOption{client.FieldOwner(a.Installer), client.ForceOwnership}
	if a.DryRun {
		options = append(options, client.DryRunAll)
	}
	if err := a.API.Apply(ctx, client.ApplyConfigurationFromUnstructured(content), options...); err != nil {
		return false, fmt.Errorf("applying %s in %s: %w", Describe(wanted), a.Cluster, err)
	}
	verb := "changed"
	switch {
	case existing == nil:
		verb = "created"
	case isUnchanged(existing, content):
		return false, nil
	case a.DryRun:
		verb = "would be changed"
	}
	a.Progressf("%s %s in %s", Describe(wanted), verb, a.Cluster)
	return true, nil
}

// isUnchanged reports whether an apply request changed only metadata that the API server maintains.
func isUnchanged(before client.Object, after *unstructured.Unstructured) bool {
	full, isFull := before.(*unstructured.Unstructured)
	if !isFull {
		// The API server does not store an object without a change, so its resource version stays the same.
		return before.GetResourceVersion() == after.GetResourceVersion()
	}
	full, after = full.DeepCopy(), after.DeepCopy()
	for _, object := range []*unstructured.Unstructured{full, after} {
		object.SetResourceVersion("")
		object.SetManagedFields(nil)
	}
	return equality.Semantic.DeepEqual(full.Object, after.Object)
}

// encode returns the object for server-side apply: with the installer's label and without fields that the
// API server sets.
func (a Applier) encode(wanted client.Object) (*unstructured.Unstructured, error) {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", Describe(wanted), err)
	}
	content := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(raw)}
	if !a.ownsAll {
		labels := maps.Clone(wanted.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		labels[clusterv1alpha1.InstalledByLabel] = a.Installer
		content.SetLabels(labels)
	}
	unstructured.RemoveNestedField(content.Object, "status")
	unstructured.RemoveNestedField(content.Object, "metadata", "creationTimestamp")
	return content, nil
}

// read returns the stored object, or nil if it does not exist. If ownsAll is set, read requests only the
// metadata, because CRDs are large.
func (a Applier) read(ctx context.Context, wanted client.Object) (client.Object, error) {
	var existing client.Object = &unstructured.Unstructured{}
	if a.ownsAll {
		existing = &metav1.PartialObjectMetadata{}
	}
	existing.GetObjectKind().SetGroupVersionKind(wanted.GetObjectKind().GroupVersionKind())
	err := a.API.Get(ctx, client.ObjectKeyFromObject(wanted), existing)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", Describe(wanted), a.Cluster, err)
	}
	return existing, nil
}

// readOwned returns the stored object, or nil if it does not exist. It returns a ForeignError if another
// installer owns the object.
func (a Applier) readOwned(ctx context.Context, wanted client.Object) (client.Object, error) {
	existing, err := a.read(ctx, wanted)
	if err == nil && existing != nil && !a.owns(existing) {
		err = &ForeignError{Object: existing, Cluster: a.Cluster, Installer: a.Installer}
	}
	return existing, err
}

func (a Applier) owns(existing client.Object) bool {
	return a.ownsAll || existing.GetLabels()[clusterv1alpha1.InstalledByLabel] == a.Installer
}

// VerifyOwner returns a ForeignError if the object exists and another installer owns it.
func (a Applier) VerifyOwner(ctx context.Context, object client.Object) error {
	_, err := a.readOwned(ctx, object)
	return err
}

// Delete deletes the objects in the given order. It ignores objects that do not exist, and keeps and reports
// objects that another installer owns.
func (a Applier) Delete(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		// The object's status may change between the read and the deletion.
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return a.delete(ctx, object) }); err != nil {
			return err
		}
	}
	return nil
}

func (a Applier) delete(ctx context.Context, object client.Object) error {
	existing, err := a.read(ctx, object)
	switch {
	case err != nil || existing == nil:
		return err
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
