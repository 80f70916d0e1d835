package deletionguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/loop"
)

// newAgentWork returns a Work that is being deleted, as an agent reads it, with the given permission.
func newAgentWork(permission string) *workv1alpha1.Work {
	karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "web", UID: "this", DeletionTimestamp: &metav1.Time{Time: noon}, Finalizers: []string{workv1alpha1.ExecutionFinalizer},
	}}
	if permission != "" {
		karmadaWork.Annotations = map[string]string{workv1alpha1.DeletionAllowedAnnotation: permission}
	}
	return karmadaWork
}

// storeWithNamespace returns a store that contains the execution namespace. If value is not empty,
// it is the value of the annotation that requires permissions. Reads fail while broken is true.
func storeWithNamespace(t *testing.T, value string, broken *bool) client.WithWatch {
	t.Helper()
	executionNamespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}
	if value != "" {
		executionNamespace.Annotations = map[string]string{workv1alpha1.DeletionVerdictsAnnotation: value}
	}
	return fake.NewClientBuilder().WithObjects(executionNamespace).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			if *broken {
				return errors.New("no response")
			}
			return c.Get(ctx, key, object, o...)
		},
	}).Build()
}

// newAgentGuard returns the Guard of an agent, and the recorder of its events.
func newAgentGuard(t *testing.T, karmada client.Client, readEpoch EpochReader, now func() time.Time) (*Guard, *record.FakeRecorder) {
	t.Helper()
	recorder := record.NewFakeRecorder(10)
	g, err := NewForAgent(Options{Karmada: karmada, APIReader: karmada, ReadEpoch: readEpoch, Events: loop.NewEvents(recorder), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return g, recorder
}

func TestAgentDeletesOnlyWithPermission(t *testing.T) {
	installed, restored := epoch.Epoch{ID: "a", Cause: epoch.CauseInstalled}, epoch.Epoch{ID: "b", Cause: epoch.CauseRestored}
	confirmed := restored
	confirmed.Confirmed = true
	for name, test := range map[string]struct {
		annotation string
		permission string
		epoch      epoch.Epoch
		unread     error
		preserved  bool
		broken     bool
		want       bool
		failed     bool
	}{
		"the control plane allows it":                           {annotation: workv1alpha1.DeletionVerdictsRequired, permission: "this/a", epoch: installed, want: true},
		"the control plane has not decided":                     {annotation: workv1alpha1.DeletionVerdictsRequired, epoch: installed},
		"the permission names an earlier Work":                  {annotation: workv1alpha1.DeletionVerdictsRequired, permission: "other/a", epoch: installed},
		"the permission came back with a backup":                {annotation: workv1alpha1.DeletionVerdictsRequired, permission: "this/a", epoch: restored},
		"the same permission after the confirmation":            {annotation: workv1alpha1.DeletionVerdictsRequired, permission: "this/a", epoch: confirmed},
		"a new permission after the confirmation":               {annotation: workv1alpha1.DeletionVerdictsRequired, permission: "this/b", epoch: confirmed, want: true},
		"no permission deletes before the confirmation":         {annotation: workv1alpha1.DeletionVerdictsRequired, permission: "this/b", epoch: restored},
		"labels may be removed before it":                       {annotation: workv1alpha1.DeletionVerdictsRequired, permission: "this/b", epoch: restored, preserved: true, want: true},
		"a permission without an epoch":                         {annotation: workv1alpha1.DeletionVerdictsRequired, permission: "this", epoch: installed},
		"a permission where there are no epochs":                {annotation: workv1alpha1.DeletionVerdictsRequired, permission: "this/", want: true},
		"a permission of an epoch that the agent may not read":  {annotation: workv1alpha1.DeletionVerdictsRequired, permission: "this/a"},
		"an epoch that cannot be read":                          {annotation: workv1alpha1.DeletionVerdictsRequired, permission: "this/", unread: errors.New("no response"), failed: true},
		"a control plane that gives no permissions":             {want: true},
		"no permissions are given and the epoch cannot be read": {unread: errors.New("no response"), failed: true},
		"a restored backup that requires no permissions":        {epoch: restored},
		"the namespace cannot be read":                          {broken: true, epoch: installed, failed: true},
		"a permission although the namespace cannot be read":    {broken: true, permission: "this/a", epoch: installed, want: true},
		"an unknown value of the annotation":                    {annotation: "optional", epoch: installed, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			karmadaWork := newAgentWork(test.permission)
			karmadaWork.Spec.PreserveResourcesOnDeletion = &test.preserved
			g, _ := newAgentGuard(t, storeWithNamespace(t, test.annotation, &test.broken), fixedEpoch(test.epoch, test.unread), func() time.Time { return noon })
			decision, err := g.Process(t.Context(), readyCluster(), karmadaWork, true)
			if got := decision.Action == guard.Delete; got != test.want || (err != nil) != test.failed {
				t.Errorf("allowed %v, error %v", got, err)
			}
		})
	}
}

func TestRequiredPermissionsStayRequired(t *testing.T) {
	broken, now := false, noon
	store := storeWithNamespace(t, workv1alpha1.DeletionVerdictsRequired, &broken)
	g, _ := newAgentGuard(t, store, fixedEpoch(epoch.Epoch{}, nil), func() time.Time { return now })
	for range 2 {
		if decision, err := g.Process(t.Context(), readyCluster(), newAgentWork(""), true); decision.Action != guard.Hold || err != nil {
			t.Errorf("action %d, error %v", decision.Action, err)
		}
		// The namespace is deleted and created again. At first it does not have the annotation that
		// requires permissions.
		if err := store.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
	}
}

// TestAgentReportsUnreadableEpoch checks that the missing permission to read the epoch is reported
// once on the Cluster, and that the agent soon attempts to read the epoch again.
func TestAgentReportsUnreadableEpoch(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "karmada-epoch", errors.New("not permitted"))
	broken := false
	for name, test := range map[string]struct {
		err        error
		permission string
		wantEvents int
		wantErr    bool
	}{
		"the read is forbidden":                 {err: fmt.Errorf("reading: %w", forbidden), permission: "this/a", wantEvents: 1},
		"the permission names an unknown epoch": {permission: "this/a", wantEvents: 1},
		"the API server does not respond":       {err: errors.New("no response"), permission: "this/a", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			store := storeWithNamespace(t, workv1alpha1.DeletionVerdictsRequired, &broken)
			g, recorder := newAgentGuard(t, store, fixedEpoch(epoch.Epoch{}, test.err), func() time.Time { return noon })
			for _, name := range []string{"web", "db"} {
				karmadaWork := newAgentWork(test.permission)
				karmadaWork.Name = name
				decision, err := g.Process(t.Context(), readyCluster(), karmadaWork, true)
				if (err != nil) != test.wantErr || decision.Action != guard.Hold || !test.wantErr && decision.RecheckAfter != 2*time.Second {
					t.Errorf("%s: %+v, %v", name, decision, err)
				}
			}
			if len(recorder.Events) != test.wantEvents {
				t.Fatalf("%d events, want %d", len(recorder.Events), test.wantEvents)
			}
			if test.wantEvents > 0 {
				if text := <-recorder.Events; !strings.Contains(text, `EpochUnreadable the agent of cluster "m1" deletes no objects`) {
					t.Errorf("event %q", text)
				}
			}
		})
	}
}
