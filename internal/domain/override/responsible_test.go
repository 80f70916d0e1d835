package override

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func TestResponsibleOverriders(t *testing.T) {
	recorded := func(name string, overriders policyv1alpha1.Overriders) string {
		text, err := json.Marshal([]appliedRule{{PolicyName: name, Overriders: overriders}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	plaintext := func(paths ...string) policyv1alpha1.Overriders {
		var o policyv1alpha1.Overriders
		for _, path := range paths {
			o.Plaintext = append(o.Plaintext, policyv1alpha1.PlaintextOverrider{Path: path, Operator: policyv1alpha1.OverriderOpReplace})
		}
		return o
	}
	const decode = `Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`
	workload := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"namespace": "shop"}}}
	size := AppliedRecord{Namespaced: recorded("size", plaintext("/metadata/labels/tier", "/spec/replicas"))}
	tests := map[string]struct {
		refusal Rejection
		applied AppliedRecord
		want    []string
	}{
		"an undecodable value":              {Rejection{Message: decode}, size, []string{`OverridePolicy "shop/size", plaintext[1] replace at "/spec/replicas"`}},
		"a field that is listed as a cause": {Rejection{Fields: []string{"spec.replicas"}}, size, []string{`OverridePolicy "shop/size", plaintext[1] replace at "/spec/replicas"`}},
		"a field above the path":            {Rejection{Fields: []string{"metadata.labels"}}, size, []string{`OverridePolicy "shop/size", plaintext[0] replace at "/metadata/labels/tier"`}},
		"a field below the path":            {Rejection{Fields: []string{"spec.template.spec.containers[0].env[1].name"}}, AppliedRecord{Cluster: recorded("env", plaintext("/spec/template/spec/containers/0/env"))}, []string{`ClusterOverridePolicy "env", plaintext[0] replace at "/spec/template/spec/containers/0/env"`}},
		"another field":                     {Rejection{Message: `spec.replicasMax: Invalid value`, Fields: []string{"spec.selector"}}, size, nil},
		"no applied overrides":              {Rejection{Message: decode}, AppliedRecord{}, nil},
		"an invalid record":                 {Rejection{Message: decode}, AppliedRecord{Namespaced: "{"}, nil},
		"an overrider of the whole object":  {Rejection{Message: decode}, AppliedRecord{Namespaced: recorded("size", plaintext(""))}, nil},
		"an image": {Rejection{Fields: []string{"spec.template.spec.containers[0].image"}},
			AppliedRecord{Namespaced: recorded("image", policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{}}})},
			[]string{`OverridePolicy "shop/image", imageOverrider[0] at "/spec/template/spec/containers/image"`}},
		"more than maxResponsible": {Rejection{Fields: []string{"spec"}}, AppliedRecord{Namespaced: recorded("many", plaintext("/spec/a", "/spec/b", "/spec/c", "/spec/d"))}, []string{
			`OverridePolicy "shop/many", plaintext[0] replace at "/spec/a"`, `OverridePolicy "shop/many", plaintext[1] replace at "/spec/b"`,
			`OverridePolicy "shop/many", plaintext[2] replace at "/spec/c"`, "and 1 more"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ResponsibleOverriders(test.refusal, test.applied, workload)); diff != "" {
				t.Errorf("responsible overriders (-want +got):\n%s", diff)
			}
		})
	}
}
