package execution

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/judge"
	"karmada.io/karmada/internal/domain/epoch"
)

// deletedWork is a Work that an agent finds in deletion.
func deletedWork(verdict string) *workv1alpha1.Work {
	of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "web", UID: "this", DeletionTimestamp: &metav1.Time{Time: noon},
	}}
	if verdict != "" {
		of.Annotations = map[string]string{workv1alpha1.DeletionAllowedAnnotation: verdict}
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

// answering reads an epoch that is always the same.
func answering(now epoch.Epoch, err error) judge.ReadEpoch {
	return func(context.Context) (epoch.Epoch, error) { return now, err }
}

func TestAnAgentDeletesOnlyWithAVerdict(t *testing.T) {
	installed, restored := epoch.Epoch{ID: "a", Cause: epoch.Installed}, epoch.Epoch{ID: "b", Cause: epoch.Restored}
	confirmed := restored
	confirmed.Confirmed = true
	for name, test := range map[string]struct {
		space     string
		verdict   string
		epoch     epoch.Epoch
		unread    error
		preserved bool
		broken    bool
		want      bool
		failed    bool
	}{
		"the control plane allows it":                   {space: workv1alpha1.DeletionVerdictsRequired, verdict: "this/a", epoch: installed, want: true},
		"the control plane has not decided":             {space: workv1alpha1.DeletionVerdictsRequired, epoch: installed},
		"the verdict is about an earlier Work":          {space: workv1alpha1.DeletionVerdictsRequired, verdict: "other/a", epoch: installed},
		"the verdict came back with a backup":           {space: workv1alpha1.DeletionVerdictsRequired, verdict: "this/a", epoch: restored},
		"the same after the confirmation":               {space: workv1alpha1.DeletionVerdictsRequired, verdict: "this/a", epoch: confirmed},
		"a verdict after the confirmation":              {space: workv1alpha1.DeletionVerdictsRequired, verdict: "this/b", epoch: confirmed, want: true},
		"no verdict deletes before the confirmation":    {space: workv1alpha1.DeletionVerdictsRequired, verdict: "this/b", epoch: restored},
		"marks may be taken off before it":              {space: workv1alpha1.DeletionVerdictsRequired, verdict: "this/b", epoch: restored, preserved: true, want: true},
		"a verdict without an epoch":                    {space: workv1alpha1.DeletionVerdictsRequired, verdict: "this", epoch: installed},
		"a verdict where there are no epochs":           {space: workv1alpha1.DeletionVerdictsRequired, verdict: "this/", want: true},
		"a verdict of an epoch that may not be read":    {space: workv1alpha1.DeletionVerdictsRequired, verdict: "this/a", failed: true},
		"an epoch that cannot be read":                  {space: workv1alpha1.DeletionVerdictsRequired, verdict: "this/", unread: errors.New("no answer"), failed: true},
		"a control plane that gives no verdicts":        {want: true},
		"the same, and its epoch cannot be read":        {unread: errors.New("no answer"), failed: true},
		"a backup of a time when no verdict was needed": {epoch: restored},
		"whether verdicts are given cannot be read":     {broken: true, epoch: installed, failed: true},
		"the same with a verdict":                       {broken: true, verdict: "this/a", epoch: installed, want: true},
		"a value that a later version may understand ":  {space: "optional", epoch: installed, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			of := deletedWork(test.verdict)
			of.Spec.PreserveResourcesOnDeletion = &test.preserved
			v := newVerdicts(spaceStore(t, test.space, &test.broken), answering(test.epoch, test.unread), func() time.Time { return noon })
			if got, err := v.allow(t.Context(), of); got != test.want || (err != nil) != test.failed {
				t.Errorf("allowed %v, error %v", got, err)
			}
		})
	}
}

func TestVerdictsThatWereRequiredOnceAreRequired(t *testing.T) {
	broken, now := false, noon
	store := spaceStore(t, workv1alpha1.DeletionVerdictsRequired, &broken)
	v := newVerdicts(store, answering(epoch.Epoch{}, nil), func() time.Time { return now })
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
