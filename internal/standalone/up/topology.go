package up

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
)

const simulatedProvider = "simulated"

const clustersPollInterval = 100 * time.Millisecond

// topology contains a member's simulated region and zones.
type topology struct {
	Region string
	Zones  []string
}

// regions are the default regions of members for which the user sets no region.
var regions = []string{"east", "west", "north", "south"}

func topologyOf(region string) topology {
	return topology{Region: region, Zones: []string{region + "-1", region + "-2"}}
}

// assignRegions assigns the regions in turn to members without a region, so that placements can select
// regions. A member's region never changes.
func (s *storedState) assignRegions() {
	if s.Regions == nil {
		s.Regions = map[string]string{}
	}
	for n, name := range s.Members {
		if s.Regions[name] != "" {
			continue
		}
		if number, err := strconv.Atoi(strings.TrimPrefix(name, memberPrefix)); err == nil && number > 0 {
			n = number - 1
		}
		s.Regions[name] = regions[n%len(regions)]
	}
}

// newMemberProcess returns the command that runs a member's child process.
func newMemberProcess(o memberOptions, nodes int, location topology) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self, "member", memberRun, "--name", o.Name, "--data-dir", o.Dir, "--port", strconv.Itoa(o.Port),
		"--nodes", strconv.Itoa(nodes), "--region", location.Region, "--zones", strings.Join(location.Zones, ","), "--certificate-lifetime",
		o.CertificateLifetime.String(),
		"--estimator-port", strconv.Itoa(o.EstimatorPort), "--estimators-dir", o.EstimatorsDir, "--feature-gates", o.FeatureGates)
	if o.ProgramsDisabled != "" {
		cmd.Args = append(cmd.Args, "--programs-off", o.ProgramsDisabled)
	}
	if o.AllowUnconfined {
		cmd.Args = append(cmd.Args, "--programs-unconfined")
	}
	cmd.Env = append(os.Environ(), eventsFDVariable+"=3")
	return cmd
}

func clusterClient(karmada *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the Cluster API: %w", err)
	}
	karmadaClient, err := client.New(karmada, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client of the control plane: %w", err)
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

// registeredClusters returns the names of all Clusters. If members' Clusters are being deleted, it
// first waits until these no longer exist.
func registeredClusters(ctx context.Context, karmada *rest.Config, members []string) (names []string, err error) {
	var deleting []string
	err = wait.PollUntilContextCancel(ctx, clustersPollInterval, true, func(ctx context.Context) (bool, error) {
		clusters, err := listClusters(ctx, karmada)
		if err != nil {
			return false, err
		}
		names, deleting = nil, nil
		for i := range clusters {
			names = append(names, clusters[i].Name)
			if clusters[i].DeletionTimestamp != nil && slices.Contains(members, clusters[i].Name) {
				deleting = append(deleting, clusters[i].Name)
			}
		}
		return len(deleting) == 0, nil
	})
	if len(deleting) > 0 && wait.Interrupted(err) {
		return nil, fmt.Errorf("waiting for the deletion of %s: %w", strings.Join(deleting, ", "), err)
	}
	return names, err
}

// awaitClustersReady waits until the clusters are Ready. A status that an agent reported before this
// run does not count: the agent must have renewed its Lease since began.
func awaitClustersReady(ctx context.Context, karmada *rest.Config, names []string, began time.Time) error {
	var waiting []string
	err := wait.PollUntilContextCancel(ctx, clustersPollInterval, true, func(ctx context.Context) (bool, error) {
		clusters, err := listClusters(ctx, karmada)
		if err != nil {
			return false, err
		}
		leases, err := agentRenewTimes(ctx, karmada)
		if err != nil {
			return false, err
		}
		waiting = notReadyClusters(clusters, leases, names, began)
		return len(waiting) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to become Ready: %w", strings.Join(waiting, ", "), err)
	}
	return nil
}

// agentRenewTimes returns the time at which each agent last renewed its Lease, by cluster name.
func agentRenewTimes(ctx context.Context, karmada *rest.Config) (map[string]time.Time, error) {
	leases, err := coordinationv1client.NewForConfig(karmada)
	if err != nil {
		return nil, fmt.Errorf("creating a client of the control plane: %w", err)
	}
	list, err := leases.Leases(clusterv1alpha1.NamespaceKarmadaCluster).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the Leases of agents: %w", err)
	}
	renewed := map[string]time.Time{}
	for i := range list.Items {
		if at := list.Items[i].Spec.RenewTime; at != nil {
			renewed[list.Items[i].Name] = at.Time
		}
	}
	return renewed, nil
}

func notReadyClusters(clusters []clusterv1alpha1.Cluster, renewed map[string]time.Time, names []string, began time.Time) []string {
	ready := map[string]bool{}
	for i := range clusters {
		cluster := &clusters[i]
		isCurrent := cluster.Spec.SyncMode != clusterv1alpha1.Pull || renewed[cluster.Name].After(began)
		ready[cluster.Name] = isCurrent && domain.IsReady(cluster)
	}
	var waiting []string
	for _, name := range names {
		if !ready[name] {
			waiting = append(waiting, name)
		}
	}
	return waiting
}
