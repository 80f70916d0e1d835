package fanout

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// style is the style that the tests use.
var style = Style{Annotation: "resource.karmada.io/cached-from-cluster", HasClusterColumn: true}

const annotation = `{"resource.karmada.io/cached-from-cluster":"m1"}`

func TestParsePage(t *testing.T) {
	tests := map[string]struct {
		body string
		// want is nil if the body is not a list.
		want *Page
	}{
		"a list": {
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":"x"},"items":[{}]}`,
			&Page{Kind: "PodList", APIVersion: "v1", ResourceVersion: "5", Continue: "x", items: []byte("[{}]")},
		},
		"a list of null":        {`{"kind":"PodList","items":null}`, &Page{Kind: "PodList", items: []byte("[]")}},
		"a table":               {`{"kind":"Table","columnDefinitions":[],"rows":[]}`, &Page{Kind: "Table", items: []byte("[]"), columns: []byte("[]")}},
		"a table without rows":  {`{"kind":"Table"}`, &Page{Kind: "Table", items: []byte("[]")}},
		"an object":             {`{"kind":"Pod","metadata":{}}`, nil},
		"a list of a number":    {`{"kind":"PodList","items":5}`, nil},
		"a list without a kind": {`{"items":[]}`, nil},
		"an HTML page":          {`<html>`, nil},
		"a strange version":     {`{"kind":"PodList","metadata":{"resourceVersion":5},"items":[]}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := style.ParsePage("", []byte(test.body))
			if (err != nil) != (test.want == nil) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Page{})); err == nil && diff != "" {
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
			got, err := style.RewriteObject("m1", []byte(test.body))
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
	got, err := ParseIdentity([]byte(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"uid":"1","name":"web","namespace":"a"},"spec":{"name":"x"}}`))
	want := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "1"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, %s", err, diff)
	}
	for _, empty := range []string{`{"metadata":null}`, `{}`} {
		if got, err := ParseIdentity([]byte(empty)); err != nil || !cmp.Equal(got, &metav1.PartialObjectMetadata{}) {
			t.Errorf("%s: got %v, %v", empty, got, err)
		}
	}
	for _, invalid := range []string{
		``, `[]`, `{"kind":"Pod"`, `{"kind":1}`, `{"kind":"Pod","kind":"Secret"}`, `{"metadata":{"name":"a","name":"b"}}`, `{"metadata":[]}`,
	} {
		if got, err := ParseIdentity([]byte(invalid)); err == nil {
			t.Errorf("%s: got %v", invalid, got)
		}
	}
}

// TestTablesWithDifferentColumns checks that each cell is moved to the column with its name.
func TestTablesWithDifferentColumns(t *testing.T) {
	recorder := httptest.NewRecorder()
	out := &ListWriter{Style: style, Response: recorder}
	for i, body := range []string{
		`{"kind":"Table","columnDefinitions":[{"name":"Age"},{"name":"Ready"},{"name":"Name"}],"rows":[{"cells":[1,true,"b"]}]}`,
		`{"kind":"Table","columnDefinitions":[{"name":"Name"},{"name":"Age"}],"rows":[{"cells":["a",5],"object":{}}]}`,
		`{"kind":"Table","rows":[{"cells":[2,false,"c"]}]}`,
	} {
		page, err := style.ParsePage(fmt.Sprint("m", i), []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if count, err := out.WritePage(page, nil); count != 1 || err != nil {
			t.Errorf("%d rows, %v", count, err)
		}
	}
	if err := out.Finish("5", ""); err != nil {
		t.Fatal(err)
	}
	var table struct{ Rows []struct{ Cells []any } }
	if err := json.Unmarshal(recorder.Body.Bytes(), &table); err != nil {
		t.Fatalf("%s: %v", recorder.Body, err)
	}
	var cells [][]any
	for _, row := range table.Rows {
		cells = append(cells, row.Cells)
	}
	if diff := cmp.Diff([][]any{{1.0, true, "b", "m0"}, {5.0, nil, "a", "m1"}, {2.0, false, "c", "m2"}}, cells); diff != "" {
		t.Error(diff)
	}
}

// FuzzMergeLists checks that merging any lists that can be parsed results in valid JSON.
func FuzzMergeLists(f *testing.F) {
	f.Add([]byte(`{"kind":"PodList","items":[{"metadata":{"name":"a"}}]}`), []byte(`{"kind":"PodList","items":null}`))
	f.Add([]byte(`{"kind":"Table","rows":[{"cells":[],"object":null}]}`), []byte(`{"items":[1]}`))
	f.Add([]byte(`{"kind":"X","metadata":[],"items":[{"metadata":{"annotations":{"a":"b"}}}]}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		recorder := httptest.NewRecorder()
		out := &ListWriter{Style: style, Response: recorder}
		for _, body := range [][]byte{one, two} {
			page, err := style.ParsePage("m1", body)
			if err != nil {
				continue
			}
			if _, err := out.WritePage(page, nil); err != nil && !errors.Is(err, ErrMixedFormats) {
				t.Fatalf("a parsed page cannot be written: %v", err)
			}
		}
		if err := out.Finish("", ""); err != nil || !json.Valid(recorder.Body.Bytes()) {
			t.Fatalf("the merge of %q and %q is %q, %v", one, two, recorder.Body, err)
		}
	})
}

func TestInvalidTables(t *testing.T) {
	for _, body := range []string{
		`{"kind":"Table","rows":[{}]}`, `{"kind":"Table","rows":[5]}`, `{"kind":"Table","rows":[{"cells":5}]}`,
		`{"kind":"Table","rows":[{"cells":[],"object":{"metadata":5}}]}`, `{"kind":"Pod","metadata":[]}`,
	} {
		if got, err := style.RewriteObject("m1", []byte(body)); err == nil {
			t.Errorf("%s becomes %s", body, got)
		}
	}
}

func TestToPartial(t *testing.T) {
	got, err := ToPartial(nil, []byte(`{"kind":"Pod","metadata":{"name":"a"},"spec":{}}`))
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
		_, _ = style.ParsePage("m1", body)
		var before unstructured.Unstructured
		if !json.Valid(body) || before.UnmarshalJSON(body) != nil {
			return
		}
		got, err := style.RewriteObject("m1", body)
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
