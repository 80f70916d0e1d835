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

// FieldManager is the field manager of the objects that Apply applies.
const FieldManager = "karmada-install"

// maxParallelWrites is the maximum number of concurrent requests of Apply.
const maxParallelWrites = 8

// Apply applies several objects of the control plane in parallel, whoever installed them, and joins
// the errors. It returns the number of objects that differed.
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

// Applier writes the objects of one installer to one cluster. An object that has another installer is
// neither changed nor deleted.
type Applier struct {
	API client.Client
	// Installer is the field manager of the objects, and the value of their label InstalledByLabel.
	Installer string
	// Cluster is the name of the cluster in messages.
	Cluster string
	// Progressf reports each change to the user.
	Progressf func(format string, args ...any)
	// DryRun means that the Applier compares and reports, and changes nothing.
	DryRun bool
	// ownsAll means that the objects need no label, and that the Applier changes any object.
	ownsAll bool
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
// returns their number. It returns a ForeignError if an object has another installer.
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
		// The API server would reject the object if its namespace does not exist.
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

// isUnchanged reports whether an apply request changed nothing but the bookkeeping of the API server.
func isUnchanged(before client.Object, after *unstructured.Unstructured) bool {
	full, isFull := before.(*unstructured.Unstructured)
	if !isFull {
		// The API server does not store an object without a difference, so its version stays the same.
		return before.GetResourceVersion() == after.GetResourceVersion()
	}
	full, after = full.DeepCopy(), after.DeepCopy()
	for _, object := range []*unstructured.Unstructured{full, after} {
		object.SetResourceVersion("")
		object.SetManagedFields(nil)
	}
	return equality.Semantic.DeepEqual(full.Object, after.Object)
}

// encode returns an object for server-side apply: with the label of the installer, and without the
// fields that the API server sets.
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

// read returns the stored object, or nil if it does not exist. If the installer owns all objects, it
// returns only the metadata, because CRDs are large.
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

// readOwned returns the stored object, or nil if it does not exist. It returns a ForeignError if the
// object has another installer.
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

// CheckOwner returns a ForeignError if an object exists and has another installer.
func (a Applier) CheckOwner(ctx context.Context, object client.Object) error {
	_, err := a.readOwned(ctx, object)
	return err
}

// Delete deletes objects, in this order. An object of another installer is kept and reported. It is no
// error if an object does not exist.
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
