package bounds

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCountJSONValues(t *testing.T) {
	for text, want := range map[string]int64{
		`{}`:                           1,
		`{"a":[{},{}]}`:                4,
		`[null,null,null]`:             4,
		`[]`:                           1,
		`[ [ ] , [ 1 ] , "x" ]`:        5,
		`{"a":"{[{[","b":"\"{","c":1}`: 1,
		`{"a":"\\","b":{}}`:            2,
		`{"a":1,"b":2}`:                1,
	} {
		for _, step := range []int{1, len(text)} {
			counted := valueCounter{}
			for rest := text; rest != ""; {
				n, _ := counted.scan([]byte(rest[:min(step, len(rest))]))
				rest = rest[n:]
			}
			if counted.count != want {
				t.Errorf("%s counts %d in steps of %d, want %d", text, counted.count, step, want)
			}
		}
	}
}

// TestCountJSONValuesOfRandomText checks that the count equals the number of decoded values, no
// matter how the text is split.
func TestCountJSONValuesOfRandomText(t *testing.T) {
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any](1.5), rapid.Map(rapid.String(), func(s string) any { return s }))
	rapid.Check(t, func(t *rapid.T) {
		value := leaf
		for range rapid.IntRange(0, 4).Draw(t, "depth") {
			inner := value
			value = rapid.OneOf(leaf,
				rapid.Map(rapid.SliceOfN(inner, 0, 4), func(all []any) any { return all }),
				rapid.Map(rapid.MapOfN(rapid.String(), inner, 0, 4), func(all map[string]any) any { return all }))
		}
		whole := map[string]any{"a": value.Draw(t, "value")}
		text, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		counted, ends := valueCounter{}, 0
		for rest := text; len(rest) > 0; {
			n, ended := counted.scan(rest[:rapid.IntRange(1, len(rest)).Draw(t, "step")])
			if ended {
				ends++
			}
			rest = rest[n:]
		}
		if want := 1 + countNested(whole["a"], false); counted.count != want || ends != 1 {
			t.Errorf("%s counts %d and ends %d times, want %d and once", text, counted.count, ends, want)
		}
	})
}

func countNested(value any, element bool) (count int64) {
	switch v := value.(type) {
	case map[string]any:
		count = 1
		for _, inner := range v {
			count += countNested(inner, false)
		}
	case []any:
		count = 1
		for _, inner := range v {
			count += countNested(inner, true)
		}
	default:
		if element {
			count = 1
		}
	}
	return count
}

func BenchmarkCountValues(b *testing.B) {
	text := []byte(strings.Repeat(`{"metadata":{"name":"web","labels":{"app":"web"}},"list":[1,2,"three"]},`, 10_000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		counted := valueCounter{}
		for rest := text; len(rest) > 0; {
			n, _ := counted.scan(rest)
			rest = rest[n:]
		}
	}
}
