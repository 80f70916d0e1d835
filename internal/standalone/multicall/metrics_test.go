package multicall

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestComponentRegistryAddsMetricsOfClientGo(t *testing.T) {
	own, linked := prometheus.NewRegistry(), prometheus.NewRegistry()
	depth := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_depth", Help: "own"}, []string{"name", "controller", "priority"})
	depth.WithLabelValues("binding", "binding", "100").Set(1)
	own.MustRegister(depth)
	linkedDepth := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_depth", Help: "linked"}, []string{"name"})
	linkedDepth.WithLabelValues("scheduler").Set(2)
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rest_client_requests_total", Help: "requests"}, []string{"code"})
	requests.WithLabelValues("200").Inc()
	other := prometheus.NewCounter(prometheus.CounterOpts{Name: "apiserver_requests_total", Help: "of another program"})
	linked.MustRegister(linkedDepth, requests, other)

	want := `
# HELP rest_client_requests_total requests
# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200"} 1
# HELP workqueue_depth own
# TYPE workqueue_depth gauge
workqueue_depth{controller="binding",name="binding",priority="100"} 1
workqueue_depth{controller="scheduler",name="scheduler",priority=""} 2
`
	registry := &componentRegistry{RegistererGatherer: own, linked: linked}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestFindReturnsProgramOfBaseName(t *testing.T) {
	for executable, want := range map[string]string{
		"karmada-webhook": "karmada-webhook", "/bin/etcd": "etcd", "../bin/karmada-apiserver": "karmada-apiserver",
		"karmada": "", "/bin/karmada": "", "karmada-webhook.real": "", "": "",
	} {
		got := ""
		if program := Find(Programs(), executable); program != nil {
			got = program.Name
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Find(%q) (-want +got):\n%s", executable, diff)
		}
	}
}

func TestLeaderElectionCollectorCopiesOnlyLeaderElection(t *testing.T) {
	from, to := prometheus.NewRegistry(), prometheus.NewRegistry()
	leader := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "leader_election_master_status", Help: "leads"}, []string{"name"})
	leader.WithLabelValues("kube-controller-manager").Set(1)
	from.MustRegister(leader, prometheus.NewGauge(prometheus.GaugeOpts{Name: "workqueue_depth", Help: "of another program"}))
	to.MustRegister(leaderElectionCollector{from})
	want := `
# HELP leader_election_master_status leads
# TYPE leader_election_master_status gauge
leader_election_master_status{name="kube-controller-manager"} 1
`
	if err := testutil.GatherAndCompare(to, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
