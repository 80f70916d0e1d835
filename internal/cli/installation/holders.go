package installation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install/installer"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
)

// holdersTimeout limits how long deinit waits for the list of Clusters.
const holdersTimeout = 30 * time.Second

// checkCredentialHolders returns an error if clusters hold credentials of the control plane that is to
// be removed, or if that is unknown. It returns nil if the namespace has no installation of this
// program, or no API server: nothing has joined yet, or an earlier run made the check.
func checkCredentialHolders(ctx context.Context, program *command.Program, kubeconfig command.Kubeconfig, namespace string) error {
	host, err := kubeconfig.Config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, holdersTimeout)
	defer cancel()
	install, err := installer.Open(ctx, installer.Options{Host: host}, namespace)
	if missing := (*installer.NotInstalledError)(nil); errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return err
	}
	defer install.Close()
	if exists, err := install.HasAPIServer(ctx); err != nil || !exists {
		return err
	}
	clusters, err := listClusters(ctx, install)
	if err != nil {
		return fmt.Errorf("not removing the control plane in namespace %s, because it is unknown which clusters hold its credentials: %w\nIf no cluster holds them, add --force", namespace, err)
	}
	return holdersError(program.Name, namespace, clusters)
}

func listClusters(ctx context.Context, install *installer.Installer) ([]clusterv1alpha1.Cluster, error) {
	config, err := install.ConnectKarmada(ctx)
	if err != nil {
		return nil, err
	}
	karmada, err := clusterclient.NewKarmada(config, nil)
	if err != nil {
		return nil, err
	}
	return karmada.ListClusters(ctx)
}

// holdersError returns the error that names the clusters, or nil if there are none.
func holdersError(program, namespace string, clusters []clusterv1alpha1.Cluster) error {
	holders := registration.NewCredentialHolders(clusters, func(*clusterv1alpha1.Cluster) bool { return false })
	if holders.Count() == 0 {
		return nil
	}
	return fmt.Errorf("not removing the control plane in namespace %s: these clusters would keep its credentials: %s\n"+
		"Remove each first, with the kubeconfig of the control plane:\n  %s\n"+
		"With --force the control plane is removed anyway; the clusters keep the service accounts of Karmada with their roles and bindings, agents, and propagated objects",
		namespace, holders, strings.Join(holders.LeaveCommands(program), "\n  "))
}
