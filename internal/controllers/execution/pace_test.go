package execution

import (
	"errors"
	"testing"

	"karmada.io/karmada/internal/access/report"
)

func TestAnOutcomeWaitsOnlyForAStatusThatIsAboutToCome(t *testing.T) {
	tests := map[string]struct {
		delivery delivery
		failures []error
		want     report.Pace
	}{
		"something was written":                    {delivery: delivery{wrote: true}, want: report.Later},
		"everything was as it should be":           {want: report.Soon},
		"something failed":                         {failures: []error{errors.New("refused")}, want: report.Now},
		"something was written and another failed": {delivery: delivery{wrote: true}, failures: []error{errors.New("refused")}, want: report.Now},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := paceOf(&test.delivery, test.failures); got != test.want {
				t.Errorf("paceOf() = %d, want %d", got, test.want)
			}
		})
	}
}
