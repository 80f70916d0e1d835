package components

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/apiservers"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/programs/scheduling"
	"karmada.io/karmada/internal/servers/admission"
)

func TestConfigureAppliesFlags(t *testing.T) {
	c, err := Configure(nil, []string{
		"karmada-controller-manager.enable-no-execute-taint-eviction",
		"karmada-controller-manager.graceful-eviction-timeout=30s",
		"karmada-controller-manager.skipped-propagating-namespaces=kube-.*,test",
		"karmada-controller-manager.resync-period=1h",
		"karmada-scheduler.plugins=*,-ClusterLocality",
		"karmada-descheduler.descheduling-interval=1m",
		"karmada-webhook.allow-no-execute-taint-policy=true",
	})
	if err != nil {
		t.Fatal(err)
	}
	manager := optionsOf[*controllermanager.Options](t, c)
	if !manager.Evictions.NoExecute || manager.Evictions.Timeout != 30*time.Second {
		t.Errorf("evictions are %+v", manager.Evictions)
	}
	if diff := cmp.Diff([]string{"kube-.*", "test"}, manager.Propagation.SkippedNamespaces); diff != "" {
		t.Errorf("skipped namespaces (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"*", "-ClusterLocality"}, []string(optionsOf[*scheduling.Options](t, c).Scheduler.Plugins)); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
	if interval := optionsOf[*scheduling.DeschedulerOptions](t, c).Descheduler.Interval; interval != time.Minute {
		t.Errorf("the descheduler searches every %s", interval)
	}
	if host := c.HostOptions(); host.Resync != time.Hour || host.Election.Enabled {
		t.Errorf("the host has %+v", host)
	}
	reviewer := admission.Reviewer{}
	c.ConfigureAdmission(&reviewer)
	if !reviewer.Rules.AllowNoExecuteTaints {
		t.Error("admission did not get its flag")
	}
	c.SetReviewer(func() admission.Reviewer { return reviewer })
	if !optionsOf[*apiservers.AggregatedInProcess](t, c).Reviewer.Rules.AllowNoExecuteTaints {
		t.Error("the API server of Clusters did not get the admission rules")
	}
}

// optionsOf returns the component options that have the given type.
func optionsOf[Options programs.Options](t *testing.T, c *Configuration) Options {
	t.Helper()
	var found Options
	isFound := false
	for i := range c.components {
		if options, ok := c.components[i].Options.(Options); ok {
			found, isFound = options, true
		}
	}
	if !isFound {
		t.Fatalf("no component has options of type %T", found)
	}
	return found
}

func TestConfigureWithoutFlagsKeepsDefaults(t *testing.T) {
	c, err := Configure(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, want := optionsOf[*controllermanager.Options](t, c), controllermanager.Default(gates.New())
	for name, pair := range map[string][2]any{
		"workers": {want.Workers, got.Workers}, "evictions": {want.Evictions, got.Evictions}, "resync": {want.Members.Resync, got.Members.Resync}, "propagation": {want.Propagation, got.Propagation},
		"clusterstatus": {want.ClusterStatus, got.ClusterStatus}, "monitor": {want.Monitor, got.Monitor}, "controllers": {want.Selected, got.Selected}, "events": {want.Events, got.Events},
		"backoff": {want.QueueBackoff(), got.QueueBackoff()}, "backoff of Works": {want.MemberBackoff(), got.MemberBackoff()},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	host := c.HostOptions()
	if host.Election.Enabled {
		t.Error("leader election is enabled in a single process")
	}
	if host.MemberThrottle != (member.Throttle{}) {
		t.Errorf("requests to members are limited: %+v", host.MemberThrottle)
	}
}

// TestComponentsOfOneProcess requires that each component runs in the process in which existing
// command lines expect it.
func TestComponentsOfOneProcess(t *testing.T) {
	c, err := Configure(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ hosted, configurable, serves, optional bool }{
		programs.ControllerManager:   {hosted: true, configurable: true},
		programs.Scheduler:           {hosted: true, configurable: true},
		programs.Descheduler:         {hosted: true, configurable: true},
		programs.Webhook:             {configurable: true, serves: true},
		programs.AggregatedAPIServer: {configurable: true, serves: true},
		programs.Search:              {configurable: true, serves: true, optional: true},
		programs.Agent:               {},
		programs.SchedulerEstimator:  {},
	}
	for name, test := range tests {
		if got := slices.Contains(HostedNames(), name); got != test.hosted {
			t.Errorf("a host runs %s: %t, want %t", name, got, test.hosted)
		}
		if got := slices.Contains(ConfigurableNames(), name); got != test.configurable {
			t.Errorf("%s has flags: %t, want %t", name, got, test.configurable)
		}
		if got := slices.Contains(names(c.Servers(SelectableNames())), name); got != test.serves {
			t.Errorf("%s has a server: %t, want %t", name, got, test.serves)
		}
		if got := slices.Contains(names(c.Servers(nil)), name); got != (test.serves && !test.optional) {
			t.Errorf("%s has a server in every control plane: %t, want %t", name, got, !test.optional)
		}
		if got := slices.Contains(SelectableNames(), name); got != (test.hosted || test.optional) {
			t.Errorf("a user can exclude %s: %t, want %t", name, got, test.hosted || test.optional)
		}
	}
	if hosted := c.Hosted([]string{programs.Scheduler, programs.Webhook}); len(hosted) != 1 || hosted[0].Name != programs.Scheduler {
		t.Errorf("hosted components %+v, want the scheduler", hosted)
	}
}

func TestConfigureRejectsInvalidFlags(t *testing.T) {
	tests := map[string]struct{ flag, want string }{
		"no component name":           {"graceful-eviction-timeout=30s", "must be COMPONENT.FLAG=VALUE, where COMPONENT is one of karmada-controller-manager, karmada-scheduler, karmada-descheduler, karmada-webhook, karmada-aggregated-apiserver, karmada-search"},
		"a component without a flag":  {"karmada-scheduler", "must be COMPONENT.FLAG=VALUE"},
		"an unknown flag":             {"karmada-scheduler.speed=1", "unknown flag: --speed; karmada-scheduler --help"},
		"a value of the wrong type":   {"karmada-controller-manager.graceful-eviction-timeout=soon", "graceful-eviction-timeout"},
		"a value that is not allowed": {"karmada-controller-manager.no-execute-taint-eviction-purge-mode=Never", "must be Directly or Gracefully"},
		"a flag of leader election":   {"karmada-controller-manager.leader-elect=false", "unknown flag: --leader-elect"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Configure(nil, []string{test.flag})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that contains %q", err, test.want)
			}
		})
	}
}
