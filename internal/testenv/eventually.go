package testenv

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// firstPoll and longestPoll are the shortest and the longest time between two checks. This time
	// grows while a test waits, because the checks of many waiting tests would use the processor
	// time that the components need.
	firstPoll   = 20 * time.Millisecond
	longestPoll = 250 * time.Millisecond
	// pollShare determines the time until the next check, which is 1/pollShare of the time waited
	// so far.
	pollShare = 10
	// holdPoll is the time between two checks of Held.
	holdPoll = 50 * time.Millisecond

	lastLook = 10 * time.Second
)

// Eventually waits until check returns nil. The test fails with the last error of check.
func Eventually(t testing.TB, what string, check func(ctx context.Context) error) {
	t.Helper()
	// A test's context ends before its cleanup starts.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	began := time.Now()
	next := time.NewTimer(firstPoll)
	defer next.Stop()
	var wrong error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil || wrong == nil {
			wrong = err
		}
		select {
		case <-ctx.Done():
			// Check once more, because the machine may have been suspended since the last check.
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
			defer cancel()
			if check(late) == nil {
				return
			}
			t.Fatalf("%s: still wrong after %s: %v", what, Patience, wrong)
		case <-next.C:
			next.Reset(min(max(time.Since(began)/pollShare, firstPoll), longestPoll))
		}
	}
}

// Holds fails the test if check returns an error within the duration.
func Holds(t testing.TB, what string, during time.Duration, check func(ctx context.Context) error) {
	t.Helper()
	if err := Held(t.Context(), during, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Held calls check repeatedly for the duration and returns its first error.
func Held(ctx context.Context, during time.Duration, check func(ctx context.Context) error) error {
	deadline := time.NewTimer(during)
	defer deadline.Stop()
	ticker := time.NewTicker(holdPoll)
	defer ticker.Stop()
	for {
		if err := check(ctx); err != nil {
			return err
		}
		select {
		case <-deadline.C:
			return nil
		case <-ticker.C:
		}
	}
}

// Namespace creates a namespace for one test and deletes it when the test ends.
func (e *Env) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := e.Karmada.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			e.showState(t, namespace.Name)
		}
		if err := client.IgnoreNotFound(e.Karmada.Delete(context.WithoutCancel(t.Context()), namespace)); err != nil {
			t.Errorf("deleting namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

// Create creates objects in the control plane.
func (e *Env) Create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := e.Karmada.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
		}
	}
}

// Update reads an object, changes it, and writes the change. It retries after conflicts.
func Update[T client.Object](t testing.TB, side client.Client, object T, change func(T)) {
	t.Helper()
	Eventually(t, fmt.Sprintf("updating %T %s", object, object.GetName()), func(ctx context.Context) error {
		if err := side.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return side.Update(ctx, object)
	})
}
