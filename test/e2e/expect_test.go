package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	defaultTimeout    = 2 * time.Minute
	pollInterval      = 50 * time.Millisecond
	finalCheckTimeout = 10 * time.Second
)

// poll calls check until it returns nil. After the end of ctx it calls check once more,
// because the machine may have been suspended. Then it returns the last error of check that
// was not caused by the end of ctx.
func poll(ctx context.Context, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var lastError error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if lastError == nil || ctx.Err() == nil {
			lastError = err
		}
		select {
		case <-ctx.Done():
			finalCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalCheckTimeout)
			defer cancel()
			if check(finalCtx) == nil {
				return nil
			}
			return lastError
		case <-ticker.C:
		}
	}
}

// eventually fails the test if check does not return nil within the default timeout.
func eventually(t *testing.T, description string, check func(context.Context) error) {
	t.Helper()
	eventuallyWithin(t, defaultTimeout, description, check)
}

func eventuallyWithin(t *testing.T, limit time.Duration, description string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := poll(ctx, check); err != nil {
		t.Fatalf("%s: not successful after %s: %v", description, limit, err)
	}
}

// newNamespace creates a namespace for a test in the shared installation.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	createObjects(t, shared, namespace)
	return namespace.Name
}

// createObjects creates objects in the control plane and deletes them after the test,
// because cluster-scoped objects would affect other tests.
func createObjects(t *testing.T, i *installation, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := i.karmada.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
		}
		t.Cleanup(func() {
			err := i.karmada.Delete(context.WithoutCancel(t.Context()), object)
			if client.IgnoreNotFound(err) != nil {
				t.Errorf("deleting %T %s: %v", object, object.GetName(), err)
			}
		})
	}
}

// checkAbsent returns an error if the object exists.
func checkAbsent(ctx context.Context, cluster client.Client, object client.Object) error {
	key := client.ObjectKeyFromObject(object)
	err := cluster.Get(ctx, key, object)
	switch {
	case err == nil:
		return fmt.Errorf("%T %s exists, with finalizers %v", object, key, object.GetFinalizers())
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}

// updateObject reads an object, changes it and writes it. It retries on a conflict.
func updateObject[T client.Object](t *testing.T, object T, change func(T)) {
	t.Helper()
	eventually(t, fmt.Sprintf("updating %T %s", object, object.GetName()), func(ctx context.Context) error {
		if err := shared.karmada.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return shared.karmada.Update(ctx, object)
	})
}

// awaitWarningEvent waits for a Warning event on an object of the control plane whose
// message contains all the parts.
func awaitWarningEvent(t *testing.T, involved client.Object, reason string, parts ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("warning %s on %s", reason, involved.GetName()), func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := shared.karmada.List(ctx, events, client.InNamespace(involved.GetNamespace())); err != nil {
			return err
		}
		var others []error
		for _, event := range events.Items {
			if event.InvolvedObject.UID != involved.GetUID() {
				continue
			}
			if event.Type == corev1.EventTypeWarning && event.Reason == reason && containsAll(event.Message, parts) {
				return nil
			}
			others = append(others, fmt.Errorf("%s %s: %s", event.Type, event.Reason, event.Message))
		}
		return fmt.Errorf("no event with %q among: %w", parts, errors.Join(others...))
	})
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}
