package workstatus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
)

// fakeMember maps names of ConfigMaps to the errors that their reads return. ConfigMaps without an
// entry exist and are healthy.
type fakeMember map[string]error

func (f fakeMember) Get(_ context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, bool, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetName(key.Name)
	return object, true, f[key.Name]
}

// unknownHealth is an entry for which the health of the ConfigMap b cannot be interpreted.
const unknownHealth = "(unknown health)"

func (f fakeMember) rules() interpreter.Rules {
	failure, found := f[unknownHealth]
	if !found {
		return interpreter.Rules{}
	}
	return interpreter.Rules{IsHealthy: func(_ context.Context, object *unstructured.Unstructured) (bool, error) {
		if object.GetName() == "b" {
			return false, failure
		}
		return true, nil
	}}
}

func (f fakeMember) Client() client.Client { return nil }

func TestOneUnreadableObjectDoesNotBlockOthers(t *testing.T) {
	before := []string{"0 a Unhealthy", "1 b Unhealthy", "2 c Unhealthy"}
	for name, tc := range map[string]struct {
		member  fakeMember
		want    []string
		wantErr string
	}{
		"all objects exist": {nil, []string{"0 a Healthy", "1 b Healthy", "2 c Healthy"}, ""},
		"the webhook for the health of one object is busy": {
			fakeMember{unknownHealth: &interpreter.BusyError{Text: "8 calls run"}}, []string{"0 a Healthy", "1 b Unhealthy", "2 c Healthy"}, "health of ConfigMap /b: 8 calls run"},
		"the health of one object cannot be interpreted": {
			fakeMember{unknownHealth: errors.New("connection refused")}, []string{"0 a Healthy", "1 b Unknown", "2 c Healthy"}, "interpreting the health of ConfigMap /b: connection refused"},
		"one object is deleted": {
			fakeMember{"b": apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "b")}, []string{"0 a Healthy", "2 c Healthy"}, ""},
		"one object cannot be read": {
			fakeMember{"b": errors.New("no response")}, []string{"0 a Healthy", "1 b Unhealthy", "2 c Healthy"}, "reading ConfigMap /b in cluster m1: no response"},
		"the member does not serve the kind": {
			fakeMember{"b": &meta.NoKindMatchError{}}, []string{"0 a Healthy", "1 b Unhealthy", "2 c Healthy"}, ""},
		"the process no longer serves the cluster": {
			fakeMember{unknownHealth: context.Canceled}, before, "context canceled"},
		"no object can be read": {
			fakeMember{"a": errors.New("no response"), "b": errors.New("no response"), "c": errors.New("no response")}, before, "reading ConfigMap /c in cluster m1: no response"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "three", UID: "1"}}
				karmadaWork.Spec.Workload.Manifests = newManifests(t, "a", "b", "c")
				for ordinal, name := range []string{"a", "b", "c"} {
					karmadaWork.Status.ManifestStatuses = append(karmadaWork.Status.ManifestStatuses, *newReflection(ordinal, name, "Unhealthy").status)
				}
				scheme := runtime.NewScheme()
				if err := workv1alpha1.AddToScheme(scheme); err != nil {
					t.Fatal(err)
				}
				store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(karmadaWork).WithStatusSubresource(karmadaWork).Build()
				c := &controller{
					rules: fixedRules{tc.member.rules()}, events: loop.NewEvents(record.NewFakeRecorder(10)),
					reports: loop.NewStatusWriter(store, store, loop.StatusWriterOptions{Workers: 1}), podChecks: newPodCheckSchedule(time.Now),
				}
				ctx, cancel := context.WithCancel(t.Context())
				finished := make(chan error)
				go func() { finished <- c.reports.Start(ctx) }()

				pass, endPass := context.WithCancel(t.Context())
				defer endPass()
				if errors.Is(tc.member[unknownHealth], context.Canceled) {
					endPass()
				}
				_, err := c.reflect(pass, tc.member, karmadaWork)
				if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error = %v, want %q", err, tc.wantErr)
				}
				<-time.After(time.Minute)
				if err := store.Get(t.Context(), client.ObjectKeyFromObject(karmadaWork), karmadaWork); err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, status := range karmadaWork.Status.ManifestStatuses {
					got = append(got, fmt.Sprintf("%d %s %s", status.Identifier.Ordinal, status.Identifier.Name, status.Health))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("manifest statuses (-want +got):\n%s", diff)
				}
				cancel()
				if err := <-finished; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
