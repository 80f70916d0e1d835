package crashtest

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

func note(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// moving is a loop that makes one object and deletes another, in an order.
func moving(do ...func(context.Context, client.Client) error) Case {
	return Case{
		Store: func() client.WithWatch { return fake.NewClientBuilder().WithObjects(note("old")).Build() },
		Start: func(karmada, _ client.WithWatch) func(context.Context) error {
			return func(ctx context.Context) error {
				for _, each := range do {
					if err := each(ctx, karmada); err != nil {
						return err
					}
				}
				return nil
			}
		},
		End: func(ctx context.Context, from client.Reader) (string, error) {
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

// unlessThere creates an object that is not there.
func unlessThere(ctx context.Context, karmada client.Client) error {
	if err := karmada.Get(ctx, client.ObjectKeyFromObject(note("new")), note("new")); err == nil {
		return nil
	}
	return karmada.Create(ctx, note("new"))
}

// ifThere deletes one that is.
func ifThere(ctx context.Context, karmada client.Client) error {
	if err := karmada.Get(ctx, client.ObjectKeyFromObject(note("old")), note("old")); err != nil {
		return client.IgnoreNotFound(err)
	}
	return karmada.Delete(ctx, note("old"))
}

func TestALoopThatLooksAtWhatIsStoredEndsAlike(t *testing.T) { moving(unlessThere, ifThere).Run(t) }

// forgetful makes the new object only as long as the old one is there.
func forgetful(ctx context.Context, karmada client.Client) error {
	if err := karmada.Get(ctx, client.ObjectKeyFromObject(note("old")), note("old")); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := karmada.Delete(ctx, note("old")); err != nil {
		return err
	}
	return karmada.Create(ctx, note("new"))
}

func TestALoopThatLosesItsWayIsFound(t *testing.T) {
	c := moving(forgetful)
	want, err := c.live(t.Context(), &life{}, c.Store())
	if err != nil || want != "new" {
		t.Fatalf("undisturbed %q, error %v", want, err)
	}
	store := c.Store()
	if _, err := c.live(t.Context(), &life{last: 1, made: true}, store); !errors.Is(err, errDead) {
		t.Fatalf("it lives on: %v", err)
	}
	if got, err := c.live(t.Context(), &life{}, store); err != nil || got != "" {
		t.Errorf("it ends with %q and error %v, want nothing", got, err)
	}
}

func TestALoopWithoutAnEndIsFound(t *testing.T) {
	c := moving(func(ctx context.Context, karmada client.Client) error { return karmada.Update(ctx, note("old")) })
	if end, err := c.live(t.Context(), &life{}, c.Store()); err == nil {
		t.Errorf("it ends with %q", end)
	}
}
