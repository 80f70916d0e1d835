package looptest

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// newCase returns a case with the stored object "old" and a loop whose pass calls the given
// functions in order.
func newCase(do ...func(context.Context, client.Client) error) CrashCase {
	return CrashCase{
		NewStore: func() client.WithWatch { return fake.NewClientBuilder().WithObjects(newConfigMap("old")).Build() },
		NewLoop: func(karmada, _ client.WithWatch) func(context.Context) error {
			return func(ctx context.Context) error {
				for _, each := range do {
					if err := each(ctx, karmada); err != nil {
						return err
					}
				}
				return nil
			}
		},
		FinalState: func(ctx context.Context, from client.Reader) (string, error) {
			list := &corev1.ConfigMapList{}
			err := from.List(ctx, list)
			var names []string
			for _, each := range list.Items {
				names = append(names, each.Name)
			}
			return strings.Join(names, " "), err
		},
	}
}

// createIfMissing creates the object "new" if it does not exist.
func createIfMissing(ctx context.Context, karmada client.Client) error {
	if err := karmada.Get(ctx, client.ObjectKeyFromObject(newConfigMap("new")), newConfigMap("new")); err == nil {
		return nil
	}
	return karmada.Create(ctx, newConfigMap("new"))
}

// deleteIfPresent deletes the object "old" if it exists.
func deleteIfPresent(ctx context.Context, karmada client.Client) error {
	if err := karmada.Get(ctx, client.ObjectKeyFromObject(newConfigMap("old")), newConfigMap("old")); err != nil {
		return client.IgnoreNotFound(err)
	}
	return karmada.Delete(ctx, newConfigMap("old"))
}

func TestRobustLoopPasses(t *testing.T) { newCase(createIfMissing, deleteIfPresent).Run(t) }

// deleteThenCreate deletes the object "old" and then creates the object "new". It does nothing if
// "old" does not exist.
func deleteThenCreate(ctx context.Context, karmada client.Client) error {
	if err := karmada.Get(ctx, client.ObjectKeyFromObject(newConfigMap("old")), newConfigMap("old")); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := karmada.Delete(ctx, newConfigMap("old")); err != nil {
		return err
	}
	return karmada.Create(ctx, newConfigMap("new"))
}

func TestLostWriteIsDetected(t *testing.T) {
	c := newCase(deleteThenCreate)
	want, err := c.runProcess(t.Context(), &process{}, c.NewStore())
	if err != nil || want != "new" {
		t.Fatalf("without a crash %q, error %v", want, err)
	}
	store := c.NewStore()
	if _, err := c.runProcess(t.Context(), &process{crashAtWrite: 1, writeBeforeCrash: true}, store); !errors.Is(err, errCrashed) {
		t.Fatalf("the process did not crash: %v", err)
	}
	if got, err := c.runProcess(t.Context(), &process{}, store); err != nil || got != "" {
		t.Errorf("final state %q and error %v, want nothing", got, err)
	}
}

func TestEndlessLoopIsDetected(t *testing.T) {
	c := newCase(func(ctx context.Context, karmada client.Client) error {
		return karmada.Update(ctx, newConfigMap("old"))
	})
	if end, err := c.runProcess(t.Context(), &process{}, c.NewStore()); err == nil {
		t.Errorf("final state %q", end)
	}
}
