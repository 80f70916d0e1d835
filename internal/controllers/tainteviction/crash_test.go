package tainteviction

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/loop/looptest"
)

func TestEvictionsSurviveCrashesAroundWrites(t *testing.T) {
	var f *fixture
	var all []request
	looptest.CrashCase{
		NewStore: func() client.WithWatch {
			all = nil
			objects := []client.Object{newTaintedCluster(0)}
			for n := range 3 {
				bound := newBinding()
				bound.Name = fmt.Sprintf("web-%d", n)
				objects = append(objects, bound)
				all = append(all, request{client.ObjectKeyFromObject(bound), "m1"})
			}
			f = newFixture(t, objects...)
			return f.store
		},
		NewLoop: func(karmada, _ client.WithWatch) func(context.Context) error {
			f.karmada, f.live = karmada, karmada
			return func(ctx context.Context) error {
				var failures []error
				for _, each := range all {
					_, err := f.Reconcile(ctx, each)
					failures = append(failures, err)
				}
				return errors.Join(failures...)
			}
		},
		FinalState: func(ctx context.Context, from client.Reader) (text string, err error) {
			list := &workv1alpha2.ResourceBindingList{}
			err = from.List(ctx, list)
			for _, each := range list.Items {
				text += fmt.Sprintf("%s in %d clusters, %d tasks\n", each.Name, len(each.Spec.Clusters), len(each.Spec.GracefulEvictionTasks))
			}
			return text, err
		},
	}.Run(t)
}
