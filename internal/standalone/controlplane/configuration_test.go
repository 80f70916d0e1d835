package controlplane

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/gates"
)

func TestConfigureAppliesFlags(t *testing.T) {
	c, err := Configure(nil, []string{
		"karmada-controller-manager.enable-no-execute-taint-eviction",
		"karmada-controller-manager.graceful-eviction-timeout=30s",
		"karmada-controller-manager.skipped-propagating-namespaces=kube-.*,test",
		"karmada-scheduler.plugins=*,-ClusterLocality",
		"karmada-webhook.allow-no-execute-taint-policy=true",
	})
	if err != nil {
		t.Fatal(err)
	}
	host, err := c.hostOptions()
	if err != nil {
		t.Fatal(err)
	}
	evictions := host.Settings.Controllers.Evictions
	if !evictions.NoExecute || evictions.Timeout != 30*time.Second {
		t.Errorf("evictions are %+v", evictions)
	}
	if diff := cmp.Diff([]string{"kube-.*", "test"}, host.SkippedNamespaces); diff != "" {
		t.Errorf("skipped namespaces (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"*", "-ClusterLocality"}, []string(host.Settings.Scheduler.Plugins)); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
	if !c.admission.AllowNoExecuteTaints {
		t.Error("admission did not get its flag")
	}
}

func TestConfigureWithoutFlagsKeepsDefaults(t *testing.T) {
	set := gates.New()
	c, err := Configure(set, nil)
	if err != nil {
		t.Fatal(err)
	}
	host, err := c.hostOptions()
	if err != nil {
		t.Fatal(err)
	}
	if want := programs.DefaultSettings(set).Controllers; !reflect.DeepEqual(want, host.Settings.Controllers) {
		t.Errorf("the options of the controllers are %+v, want %+v", host.Settings.Controllers, want)
	}
	if host.Election.Enabled {
		t.Error("leader election is enabled in a single process")
	}
}

func TestConfigureRejectsInvalidFlags(t *testing.T) {
	tests := map[string]struct{ flag, want string }{
		"no component name":           {"graceful-eviction-timeout=30s", "must be COMPONENT.FLAG=VALUE, where COMPONENT is one of karmada-controller-manager, karmada-scheduler, karmada-webhook"},
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
