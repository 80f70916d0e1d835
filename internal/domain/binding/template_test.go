package binding

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

var clusterRole = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}

// bindingOfRole returns the binding of a ClusterRole.
func bindingOfRole(name, roleName string) Object {
	bound := &workv1alpha2.ClusterResourceBinding{}
	bound.Name = name
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: clusterRole.Group + "/v1", Kind: clusterRole.Kind, Name: roleName}
	bound.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterRole.Group + "/v1", Kind: clusterRole.Kind, Name: roleName, Controller: new(true)}}
	return bound
}

func newGetter(stored []Object) func(string) (Object, error) {
	return func(name string) (Object, error) {
		for _, each := range stored {
			if each.GetName() == name {
				return each, nil
			}
		}
		return nil, nil
	}
}

func TestFind(t *testing.T) {
	const usual, hashed = "coll.view-clusterrole", "coll.view-clusterrole.HASH"
	exact := Names(clusterRole, "coll.view")[1]
	tests := map[string]struct {
		stored      []Object
		found, free string
	}{
		"no binding":                                    {nil, "", usual},
		"its binding with the usual name":               {[]Object{bindingOfRole(usual, "coll.view")}, usual, ""},
		"the usual name belongs to another template":    {[]Object{bindingOfRole(usual, "coll:view")}, "", exact},
		"both templates have bindings":                  {[]Object{bindingOfRole(usual, "coll:view"), bindingOfRole(exact, "coll.view")}, exact, ""},
		"the usual name became free":                    {[]Object{bindingOfRole(exact, "coll.view")}, exact, ""},
		"bindings of other templates have both names":   {[]Object{bindingOfRole(usual, "coll:view"), bindingOfRole(exact, "other")}, exact, ""},
		"a binding without a template":                  {[]Object{&workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: usual}}}, usual, ""},
		"a user changed spec.resource of its binding":   {[]Object{withResourceName(bindingOfRole(usual, "coll.view"), "other")}, usual, ""},
		"a user's binding, which has no owner, for it":  {[]Object{withoutOwner(bindingOfRole(usual, "coll.view"))}, usual, ""},
		"a user's binding, which has no owner, for one": {[]Object{withoutOwner(bindingOfRole(usual, "coll:view"))}, "", exact},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound, free, err := Find(clusterRole, "coll.view", newGetter(test.stored))
			found := ""
			if bound != nil {
				found = bound.GetName()
			}
			if diff := cmp.Diff([]string{test.found, test.free}, []string{found, free}); diff != "" || err != nil {
				t.Errorf("error %v, found and free name (-want +got):\n%s", err, diff)
			}
		})
	}
	if !strings.HasPrefix(exact, strings.TrimSuffix(hashed, "HASH")) {
		t.Errorf("the second name is %s", exact)
	}
	unavailable := errors.New("unavailable")
	if _, _, err := Find(clusterRole, "coll.view", func(string) (Object, error) { return nil, unavailable }); !errors.Is(err, unavailable) {
		t.Errorf("error %v", err)
	}
}

func withResourceName(bound Object, name string) Object {
	bound.BindingSpec().Resource.Name = name
	return bound
}

func withoutOwner(bound Object) Object {
	bound.SetOwnerReferences(nil)
	return bound
}

// TestFindGivesEachTemplateItsOwnBinding creates and deletes bindings of templates with similar
// names in any order.
func TestFindGivesEachTemplateItsOwnBinding(t *testing.T) {
	type template struct{ group, kind, name string }
	rapid.Check(t, func(t *rapid.T) {
		stored := map[string]Object{}
		nameOf := map[template]string{}
		get := func(name string) (Object, error) { return stored[name], nil }
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			of := template{
				rapid.SampledFrom([]string{"", "a.io", "b.io"}).Draw(t, "group"),
				rapid.SampledFrom([]string{"Role", "ROLE", "X-Role"}).Draw(t, "kind"),
				rapid.OneOf(rapid.SampledFrom([]string{"view", "View", "view-x"}), rapid.StringMatching(`[aA][:.][bB]`), rapid.StringMatching(`[a:]{240,253}`)).Draw(t, "name"),
			}
			bound, free, err := Find(schema.GroupKind{Group: of.group, Kind: of.kind}, of.name, get)
			if err != nil {
				t.Fatal(err)
			}
			if kept, ok := nameOf[of]; ok {
				if bound == nil || bound.GetName() != kept {
					t.Fatalf("%v has the binding %v, want %s", of, bound, kept)
				}
				if rapid.Bool().Draw(t, "delete") {
					delete(stored, kept)
					delete(nameOf, of)
				}
				continue
			}
			if bound != nil || stored[free] != nil || len(validation.IsDNS1123Subdomain(free)) > 0 {
				t.Fatalf("%v has the binding %v or the free name %q", of, bound, free)
			}
			created := &workv1alpha2.ClusterResourceBinding{}
			created.Name = free
			created.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: schema.GroupVersion{Group: of.group, Version: "v1"}.String(), Kind: of.kind, Name: of.name}
			stored[free], nameOf[of] = created, free
		}
	})
}
