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
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

func selectDeployment(name string) policyv1alpha1.ResourceSelector {
	return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
}

func TestNearestMiss(t *testing.T) {
	web := newDeployment("shop", "web", map[string]string{"app": "api"})
	autoscaler := newObject("autoscaling/v2", "HorizontalPodAutoscaler", "shop", "web", nil)
	oldAutoscaler := policyv1alpha1.ResourceSelector{APIVersion: "autoscaling/v1", Kind: "HorizontalPodAutoscaler"}
	lowerCase := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "deployment"}
	otherGroup := policyv1alpha1.ResourceSelector{APIVersion: "serving.example/v1", Kind: "Deployment", Name: "web"}
	otherGroupAndName := otherGroup
	otherGroupAndName.Name = "db"
	twoLabels := selectByLabels(map[string]string{"app": "web", "tier": "front"})

	tests := map[string]struct {
		template *unstructured.Unstructured
		policies []Object
		want     string
	}{
		"no policies":                                        {},
		"a policy for another kind":                          {policies: []Object{newPolicy("shop", "p", withSelectors(otherKind))}},
		"a policy in another namespace":                      {policies: []Object{newPolicy("dev", "p", withSelectors(selectDeployment("web2")))}},
		"a policy that selects the template":                 {policies: []Object{newPolicy("shop", "p", withSelectors(selectDeployment("web2"))), newPolicy("", "all", withSelectors(allDeployments))}},
		"the name differs":                                   {policies: []Object{newPolicy("shop", "p", withSelectors(selectDeployment("web2")))}, want: `PropagationPolicy shop/p comes nearest: selects name "web2", not "web"`},
		"the name is not similar":                            {policies: []Object{newPolicy("shop", "p", withSelectors(selectDeployment("database")))}, want: `PropagationPolicy shop/p comes nearest: selects name "database", not "web"`},
		"the labels differ":                                  {policies: []Object{newPolicy("shop", "p", withSelectors(labelledWeb))}, want: "PropagationPolicy shop/p comes nearest: requires app=web, has app=api"},
		"one label is missing and another differs":           {policies: []Object{newPolicy("shop", "p", withSelectors(twoLabels))}, want: "PropagationPolicy shop/p comes nearest: requires app=web, has app=api; requires tier=front, has no label tier"},
		"an invalid label selector":                          {policies: []Object{newPolicy("shop", "p", withSelectors(brokenSelector))}, want: "PropagationPolicy shop/p comes nearest: its labelSelector is not valid"},
		"the version differs":                                {template: autoscaler, policies: []Object{newPolicy("shop", "p", withSelectors(oldAutoscaler))}, want: "PropagationPolicy shop/p comes nearest: selects autoscaling/v1, the server prefers autoscaling/v2"},
		"the case of the kind differs":                       {policies: []Object{newPolicy("shop", "p", withSelectors(lowerCase))}, want: `PropagationPolicy shop/p comes nearest: selects kind "deployment", not "Deployment"`},
		"only the group differs":                             {policies: []Object{newPolicy("shop", "p", withSelectors(otherGroup))}, want: "PropagationPolicy shop/p comes nearest: selects serving.example/v1, the server prefers apps/v1"},
		"a kind in another group with another name":          {policies: []Object{newPolicy("shop", "p", withSelectors(otherGroupAndName))}},
		"the policy is being deleted":                        {policies: []Object{newPolicy("shop", "p", withDeletionTimestamp, withSelectors(webByName))}, want: "PropagationPolicy shop/p comes nearest: it is being deleted"},
		"a cluster policy with a similar name":               {policies: []Object{newPolicy("", "p", withSelectors(selectDeployment("wev")))}, want: `ClusterPropagationPolicy p comes nearest: selects name "wev", not "web"`},
		"a cluster policy with another name is ignored":      {policies: []Object{newPolicy("", "p", withSelectors(selectDeployment("database")))}},
		"a cluster policy with another value of the label":   {policies: []Object{newPolicy("", "p", withSelectors(labelledWeb))}, want: "ClusterPropagationPolicy p comes nearest: requires app=web, has app=api"},
		"a cluster policy whose label is missing is ignored": {policies: []Object{newPolicy("", "p", withSelectors(selectByLabels(map[string]string{"propagate": "true"})))}},
		"a cluster policy for the namespace is reported":     {policies: []Object{newPolicy("", "p", withSelectors(inNamespace(selectDeployment("database"), "shop")))}, want: `ClusterPropagationPolicy p comes nearest: selects name "database", not "web"`},
		"a cluster policy for another namespace is ignored":  {policies: []Object{newPolicy("", "p", withSelectors(inNamespace(webByName, "dev")))}},
		"a policy with fewer differences is nearer":          {policies: []Object{newPolicy("shop", "a", withSelectors(selectDeployment("database"))), newPolicy("shop", "b", withSelectors(otherAPIVersion))}, want: "PropagationPolicy shop/b comes nearest: selects apps/v1beta1, the server prefers apps/v1"},
		"a namespaced policy precedes a cluster policy":      {policies: []Object{newPolicy("", "a", withSelectors(selectDeployment("web2"))), newPolicy("shop", "b", withSelectors(selectDeployment("web2")))}, want: `PropagationPolicy shop/b comes nearest: selects name "web2", not "web"`},
		"equal policies are sorted by name":                  {policies: []Object{newPolicy("shop", "b", withSelectors(selectDeployment("web2"))), newPolicy("shop", "a", withSelectors(selectDeployment("web2")))}, want: `PropagationPolicy shop/a comes nearest: selects name "web2", not "web"`},
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
			for how, find := range map[string]func() (NearMiss, bool){
				"in order":    func() (NearMiss, bool) { return NearestMiss(template, test.policies) },
				"in reverse":  func() (NearMiss, bool) { return NearestMiss(template, reversed) },
				"by an index": func() (NearMiss, bool) { return index.NearestMiss(template) },
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

func TestIndexDeletesKindsOfDeletedPolicies(t *testing.T) {
	index := NewIndex()
	for i := range 1000 {
		index.Put(newPolicy("shop", fmt.Sprintf("p%04d", i), withSelectors(selectDeployment(fmt.Sprintf("p%04d-x", i)), otherKind)))
	}
	miss, ok := index.NearestMiss(newDeployment("shop", "p0700", nil))
	if !ok || miss.Policy.GetName() != "p0700" {
		t.Errorf("nearest of many policies is %v", miss)
	}
	for i := range 1000 {
		index.Delete("shop", fmt.Sprintf("p%04d", i))
	}
	if len(index.byKind) != 0 {
		t.Errorf("%d kinds remain without policies", len(index.byKind))
	}
}

func TestCheckMatch(t *testing.T) {
	near := func(*unstructured.Unstructured) (NearMiss, bool) {
		return NearMiss{Policy: newPolicy("shop", "p"), Differences: []string{`selects name "web2", not "web"`}}, true
	}
	none := func(*unstructured.Unstructured) (NearMiss, bool) { return NearMiss{}, false }
	const nearestMessage = `No policy match for resource: PropagationPolicy shop/p comes nearest: selects name "web2", not "web"`
	const releasedMessage = "; the policy that claimed it was deleted or no longer selects it, and binding shop/web-deployment is kept unchanged"
	web := newDeployment("shop", "web", nil)
	with := func(template *unstructured.Unstructured, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		changed := template.DeepCopy()
		change(changed)
		return changed
	}
	bound := func(change func(*workv1alpha2.ResourceBinding)) binding.Object {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", Annotations: map[string]string{policyv1alpha1.TemplateStateAnnotation: "1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(web, web.GroupVersionKind())},
		}}
		change(b)
		return b
	}
	tests := map[string]struct {
		template *unstructured.Unstructured
		bound    binding.Object
		nearest  func(*unstructured.Unstructured) (NearMiss, bool)
		want     string
	}{
		"a policy nearly selects the object":                         {template: web, nearest: near, want: nearestMessage},
		"no policy nearly selects the object":                        {template: web, nearest: none},
		"a policy released the object":                               {template: web, nearest: none, bound: bound(func(*workv1alpha2.ResourceBinding) {}), want: "No policy match for resource" + releasedMessage},
		"a policy released the object and another nearly selects it": {template: web, nearest: near, bound: bound(func(*workv1alpha2.ResourceBinding) {}), want: nearestMessage + releasedMessage},
		"a binding of another object":                                {template: web, nearest: none, bound: bound(func(b *workv1alpha2.ResourceBinding) { b.OwnerReferences = nil })},
		"a dependency of another object": {template: web, nearest: near, bound: bound(func(b *workv1alpha2.ResourceBinding) {
			b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "api-deployment"}}
		})},
		"an object that is being deleted": {template: with(web, func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) }), nearest: near},
		"an object owned by a controller": {template: with(web, func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Owner", Controller: new(true)}})
		}), nearest: near},
		"the CA certificates of a namespace":        {template: newObject("v1", "ConfigMap", "shop", "kube-root-ca.crt", nil), nearest: near},
		"another ConfigMap":                         {template: newObject("v1", "ConfigMap", "shop", "web", nil), nearest: near, want: nearestMessage},
		"the default ServiceAccount of a namespace": {template: newObject("v1", "ServiceAccount", "shop", "default", nil), nearest: near},
		"the Service of the API server":             {template: newObject("v1", "Service", "default", "kubernetes", nil), nearest: near},
		"a token of a ServiceAccount": {template: with(newObject("v1", "Secret", "shop", "token", nil), func(u *unstructured.Unstructured) {
			u.Object["type"] = "kubernetes.io/service-account-token"
		}), nearest: near},
		"another Secret":              {template: newObject("v1", "Secret", "shop", "web", nil), nearest: near, want: nearestMessage},
		"a ClusterRole of the system": {template: newObject("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:node", nil), nearest: near},
		"an EndpointSlice":            {template: newObject("discovery.k8s.io/v1", "EndpointSlice", "shop", "web", nil), nearest: near},
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

