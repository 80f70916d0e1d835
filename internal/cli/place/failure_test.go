package place

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembersThatSayTheSameShareALine(t *testing.T) {
	karmada, east, north, west := Place{}, Place{Cluster: "east"}, Place{Cluster: "north"}, Place{Cluster: "west"}
	gone, refused := errors.New("not found"), errors.New("refused")
	tests := map[string]struct {
		places []Place
		errs   []error
		want   []string
	}{
		"nothing failed":                           {places: []Place{karmada, east}, errs: []error{nil, nil}},
		"each has its own words":                   {places: []Place{east, west}, errs: []error{gone, refused}, want: []string{"cluster(east): not found", "cluster(west): refused"}},
		"some have the same":                       {places: []Place{east, north, west}, errs: []error{gone, refused, gone}, want: []string{"cluster(east,west): not found", "cluster(north): refused"}},
		"the control plane keeps to itself":        {places: []Place{karmada, east}, errs: []error{gone, gone}, want: []string{"not found", "cluster(east): not found"}},
		"those without an error are not mentioned": {places: []Place{east, north, west}, errs: []error{gone, nil, gone}, want: []string{"cluster(east,west): not found"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Failures(test.places, test.errs) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
