package execution

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/member/hostiletest"
	"karmada.io/karmada/internal/domain/interpreter"
)

// noRules has no rule for any kind.
type noRules struct{}

func (noRules) Rules(schema.GroupVersionKind) interpreter.Rules { return interpreter.Rules{} }

// deliveryFixture is a member cluster with a controller that delivers to it.
type deliveryFixture struct {
	*controller
	*delivery
	server *hostiletest.Member
}

func newDeliveryFixture(t *testing.T) *deliveryFixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), clusterv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	server := hostiletest.New(t)
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "1"}, Spec: clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: server.URL, InsecureSkipTLSVerification: true,
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1"},
	}}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m1"}, Data: map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("token")},
	}
	karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, secret).Build()
	members := member.NewClusters(t.Context(), member.Options{Karmada: karmada, Secrets: karmada, Now: time.Now})
	t.Cleanup(func() { members.CloseMember("m1") })
	target, err := members.GetForCluster(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := newWriteMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return &deliveryFixture{
		controller: &controller{tracker: newAppliedTracker(), metrics: metrics, rules: noRules{}, now: time.Now},
		delivery:   &delivery{member: target, work: &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w"}}},
		server:     server,
	}
}

// applyManifest applies a manifest of a Work that has the given annotations.
func (d *deliveryFixture) applyManifest(t *testing.T, annotations map[string]string, kind, namespace, name string) error {
	t.Helper()
	manifest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	manifest.SetNamespace(namespace)
	manifest.SetName(name)
	manifest.SetLabels(map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue})
	d.work.Annotations = annotations
	raw, err := manifest.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	d.work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	return errors.Join(d.applyAll(t.Context(), d.delivery)...)
}

func TestApplyRejectsManifestsOfTheWrongScope(t *testing.T) {
	s := newDeliveryFixture(t)
	for _, tc := range []struct{ kind, namespace, path string }{
		{"Node", "shop", "/api/v1/nodes/x"},
		{"ConfigMap", "", "/api/v1/configmaps/x"},
	} {
		err := s.applyManifest(t, nil, tc.kind, tc.namespace, "x")
		if err == nil || !strings.Contains(err.Error(), "was not sent to cluster m1") || s.server.Has(tc.path) {
			t.Errorf("%s in namespace %q: %v; exists in the member: %t", tc.kind, tc.namespace, err, s.server.Has(tc.path))
		}
	}
	for _, tc := range []struct{ kind, namespace, path string }{
		{"Node", "", "/api/v1/nodes/y"},
		{"ConfigMap", "shop", "/api/v1/namespaces/shop/configmaps/y"},
	} {
		if err := s.applyManifest(t, nil, tc.kind, tc.namespace, "y"); err != nil || !s.server.Has(tc.path) {
			t.Errorf("%s in namespace %q: %v", tc.kind, tc.namespace, err)
		}
	}
}

// An earlier release may have created Works with manifests outside the namespace of their binding,
// because it did not check bindings and overrides.
func TestApplyRejectsManifestsOutsideTheNamespaceOfTheBinding(t *testing.T) {
	ofBinding := map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: "loot"}
	overridden := maps.Clone(ofBinding)
	overridden[policyv1alpha1.AppliedClusterOverrides] = "[]"
	for name, tc := range map[string]struct {
		annotations           map[string]string
		kind, namespace, path string
		delivered             bool
	}{
		"an object of the namespace":                     {ofBinding, "ConfigMap", "shop", "/api/v1/namespaces/shop/configmaps/x", true},
		"the credentials of a cluster":                   {ofBinding, "Secret", "karmada-cluster", "/api/v1/namespaces/karmada-cluster/secrets/x", false},
		"the credentials of a cluster, with an override": {overridden, "Secret", "karmada-cluster", "/api/v1/namespaces/karmada-cluster/secrets/x", false},
		"an object of another namespace":                 {ofBinding, "Secret", "bank", "/api/v1/namespaces/bank/secrets/x", false},
		"an object without a namespace":                  {ofBinding, "Namespace", "", "/api/v1/namespaces/x", false},
		"an object moved by a cluster-wide override":     {overridden, "ConfigMap", "bank", "/api/v1/namespaces/bank/configmaps/x", true},
		"a Namespace that goes to every cluster":         {nil, "Namespace", "", "/api/v1/namespaces/x", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDeliveryFixture(t)
			err := s.applyManifest(t, tc.annotations, tc.kind, tc.namespace, "x")
			if (err == nil) != tc.delivered || s.server.Has(tc.path) != tc.delivered {
				t.Errorf("exists in the member: %t, error %v", s.server.Has(tc.path), err)
			}
			if err != nil && !strings.Contains(err.Error(), "what was delivered stays: delete ResourceBinding shop/loot to remove it") {
				t.Error(err)
			}
		})
	}
}

func TestWorkIsReconciledAgainIfTheListOfItsKindIsLate(t *testing.T) {
	for name, tc := range map[string]struct {
		mode hostiletest.Mode
		want time.Duration
	}{
		"the list has arrived":     {hostiletest.Honest(), 0},
		"the list has not arrived": {hostiletest.SilentLists(), unlistedRetryDelay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDeliveryFixture(t)
			s.server.SetMode(tc.mode)
			if err := s.applyManifest(t, nil, "ConfigMap", "shop", "x"); err != nil {
				t.Fatal(err)
			}
			if s.requeueAfter != tc.want {
				t.Errorf("requeued after %s, want %s", s.requeueAfter, tc.want)
			}
		})
	}
}
