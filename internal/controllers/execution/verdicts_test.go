package execution

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

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/deletionguard"
	"karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/loop"
)

// newDeletedWork returns a Work that is being deleted, as an agent reads it.
func newDeletedWork(verdict string) *workv1alpha1.Work {
	karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "web", UID: "this", DeletionTimestamp: &metav1.Time{Time: noon},
	}}
	if verdict != "" {
		karmadaWork.Annotations = map[string]string{workv1alpha1.DeletionAllowedAnnotation: verdict}
	}
	return karmadaWork
}

// storeWithNamespace returns a store that contains the execution namespace. If value is not empty,
// it is the value of the annotation that requires verdicts. Reads fail while broken is true.
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

// constantEpoch always returns the same epoch.
func constantEpoch(now epoch.Epoch, err error) deletionguard.EpochReader {
	return func(context.Context) (epoch.Epoch, error) { return now, err }
}

func TestAgentDeletesOnlyWithAVerdict(t *testing.T) {
	installed, restored := epoch.Epoch{ID: "a", Cause: epoch.CauseInstalled}, epoch.Epoch{ID: "b", Cause: epoch.CauseRestored}
	confirmed := restored
	confirmed.Confirmed = true
	for name, test := range map[string]struct {
		annotation string
		verdict    string
		epoch      epoch.Epoch
		unread     error
		preserved  bool
		broken     bool
		want       bool
		failed     bool
	}{
		"the control plane allows it":                        {annotation: workv1alpha1.DeletionVerdictsRequired, verdict: "this/a", epoch: installed, want: true},
		"the control plane has not decided":                  {annotation: workv1alpha1.DeletionVerdictsRequired, epoch: installed},
		"the verdict names an earlier Work":                  {annotation: workv1alpha1.DeletionVerdictsRequired, verdict: "other/a", epoch: installed},
		"the verdict came back with a backup":                {annotation: workv1alpha1.DeletionVerdictsRequired, verdict: "this/a", epoch: restored},
		"the same verdict after the confirmation":            {annotation: workv1alpha1.DeletionVerdictsRequired, verdict: "this/a", epoch: confirmed},
		"a new verdict after the confirmation":               {annotation: workv1alpha1.DeletionVerdictsRequired, verdict: "this/b", epoch: confirmed, want: true},
		"no verdict deletes before the confirmation":         {annotation: workv1alpha1.DeletionVerdictsRequired, verdict: "this/b", epoch: restored},
		"labels may be removed before it":                    {annotation: workv1alpha1.DeletionVerdictsRequired, verdict: "this/b", epoch: restored, preserved: true, want: true},
		"a verdict without an epoch":                         {annotation: workv1alpha1.DeletionVerdictsRequired, verdict: "this", epoch: installed},
		"a verdict where there are no epochs":                {annotation: workv1alpha1.DeletionVerdictsRequired, verdict: "this/", want: true},
		"a verdict of an epoch that the agent may not read":  {annotation: workv1alpha1.DeletionVerdictsRequired, verdict: "this/a", failed: true},
		"an epoch that cannot be read":                       {annotation: workv1alpha1.DeletionVerdictsRequired, verdict: "this/", unread: errors.New("no response"), failed: true},
		"a control plane that gives no verdicts":             {want: true},
		"no verdicts are given and the epoch cannot be read": {unread: errors.New("no response"), failed: true},
		"a restored backup that requires no verdicts":        {epoch: restored},
		"the namespace cannot be read":                       {broken: true, epoch: installed, failed: true},
		"a verdict although the namespace cannot be read":    {broken: true, verdict: "this/a", epoch: installed, want: true},
		"an unknown value of the annotation":                 {annotation: "optional", epoch: installed, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			karmadaWork := newDeletedWork(test.verdict)
			karmadaWork.Spec.PreserveResourcesOnDeletion = &test.preserved
			v := newVerdictReader(storeWithNamespace(t, test.annotation, &test.broken), constantEpoch(test.epoch, test.unread), func() time.Time { return noon })
			if got, err := v.isDeletionAllowed(t.Context(), karmadaWork); got != test.want || (err != nil) != test.failed {
				t.Errorf("allowed %v, error %v", got, err)
			}
		})
	}
}

func TestRequiredVerdictsStayRequired(t *testing.T) {
	broken, now := false, noon
	store := storeWithNamespace(t, workv1alpha1.DeletionVerdictsRequired, &broken)
	v := newVerdictReader(store, constantEpoch(epoch.Epoch{}, nil), func() time.Time { return now })
	for range 2 {
		if got, err := v.isDeletionAllowed(t.Context(), newDeletedWork("")); got || err != nil {
			t.Errorf("allowed %v, error %v", got, err)
		}
		// The namespace is deleted and created again. At first it does not have the annotation that
		// requires verdicts.
		if err := store.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
	}
}

// TestAgentReportsMissingRightToReadEpoch checks that the wait for the right is reported once on the
// Cluster, and that the agent soon tries again.
func TestAgentReportsMissingRightToReadEpoch(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "karmada-epoch", errors.New("no right"))
	broken := false
	for name, test := range map[string]struct {
		err        error
		verdict    string
		wantEvents int
		wantErr    bool
	}{
		"the read is forbidden":              {err: fmt.Errorf("reading: %w", forbidden), verdict: "this/a", wantEvents: 1},
		"the verdict names an unknown epoch": {verdict: "this/a", wantEvents: 1},
		"the API server does not respond":    {err: errors.New("no response"), verdict: "this/a", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := record.NewFakeRecorder(10)
			c := &controller{
				events: loop.NewEvents(recorder), tracker: newAppliedTracker(), now: func() time.Time { return noon },
				verdicts: newVerdictReader(storeWithNamespace(t, workv1alpha1.DeletionVerdictsRequired, &broken), constantEpoch(epoch.Epoch{}, test.err), func() time.Time { return noon }),
			}
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
			for _, name := range []string{"web", "db"} {
				karmadaWork := newDeletedWork(test.verdict)
				karmadaWork.Name, karmadaWork.Finalizers = name, []string{workv1alpha1.ExecutionFinalizer}
				result, err := c.withdraw(t.Context(), cluster, karmadaWork)
				if (err != nil) != test.wantErr || !test.wantErr && result.RequeueAfter != epochPollInterval {
					t.Errorf("%s: %v, %v", name, result, err)
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
