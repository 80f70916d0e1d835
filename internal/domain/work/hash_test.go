package work

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

func prunedHashOf(value any) uint64 {
	return PrunedHash(&unstructured.Unstructured{Object: map[string]any{"value": value}})
}

func TestPrunedHashDistinguishesValues(t *testing.T) {
	values := map[string]any{
		"null": nil, "an empty text": "", "an empty list": []any{}, "an empty map": map[string]any{},
		"zero": int64(0), "one": int64(1), "minus one": int64(-1), "a half": 0.5, "no": false, "yes": true, "a text that is a number": "1",
		"two texts": []any{"a", "b"}, "the texts as one": []any{"ab", ""}, "the other way round": []any{"b", "a"},
		"a list in a list": []any{[]any{"a"}, "b"}, "a longer one in a list": []any{[]any{"a", "b"}},
		"a key": map[string]any{"a": "b"}, "a key and its value swapped": map[string]any{"b": "a"}, "a key without a value": map[string]any{"a": nil},
	}
	seen := map[uint64]string{}
	for name, value := range values {
		hash := prunedHashOf(value)
		if other, taken := seen[hash]; taken {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		seen[hash] = name
	}
	if prunedHashOf(int64(3)) != prunedHashOf(3.0) {
		t.Error("a number depends on how it was written")
	}
}

// drawnValue draws a value of one of the types that a JSON decoder returns.
func drawnValue(t *rapid.T, depth int, label string) any {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, label) {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, label)
	case 2:
		return rapid.Int64Range(-9, 9).Draw(t, label)
	case 3:
		return rapid.StringMatching("[ab]{0,2}").Draw(t, label)
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 2).Draw(t, label) {
			list = append(list, drawnValue(t, depth-1, label))
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 2).Draw(t, label) {
			object[rapid.StringMatching("[ab]").Draw(t, label)] = drawnValue(t, depth-1, label)
		}
		return object
	}
}

func TestPrunedHashDependsOnContentOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left, right := drawnValue(t, 3, "left"), drawnValue(t, 3, "right")
		if same := reflect.DeepEqual(left, right); same != (prunedHashOf(left) == prunedHashOf(right)) {
			t.Errorf("%v and %v are equal: %v, but their hashes differ in that", left, right, same)
		}
		encoded, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "X", "value": left})
		if err != nil {
			t.Fatal(err)
		}
		again, direct := &unstructured.Unstructured{}, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "value": left}}
		if err := again.UnmarshalJSON(encoded); err != nil {
			t.Fatal(err)
		}
		if PrunedHash(again) != PrunedHash(direct) {
			t.Error("the hash changes when the object is encoded and decoded")
		}
	})
}

func TestPrunedHashDoesNotChangeObject(t *testing.T) {
	for _, text := range []string{deployment, `
apiVersion: batch/v1
kind: Job
metadata: {name: j, labels: {a: b}, uid: u}
spec:
  ttlSecondsAfterFinished: 5
  selector: {matchLabels: {controller-uid: x}}
  template: {metadata: {labels: {controller-uid: x, job-name: j, keep: "1"}}}
`, `
apiVersion: v1
kind: ServiceAccount
metadata: {name: s}
secrets: [{name: s-token-abc}, {name: own}]
`, `
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: s, annotations: {kubernetes.io/service-account.uid: u}}
data: {token: eA==}
`, `
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], selector: {a: b}}
`} {
		observed := parseObject(t, text)
		before, bare := observed.DeepCopy(), observed.DeepCopy()
		PrunedHash(observed)
		if !reflect.DeepEqual(before, observed) {
			t.Errorf("%s was changed", observed.GetKind())
		}
		Prune(bare)
		if !reflect.DeepEqual(bare, prunedCopy(observed)) {
			t.Errorf("%s: prunedCopy and Prune differ", observed.GetKind())
		}
	}
}
