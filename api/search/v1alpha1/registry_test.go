package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

// A registry has no CRD with a schema for the contract test, so this test checks its JSON
// form.
func TestRegistrySpecRoundTrip(t *testing.T) {
	tests := map[string]struct {
		wire string
		want searchv1alpha1.ResourceRegistrySpec
	}{
		"a minimal registry caches one kind of all clusters": {
			wire: `{"targetCluster":{},"resourceSelectors":[{"apiVersion":"apps/v1","kind":"Deployment"}]}`,
			want: searchv1alpha1.ResourceRegistrySpec{
				ResourceSelectors: []searchv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			},
		},
		"clusters are selected by all fields of a cluster affinity": {
			wire: `{"targetCluster":{"clusterNames":["a"],"exclude":["b"],"labelSelector":{"matchLabels":{"x":"y"}},` +
				`"fieldSelector":{"matchExpressions":[{"key":"zone","operator":"In","values":["z"]}]}},` +
				`"resourceSelectors":[{"apiVersion":"v1","kind":"Pod","namespace":"web"}]}`,
			want: searchv1alpha1.ResourceRegistrySpec{
				TargetCluster: policyv1alpha1.ClusterAffinity{
					ClusterNames:    []string{"a"},
					ExcludeClusters: []string{"b"},
					LabelSelector:   &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}},
					FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"z"}},
					}},
				},
				ResourceSelectors: []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Pod", Namespace: "web"}},
			},
		},
		"an OpenSearch back end has addresses and a Secret": {
			wire: `{"targetCluster":{},"resourceSelectors":[{"apiVersion":"v1","kind":"Pod"}],` +
				`"backendStore":{"openSearch":{"addresses":["https://os:9200"],"secretRef":{"namespace":"ns","name":"os"}}}}`,
			want: searchv1alpha1.ResourceRegistrySpec{
				ResourceSelectors: []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Pod"}},
				BackendStore: &searchv1alpha1.BackendStoreConfig{OpenSearch: &searchv1alpha1.OpenSearchConfig{
					Addresses: []string{"https://os:9200"},
					SecretRef: clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "os"},
				}},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			decoder := json.NewDecoder(bytes.NewReader([]byte(tt.wire)))
			decoder.DisallowUnknownFields()
			var got searchv1alpha1.ResourceRegistrySpec
			if err := decoder.Decode(&got); err != nil {
				t.Fatalf("decoding: %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
			encoded, err := json.Marshal(tt.want)
			if err != nil {
				t.Fatalf("encoding: %v", err)
			}
			if diff := cmp.Diff(fields(t, tt.wire), fields(t, string(encoded))); diff != "" {
				t.Errorf("encoded (-want +got):\n%s", diff)
			}
		})
	}
}

// fields decodes a document, so that the order of its fields does not matter in
// comparisons.
func fields(t *testing.T, document string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(document), &value); err != nil {
		t.Fatalf("reading %s: %v", document, err)
	}
	return value
}
