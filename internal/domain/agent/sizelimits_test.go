package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/domain/work"
)

func TestCheckObjectBytes(t *testing.T) {
	for bytes, want := range map[int]bool{0: true, 16 << 10: true, 16<<10 + 1: false, 1400 << 10: false} {
		if got := CheckObjectBytes("Event", bytes) == nil; got != want {
			t.Errorf("%d bytes are accepted: %v", bytes, got)
		}
	}
}

func TestCheckReportBytes(t *testing.T) {
	tests := map[string]struct {
		manifests, before, bytes int
		// large reports whether the feature gate LargeStatus is enabled.
		large, want bool
	}{
		"no manifests":                                       {0, 0, 32 << 10, false, true},
		"no manifests, one byte too many":                    {0, 0, 32<<10 + 1, false, false},
		"statuses of 3 manifests":                            {3, 0, 104 << 10, false, true},
		"more than 3 statuses":                               {3, 0, 104<<10 + 1, false, false},
		"more than the limit of etcd":                        {1 << 40, 0, 1200<<10 + 1, false, false},
		"statuses of removed manifests":                      {1, 200 << 10, 200 << 10, false, true},
		"fewer statuses of removed manifests":                {1, 200 << 10, 190 << 10, false, true},
		"growth of a report that was too large":              {1, 200 << 10, 200<<10 + 1, false, false},
		"a large status with the feature gate":               {1, 0, 1200 << 10, true, true},
		"more than the limit of etcd, with the feature gate": {1, 0, 1200<<10 + 1, true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := CheckWorkReportBytes(tc.manifests, tc.before, tc.bytes, tc.large) == nil; got != tc.want {
				t.Errorf("accepted: %v", got)
			}
		})
	}
}

// TestRegularReportIsAccepted checks a report with conditions and, for each manifest, a truncated
// status and an identifier.
func TestRegularReportIsAccepted(t *testing.T) {
	const identifier, conditions = 2 << 10, 24 << 10
	rapid.Check(t, func(t *rapid.T) {
		manifests := rapid.IntRange(0, 48).Draw(t, "manifests")
		if err := CheckWorkReportBytes(manifests, 0, manifests*(work.MaxStatusBytes+identifier)+conditions, false); err != nil {
			t.Fatal(err)
		}
	})
}

func TestReport(t *testing.T) {
	manifests := []any{map[string]any{"kind": "A"}, map[string]any{"kind": "B"}}
	stored := map[string]any{
		"metadata": map[string]any{"name": "w", "finalizers": []any{"f"}, "managedFields": []any{"m"}, "labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{"workload": map[string]any{"manifests": manifests}},
		"status":   map[string]any{"conditions": []any{}},
	}
	want := map[string]any{"finalizers": []any{"f"}, "managedFields": []any{"m"}, "status": map[string]any{"conditions": []any{}}}
	if diff := cmp.Diff(want, WorkReport(stored)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if got := ManifestCount(stored); got != 2 {
		t.Errorf("%d manifests", got)
	}
	for _, odd := range []map[string]any{nil, {"metadata": 1, "spec": "text"}} {
		if diff := cmp.Diff(map[string]any{"status": nil}, WorkReport(odd)); diff != "" || ManifestCount(odd) != 0 {
			t.Errorf("%v: %d manifests, report %s", odd, ManifestCount(odd), diff)
		}
	}
}