func TestNoMatchErrorLengthIsLimited(t *testing.T) {
	err := &NoMatchError{Nearest: &NearMiss{Policy: newPolicy("shop", "p"), Differences: []string{strings.Repeat("x", 2000)}}}
	if length := len(err.Error()); length > conditions.MaxMessageBytes {
		t.Errorf("the message has %d bytes", length)
	}
}

// servesBuiltIn reports whether a kind is served by an API server that has two kinds.
func servesBuiltIn(kind schema.GroupVersionKind) bool {
	return kind.GroupVersion().String() == "apps/v1" && (kind.Kind == "Deployment" || kind.Kind == "Deployments")
}

func TestSelectorDifferences(t *testing.T) {
	web := newDeployment("shop", "web", map[string]string{"app": "api"})
	tests := map[string]struct {
		selectors []policyv1alpha1.ResourceSelector
		want      []string
	}{
		"a selector selects the object": {[]policyv1alpha1.ResourceSelector{selectDeployment("web2"), selectDeployment("web")}, nil},
		"a similar name":                {[]policyv1alpha1.ResourceSelector{selectDeployment("database"), selectDeployment("web2")}, []string{`selects name "web2", not "web"`}},
		"another name":                  {[]policyv1alpha1.ResourceSelector{selectDeployment("database")}, nil},
		"a misspelled kind": {[]policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deploymnt"}},
			[]string{"selects apps/v1 Deploymnt, which the control plane does not serve, instead of apps/v1 Deployment"}},
		"no selectors": {nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, SelectorDifferences(web, test.selectors, servesBuiltIn)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNearMisses(t *testing.T) {
	web := newDeployment("shop", "web", map[string]string{"app": "api"})
	misspelled := newPolicy("shop", "misspelled", withSelectors(selectDeployment("web2")))
	labelled := newPolicy("", "labelled", withSelectors(labelledWeb))
	far := newPolicy("shop", "far", withSelectors(selectDeployment("database")))
	selecting := func(name, apiVersion, kind string) Object {
		return newPolicy("shop", name, withSelectors(policyv1alpha1.ResourceSelector{APIVersion: apiVersion, Kind: kind, Name: "web"}))
	}
	kind, group, version := selecting("kind", "apps/v1", "Deploymnt"), selecting("group", "app/v1", "Deployment"), selecting("version", "v1", "Deployment")
	tests := map[string]struct {
		policies []Object
		limit    int
		want     []string
	}{
		"closest first": {[]Object{far, labelled, misspelled}, 9, []string{"misspelled", "labelled", "far"}},
		"a misspelled kind is closer than another name": {[]Object{far, misspelled, kind}, 9, []string{"kind", "misspelled", "far"}},
		"a misspelled group":                            {[]Object{misspelled, group}, 9, []string{"group", "misspelled"}},
		"a version that is not served":                  {[]Object{misspelled, version}, 9, []string{"version", "misspelled"}},
		"a similar kind that is served":                 {[]Object{newPolicy("shop", "p", withSelectors(policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployments"}))}, 9, nil},
		"at most the limit":                             {[]Object{far, labelled, misspelled}, 1, []string{"misspelled"}},
		"no policies":                                   {nil, 9, nil},
		"a policy selects the object":                   {[]Object{far, newPolicy("", "all", withSelectors(allDeployments))}, 9, nil},
		"policies for other namespace":                  {[]Object{newPolicy("dev", "p", withSelectors(selectDeployment("web2")))}, 9, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, miss := range NearMisses(web, test.policies, servesBuiltIn, test.limit) {
				got = append(got, miss.Policy.GetName())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
		})
	}
}
