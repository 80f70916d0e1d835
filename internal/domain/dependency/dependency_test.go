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
	both := named("Secret", "keys")
	both.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	elsewhere, reserved := named("ConfigMap", "global"), named("Secret", "root")
	elsewhere.Namespace, reserved.Namespace = "platform", "karmada-system"
	itself := Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	otherVersion := itself
	otherVersion.APIVersion = "apps/v1beta1"
	tests := map[string]struct{ found, want []Reference }{
		"nothing is needed": {},
		"they are sorted by kind and name": {
			[]Reference{named("Secret", "a"), named("ConfigMap", "b"), named("ConfigMap", "a")},
			[]Reference{named("ConfigMap", "a"), named("ConfigMap", "b"), named("Secret", "a")},
		},
		"each is there once":                       {[]Reference{named("Secret", "a"), named("Secret", "a")}, []Reference{named("Secret", "a")}},
		"a name makes the selector meaningless":    {[]Reference{both, named("Secret", "keys")}, []Reference{named("Secret", "keys")}},
		"different selectors are different":        {[]Reference{selecting("Secret", "a", "2"), selecting("Secret", "a", "1")}, []Reference{selecting("Secret", "a", "1"), selecting("Secret", "a", "2")}},
		"other namespaces are fine":                {[]Reference{elsewhere}, []Reference{elsewhere}},
		"the control plane's own are left out":     {[]Reference{reserved}, nil},
		"the template does not depend on itself":   {[]Reference{itself, named("Secret", "a")}, []Reference{named("Secret", "a")}},
		"nor on itself in another version":         {[]Reference{otherVersion}, nil},
		"another kind of the same name is no self": {[]Reference{named("ConfigMap", "web")}, []Reference{named("ConfigMap", "web")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, References(object("apps/v1", "Deployment", "shop", "web"), tc.found)); diff != "" {
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
	later := named("Secret", "keys")
	later.APIVersion = "v2"
	grouped := named("Secret", "keys")
	grouped.APIVersion = "example.io/v1"
	tests := map[string]struct {
		reference Reference
		thing     Thing
		labels    map[string]string
		want      bool
	}{
		"by name":                          {named("Secret", "keys"), thing("Secret", "shop", "keys"), nil, true},
		"not by another name":              {named("Secret", "keys"), thing("Secret", "shop", "other"), nil, false},
		"not in another namespace":         {named("Secret", "keys"), thing("Secret", "bank", "keys"), nil, false},
		"not of another kind":              {named("Secret", "keys"), thing("ConfigMap", "shop", "keys"), nil, false},
		"in any version":                   {later, thing("Secret", "shop", "keys"), nil, true},
		"not in another group":             {grouped, thing("Secret", "shop", "keys"), nil, false},
		"by labels":                        {selecting("Secret", "app", "web"), thing("Secret", "shop", "x"), map[string]string{"app": "web"}, true},
		"not by other labels":              {selecting("Secret", "app", "web"), thing("Secret", "shop", "x"), map[string]string{"app": "db"}, false},
		"not by labels in another place":   {selecting("Secret", "app", "web"), thing("Secret", "bank", "x"), map[string]string{"app": "web"}, false},
		"the empty selector is everything": {everything, thing("Secret", "shop", "x"), nil, true},
		"an invalid selector is nothing":   {invalid, thing("Secret", "shop", "x"), nil, false},
		"no name and no selector neither":  {named("Secret", ""), thing("Secret", "shop", ""), nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Matches(tc.reference, tc.thing, tc.labels); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	const sorted = `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"a"},{"apiVersion":"v1","kind":"Secret","namespace":"shop","labelSelector":{"matchLabels":{"a":"b"}}}]`
	const shuffled = `[{"kind":"Secret","apiVersion":"v1","namespace":"shop","labelSelector":{"matchLabels":{"a":"b"}}},{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"a"}]`
	references := []Reference{named("ConfigMap", "a"), selecting("Secret", "a", "b")}
	tests := map[string]struct {
		before     string
		references []Reference
		want       string
	}{
		"what is needed is noted":               {"", references, sorted},
		"the same in another order stays":       {shuffled, references, shuffled},
		"something else is replaced":            {`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"a"}]`, references, sorted},
		"a note that cannot be read is too":     {`{`, references, sorted},
		"a note of nothing is too":              {`null`, references, sorted},
		"the note goes when nothing is needed":  {sorted, nil, ""},
		"no note is made when nothing is there": {"", nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := dependent("web")
			shared := map[string]string{"user": "note"}
			if tc.before != "" {
				shared[workv1alpha2.DependenciesAnnotation] = tc.before
			}
			bound.Annotations = shared
			if err := Record(bound, tc.references); err != nil {
				t.Fatal(err)
			}
			if got := bound.Annotations[workv1alpha2.DependenciesAnnotation]; got != tc.want {
				t.Errorf("note %s, want %s", got, tc.want)
			}
			if bound.Annotations["user"] != "note" || shared[workv1alpha2.DependenciesAnnotation] != tc.before {
				t.Error("other annotations or a map in use were changed")
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
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := Decode(text)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if text2, _ := Encode(again); text2 != text {
			t.Fatalf("%s became %s", text, text2)
		}
		template := object("apps/v1", "Deployment", "shop", "web")
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
		appeared   bool
	}{
		{"web", []Reference{named("ConfigMap", "settings"), selecting("Secret", "app", "web")}, true},
		{"api", []Reference{named("ConfigMap", "settings")}, false},
		{"db", []Reference{selecting("Secret", "app", "db")}, false},
		{"old", []Reference{named("ConfigMap", "settings")}, false},
		{"old", nil, false},
		{"moved", []Reference{named("ConfigMap", "settings")}, false},
		{"moved", []Reference{named("Service", "front")}, true},
	}
	for _, step := range steps {
		if got := index.Put(key(step.dependent), step.references); got != step.appeared {
			t.Errorf("putting %s: a kind appeared: %v", step.dependent, got)
		}
	}
	labelled := func(value string) map[string]string { return map[string]string{"app": value} }
	tests := map[string]struct {
		thing  Thing
		labels []map[string]string
		want   []types.NamespacedName
	}{
		"all that name it":                    {thing("ConfigMap", "shop", "settings"), []map[string]string{nil}, []types.NamespacedName{key("api"), key("web")}},
		"whoever selects it":                  {thing("Secret", "shop", "keys"), []map[string]string{labelled("web")}, []types.NamespacedName{key("web")}},
		"whoever selected it before, too":     {thing("Secret", "shop", "keys"), []map[string]string{labelled("web"), labelled("db")}, []types.NamespacedName{key("db"), key("web")}},
		"nobody for other labels":             {thing("Secret", "shop", "keys"), []map[string]string{labelled("cache")}, nil},
		"nobody in another namespace":         {thing("ConfigMap", "bank", "settings"), []map[string]string{nil}, nil},
		"only the last references count":      {thing("Service", "shop", "front"), []map[string]string{nil}, []types.NamespacedName{key("moved")}},
		"nobody for what nobody refers to":    {thing("ConfigMap", "shop", "other"), []map[string]string{nil}, nil},
		"a name is no selector of everything": {thing("ConfigMap", "shop", ""), []map[string]string{nil}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, index.Dependents(tc.thing, tc.labels...)); diff != "" {
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

// The index finds exactly those whose references match, whatever was put before,
// and is empty when everybody is forgotten.
func TestIndexAgreesWithASearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		kinds := rapid.SampledFrom([]string{"ConfigMap", "Secret"})
		references := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Reference {
			if rapid.Bool().Draw(t, "by name") {
				return named(kinds.Draw(t, "kind"), names.Draw(t, "name"))
			}
			return selecting(kinds.Draw(t, "kind"), "app", names.Draw(t, "value"))
		}), 0, 4)
		index, model := NewIndex(), map[types.NamespacedName][]Reference{}
		for range rapid.IntRange(0, 12).Draw(t, "puts") {
			dependent := key(names.Draw(t, "dependent"))
			model[dependent] = references.Draw(t, "references")
			index.Put(dependent, model[dependent])
		}
		what, labels := thing(kinds.Draw(t, "kind"), "shop", names.Draw(t, "object")), map[string]string{"app": names.Draw(t, "label")}
		var want []types.NamespacedName
		for _, dependent := range []types.NamespacedName{key("a"), key("b"), key("c")} {
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
		if len(index.Kinds()) != 0 || len(index.named)+len(index.selecting)+len(index.references) != 0 {
			t.Fatalf("something is left: %+v", index)
		}
	})
}
