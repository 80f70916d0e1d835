package programs

import (
	"testing"
)

func TestSelects(t *testing.T) {
	tests := map[string]struct {
		list []string
		off  bool
		want bool
	}{
		"* enables a controller that is on by default":          {list: []string{"*"}, want: true},
		"* does not enable a controller that is off by default": {list: []string{"*"}, off: true},
		"a name enables a controller that is off by default":    {list: []string{"*", "remedy"}, off: true, want: true},
		"another name without * does not enable the controller": {list: []string{"binding"}},
		"a name without * enables the controller":               {list: []string{"remedy"}, want: true},
		"-name disables a controller that * enables":            {list: []string{"*", "-remedy"}},
		"the first entry for a name wins":                       {list: []string{"-remedy", "remedy", "*"}},
		"an empty list enables no controller":                   {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsSelected(test.list, "remedy", !test.off); got != test.want {
				t.Errorf("Selects(%q) = %t", test.list, got)
			}
		})
	}
}
