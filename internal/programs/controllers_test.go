package programs

import (
	"testing"

	"karmada.io/karmada/internal/programs/gates"
)

func TestControllerIsEnabled(t *testing.T) {
	add := func(*Host) error { return nil }
	tests := map[string]struct {
		controller Controller
		selected   []string
		gates      string
		want       bool
	}{
		"a selected controller runs":                           {Controller{Name: "x", Add: add}, []string{"*"}, "", true},
		"a disabled controller does not run":                   {Controller{Name: "x", Add: add}, []string{"*", "-x"}, "", false},
		"a controller without a name cannot be disabled":       {Controller{Add: add}, nil, "", true},
		"a controller without implementation does not run":     {Controller{Name: "x"}, []string{"x"}, "", false},
		"a disabled gate disables the controller":              {Controller{Name: "x", Gate: gates.Failover, Add: add}, []string{"x"}, "", false},
		"an enabled gate permits the controller":               {Controller{Name: "x", Gate: gates.Failover, Add: add}, []string{"*"}, "Failover=true", true},
		"a disabled gate disables a controller without a name": {Controller{Gate: gates.PropagateDeps, Add: add}, nil, "PropagateDeps=false", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := gates.New()
			if err := set.Set(test.gates); err != nil {
				t.Fatal(err)
			}
			if got := test.controller.isEnabled(test.selected, set); got != test.want {
				t.Errorf("isEnabled = %t", got)
			}
		})
	}
}
