package objectcache

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

func newTestCodec(t testing.TB) *codec {
	t.Helper()
	shared, err := newCoderPair(1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	return newCodec(shared)
}

func TestObjectsRemainReadableAfterTheDictionaryExists(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		codec := newTestCodec(t)
		texts := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 2000), 0, 40).Draw(rt, "objects")
		var compressed [][]byte
		// The dictionary is built before, between or after these objects.
		others := rapid.IntRange(0, 40).Draw(rt, "other objects")
		for _, text := range texts {
			for i := range others {
				codec.appendCompressed(nil, fmt.Appendf(nil, "other object %d", i))
			}
			compressed = append(compressed, codec.appendCompressed([]byte("prefix"), text))
		}
		for i, text := range texts {
			got, err := codec.appendDecompressed([]byte("before"), compressed[i][len("prefix"):])
			if err != nil || !bytes.Equal(got, append([]byte("before"), text...)) {
				rt.Fatalf("object %d: %q, %v, want %q", i, got, err, text)
			}
		}
	})
}

func TestTheDictionaryShrinksSimilarObjects(t *testing.T) {
	codec := newTestCodec(t)
	object := func(i int) []byte {
		return fmt.Appendf(nil, `{"metadata":{"name":"web-%d"},"spec":{"containers":[{"image":"registry.example.org/team/web:1.19","ports":[8080,9090]}],"nodeName":"node-%d"}}`, i, i%7)
	}
	first := len(codec.appendCompressed(nil, object(0)))
	for i := range 200 {
		codec.appendCompressed(nil, object(i))
	}
	if last := len(codec.appendCompressed(nil, object(1000))); last > first/2 {
		t.Errorf("an object has %d bytes with a dictionary and %d without", last, first)
	}
}

func TestCodecsAreUsedInParallel(t *testing.T) {
	codec := newTestCodec(t)
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 50 {
				text := fmt.Appendf(nil, "worker %d object %d %s", worker, i, strings.Repeat("text ", 50))
				got, err := codec.appendDecompressed(nil, codec.appendCompressed(nil, text))
				if err != nil || !bytes.Equal(got, text) {
					t.Errorf("%q, %v, want %q", got, err, text)
				}
			}
		})
	}
	wait.Wait()
}

func TestDamagedObjectsAreErrors(t *testing.T) {
	codec := newTestCodec(t)
	for _, damaged := range []string{"", "text", "\x28\xb5\x2f\xfd\x04"} {
		if got, err := codec.appendDecompressed(nil, []byte(damaged)); err == nil && len(got) > 0 {
			t.Errorf("%q was decompressed to %q", damaged, got)
		}
	}
}

func TestLabels(t *testing.T) {
	text := rapid.StringMatching(`[a-z./]{0,200}`)
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.MapOf(text, rapid.String()).Draw(t, "labels")
		compact := newLabels(set)
		got := map[string]string{}
		for key, value := range compact.All {
			got[key] = value
		}
		if !maps.Equal(set, got) {
			t.Fatalf("labels (-want +got):\n%s", cmp.Diff(set, got))
		}
		key := text.Draw(t, "key")
		value, exists := compact.Lookup(key)
		want, wantExists := set[key]
		if value != want || exists != wantExists || compact.Has(key) != wantExists || compact.Get(key) != want {
			t.Fatalf("label %q is %q, %t, want %q, %t", key, value, exists, want, wantExists)
		}
		if newLabels(maps.Clone(set)) != compact {
			t.Fatal("equal labels differ")
		}
	})
}

func TestLabelsMatchWithoutAllocation(t *testing.T) {
	compact := newLabels(map[string]string{"app": "web", "tier": "front"})
	selector, err := labels.Parse("app=web,tier in (front, back)")
	if err != nil {
		t.Fatal(err)
	}
	if allocations := testing.AllocsPerRun(100, func() {
		if !selector.Matches(compact) {
			t.Fatal("the selector does not match")
		}
	}); allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}
