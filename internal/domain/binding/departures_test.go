package binding

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

var departureTime = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

func recordOf(record string) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{}
	if record != "" {
		bound.Annotations = map[string]string{workv1alpha2.DepartedClustersAnnotation: record}
	}
	return bound
}

func TestRecordDepartures(t *testing.T) {
	const m1AtNoon = `{"m1":"2030-05-01T12:00:00Z"}`
	tests := map[string]struct {
		before string
		left   []string
		change func(*workv1alpha2.ResourceBindingSpec)
		want   string
	}{
		"no departure writes nothing":              {},
		"a departure is recorded":                  {left: []string{"m1"}, want: m1AtNoon},
		"a recent record stays":                    {before: `{"m3":"2030-05-01T11:45:00Z"}`, left: []string{"m1"}, want: `{"m1":"2030-05-01T12:00:00Z","m3":"2030-05-01T11:45:00Z"}`},
		"a record of the last day is dropped":      {before: `{"m3":"2030-04-30T11:00:00Z"}`, left: []string{"m1"}, want: m1AtNoon},
		"a record of the same cluster is replaced": {before: `{"m1":"2030-05-01T11:45:00Z"}`, left: []string{"m1"}, want: m1AtNoon},
		"an invalid record is replaced":            {before: `[]`, left: []string{"m1"}, want: m1AtNoon},
		"a record of null is replaced":             {before: `null`, left: []string{"m1"}, want: m1AtNoon},
		"a target has no record": {before: `{"m3":"2030-05-01T11:45:00Z"}`, left: []string{"m1"}, want: m1AtNoon,
			change: func(spec *workv1alpha2.ResourceBindingSpec) {
				spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m3"}}
			}},
		"without a departure, a target again loses its record": {before: `{"m1":"2030-05-01T11:45:00Z","m3":"2030-04-01T11:45:00Z"}`, want: `{"m3":"2030-04-01T11:45:00Z"}`,
			change: func(spec *workv1alpha2.ResourceBindingSpec) {
				spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
			}},
		"a cluster under eviction has no record, and an empty record is removed": {before: `{"m1":"2030-05-01T11:45:00Z"}`, left: []string{"m1"},
			change: func(spec *workv1alpha2.ResourceBindingSpec) {
				spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
			}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := recordOf(test.before)
			if test.change != nil {
				test.change(&bound.Spec)
			}
			RecordDepartures(bound, test.left, departureTime.Add(300*time.Millisecond))
			if diff := cmp.Diff(test.want, bound.Annotations[workv1alpha2.DepartedClustersAnnotation]); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHasDeparted(t *testing.T) {
	bound := recordOf("")
	RecordDepartures(bound, []string{"m1"}, departureTime)
	tests := map[string]struct {
		cluster string
		created time.Duration
		want    bool
	}{
		"a copy from before the departure":      {"m1", -time.Hour, true},
		"a copy from the same second":           {"m1", 900 * time.Millisecond, true},
		"a copy that was created later":         {"m1", time.Second, false},
		"a copy in a cluster without departure": {"m2", -time.Hour, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := HasDeparted(bound, test.cluster, departureTime.Add(test.created)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func FuzzDepartures(f *testing.F) {
	for _, seed := range []string{"", "null", "[]", "{}", `{"m1":null}`, `{"m1":"2030-05-01T12:00:00Z"}`, `{"m1":"0000-01-01T00:00:00Z"}`, `{"m1":1}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, record string) {
		bound := recordOf(record)
		RecordDepartures(bound, []string{"m1"}, departureTime)
		if !HasDeparted(bound, "m1", departureTime) {
			t.Errorf("the record %s does not contain m1", bound.Annotations[workv1alpha2.DepartedClustersAnnotation])
		}
	})
}
