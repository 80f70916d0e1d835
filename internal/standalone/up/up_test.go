package up

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/standalone"
)

func TestUpdateStateKeepsEarlierOptions(t *testing.T) {
	no, yes, none := false, true, ""
	before := storedState{Members: []string{"member1", "member2"}, NodesPerMember: 5, SkipJoin: true, Kubernetes: "1.35"}
	tests := map[string]struct {
		before  storedState
		options Options
		want    storedState
		message string
	}{
		"the first start":                           {options: Options{Members: -1}, want: storedState{NodesPerMember: 3}},
		"the first start without joining":           {options: Options{Members: 1, Join: &no}, want: storedState{Members: []string{"member1"}, NodesPerMember: 3, SkipJoin: true}},
		"no flags":                                  {before: before, options: Options{Members: -1}, want: storedState{Members: before.Members, NodesPerMember: 5, SkipJoin: true}},
		"members are joined now":                    {before: before, options: Options{Members: -1, Join: &yes}, want: storedState{Members: before.Members, NodesPerMember: 5}},
		"as many members as before":                 {before: before, options: Options{Members: 2}, want: storedState{Members: before.Members, NodesPerMember: 5, SkipJoin: true}},
		"more nodes for the same members":           {before: before, options: Options{Members: -1, NodesPerMember: 7}, want: storedState{Members: before.Members, NodesPerMember: 7, SkipJoin: true}},
		"all components, after a start without one": {before: storedState{Settings: storedSettings{Components: &none}}, options: Options{Members: -1}, want: storedState{NodesPerMember: 3}},
		"fewer members":                             {before: before, options: Options{Members: 1}, want: storedState{Members: []string{"member1"}, NodesPerMember: 5, SkipJoin: true}, message: "member2: not started"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var message []string
			test.before.Members = append([]string(nil), test.before.Members...)
			test.options.Components, test.options.Failover = []string{"*"}, true
			i := &installation{options: test.options, state: test.before, progress: newProgress(func(e event) { message = append(message, e.Text) })}
			if err := i.updateState(); err != nil {
				t.Fatal(err)
			}
			i.state.Kubernetes = ""
			if diff := cmp.Diff(test.want, i.state); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			if text := strings.Join(message, "\n"); !strings.Contains(text, test.message) || test.message == "" && text != "" {
				t.Errorf("the events have text %q, want %q", text, test.message)
			}
		})
	}
}

func TestCheckDataVersion(t *testing.T) {
	tests := map[string]struct {
		written, ours, want string
		wantErr             bool
	}{
		"a new directory":    {written: "", ours: "1.36", want: "1.36"},
		"the same version":   {written: "1.36", ours: "1.36", want: "1.36"},
		"older data":         {written: "1.9", ours: "1.36", want: "1.36"},
		"newer data":         {written: "1.37", ours: "1.36", wantErr: true},
		"an invalid version": {written: "latest", ours: "1.36", wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := validateDataVersion(test.written, test.ours)
			if got != test.want || (err != nil) != test.wantErr {
				t.Errorf("got %q, %v; want %q, an error %t", got, err, test.want, test.wantErr)
			}
		})
	}
}

