package scheduling

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/programs/gates"
)

const testTimeout = 20 * time.Second

// answers are the lists of a fake API server by path.
var answers = map[string]string{
	"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[
		{"metadata":{"name":"a"},"status":{"allocatable":{"cpu":"4","pods":"10"}}}]}`,
	"/api/v1/pods":              `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"}}`,
	"/apis/apps/v1/replicasets": `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"}}`,
	"/api/v1/resourcequotas": `{"kind":"ResourceQuotaList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[
		{"metadata":{"name":"q","namespace":"shop"},"status":{"hard":{"cpu":"3"},"used":{"cpu":"0"}}}]}`,
}

func serveLists(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch answer, ok := answers[r.URL.Path]; {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Query().Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		fmt.Fprint(w, answer)
	}
}

// freeAddress returns an address on which no server listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func memberKubeconfig(t *testing.T) string {
	t.Helper()
	member := httptest.NewServer(http.HandlerFunc(serveLists))
	t.Cleanup(member.Close)
	t.Cleanup(member.CloseClientConnections)
	path, config := filepath.Join(t.TempDir(), "member.config"), clientcmdapi.NewConfig()
	config.Clusters["east"] = &clientcmdapi.Cluster{Server: member.URL}
	config.Contexts["east"] = &clientcmdapi.Context{Cluster: "east"}
	config.CurrentContext = "east"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEstimatorServesEstimates(t *testing.T) {
	status, address := freeAddress(t), freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	o := parseEstimator(t, "--cluster-name=east", "--kubeconfig="+memberKubeconfig(t), "--server-port="+port, "--health-probe-bind-address="+status, "--metrics-bind-address="+status)
	if err := o.gates.SetFromMap(map[string]bool{string(gates.ResourceQuotaEstimate): true}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()

	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	callCtx, stop := context.WithTimeout(t.Context(), testTimeout)
	defer stop()
	requirements := &estimatorpb.ReplicaRequirements{Namespace: "shop", ResourceRequestBytes: map[string][]byte{"cpu": []byte("\n\x011")}}
	response, err := estimatorpb.NewEstimatorClient(connection).MaxAvailableReplicas(callCtx,
		&estimatorpb.MaxAvailableReplicasRequest{Cluster: "east", ReplicaRequirements: requirements}, grpc.WaitForReady(true))
	if err != nil || response.GetMaxReplicas() != 3 {
		t.Errorf("%v, %v; want 3 replicas within the quota", response, err)
	}
	for path, want := range map[string]string{
		"/healthz": "ok",
		"/metrics": `karmada_scheduler_estimator_estimating_request_total{result="success",type="MaxAvailableReplicas"} 1`,
	} {
		if got := get(t, "http://"+status+path); !strings.Contains(got, want) {
			t.Errorf("%s does not contain %s", path, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the program ended with: %v", err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Timeout: testTimeout}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestEstimatorStartErrors(t *testing.T) {
	occupied, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupied.Close()
	_, port, _ := net.SplitHostPort(occupied.Addr().String())
	kubeconfig := memberKubeconfig(t)
	tests := map[string]struct {
		args []string
		want string
	}{
		"a port that is in use":         {[]string{"--server-port=" + port}, "--server-port"},
		"a health address in use":       {[]string{"--server-port=0", "--health-probe-bind-address=" + occupied.Addr().String()}, "--health-probe-bind-address"},
		"a certificate that is missing": {[]string{"--server-port=0", "--grpc-auth-cert-file=missing.crt", "--grpc-auth-key-file=missing.key"}, "missing.crt"},
		"a kubeconfig that is missing":  {[]string{"--kubeconfig=missing.config"}, "missing.config"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--cluster-name=east", "--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0", "--metrics-bind-address=0"}, test.args...)
			if err := parseEstimator(t, args...).Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that contains %q", err, test.want)
			}
		})
	}
}
