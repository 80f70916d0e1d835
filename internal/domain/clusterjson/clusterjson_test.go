package clusterjson_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/clusterjson"
)

const annotation = `{"resource.karmada.io/cached-from-cluster":"m1"}`

func TestParsePage(t *testing.T) {
	tests := map[string]struct {
		body string
		// want is nil if the body is no list.
		want *clusterjson.Page
	}{
		"a list": {
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":"x"},"items":[{}]}`,
			&clusterjson.Page{Kind: "PodList", APIVersion: "v1", ResourceVersion: "5", Token: "x", Items: []byte("[{}]")},
		},
		"a list of null":        {`{"kind":"PodList","items":null}`, &clusterjson.Page{Kind: "PodList", Items: []byte("[]")}},
		"a table":               {`{"kind":"Table","columnDefinitions":[],"rows":[]}`, &clusterjson.Page{Kind: "Table", Items: []byte("[]"), Columns: []byte("[]")}},
		"a table without rows":  {`{"kind":"Table"}`, &clusterjson.Page{Kind: "Table", Items: []byte("[]")}},
		"an object":             {`{"kind":"Pod","metadata":{}}`, nil},
		"a list of a number":    {`{"kind":"PodList","items":5}`, nil},
		"a list without a kind": {`{"items":[]}`, nil},
		"an HTML page":          {`<html>`, nil},
		"a strange version":     {`{"kind":"PodList","metadata":{"resourceVersion":5},"items":[]}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := clusterjson.ParsePage([]byte(test.body))
			if (err != nil) != (test.want == nil) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, got); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRewriteObject(t *testing.T) {
	tests := map[string]struct{ body, want string }{
		"an object": {
			`{"kind":"Pod","metadata":{"name":"a","resourceVersion":"12"},"spec":{"n":1.0}}`,
			`{"kind":"Pod","metadata":{"annotations":` + annotation + `,"name":"a","resourceVersion":"eyJtMSI6IjEyIn0"},"spec":{"n":1.0}}`,
		},
		"an object with annotations": {
			`{"kind":"Pod","metadata":{"annotations":{"x":"y"}}}`,
			`{"kind":"Pod","metadata":{"annotations":{"resource.karmada.io/cached-from-cluster":"m1","x":"y"}}}`,
		},
		"a false annotation is replaced": {
			`{"kind":"Pod","metadata":{"annotations":{"resource.karmada.io/cached-from-cluster":"other"}}}`,
			`{"kind":"Pod","metadata":{"annotations":` + annotation + `}}`,
		},
		"a Status": {`{"kind":"Status","code":404}`, `{"kind":"Status","code":404}`},
		"a table": {
			`{"kind":"Table","metadata":{"resourceVersion":"12"},"columnDefinitions":[{"name":"Name"}],"rows":[{"cells":["a", 2 ],"object":{"metadata":{}}},{"cells":[],"object":null}]}`,
			`{"kind":"Table","metadata":{"resourceVersion":"eyJtMSI6IjEyIn0"},"columnDefinitions":[{"name":"Name"},{"name":"Cluster","type":"string","format":"","description":"Cluster that has the object.","priority":0}],` +
				`"rows":[{"cells":["a",2,"m1"],"object":{"metadata":{"annotations":` + annotation + `}}},{"cells":["m1"],"object":null}]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := clusterjson.RewriteObject([]byte(test.body), "m1")
			if err != nil {
				t.Fatal(err)
			}
			var gotValue, want any
			if err := json.Unmarshal(got, &gotValue); err != nil {
				t.Fatalf("%s: %v", got, err)
			}
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, gotValue); diff != "" {
				t.Errorf("got %s\n%s", got, diff)
			}
		})
	}
}

func TestParseIdentity(t *testing.T) {
	deployment := clusterjson.Identity{
		Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "a", Name: "web", UID: "1",
	}
	for document, want := range map[string]clusterjson.Identity{
		`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"uid":"1","name":"web","namespace":"a"},"spec":{"name":"x"}}`: deployment,
		`{"metadata":null}`: {}, `{}`: {},
	} {
		if got, err := clusterjson.ParseIdentity([]byte(document)); err != nil || got != want {
			t.Errorf("%s: got %v, %v", document, got, err)
		}
	}
	for _, invalid := range []string{
		``, `[]`, `{"kind":"Pod"`, `{"kind":1}`, `{"kind":"Pod","kind":"Secret"}`, `{"metadata":{"name":"a","name":"b"}}`, `{"metadata":[]}`,
	} {
		if got, err := clusterjson.ParseIdentity([]byte(invalid)); err == nil {
			t.Errorf("%s: got %v", invalid, got)
		}
	}
}

func TestReorderRow(t *testing.T) {
	names, err := clusterjson.ColumnNames([]byte(`[{"name":"Name"},{"name":"Age"}]`))
	if diff := cmp.Diff([]string{"Name", "Age"}, names); diff != "" || err != nil {
		t.Error(diff, err)
	}
	got, err := clusterjson.ReorderRow([]byte(`{"cells":["a",5],"object":{}}`), names, []string{"Age", "Ready", "Name"})
	if want := `{"cells":[5,null,"a"],"object":{}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := clusterjson.ReorderRow([]byte(`{"cells":5}`), names, names); err == nil {
		t.Errorf("got %s", got)
	}
}

func TestInvalidTables(t *testing.T) {
	for _, body := range []string{
		`{"kind":"Table","rows":[{}]}`, `{"kind":"Table","rows":[5]}`, `{"kind":"Table","rows":[{"cells":5}]}`,
		`{"kind":"Table","rows":[{"cells":[],"object":{"metadata":5}}]}`, `{"kind":"Pod","metadata":[]}`,
	} {
		if got, err := clusterjson.RewriteObject([]byte(body), "m1"); err == nil {
			t.Errorf("%s becomes %s", body, got)
		}
	}
}

func TestToPartial(t *testing.T) {
	got, err := clusterjson.ToPartial(nil, []byte(`{"kind":"Pod","metadata":{"name":"a"},"spec":{}}`))
	if want := `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

// FuzzRewriteObject checks that a valid object stays the same except for its annotation and version,
// and that nothing panics.
func FuzzRewriteObject(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"12","annotations":null}}`))
	f.Add([]byte(`{"kind":"Table","columnDefinitions":[],"rows":[{"cells":[ ],"object":{}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = clusterjson.ParsePage(body)
		var before unstructured.Unstructured
		if !json.Valid(body) || before.UnmarshalJSON(body) != nil {
			return
		}
		got, err := clusterjson.RewriteObject(body, "m1")
		if err != nil || before.GetKind() == "Table" || before.GetKind() == "Status" || before.IsList() {
			return
		}
		var after unstructured.Unstructured
		if err := after.UnmarshalJSON(got); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if after.GetAnnotations()["resource.karmada.io/cached-from-cluster"] != "m1" || after.GetName() != before.GetName() {
			t.Fatalf("%s becomes %s", body, got)
		}
	})
}