func TestChoosePortsKeepsPublishedPorts(t *testing.T) {
	var taken [2]int
	for i := range taken {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
		taken[i] = standalone.ListenerPort(listener)
	}
	ports := map[string]int{"server": taken[0], "webhook": taken[1]}
	if err := choosePorts(ports, []string{"server", "member1"}, []string{"webhook"}); err != nil {
		t.Fatal(err)
	}
	if ports["server"] != taken[0] {
		t.Errorf("the port of the server was %d and is %d", taken[0], ports["server"])
	}
	if ports["webhook"] == taken[1] || ports["webhook"] == 0 || ports["member1"] == 0 || ports["webhook"] == ports["member1"] {
		t.Errorf("ports are %v, while %d is taken", ports, taken[1])
	}
	again := map[string]int{"server": ports["server"], "webhook": ports["webhook"], "member1": ports["member1"]}
	if err := choosePorts(again, []string{"server", "member1"}, []string{"webhook"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ports, again); diff != "" {
		t.Errorf("free ports change (-want +got):\n%s", diff)
	}
}

func TestStatusRows(t *testing.T) {
	cluster := func(name, endpoint string, ready metav1.ConditionStatus) clusterv1alpha1.Cluster {
		return clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{APIEndpoint: endpoint},
			Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready}}},
		}
	}
	clusters := []clusterv1alpha1.Cluster{
		cluster("east", "https://127.0.0.1:1", metav1.ConditionTrue),
		cluster("far", "https://far:6443", metav1.ConditionTrue),
		cluster("member2", "https://127.0.0.1:2", metav1.ConditionTrue),
	}
	members := []memberProcess{
		{name: "member1", address: "https://127.0.0.1:1", pid: 11},
		{name: "member2", address: "https://127.0.0.1:2"},
		{name: "member3", address: "https://127.0.0.1:3", pid: 13},
	}
	tests := map[string]struct {
		clusters []clusterv1alpha1.Cluster
		known    bool
		want     [][]string
	}{
		"clusters and members": {clusters, true, [][]string{
			{"cluster east (process 11)", "Ready", "https://127.0.0.1:1"},
			{"cluster far", "Ready", "https://far:6443"},
			{"cluster member2", "No process", "https://127.0.0.1:2"},
			{"member3 (process 13)", "Not joined", "https://127.0.0.1:3"},
		}},
		"the control plane does not answer": {nil, false, [][]string{
			{"member1 (process 11)", "Unknown", "https://127.0.0.1:1"},
			{"member2", "No process", "https://127.0.0.1:2"},
			{"member3 (process 13)", "Unknown", "https://127.0.0.1:3"},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got [][]string
			for _, row := range (status{Components: statusRows(test.clusters, test.known, members)}).output().Rows {
				got = append(got, row[:3])
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMemberReportsErrorEvent(t *testing.T) {
	dir := newDataDir(t)
	if err := dir.create(); err != nil {
		t.Fatal(err)
	}
	c := supervisorOf(dir, `{"error":"port 1 is taken"}`)
	errs := make(chan error, 2)
	if err := c.runOnce(t.Context(), func(err error) { errs <- err }); err == nil {
		t.Error("the end of the process is not an error")
	}
	select {
	case err := <-errs:
		if err == nil || !strings.Contains(err.Error(), "port 1 is taken") {
			t.Errorf("the error is %v", err)
		}
	default:
		t.Error("no error is reported after the end")
	}
	if err := supervisorOf(dir, "").runOnce(t.Context(), func(err error) { errs <- err }); err == nil || !errors.Is(<-errs, errEndedEarly) {
		t.Errorf("without an event the error is %v", err)
	}
}

func TestStatusFormats(t *testing.T) {
	running, ended, selection := 11, 0, "*,-karmada-scheduler,-karmada-descheduler"
	settings := storedSettings{Components: &selection}
	found := status{DataDir: "/data", Kubeconfig: "/data/k", Settings: settings.flags(isNoFlag), Hosted: settings.hostedComponents(), Excluded: settings.excludedComponents(), Components: []statusRow{
		{Kind: kindControlPlane, Name: "karmada", State: "Ready", Address: "https://a", Process: &running, Log: "/data/logs/karmada.log", Metrics: "https://a/metrics"},
		{Kind: kindCluster, Name: "far", State: "NotReady", Address: "https://b"},
		{Kind: kindMember, Name: "member3", State: processEnded, Address: "https://c", Process: &ended, Log: "/data/logs/member3.log"},
	}}
	for name, want := range map[string]string{
		console.Name: "controlplane/karmada\ncluster/far\nmember/member3\n",
		console.Wide: "" +
			"COMPONENT              STATE        ADDRESS     LOG                      METRICS\n" +
			"karmada (process 11)   Ready        https://a   /data/logs/karmada.log   https://a/metrics\n" +
			"cluster far            NotReady     https://b   <none>                   <none>\n" +
			"member3                No process   https://c   /data/logs/member3.log   <none>\n",
		console.YAML: `components:
- address: https://a
  kind: ControlPlane
  log: /data/logs/karmada.log
  metrics: https://a/metrics
  name: karmada
  process: 11
  state: Ready
- address: https://b
  kind: Cluster
  name: far
  state: NotReady
- address: https://c
  kind: Member
  log: /data/logs/member3.log
  name: member3
  process: 0
  state: No process
dataDir: /data
excluded:
- karmada-scheduler
- karmada-descheduler
hosted:
- karmada-controller-manager
- karmada-search
kubeconfig: /data/k
settings:
- --components='*,-karmada-scheduler,-karmada-descheduler'
`,
	} {
		format, out := console.Format(name), strings.Builder{}
		if err := format.Print(&out, found.output()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
