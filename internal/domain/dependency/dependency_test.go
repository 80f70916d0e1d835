package dependency

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestReferences(t *testing.T) {
	both := namedReference("Secret", "keys")
	both.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	elsewhere, reserved := namedReference("ConfigMap", "global"), namedReference("Secret", "root")
	elsewhere.Namespace, reserved.Namespace = "platform", "karmada-system"
	itself := Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	otherVersion := itself
	otherVersion.APIVersion = "apps/v1beta1"
	tests := map[string]struct{ found, want []Reference }{
		"no references": {},
		"sorted by kind and name": {
			[]Reference{namedReference("Secret", "a"), namedReference("ConfigMap", "b"), namedReference("ConfigMap", "a")},
			[]Reference{namedReference("ConfigMap", "a"), namedReference("ConfigMap", "b"), namedReference("Secret", "a")},
		},
		"without duplicates":                          {[]Reference{namedReference("Secret", "a"), namedReference("Secret", "a")}, []Reference{namedReference("Secret", "a")}},
		"a name disables the selector":                {[]Reference{both, namedReference("Secret", "keys")}, []Reference{namedReference("Secret", "keys")}},
		"different selectors are different":           {[]Reference{selectorReference("Secret", "a", "2"), selectorReference("Secret", "a", "1")}, []Reference{selectorReference("Secret", "a", "1"), selectorReference("Secret", "a", "2")}},
		"another namespace":                           {[]Reference{elsewhere}, []Reference{elsewhere}},
		"namespaces of the control plane are omitted": {[]Reference{reserved}, nil},
		"the template does not depend on itself":      {[]Reference{itself, namedReference("Secret", "a")}, []Reference{namedReference("Secret", "a")}},
		"also not in another API version":             {[]Reference{otherVersion}, nil},
		"another kind with the same name":             {[]Reference{namedReference("ConfigMap", "web")}, []Reference{namedReference("ConfigMap", "web")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, References(newObject("apps/v1", "Deployment", "shop", "web"), tc.found)); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	invalid := Reference{APIVersion: "v1", Kind: "Secret", Namespace: "shop", LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Likes"}},
	}}
	everything := Reference{APIVersion: "v1", Kind: "Secret", Namespace: "shop", LabelSelector: &metav1.LabelSelector{}}
	later := namedReference("Secret", "keys")
	later.APIVersion = "v2"
	grouped := namedReference("Secret", "keys")
	grouped.APIVersion = "example.io/v1"
	tests := map[string]struct {
		reference Reference
		object    ObjectID
		labels    map[string]string
		want      bool
	}{
		"by name":                               {namedReference("Secret", "keys"), newThing("Secret", "shop", "keys"), nil, true},
		"not by another name":                   {namedReference("Secret", "keys"), newThing("Secret", "shop", "other"), nil, false},
		"not in another namespace":              {namedReference("Secret", "keys"), newThing("Secret", "bank", "keys"), nil, false},
		"not of another kind":                   {namedReference("Secret", "keys"), newThing("ConfigMap", "shop", "keys"), nil, false},
		"in any version":                        {later, newThing("Secret", "shop", "keys"), nil, true},
		"not in another group":                  {grouped, newThing("Secret", "shop", "keys"), nil, false},
		"by labels":                             {selectorReference("Secret", "app", "web"), newThing("Secret", "shop", "x"), map[string]string{"app": "web"}, true},
		"not by other labels":                   {selectorReference("Secret", "app", "web"), newThing("Secret", "shop", "x"), map[string]string{"app": "db"}, false},
		"not by labels in another namespace":    {selectorReference("Secret", "app", "web"), newThing("Secret", "bank", "x"), map[string]string{"app": "web"}, false},
		"the empty selector matches everything": {everything, newThing("Secret", "shop", "x"), nil, true},
		"an invalid selector matches nothing":   {invalid, newThing("Secret", "shop", "x"), nil, false},
		"no name and no selector":               {namedReference("Secret", ""), newThing("Secret", "shop", ""), nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Matches(tc.reference, tc.object, tc.labels); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	const sorted = `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"a"},{"apiVersion":"v1","kind":"Secret","namespace":"shop","labelSelector":{"matchLabels":{"a":"b"}}}]`
	const shuffled = `[{"kind":"Secret","apiVersion":"v1","namespace":"shop","labelSelector":{"matchLabels":{"a":"b"}}},{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"a"}]`
	references := []Reference{namedReference("ConfigMap", "a"), selectorReference("Secret", "a", "b")}
	tests := map[string]struct {
		before     string
		references []Reference
		want       string
	}{
		"references are recorded":             {"", references, sorted},
		"another order is kept":               {shuffled, references, shuffled},
		"other references are replaced":       {`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"a"}]`, references, sorted},
		"an invalid annotation is replaced":   {`{`, references, sorted},
		"null is replaced":                    {`null`, references, sorted},
		"no references remove the annotation": {sorted, nil, ""},
		"no references without an annotation": {"", nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := newDependent("web")
			shared := map[string]string{"user": "note"}
			if tc.before != "" {
				shared[workv1alpha2.DependenciesAnnotation] = tc.before
			}
			bound.Annotations = shared
			if err := RecordReferences(bound, tc.references); err != nil {
				t.Fatal(err)
			}
			if got := bound.Annotations[workv1alpha2.DependenciesAnnotation]; got != tc.want {
				t.Errorf("annotation %s, want %s", got, tc.want)
			}
			if bound.Annotations["user"] != "note" || shared[workv1alpha2.DependenciesAnnotation] != tc.before {
				t.Error("other annotations or the shared map were changed")
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"a"}]`)
	f.Add(`[{"apiVersion":"v1","kind":"Secret","labelSelector":{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}}]`)
	f.Add(`null`)
	f.Add(`[{"labelSelector":{"matchLabels":null}}]`)
	f.Fuzz(func(t *testing.T, note string) {
		read, err := Decode(note)
		if err != nil {
			return
		}
		text, err := Encode(read)
		if err != nil {
			t.Fatalf("decoded references cannot be encoded: %v", err)
		}
		again, err := Decode(text)
		if err != nil {
			t.Fatalf("encoded references cannot be decoded: %v", err)
		}
		if text2, _ := Encode(again); text2 != text {
			t.Fatalf("%s became %s", text, text2)
		}
		template := newObject("apps/v1", "Deployment", "shop", "web")
		once := References(template, read)
		if diff := cmp.Diff(once, References(template, once)); diff != "" {
			t.Fatalf("references of references (-once +twice):\n%s", diff)
		}
	})
}

func TestDependents(t *testing.T) {
	index := NewIndex()
	steps := []struct {
		dependent  string
		references []Reference
		hasNewKind bool
	}{
		{"web", []Reference{namedReference("ConfigMap", "settings"), selectorReference("Secret", "app", "web")}, true},
		{"api", []Reference{namedReference("ConfigMap", "settings")}, false},
		{"db", []Reference{selectorReference("Secret", "app", "db")}, false},
		{"old", []Reference{namedReference("ConfigMap", "settings")}, false},
		{"old", nil, false},
		{"moved", []Reference{namedReference("ConfigMap", "settings")}, false},
		{"moved", []Reference{namedReference("Service", "front")}, true},
	}
	for _, step := range steps {
		if got := index.Put(shopKey(step.dependent), step.references); got != step.hasNewKind {
			t.Errorf("Put(%s): new kind: %v", step.dependent, got)
		}
	}
	labelled := func(value string) map[string]string { return map[string]string{"app": value} }
	tests := map[string]struct {
		object ObjectID
		labels []map[string]string
		want   []types.NamespacedName
	}{
		"all by name":                       {newThing("ConfigMap", "shop", "settings"), []map[string]string{nil}, []types.NamespacedName{shopKey("api"), shopKey("web")}},
		"by selector":                       {newThing("Secret", "shop", "keys"), []map[string]string{labelled("web")}, []types.NamespacedName{shopKey("web")}},
		"by selector with the old labels":   {newThing("Secret", "shop", "keys"), []map[string]string{labelled("web"), labelled("db")}, []types.NamespacedName{shopKey("db"), shopKey("web")}},
		"none for other labels":             {newThing("Secret", "shop", "keys"), []map[string]string{labelled("cache")}, nil},
		"none in another namespace":         {newThing("ConfigMap", "bank", "settings"), []map[string]string{nil}, nil},
		"only the last references count":    {newThing("Service", "shop", "front"), []map[string]string{nil}, []types.NamespacedName{shopKey("moved")}},
		"none without a reference":          {newThing("ConfigMap", "shop", "other"), []map[string]string{nil}, nil},
		"no name does not match everything": {newThing("ConfigMap", "shop", ""), []map[string]string{nil}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, index.Dependents(tc.object, tc.labels...)); diff != "" {
				t.Errorf("dependents (-want +got):\n%s", diff)
			}
		})
	}
	var kinds []string
	for _, kind := range index.Kinds() {
		kinds = append(kinds, kind.Kind)
	}
	if diff := cmp.Diff([]string{"ConfigMap", "Secret", "Service"}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// TestIndexAgreesWithLinearSearch checks that the index returns exactly the dependents whose
// references match, and that it is empty after all dependents are removed.
func TestIndexAgreesWithLinearSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		kinds := rapid.SampledFrom([]string{"ConfigMap", "Secret"})
		references := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Reference {
			if rapid.Bool().Draw(t, "by name") {
				return namedReference(kinds.Draw(t, "kind"), names.Draw(t, "name"))
			}
			return selectorReference(kinds.Draw(t, "kind"), "app", names.Draw(t, "value"))
		}), 0, 4)
		index, model := NewIndex(), map[types.NamespacedName][]Reference{}
		for range rapid.IntRange(0, 12).Draw(t, "puts") {
			dependent := shopKey(names.Draw(t, "dependent"))
			model[dependent] = references.Draw(t, "references")
			index.Put(dependent, model[dependent])
		}
		what, labels := newThing(kinds.Draw(t, "kind"), "shop", names.Draw(t, "object")), map[string]string{"app": names.Draw(t, "label")}
		var want []types.NamespacedName
		for _, dependent := range []types.NamespacedName{shopKey("a"), shopKey("b"), shopKey("c")} {
			for _, reference := range model[dependent] {
				if Matches(reference, what, labels) {
					want = append(want, dependent)
					break
				}
			}
		}
		if diff := cmp.Diff(want, index.Dependents(what, labels)); diff != "" {
			t.Fatalf("dependents (-want +got):\n%s", diff)
		}
		for dependent := range model {
			index.Put(dependent, nil)
		}
		if len(index.Kinds()) != 0 || len(index.byName)+len(index.bySelector)+len(index.references) != 0 {
			t.Fatalf("remaining: %+v", index)
		}
	})
}
