package execution

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/access/report"
)

func TestAnOutcomeWaitsOnlyForAStatusThatIsAboutToCome(t *testing.T) {
	tests := map[string]struct {
		wrote    bool
		failures []error
		want     report.Pace
	}{
		"something was written":                    {wrote: true, want: report.Later},
		"everything was as it should be":           {want: report.Soon},
		"something failed":                         {failures: []error{errors.New("refused")}, want: report.Now},
		"something was written and another failed": {wrote: true, failures: []error{errors.New("refused")}, want: report.Now},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := paceOf(test.wrote, test.failures); got != test.want {
				t.Errorf("paceOf() = %d, want %d", got, test.want)
			}
		})
	}
}

func TestAWriteIsRememberedUntilItsAnswerIsDue(t *testing.T) {
	start, l := time.Unix(1000, 0), newLedger()
	of := types.NamespacedName{Namespace: "karmada-es-m1", Name: "web"}
	for _, step := range []struct {
		after time.Duration
		wrote bool
		want  bool
	}{
		{0, false, false}, {time.Second, true, true}, {2 * time.Second, false, true},
		{time.Second + answerIsDue, false, false}, {2*time.Second + answerIsDue, false, false},
	} {
		if got := l.noteWrite(of, step.wrote, start.Add(step.after)); got != step.want {
			t.Errorf("after %s noteWrite(%t) = %t, want %t", step.after, step.wrote, got, step.want)
		}
	}
	l.noteWrite(of, true, start)
	l.forget(of)
	if l.noteWrite(of, false, start) {
		t.Error("a write of a Work that is gone is remembered")
	}
}
