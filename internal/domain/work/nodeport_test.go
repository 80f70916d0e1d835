package work

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parseManifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestNodePortsStayUnlessMembersAllocateThem(t *testing.T) {
	const spec = `spec: {type: NodePort, healthCheckNodePort: 30002, ports: [{port: 80, nodePort: 30080}, {port: 81}, {port: 82, nodePort: 30080}]}`
	tests := map[string]struct {
		manifest string
		want     []int64
	}{
		"as upstream":        {"{apiVersion: v1, kind: Service, metadata: {name: web}, " + spec + "}", []int64{30002, 30080}},
		"another allocation": {"{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {service.karmada.io/node-port-allocation: karmada}}, " + spec + "}", []int64{30002, 30080}},
		"by the member":      {"{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {service.karmada.io/node-port-allocation: member}}, " + spec + "}", nil},
		"a Service of another group": {
			"{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: web, annotations: {service.karmada.io/node-port-allocation: member}}, " + spec + "}", nil,
		},
		"malformed ports": {"{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {service.karmada.io/node-port-allocation: member}}, spec: {ports: [7, {nodePort: x}]}}", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := parseManifest(t, test.manifest)
			removeNodePorts(manifest)
			if diff := cmp.Diff(test.want, NodePorts(manifest)); diff != "" {
				t.Errorf("node ports (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemovingNodePortsKeepsPorts(t *testing.T) {
	manifest := parseManifest(t, `{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {service.karmada.io/node-port-allocation: member}}, spec: {ports: [{port: 80, nodePort: 30080}]}}`)
	removeNodePorts(manifest)
	want := []any{map[string]any{"port": int64(80)}}
	if diff := cmp.Diff(want, manifest.Object["spec"].(map[string]any)["ports"]); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}
