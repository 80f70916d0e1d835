package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

func deploymentNamed(name string) policyv1alpha1.ResourceSelector {
	return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
}

func TestNearestMiss(t *testing.T) {
	web := deployment("shop", "web", map[string]string{"app": "api"})
	autoscaler := object("autoscaling/v2", "HorizontalPodAutoscaler", "shop", "web", nil)
	oldAutoscaler := policyv1alpha1.ResourceSelector{APIVersion: "autoscaling/v1", Kind: "HorizontalPodAutoscaler"}
	lowerCase := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "deployment"}
	otherGroup := policyv1alpha1.ResourceSelector{APIVersion: "serving.example/v1", Kind: "Deployment", Name: "web"}
	otherGroupAndName := otherGroup
	otherGroupAndName.Name = "db"
	twoLabels := labelled(map[string]string{"app": "web", "tier": "front"})

	tests := map[string]struct {
		template *unstructured.Unstructured
		policies []Object
		want     string
	}{
		"without policies there is none":                        {},
		"a policy of another kind is none":                      {policies: []Object{policyOf("shop", "p", selecting(otherKind))}},
		"a policy of another namespace is none":                 {policies: []Object{policyOf("dev", "p", selecting(deploymentNamed("web2")))}},
		"a policy that selects the template is none":            {policies: []Object{policyOf("shop", "p", selecting(deploymentNamed("web2"))), policyOf("", "all", selecting(allDeployments))}},
		"the name differs":                                      {policies: []Object{policyOf("shop", "p", selecting(deploymentNamed("web2")))}, want: `PropagationPolicy shop/p comes nearest: selects name "web2", not "web"`},
		"a name that is quite different":                        {policies: []Object{policyOf("shop", "p", selecting(deploymentNamed("database")))}, want: `PropagationPolicy shop/p comes nearest: selects name "database", not "web"`},
		"the labels differ":                                     {policies: []Object{policyOf("shop", "p", selecting(labelledWeb))}, want: "PropagationPolicy shop/p comes nearest: wants app=web, has app=api"},
		"a label is missing beside one that differs":            {policies: []Object{policyOf("shop", "p", selecting(twoLabels))}, want: "PropagationPolicy shop/p comes nearest: wants app=web, has app=api; wants tier=front, has no label tier"},
		"a label selector that is not valid":                    {policies: []Object{policyOf("shop", "p", selecting(brokenSelector))}, want: "PropagationPolicy shop/p comes nearest: its labelSelector is not valid"},
		"the version differs":                                   {template: autoscaler, policies: []Object{policyOf("shop", "p", selecting(oldAutoscaler))}, want: "PropagationPolicy shop/p comes nearest: selects autoscaling/v1, the server prefers autoscaling/v2"},
		"the case of the kind differs":                          {policies: []Object{policyOf("shop", "p", selecting(lowerCase))}, want: `PropagationPolicy shop/p comes nearest: selects kind "deployment", not "Deployment"`},
		"the group alone differs":                               {policies: []Object{policyOf("shop", "p", selecting(otherGroup))}, want: "PropagationPolicy shop/p comes nearest: selects serving.example/v1, the server prefers apps/v1"},
		"a kind of another group with another name is none":     {policies: []Object{policyOf("shop", "p", selecting(otherGroupAndName))}},
		"the policy is being deleted":                           {policies: []Object{policyOf("shop", "p", terminating, selecting(namedWeb))}, want: "PropagationPolicy shop/p comes nearest: it is being deleted"},
		"a cluster policy with a similar name":                  {policies: []Object{policyOf("", "p", selecting(deploymentNamed("wev")))}, want: `ClusterPropagationPolicy p comes nearest: selects name "wev", not "web"`},
		"a cluster policy with another name is for others":      {policies: []Object{policyOf("", "p", selecting(deploymentNamed("database")))}},
		"a cluster policy with another value of the label":      {policies: []Object{policyOf("", "p", selecting(labelledWeb))}, want: "ClusterPropagationPolicy p comes nearest: wants app=web, has app=api"},
		"a cluster policy whose label is missing is for others": {policies: []Object{policyOf("", "p", selecting(labelled(map[string]string{"propagate": "true"})))}},
		"a cluster policy for the namespace is meant":           {policies: []Object{policyOf("", "p", selecting(inNamespace(deploymentNamed("database"), "shop")))}, want: `ClusterPropagationPolicy p comes nearest: selects name "database", not "web"`},
		"a cluster policy for another namespace is none":        {policies: []Object{policyOf("", "p", selecting(inNamespace(namedWeb, "dev")))}},
		"the one with fewer differences is nearer":              {policies: []Object{policyOf("shop", "a", selecting(deploymentNamed("database"))), policyOf("shop", "b", selecting(otherAPIVersion))}, want: "PropagationPolicy shop/b comes nearest: selects apps/v1beta1, the server prefers apps/v1"},
		"of equals the namespaced policy is nearer":             {policies: []Object{policyOf("", "a", selecting(deploymentNamed("web2"))), policyOf("shop", "b", selecting(deploymentNamed("web2")))}, want: `PropagationPolicy shop/b comes nearest: selects name "web2", not "web"`},
		"of equals the first name is nearer":                    {policies: []Object{policyOf("shop", "b", selecting(deploymentNamed("web2"))), policyOf("shop", "a", selecting(deploymentNamed("web2")))}, want: `PropagationPolicy shop/a comes nearest: selects name "web2", not "web"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := test.template
			if template == nil {
				template = web
			}
			reversed := slices.Clone(test.policies)
			slices.Reverse(reversed)
			index := NewIndex()
			for _, p := range test.policies {
				index.Put(p)
			}
			for how, find := range map[string]func() (Miss, bool){
				"in order":    func() (Miss, bool) { return NearestMiss(template, test.policies) },
				"in reverse":  func() (Miss, bool) { return NearestMiss(template, reversed) },
				"by an index": func() (Miss, bool) { return index.NearestMiss(template) },
			} {
				got := ""
				if miss, ok := find(); ok {
					got = miss.String()
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
			}
		})
	}
}

func TestAnIndexForgetsKindsOfDeletedPolicies(t *testing.T) {
	index := NewIndex()
	for i := range 1000 {
		index.Put(policyOf("shop", fmt.Sprintf("p%04d", i), selecting(deploymentNamed(fmt.Sprintf("p%04d-x", i)), otherKind)))
	}
	miss, ok := index.NearestMiss(deployment("shop", "p0700", nil))
	if !ok || miss.Policy.GetName() != "p0700" {
		t.Errorf("of many policies the nearest is %v", miss)
	}
	for i := range 1000 {
		index.Delete("shop", fmt.Sprintf("p%04d", i))
	}
	if len(index.kinds) != 0 {
		t.Errorf("%d kinds are left without policies", len(index.kinds))
	}
}

func TestCheckMatch(t *testing.T) {
	near := func(*unstructured.Unstructured) (Miss, bool) {
		return Miss{Policy: policyOf("shop", "p"), Differences: []string{`selects name "web2", not "web"`}}, true
	}
	none := func(*unstructured.Unstructured) (Miss, bool) { return Miss{}, false }
	const missed = `No policy match for resource: PropagationPolicy shop/p comes nearest: selects name "web2", not "web"`
	const lost = "; the policy that had claimed it is gone or no longer selects it, and binding shop/web-deployment stays as it is"
	web := deployment("shop", "web", nil)
	with := func(template *unstructured.Unstructured, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		changed := template.DeepCopy()
		change(changed)
		return changed
	}
	bound := func(change func(*workv1alpha2.ResourceBinding)) binding.Object {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", Annotations: map[string]string{TemplateStateAnnotation: "1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(web, web.GroupVersionKind())},
		}}
		change(b)
		return b
	}
	tests := map[string]struct {
		template *unstructured.Unstructured
		bound    binding.Object
		nearest  func(*unstructured.Unstructured) (Miss, bool)
		want     string
	}{
		"a policy that comes near is named":               {template: web, nearest: near, want: missed},
		"an object that no policy comes near is left out": {template: web, nearest: none},
		"an object whose policy released it":              {template: web, nearest: none, bound: bound(func(*workv1alpha2.ResourceBinding) {}), want: "No policy match for resource" + lost},
		"an object that was released and comes near":      {template: web, nearest: near, bound: bound(func(*workv1alpha2.ResourceBinding) {}), want: missed + lost},
		"a binding of another object was not its own":     {template: web, nearest: none, bound: bound(func(b *workv1alpha2.ResourceBinding) { b.OwnerReferences = nil })},
		"an object that others refer to is propagated": {template: web, nearest: near, bound: bound(func(b *workv1alpha2.ResourceBinding) {
			b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "api-deployment"}}
		})},
		"an object that is being deleted": {template: with(web, func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) }), nearest: near},
		"an object of a controller": {template: with(web, func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Owner", Controller: new(true)}})
		}), nearest: near},
		"the certificates of a namespace": {template: object("v1", "ConfigMap", "shop", "kube-root-ca.crt", nil), nearest: near},
		"another ConfigMap":               {template: object("v1", "ConfigMap", "shop", "web", nil), nearest: near, want: missed},
		"the account of a namespace":      {template: object("v1", "ServiceAccount", "shop", "default", nil), nearest: near},
		"the Service of the API server":   {template: object("v1", "Service", "default", "kubernetes", nil), nearest: near},
		"a token of an account": {template: with(object("v1", "Secret", "shop", "token", nil), func(u *unstructured.Unstructured) {
			u.Object["type"] = "kubernetes.io/service-account-token"
		}), nearest: near},
		"another Secret":       {template: object("v1", "Secret", "shop", "web", nil), nearest: near, want: missed},
		"a role of the system": {template: object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:node", nil), nearest: near},
		"a slice of endpoints": {template: object("discovery.k8s.io/v1", "EndpointSlice", "shop", "web", nil), nearest: near},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := CheckMatch(test.template, test.bound, test.nearest); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("CheckMatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnErrorWithoutMatchIsBounded(t *testing.T) {
	err := &NoMatchError{Nearest: &Miss{Policy: policyOf("shop", "p"), Differences: []string{strings.Repeat("x", 2000)}}}
	if length := len(err.Error()); length > conditions.MaxMessageBytes {
		t.Errorf("the message has %d bytes", length)
	}
}
