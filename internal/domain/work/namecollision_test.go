package work

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestNameCollision(t *testing.T) {
	const web = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`
	tests := map[string]struct {
		stored []string
		want   string
	}{
		"the same object":                    {[]string{web}, ""},
		"the same object in another version": {[]string{`{"apiVersion":"apps/v2","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`}, ""},
		"one of several objects":             {[]string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"web"}}`, web}, ""},
		"no object":                          {nil, ""},
		"an object of another namespace":     {[]string{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"bank","name":"web"}}`}, "Deployment.apps bank/web"},
		"an object of another group":         {[]string{`{"apiVersion":"v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`}, "Deployment shop/web"},
		"a cluster-scoped object":            {[]string{`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"web"}}`}, "Namespace web"},
		"an object that cannot be read":      {[]string{`{`}, "an object that cannot be read"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			carrying := func(manifests ...string) *workv1alpha1.Work {
				work := &workv1alpha1.Work{}
				for _, each := range manifests {
					work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(each)}})
				}
				return work
			}
			object, another := NameCollision(carrying(tc.stored...), carrying(web))
			if object != tc.want || another != (tc.want != "") {
				t.Errorf("got %q, %v, want %q", object, another, tc.want)
			}
		})
	}
}
