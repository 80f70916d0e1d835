package admission

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWarnIneffectiveRebalancer(t *testing.T) {
	const web = `{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}`
	served := NewServedKinds(nil, []*metav1.APIResourceList{{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
		{Name: "deployments", Kind: "Deployment", Namespaced: true}, {Name: "fleets", Kind: "Fleet"},
	}}}, nil)
	withKinds := Options{ServedKinds: func(schema.GroupVersionKind) *ServedKinds { return served }}
	list := func(workloads, other string) string {
		return fmt.Sprintf(`{kind: WorkloadRebalancer, metadata: {name: r}, spec: {workloads: [%s]%s}}`, workloads, other)
	}
	const first = "spec.workloads[0]"
	runValidationCases(t, map[string]validationCase{
		"a workload":                            {new: list(web, ``), rules: withKinds},
		"no workload":                           {new: list(``, ``), warnings: []string{"spec.workloads"}},
		"a workload that is listed twice":       {new: list(web+`, `+web, ``), warnings: []string{"spec.workloads[1]"}},
		"a negative time to live":               {new: list(web, `, ttlSecondsAfterFinished: -1`), warnings: []string{"spec.ttlSecondsAfterFinished"}},
		"a time to live of 0":                   {new: list(web, `, ttlSecondsAfterFinished: 0`)},
		"an invalid API version":                {new: list(`{apiVersion: a/b/c, kind: Deployment, name: web}`, ``), warnings: []string{first + ".apiVersion"}},
		"a kind that is never propagated":       {new: list(`{apiVersion: work.karmada.io/v1alpha1, kind: Work, name: w}`, ``), warnings: []string{first}},
		"a kind that is not served":             {new: list(`{apiVersion: apps/v1beta1, kind: Deployment, namespace: shop, name: w}`, ``), rules: withKinds, warnings: []string{first}},
		"a missing namespace":                   {new: list(`{apiVersion: apps/v1, kind: Deployment, name: web}`, ``), rules: withKinds, warnings: []string{first + ".namespace"}},
		"a namespace of a cluster-scoped kind":  {new: list(`{apiVersion: apps/v1, kind: Fleet, namespace: shop, name: f}`, ``), rules: withKinds, warnings: []string{first + ".namespace"}},
		"a kind that is not known to be served": {new: list(`{apiVersion: apps/v1beta1, kind: Deployment, name: w}`, ``)},
	})
}
