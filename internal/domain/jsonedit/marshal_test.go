package jsonedit

import (
	"encoding/json"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func FuzzMarshal(f *testing.F) {
	for _, text := range []string{
		`{"b":[1,-2.5,1e30,true,null,"x"],"a":{},"c":[]}`, `{"<a>&":"\u2028\u0001\"\\\n","\u00e4":"\ud800"}`, `[]`, `null`, `9223372036854775807`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		if utiljson.Unmarshal([]byte(text), &value) != nil {
			return
		}
		want, err := json.Marshal(value)
		if err != nil {
			return
		}
		if got, err := Marshal(value); err != nil || string(got) != string(want) {
			t.Errorf("%s is encoded as %s (error %v), want %s", text, got, err, want)
		}
	})
}

func TestMarshalOfOtherTypes(t *testing.T) {
	value := map[string]any{"number": 1, "list": []string{"a"}, "nothing": []any(nil), "object": map[string]any(nil)}
	want, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Marshal(value); err != nil || string(got) != string(want) {
		t.Errorf("encoded as %s (error %v), want %s", got, err, want)
	}
	if _, err := Marshal(map[string]any{"unsupported": make(chan int)}); err == nil {
		t.Error("a channel is encoded")
	}
}

const benchmarkDocument = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web","tier":"front"}},` +
	`"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"web","image":"nginx:1.29","ports":[{"containerPort":80}]}]}}}}`

func BenchmarkMarshal(b *testing.B) {
	var value any
	if err := utiljson.Unmarshal([]byte(benchmarkDocument), &value); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Marshal(value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEqual(b *testing.B) {
	var left, right any
	if utiljson.Unmarshal([]byte(benchmarkDocument), &left) != nil || utiljson.Unmarshal([]byte(benchmarkDocument), &right) != nil {
		b.Fatal("invalid document")
	}
	b.ReportAllocs()
	for b.Loop() {
		if !Equal(left, right) {
			b.Fatal("the documents differ")
		}
	}
}
