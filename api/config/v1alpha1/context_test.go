package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

// Webhooks in other languages depend on the JSON form. No field of a
// document may be lost, added or renamed, including zero values.
func TestContextRoundTrip(t *testing.T) {
	tests := map[string]string{
		"a request sends replicas even when they are 0": `{"kind":"ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1",` +
			`"request":{"uid":"1","kind":{"group":"workload.example.io","version":"v1alpha1","kind":"Workload"},` +
			`"name":"nginx","namespace":"default","operation":"InterpretReplica","object":{"spec":{"replicas":3}},"replicas":0}}`,
		"a Retain request holds both objects": `{"kind":"ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1",` +
			`"request":{"uid":"1","kind":{"group":"","version":"v1","kind":"Pod"},"name":"a","operation":"Retain",` +
			`"object":{"a":1},"observedObject":{"a":2},"replicas":0}}`,
		"an AggregateStatus request holds the items of the binding": `{"request":{"uid":"1","kind":{"group":"","version":"v1","kind":"Pod"},` +
			`"operation":"AggregateStatus","object":{"a":1},"replicas":0,` +
			`"aggregatedStatus":[{"clusterName":"member1","status":{"ready":1},"applied":true,"health":"Healthy"}]}}`,
		"a response may omit kind and apiVersion":           `{"response":{"uid":"1","successful":true,"replicas":3}}`,
		"a response contains 0 replicas and healthy: false": `{"response":{"uid":"1","successful":true,"replicas":0,"healthy":false}}`,
		"a failure has a status":                            `{"response":{"uid":"1","successful":false,"status":{"message":"no such kind","code":403}}}`,
		"a patch is base64":                                 `{"response":{"uid":"1","successful":true,"patch":"W10=","patchType":"JSONPatch"}}`,
		"dependencies are by name or by label": `{"response":{"uid":"1","successful":true,"dependencies":[` +
			`{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"a"},` +
			`{"apiVersion":"v1","kind":"Secret","namespace":"default","labelSelector":{"matchLabels":{"app":"a"}}}]}}`,
		"a raw status is unchanged": `{"response":{"uid":"1","successful":true,"rawStatus":{"b":2,"a":[1]}}}`,
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			var exchange configv1alpha1.ResourceInterpreterContext
			if err := json.Unmarshal([]byte(want), &exchange); err != nil {
				t.Fatalf("decoding: %v", err)
			}
			got, err := json.Marshal(exchange)
			if err != nil {
				t.Fatalf("encoding: %v", err)
			}
			if diff := cmp.Diff(decodeJSON(t, want), decodeJSON(t, string(got))); diff != "" {
				t.Errorf("wire form changed (-want +got):\n%s", diff)
			}
		})
	}
}

// decodeJSON decodes a document, so that the order of its fields does not matter in
// comparisons.
func decodeJSON(t *testing.T, document string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(document), &value); err != nil {
		t.Fatalf("reading %s: %v", document, err)
	}
	return value
}
