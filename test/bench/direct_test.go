package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddShareOfDirect(t *testing.T) {
	direct := row{directScenario, inMembers, 80, "templates/s"}
	tests := map[string]struct {
		rows []row
		want []row
	}{
		"the rate is divided by the rate of direct": {[]row{direct}, []row{{"burst", inMembers, 0.5, "of direct"}}},
		"direct is not measured":                    {nil, nil},
		"direct has only the duration":              {[]row{{directScenario, inMembers, 2, "s"}}, nil},
		"the rate of direct is zero":                {[]row{{directScenario, inMembers, 0, "templates/s"}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := report{Rows: append(test.rows, row{"burst", inMembers, 40, "templates/s"})}
			before := len(r.Rows)
			r.addShareOfDirect("burst", inMembers, inMembers, "templates/s")
			var got []row
			got = append(got, r.Rows[before:]...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}
