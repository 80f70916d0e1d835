package waiting

import (
	"testing"
	"time"

	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
)

func TestInitialTemplatesAreTakenOnce(t *testing.T) {
	started := time.Unix(100_000, 0)
	tests := map[string]struct {
		age  time.Duration
		want bool
	}{
		"an old template":                    {time.Hour, true},
		"a template of the last minute":      {time.Minute, false},
		"a template at the limit":            {reportMaxAge, false},
		"a template created after the start": {-time.Minute, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			initial, web := NewInitial(), templates.NewRef(deployments, "shop", "web")
			initial.SetStartTime(started)
			initial.Add(web, started.Add(-test.age))
			if got := initial.Take(web); got != test.want {
				t.Errorf("held: %v", got)
			}
			if initial.Take(web) {
				t.Error("the template is held after it was taken")
			}
		})
	}
}

func TestWaitingTimeStartsAtFirstRecord(t *testing.T) {
	w, web := NewTemplates(), templates.NewRef(deployments, "shop", "web")
	if since := w.Since(web); !since.IsZero() {
		t.Errorf("a template without a record waits since %s", since)
	}
	claimed := web.Stub(nil)
	policy.Claim{Namespace: "shop", Name: "p", ID: "id"}.Apply(claimed)
	w.AddUnclaimed(web, claimed)
	if since := w.Since(web); !since.IsZero() {
		t.Errorf("a claimed template waits since %s", since)
	}
	w.AddUnclaimed(web, web.Stub(nil))
	first := w.Since(web)
	w.Add(web, map[string]string{"app": "web"})
	if got := w.Since(web); !got.Equal(first) || first.IsZero() {
		t.Errorf("waits since %s, first %s", got, first)
	}
	w.Remove(web)
	if since := w.Since(web); !since.IsZero() {
		t.Errorf("a removed template waits since %s", since)
	}
}
