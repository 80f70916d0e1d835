package execution

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// deletedWork is a Work that an agent finds in deletion.
func deletedWork(verdict types.UID) *workv1alpha1.Work {
	of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "web", UID: "this", DeletionTimestamp: &metav1.Time{Time: noon},
	}}
	if verdict != "" {
		of.Annotations = map[string]string{workv1alpha1.DeletionAllowedAnnotation: string(verdict)}
	}
	return of
}

// spaceStore holds the execution namespace with the annotation.
func spaceStore(t *testing.T, value string, broken *bool) client.WithWatch {
	t.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}
	if value != "" {
		space.Annotations = map[string]string{workv1alpha1.DeletionVerdictsAnnotation: value}
	}
	return fake.NewClientBuilder().WithObjects(space).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			if *broken {
				return errors.New("no answer")
			}
			return c.Get(ctx, key, object, o...)
		},
	}).Build()
}

func TestAnAgentDeletesOnlyWithAVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		space   string
		verdict types.UID
		broken  bool
		want    bool
		failed  bool
	}{
		"the control plane allows it":                  {space: workv1alpha1.DeletionVerdictsRequired, verdict: "this", want: true},
		"the control plane has not decided":            {space: workv1alpha1.DeletionVerdictsRequired},
		"the verdict is about an earlier Work":         {space: workv1alpha1.DeletionVerdictsRequired, verdict: "other"},
		"a control plane that gives no verdicts":       {want: true},
		"whether verdicts are given cannot be read":    {broken: true, failed: true},
		"the same with a verdict":                      {broken: true, verdict: "this", want: true},
		"a value that a later version may understand ": {space: "optional", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVerdicts(spaceStore(t, test.space, &test.broken), func() time.Time { return noon })
			if got, err := v.allow(t.Context(), deletedWork(test.verdict)); got != test.want || (err != nil) != test.failed {
				t.Errorf("allowed %v, error %v", got, err)
			}
		})
	}
}

func TestVerdictsThatWereRequiredOnceAreRequired(t *testing.T) {
	broken, now := false, noon
	store := spaceStore(t, workv1alpha1.DeletionVerdictsRequired, &broken)
	v := newVerdicts(store, func() time.Time { return now })
	for range 2 {
		if got, err := v.allow(t.Context(), deletedWork("")); got || err != nil {
			t.Errorf("allowed %v, error %v", got, err)
		}
		// The namespace is deleted and made anew, without the annotation at first.
		if err := store.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
	}
}
