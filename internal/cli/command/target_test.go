package command

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMergeErrors(t *testing.T) {
	karmada, east, north, west := Target{}, Target{Cluster: "east"}, Target{Cluster: "north"}, Target{Cluster: "west"}
	notFound, rejected := errors.New("not found"), errors.New("rejected")
	tests := map[string]struct {
		targets []Target
		errs    []error
		want    []string
	}{
		"no errors":                              {targets: []Target{karmada, east}, errs: []error{nil, nil}},
		"different errors":                       {targets: []Target{east, west}, errs: []error{notFound, rejected}, want: []string{"cluster(east): not found", "cluster(west): rejected"}},
		"some members have the same error":       {targets: []Target{east, north, west}, errs: []error{notFound, rejected, notFound}, want: []string{"cluster(east,west): not found", "cluster(north): rejected"}},
		"the control plane is not merged":        {targets: []Target{karmada, east}, errs: []error{notFound, notFound}, want: []string{"not found", "cluster(east): not found"}},
		"members without an error are not named": {targets: []Target{east, north, west}, errs: []error{notFound, nil, notFound}, want: []string{"cluster(east,west): not found"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range MergeErrors(test.targets, test.errs) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
