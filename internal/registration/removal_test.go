package registration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// deadCluster is a Cluster that nobody takes out, with Works and a binding.
func deadCluster(t *testing.T, works int) (*side, *clusterv1alpha1.Cluster) {
	t.Helper()
	east := registered("east", "id", clusterv1alpha1.Push)
	east.UID = "uid of east"
	east.Finalizers = []string{clusterv1alpha1.ClusterControllerFinalizer}
	east.Status.Conditions = []metav1.Condition{{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Message: "cluster is not reachable",
	}}
	objects := []client.Object{&east, executionSpace("east"), &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "west"}, {Name: "east"}}},
	}, &workv1alpha2.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "crd"},
		Spec:       workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "west"}}},
	}}
	for i := range works {
		objects = append(objects, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-east", Name: fmt.Sprintf("w%03d", i), Finalizers: []string{workv1alpha1.ExecutionFinalizer},
		}})
	}
	return sideWith(t, "", objects...), &east
}

func TestARemovalThatIsHeldSaysByWhom(t *testing.T) {
	karmada, east := deadCluster(t, 2)
	err := karmada.remove(t.Context(), removal{cluster: east, wait: 50 * time.Millisecond})
	if err == nil {
		t.Fatal("it is said to be gone")
	}
	for _, part := range []string{
		`cluster "east" was deleted and is not gone after 50ms`,
		"no controller has taken it up",
		"2 Works are left, such as karmada-es-east/w000: the cluster is not Ready (cluster is not reachable); their objects stay in it",
		"it is still in spec.clusters of ResourceBinding shop/web: its scheduler",
		"repeat with --force",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %q", part, err)
		}
	}
	if strings.Contains(err.Error(), "crd") {
		t.Errorf("a binding is blamed that does not list it: %q", err)
	}
}

func TestARemovalByForceNeedsNobody(t *testing.T) {
	karmada, east := deadCluster(t, 700)
	if err := karmada.remove(t.Context(), removal{cluster: east, wait: 50 * time.Millisecond, force: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{}, content(t, karmada), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestARemovalByForceTakesTheClusterAlthoughAWorkResists(t *testing.T) {
	karmada, east := deadCluster(t, 2)
	refusing := &side{name: karmada.name, host: karmada.host, log: t.Logf, api: interceptor.NewClient(karmada.api, refusal("w000").funcs())}
	if err := refusing.remove(t.Context(), removal{cluster: east, wait: 50 * time.Millisecond, force: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Work karmada-es-east/w000"}, content(t, karmada), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestANamespaceThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	leaving := namespace("ns")
	leaving.Finalizers = []string{"test/stays"}
	s := sideWith(t, "", leaving)
	if err := s.api.Delete(t.Context(), leaving.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	waited := false
	s.log = func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !strings.Contains(text, "waiting until Namespace ns in it is gone") || waited {
			return
		}
		waited = true
		if err := s.takeFinalizers(t.Context(), namespace("ns")); err != nil {
			t.Error(err)
		}
	}
	made, err := s.ensure(t.Context(), namespace("ns"), func(client.Object) error { return nil })
	if err != nil || made.GetDeletionTimestamp() != nil || !waited {
		t.Errorf("made %v, waited %v, err %v", made, waited, err)
	}
}
