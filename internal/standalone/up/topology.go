package up

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// simulatedProvider is the provider that simulated members are registered with.
const simulatedProvider = "simulated"

const clustersPoll = 100 * time.Millisecond

// topology is where a simulated member pretends to be.
type topology struct {
	Region string
	Zones  []string
}

// topologyOf deals regions out in turn, so that placements by region have
// something to choose from.
func topologyOf(index int) topology {
	regions := []string{"east", "west", "north", "south"}
	region := regions[index%len(regions)]
	return topology{Region: region, Zones: []string{region + "-1", region + "-2"}}
}

// memberCommand is the command of the child process for a member.
func memberCommand(o memberOptions, nodes int, where topology) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self, "member", "--name", o.Name, "--data-dir", o.Dir, "--port", strconv.Itoa(o.Port),
		"--nodes", strconv.Itoa(nodes), "--region", where.Region, "--zones", strings.Join(where.Zones, ","), "--certificate-lifetime", o.CertificateLifetime.String())
	cmd.Env = append(os.Environ(), readyFDVariable+"=3")
	return cmd
}

func clusterClient(karmada *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the Cluster API: %w", err)
	}
	karmadaClient, err := client.New(karmada, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making client of the control plane: %w", err)
	}
	return karmadaClient, nil
}

func listClusters(ctx context.Context, karmada *rest.Config) ([]clusterv1alpha1.Cluster, error) {
	karmadaClient, err := clusterClient(karmada)
	if err != nil {
		return nil, err
	}
	list := &clusterv1alpha1.ClusterList{}
	if err := karmadaClient.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	return list.Items, nil
}

func registeredClusters(ctx context.Context, karmada *rest.Config) ([]string, error) {
	clusters, err := listClusters(ctx, karmada)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		names = append(names, cluster.Name)
	}
	return names, nil
}

// awaitClustersReady waits until the control plane finds the clusters ready.
func awaitClustersReady(ctx context.Context, karmada *rest.Config, names []string) error {
	var waiting []string
	err := wait.PollUntilContextCancel(ctx, clustersPoll, true, func(ctx context.Context) (bool, error) {
		clusters, err := listClusters(ctx, karmada)
		if err != nil {
			return false, err
		}
		waiting = notReady(clusters, names)
		return len(waiting) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to become Ready: %w", strings.Join(waiting, ", "), err)
	}
	return nil
}

func notReady(clusters []clusterv1alpha1.Cluster, names []string) []string {
	ready := map[string]bool{}
	for i := range clusters {
		ready[clusters[i].Name] = domain.Ready(&clusters[i])
	}
	var waiting []string
	for _, name := range names {
		if !ready[name] {
			waiting = append(waiting, name)
		}
	}
	return waiting
}
